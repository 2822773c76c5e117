// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Decode.h"

#include "Handlers.h"
#include "PtxParser.h"

#include <algorithm>

using namespace attn::sim;

using Kind = PtxOperand::Kind;

/// Sizes past this are cut to it; run() refuses launches that are anywhere near.
static constexpr uint64_t kMostBytes = uint64_t(1) << 30;

static uint32_t alignUp(uint64_t value, int64_t align) {
  const uint64_t to = std::clamp<int64_t>(align, 1, 1 << 20);
  return static_cast<uint32_t>(std::min((value + to - 1) / to * to, kMostBytes));
}

static uint32_t endOf(uint32_t offset, const PtxVariable &variable) {
  const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(variable.bytes(), 0));
  return static_cast<uint32_t>(std::min(offset + std::min(bytes, kMostBytes), kMostBytes));
}

bool attn::sim::parseType(const std::string &text, PtxType &type) {
  const std::optional<PtxType> found = ptxTypeOf(text);
  if (!found || text.find('x') != std::string::npos)
    return false;
  type = *found;
  return true;
}

static AluTable makeTable() {
  AluTable table;
  addIntegerInstructions(table);
  addBitInstructions(table);
  addFloatInstructions(table);
  addHalfInstructions(table);
  addCompareInstructions(table);
  addConversions(table);
  return table;
}

static const AluTable &aluTable() {
  static const AluTable table = makeTable();
  return table;
}

uint32_t attn::sim::layoutGlobals(const PtxModule &module, std::vector<uint32_t> &offsets) {
  uint32_t end = 0;
  for (const PtxVariable &variable : module.globals) {
    end = alignUp(end, std::max<int64_t>(variable.align, 16));
    offsets.push_back(end);
    end = endOf(end, variable);
  }
  return end;
}

Decoder::Decoder(const PtxModule &module, const PtxKernel &kernel, const uint8_t *globals,
                 std::vector<Report> &unsupported)
    : module(module), kernel(kernel), globals(globals), unsupported(unsupported) {}

void Decoder::layoutRegisters() {
  uint64_t end = 0;
  for (const PtxRegister &reg : kernel.registers) {
    const bool isWide = byteSize(reg.type) == 8;
    end = alignUp(end, isWide ? 8 : 4);
    registerOffset.push_back(static_cast<int32_t>(end));
    wide.push_back(isWide);
    end += reg.type == PtxType::Pred ? 4 : isWide ? 256 : 128;
  }
  program.registerBytes = alignUp(end, 4);
}

void Decoder::layoutVariables() {
  uint32_t end = 0;
  for (const PtxVariable &param : kernel.params) {
    end = alignUp(end, param.align);
    program.paramOffsets.push_back(end);
    symbols[param.name] = {end, Space::Param, param.bytes()};
    end = endOf(end, param);
  }
  program.paramBytes = end;
  // Fixed variables first, then dynamic memory, where all arrays without a size start.
  uint32_t shared = 0, dynamicAlign = 1;
  std::vector<const PtxVariable *> dynamic;
  for (const std::vector<PtxVariable> *scope : {&module.shared, &kernel.shared})
    for (const PtxVariable &variable : *scope) {
      if (variable.count == 0) {
        dynamic.push_back(&variable);
        dynamicAlign = std::max(dynamicAlign, static_cast<uint32_t>(variable.align));
        continue;
      }
      shared = alignUp(shared, variable.align);
      symbols[variable.name] = {kSharedBase + shared, Space::Shared, variable.bytes()};
      shared = endOf(shared, variable);
    }
  shared = alignUp(shared, dynamicAlign);
  for (const PtxVariable *variable : dynamic)
    symbols[variable->name] = {kSharedBase + shared, Space::Shared, 0};
  program.staticShared = shared;
  uint32_t local = 0;
  for (const PtxVariable &variable : kernel.locals) {
    local = alignUp(local, variable.align);
    symbols[variable.name] = {local, Space::Local, variable.bytes()};
    local = endOf(local, variable);
  }
  program.localBytes = alignUp(local, 16);
  std::vector<uint32_t> offsets;
  program.globalBytes = layoutGlobals(module, offsets);
  for (size_t i = 0; i < offsets.size(); ++i)
    symbols[module.globals[i].name] = {reinterpret_cast<uint64_t>(globals) + offsets[i],
                                       Space::Global, module.globals[i].bytes()};
}

