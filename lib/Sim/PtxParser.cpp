// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Module scope: header, variables, kernels up to their bodies.
#include "PtxParser.h"

#include <utility>

namespace attn::sim {

std::optional<PtxType> ptxTypeOf(std::string_view name) {
  static const std::pair<std::string_view, PtxType> kTypes[] = {
      {"pred", PtxType::Pred}, {"b8", PtxType::B8},     {"b16", PtxType::B16},
      {"b32", PtxType::B32},   {"b64", PtxType::B64},   {"b128", PtxType::B128},
      {"u8", PtxType::U8},     {"u16", PtxType::U16},   {"u32", PtxType::U32},
      {"u64", PtxType::U64},   {"s8", PtxType::S8},     {"s16", PtxType::S16},
      {"s32", PtxType::S32},   {"s64", PtxType::S64},   {"f16", PtxType::F16},
      {"bf16", PtxType::BF16}, {"f32", PtxType::F32},   {"f64", PtxType::F64},
      {"f16x2", PtxType::B32}, {"bf16x2", PtxType::B32}};
  for (const auto &[spelling, type] : kTypes)
    if (spelling == name)
      return type;
  return std::nullopt;
}

bool PtxParser::failAt(int32_t line, const std::string &message) {
  if (error.empty())
    error = "line " + std::to_string(line) + ": " + message;
  return false;
}

bool PtxParser::expected(std::string_view what) {
  if (token.kind == PtxToken::Kind::Bad)
    return failAt(token.line, token.describe());
  return failAt(token.line, "expected " + std::string(what) + ", got " + token.describe());
}

bool PtxParser::accept(char punctuation) {
  if (!token.is(punctuation))
    return false;
  advance();
  return true;
}

bool PtxParser::expect(char punctuation, std::string_view what) {
  return accept(punctuation) || expected(what);
}

bool PtxParser::takeInteger(std::string_view what, int64_t min, int64_t max, int64_t &value) {
  if (token.kind != PtxToken::Kind::Integer)
    return expected(what);
  if (token.value < static_cast<uint64_t>(min) || token.value > static_cast<uint64_t>(max))
    return failAt(token.line, "expected " + std::string(what) + " of " + std::to_string(min) +
                                  " to " + std::to_string(max) + ", got " + token.describe());
  value = static_cast<int64_t>(token.value);
  advance();
  return true;
}

/// .version, .target and .address_size, in this order.
bool PtxParser::header() {
  if (!token.isDotted("version"))
    return expected("'.version'");
  advance();
  int32_t line = token.line;
  int64_t major = 0, minor = -1;
  if (!takeInteger("a version", 1, 99, major))
    return false;
  // "8.6": an integer and a dotted word.
  if (token.kind == PtxToken::Kind::Dotted && token.text.size() == 1 && token.text[0] >= '0' &&
      token.text[0] <= '9')
    minor = token.text[0] - '0';
  if (minor < 0)
    return expected("a minor version");
  advance();
  if (major < 6 || major > 9)
    return failAt(line, "PTX ISA " + std::to_string(major) + "." + std::to_string(minor) +
                            " is not supported, 6.0 to 9.9 are");
  module.versionMajor = static_cast<int32_t>(major);
  module.versionMinor = static_cast<int32_t>(minor);

  if (!token.isDotted("target"))
    return expected("'.target'");
  advance();
  if (token.kind != PtxToken::Kind::Name || token.text.substr(0, 3) != "sm_")
    return expected("a target such as sm_90a");
  module.target = token.text;
  advance();
  while (accept(',')) {
    if (!token.isName("debug"))
      return expected("'debug' (no other target option is supported)");
    advance();
  }

  if (!token.isDotted("address_size"))
    return expected("'.address_size'");
  advance();
  int64_t bits = 0;
  return takeInteger("an address size", 64, 64, bits);
}

bool PtxParser::skipSection() {
  advance();
  if (token.kind != PtxToken::Kind::Dotted)
    return expected("the name of a section");
  advance();
  if (!expect('{', "'{'"))
    return false;
  while (!token.is('}')) {
    if (token.kind == PtxToken::Kind::End || token.kind == PtxToken::Kind::Bad || token.is('{'))
      return expected("'}' at the end of the section");
    advance();
  }
  advance();
  return true;
}

bool PtxParser::pragma() {
  advance();
  do {
    if (token.kind != PtxToken::Kind::String)
      return expected("a string");
    advance();
  } while (accept(','));
  return expect(';', "';'");
}

bool PtxParser::type(PtxType &type) {
  std::optional<PtxType> found;
  if (token.kind == PtxToken::Kind::Dotted)
    found = ptxTypeOf(token.text);
  if (!found)
    return expected("a type");
  type = *found;
  advance();
  return true;
}

bool PtxParser::alignment(int64_t &align) {
  if (!token.isDotted("align"))
    return true;
  advance();
  int32_t line = token.line;
  if (!takeInteger("an alignment", 1, 1 << 20, align))
    return false;
  if (align & (align - 1))
    return failAt(line,
                  "expected an alignment that is a power of two, got " + std::to_string(align));
  return true;
}

bool PtxParser::dimensions(bool mayBeUnknown, PtxVariable &variable) {
  constexpr int64_t kMaxBytes = INT32_MAX;
  if (!token.is('['))
    return true;
  int32_t line = token.line;
  advance();
  if (mayBeUnknown && accept(']')) {
    variable.count = 0;
    return true;
  }
  while (true) {
    int64_t dimension = 0;
    if (!takeInteger("a number of elements", 1, kMaxBytes, dimension) || !expect(']', "']'"))
      return false;
    if (dimension > kMaxBytes / byteSize(variable.type) / variable.count)
      return failAt(line, quotePtx(variable.name) + " is larger than " + std::to_string(kMaxBytes) +
                              " bytes");
    variable.count *= dimension;
    if (!accept('['))
      return true;
  }
}

bool PtxParser::variables(std::string_view space, bool isExtern, PtxScopes *scopes,
                          std::vector<PtxVariable> &out) {
  PtxVariable variable;
  int64_t align = 0;
  if (!alignment(align))
    return false;
  int32_t line = token.line;
  if (!type(variable.type))
    return false;
  if (variable.type == PtxType::Pred)
    return failAt(line, "a variable in memory cannot be a predicate");
  variable.align = align ? align : byteSize(variable.type);
  do {
    if (token.kind != PtxToken::Kind::Name)
      return expected("the name of a variable");
    line = token.line;
    std::string_view name = token.text;
    variable.name = name;
    variable.count = 1;
    advance();
    if (!dimensions(isExtern && space == "shared", variable))
      return false;
    if (isExtern && variable.count)
      return failAt(line, "extern variable " + quotePtx(name) +
                              " is not supported, only 'extern .shared' of unknown size is");
    if (token.is('='))
      return failAt(token.line, "an initial value of " + quotePtx(name) + " is not supported");
    bool isNew = scopes ? scopes->declareVariable(name, variable.name)
                        : !kernelNames.count(name) && moduleVariables.emplace(name).second;
    if (!isNew)
      return failAt(line, quotePtx(name) + " is declared twice");
    out.push_back(variable);
  } while (accept(','));
  return expect(';', "';' after the declaration");
}

bool PtxParser::linkage() {
  bool isExtern = token.isDotted("extern");
  advance();
  if (token.isDotted("entry") && !isExtern)
    return entry();
  if (token.isDotted("shared") || token.isDotted("global")) {
    std::string_view space = token.text;
    advance();
    return variables(space, isExtern, nullptr, space == "shared" ? module.shared : module.globals);
  }
  if (token.isDotted("func"))
    return failAt(token.line, "functions are not supported: '.func'");
  return expected("'.entry', '.shared' or '.global'");
}

bool PtxParser::topLevel() {
  if (token.isDotted("file")) {
    lexer.skipLine();
    advance();
    return true;
  }
  if (token.isDotted("section"))
    return skipSection();
  if (token.isDotted("pragma"))
    return pragma();
  if (token.isDotted("entry"))
    return entry();
  if (token.isDotted("visible") || token.isDotted("weak") || token.isDotted("extern"))
    return linkage();
  if (token.isDotted("shared") || token.isDotted("global")) {
    std::vector<PtxVariable> &out = token.text == "shared" ? module.shared : module.globals;
    std::string_view space = token.text;
    advance();
    return variables(space, false, nullptr, out);
  }
  if (token.isDotted("func"))
    return failAt(token.line, "functions are not supported: '.func'");
  if (token.kind == PtxToken::Kind::Dotted)
    return failAt(token.line, "directive " + quotePtx("." + std::string(token.text)) +
                                  " is not supported here");
  return expected("a directive");
}

bool PtxParser::parameter(PtxKernel &kernel, PtxScopes &scopes) {
  if (!token.isDotted("param"))
    return expected("'.param'");
  advance();
  PtxVariable variable;
  int64_t align = 0;
  if (!alignment(align))
    return false;
  int32_t line = token.line;
  if (!type(variable.type))
    return false;
  if (variable.type == PtxType::Pred)
    return failAt(line, "a parameter cannot be a predicate");
  variable.align = align ? align : byteSize(variable.type);
  if (token.isDotted("ptr")) {
    // What it points at: a space and an alignment, hints both.
    advance();
    if (token.isDotted("global") || token.isDotted("shared") || token.isDotted("const") ||
        token.isDotted("local"))
      advance();
    int64_t pointee = 0;
    if (!alignment(pointee))
      return false;
  }
  if (token.kind != PtxToken::Kind::Name)
    return expected("the name of a parameter");
  line = token.line;
  std::string_view name = token.text;
  variable.name = name;
  advance();
  if (!dimensions(false, variable))
    return false;
  if (!scopes.declareVariable(name, variable.name))
    return failAt(line, quotePtx(name) + " is declared twice");
  kernel.params.push_back(std::move(variable));
  return true;
}

/// One to three counts; those left out are 1.
bool PtxParser::threadCounts(int32_t (&counts)[3]) {
  int32_t line = token.line;
  std::string_view directive = token.text;
  if (counts[0])
    return failAt(line, "'." + std::string(directive) + "' is given twice");
  advance();
  counts[0] = counts[1] = counts[2] = 1;
  for (int i = 0; i < 3; ++i) {
    int64_t value = 0;
    if (i > 0 && !accept(','))
      return true;
    if (!takeInteger("a count", 1, INT32_MAX, value))
      return false;
    counts[i] = static_cast<int32_t>(value);
  }
  return true;
}

bool PtxParser::entryDirective(PtxKernel &kernel) {
  if (token.isDotted("maxntid"))
    return threadCounts(kernel.maxThreads);
  if (token.isDotted("reqntid"))
    return threadCounts(kernel.requiredThreads);
  if (token.isDotted("reqnctapercluster"))
    return threadCounts(kernel.requiredCluster);
  if (token.isDotted("minnctapersm") || token.isDotted("maxnreg")) {
    int32_t &field = token.isDotted("maxnreg") ? kernel.maxRegisters : kernel.minCtasPerSm;
    int64_t value = 0;
    advance();
    if (!takeInteger("a count", 1, INT32_MAX, value))
      return false;
    field = static_cast<int32_t>(value);
    return true;
  }
  if (token.isDotted("explicitcluster") || token.isDotted("blocksareclusters")) {
    (token.isDotted("explicitcluster") ? kernel.explicitCluster : kernel.blocksAreClusters) = true;
    advance();
    return true;
  }
  if (token.isDotted("pragma"))
    return pragma();
  if (token.kind == PtxToken::Kind::Dotted)
    return failAt(token.line, "directive " + quotePtx("." + std::string(token.text)) +
                                  " of a kernel is not supported");
  return expected("'{'");
}

bool PtxParser::entry() {
  advance();
  if (token.kind != PtxToken::Kind::Name)
    return expected("the name of a kernel");
  PtxKernel kernel;
  kernel.name = token.text;
  kernel.line = token.line;
  if (moduleVariables.count(token.text) || !kernelNames.emplace(token.text).second)
    return failAt(token.line, quotePtx(token.text) + " is declared twice");
  advance();
  PtxScopes scopes(kernel, moduleVariables);
  scopes.open();
  if (accept('(') && !accept(')')) {
    do {
      if (!parameter(kernel, scopes))
        return false;
    } while (accept(','));
    if (!expect(')', "',' or ')'"))
      return false;
  }
  while (!token.is('{'))
    if (!entryDirective(kernel))
      return false;
  advance();
  if (!body(kernel, scopes))
    return false;
  module.kernels.push_back(std::move(kernel));
  return true;
}

core::Result<PtxModule> PtxParser::parse() {
  bool ok = header();
  while (ok && token.kind != PtxToken::Kind::End)
    ok = topLevel();
  if (!ok)
    return core::Error{std::move(error)};
  return std::move(module);
}

} // namespace attn::sim