/// Numbers the registers that products use: those are watched.
void Decoder::findProducts() {
  for (const PtxInstruction &from : kernel.instructions)
    if (from.opcode == "wgmma")
      for (const PtxOperand &operand : from.operands)
        if (operand.kind == Kind::Vector)
          for (const PtxOperand &element : operand.elements)
            if (element.kind == Kind::Register)
              tracked.emplace(element.number, static_cast<int32_t>(tracked.size()));
  program.numRegisters = static_cast<uint32_t>(tracked.size());
}

Program Decoder::run() {
  program.name = kernel.name;
  program.maxRegisters = static_cast<uint32_t>(kernel.maxRegisters);
  program.minCtasPerSm = static_cast<uint32_t>(std::clamp(kernel.minCtasPerSm, 1, 32));
  layoutRegisters();
  layoutVariables();
  findProducts();
  findLoads();
  program.code.reserve(kernel.instructions.size() + 1);
  for (const PtxInstruction &from : kernel.instructions)
    instruction(from);
  for (const Instr &in : program.code)
    if ((in.run == executeLoad || in.run == executeStore) &&
        (in.space == Space::Shared || in.space == Space::Cluster || in.space == Space::Generic) &&
        in.width * in.listCount % 4)
      program.granuleShift = 0;
  // Running past the end returns.
  Instr end;
  end.flow = Flow::Exit;
  end.cls = Class::Branch;
  end.line = program.code.empty() ? kernel.line : program.code.back().line;
  program.code.push_back(end);
  program.ranks = rankInstructions(program.code);
  return std::move(program);
}

void Decoder::fail(const std::string &why) {
  if (problem.empty())
    problem = why;
}

static void collect(const PtxOperand &operand, std::set<int32_t> &numbers) {
  if (operand.number >= 0 && (operand.kind == Kind::Register || operand.kind == Kind::Memory))
    numbers.insert(operand.number);
  for (const PtxOperand &element : operand.elements)
    collect(element, numbers);
}

void Decoder::recordTouches(const PtxInstruction &from, Instr &in) {
  if (tracked.empty() || from.opcode == "wgmma")
    return;
  std::set<int32_t> numbers;
  for (const PtxOperand &operand : from.operands)
    collect(operand, numbers);
  in.touchBegin = static_cast<uint32_t>(program.touches.size());
  for (int32_t number : numbers)
    if (auto found = tracked.find(number); found != tracked.end())
      program.touches.push_back(found->second);
  in.touchCount = static_cast<uint32_t>(program.touches.size()) - in.touchBegin;
}

static bool mayLoadShared(const PtxInstruction &from) {
  if (from.opcode != "ld" && from.opcode != "ldu")
    return from.opcode == "ldmatrix";
  for (const std::string &m : from.modifiers)
    if (m == "global" || m == "const" || m == "local" || m == "param" || m == "param::entry")
      return false;
  return true;
}

/// Numbers the registers that loads of shared memory write, and those that moves copy them to.
void Decoder::findLoads() {
  auto add = [&](const PtxOperand &to) {
    std::set<int32_t> numbers;
    collect(to, numbers);
    bool isNew = false;
    for (int32_t number : numbers)
      isNew |= loaded.emplace(number, static_cast<int32_t>(loaded.size())).second;
    return isNew;
  };
  for (const PtxInstruction &from : kernel.instructions)
    if (mayLoadShared(from) && !from.operands.empty())
      add(from.operands[0]);
  for (bool more = !loaded.empty(); more;) {
    more = false;
    for (const PtxInstruction &from : kernel.instructions) {
      if (from.opcode != "mov" || from.operands.size() != 2)
        continue;
      std::set<int32_t> numbers;
      collect(from.operands[1], numbers);
      for (int32_t number : numbers)
        if (loaded.count(number))
          more |= add(from.operands[0]);
    }
  }
  program.numLoadRegisters = static_cast<uint32_t>(loaded.size());
}

void Decoder::recordLoads(const PtxInstruction &from, Instr &in) {
  in.move = from.opcode == "mov";
  in.loadBegin = static_cast<uint32_t>(program.loadTouches.size());
  auto append = [&](size_t begin, size_t end) {
    std::set<int32_t> numbers;
    for (size_t i = begin; i < std::min(end, from.operands.size()); ++i)
      collect(from.operands[i], numbers);
    for (int32_t number : numbers)
      if (auto found = loaded.find(number); found != loaded.end())
        program.loadTouches.push_back(found->second);
    return static_cast<uint32_t>(program.loadTouches.size()) - in.loadBegin;
  };
  // Where the first operand is no address it is what comes out, but for these.
  const bool reads = from.opcode == "wgmma" || from.opcode == "bar" || from.opcode == "barrier" ||
                     from.opcode == "nanosleep";
  const bool writes =
      !reads && !from.operands.empty() && from.operands[0].kind != PtxOperand::Kind::Memory;
  if (writes)
    in.loadWrites = append(0, 1);
  in.loadTouches = append(writes, from.operands.size());
}

void Decoder::instruction(const PtxInstruction &from) {
  Instr in;
  in.line = from.line;
  problem.clear();
  problemKind = Report::Kind::Unsupported;
  if (from.guard >= 0) {
    in.guard = registerOffset[from.guard];
    in.guardNegated = from.guardNegated;
  }
  dispatch(from, in);
  if (problem.empty() && !in.run && in.flow == Flow::Next)
    fail("unknown instruction");
  recordTouches(from, in);
  recordLoads(from, in);
  program.code.push_back(in);
  if (problem.empty())
    return;
  Report report;
  report.kind = problemKind;
  report.line = from.line;
  report.text = "line " + std::to_string(from.line) + ": " + from.mnemonic() + ": " + problem;
  unsupported.push_back(std::move(report));
}

void Decoder::dispatch(const PtxInstruction &from, Instr &in) {
  using Method = void (Decoder::*)(const PtxInstruction &, Instr &);
  static const std::unordered_map<std::string, Method> methods = {
      {"setp", &Decoder::compare},
      {"bra", &Decoder::branch},
      {"ret", &Decoder::branch},
      {"exit", &Decoder::branch},
      {"ld", &Decoder::load},
      {"ldu", &Decoder::load},
      {"st", &Decoder::store},
      {"atom", &Decoder::atomic},
      {"red", &Decoder::atomic},
      {"ldmatrix", &Decoder::matrix},
      {"stmatrix", &Decoder::matrix},
      {"cvta", &Decoder::convertAddress},
      {"bar", &Decoder::barrier},
      {"barrier", &Decoder::barrier},
      {"shfl", &Decoder::shuffle},
      {"vote", &Decoder::vote},
      {"match", &Decoder::match},
      {"activemask", &Decoder::match},
      {"elect", &Decoder::elect},
      {"redux", &Decoder::redux},
      {"fence", &Decoder::fence},
      {"membar", &Decoder::fence},
      {"nanosleep", &Decoder::fence},
      {"prefetch", &Decoder::fence},
      {"griddepcontrol", &Decoder::fence},
      {"mapa", &Decoder::mapAddress},
      {"getctarank", &Decoder::mapAddress},
      {"setmaxnreg", &Decoder::setMaxRegisters},
      {"mbarrier", &Decoder::mbarrier},
      {"cp", &Decoder::copy},
      {"wgmma", &Decoder::wgmma}};
  auto found = methods.find(from.opcode);
  (this->*(found != methods.end() ? found->second : &Decoder::alu))(from, in);
}

bool Decoder::operands(const PtxInstruction &from, size_t low, size_t high) {
  if (from.operands.size() >= low && from.operands.size() <= high)
    return true;
  fail("has " + std::to_string(from.operands.size()) + " operands, expected " +
       std::to_string(low) + (high > low ? " to " + std::to_string(high) : ""));
  return false;
}

void Decoder::alu(const PtxInstruction &from, Instr &in) {
  if (from.opcode == "mov" && moveVector(from, in))
    return;
  const AluTable &table = aluTable();
  auto found = table.find(from.mnemonic());
  if (found == table.end())
    return fail("unknown instruction");
  if (from.opcode == "cvt" && from.operands.size() == 2 &&
      from.operands[1].kind == PtxOperand::Kind::Register && isWide(from.operands[1].number))
    if (auto wide = table.find(from.mnemonic() + kFromWide); wide != table.end())
      found = wide;
  const AluEntry &entry = found->second;
  if (!operands(from, entry.src.size() + 1, entry.src.size() + 1))
    return;
  in.run = entry.run;
  in.cls = entry.cls;
  in.dst = destination(from.operands[0], entry.dst);
  for (size_t i = 0; i < entry.src.size(); ++i) {
    bool negated = false;
    in.src[i] = entry.src[i] == PtxType::Pred ? predicate(from.operands[i + 1], negated)
                                              : source(from.operands[i + 1], entry.src[i]);
    in.negated |= negated;
  }
  // Those that only compute with predicates have no place for it.
  if (entry.dst == PtxType::Pred && in.negated)
    fail("negated operand");
  if (in.dst == kNoOperand)
    fail("no register to write");
}

void Decoder::compare(const PtxInstruction &from, Instr &in) {
  // setp.CMP{.BOOL}{.ftz}.TYPE p{|q}, a, b{, {!}c}
  std::string name = "setp";
  for (size_t i = 0; i < from.modifiers.size(); ++i) {
    const std::string &m = from.modifiers[i];
    if (i == 1 && (m == "and" || m == "or" || m == "xor"))
      in.kind = m == "and" ? 1 : m == "or" ? 2 : 3;
    else
      name += "." + m;
  }
  auto found = aluTable().find(name);
  if (found == aluTable().end())
    return fail("unknown instruction");
  const size_t count = in.kind ? 4 : 3;
  if (!operands(from, count, count))
    return;
  in.run = found->second.run;
  const PtxOperand &to = from.operands[0];
  if (to.kind == Kind::Pair) {
    in.dst = destination(to.elements[0], PtxType::Pred);
    in.dst2 = destination(to.elements[1], PtxType::Pred);
  } else {
    in.dst = destination(to, PtxType::Pred);
  }
  in.src[0] = source(from.operands[1], found->second.src[0]);
  in.src[1] = source(from.operands[2], found->second.src[1]);
  if (in.kind)
    in.src[2] = predicate(from.operands[3], in.negated);
}

void Decoder::branch(const PtxInstruction &from, Instr &in) {
  in.cls = Class::Branch;
  Modifiers modifiers(from);
  if (from.opcode == "bra") {
    modifiers.take("uni");
    in.flow = Flow::Branch;
    if (!operands(from, 1, 1))
      return;
    if (from.operands[0].kind != Kind::Label)
      return fail("expected a label");
    in.target = static_cast<int32_t>(from.operands[0].value);
  } else {
    modifiers.take("uni");
    in.flow = Flow::Exit;
    operands(from, 0, 0);
  }
  if (!modifiers.done())
    fail("unknown modifier '" + modifiers.next() + "'");
}

Program attn::sim::decode(const PtxModule &module, const PtxKernel &kernel, const uint8_t *globals,
                          std::vector<Report> &unsupported) {
  return Decoder(module, kernel, globals, unsupported).run();
}
