// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The encoder against what it encodes, without a solver: terms are evaluated where every symbol has
// a value. Operations are worked out in 128 bits, whole masks by Core's evaluator. A
// batch that is legal has to obey all rules that a query states, or proofs would leave it out.
#include "Encoder.h"
#include "TermValue.h"

#include "NaiveEval.h"
#include "RandomProgram.h"

#include "attn/Core/MaskEval.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>

using namespace attn;
using namespace attn::test;
using core::MaskProgram;
using core::NodeId;
using core::Op;
using core::ScalarType;
using proofs::Wide;

namespace {

/// The mask of a program as a term, in a world of its own.
struct Encoded {
  Encoded(mlir::MLIRContext &context, const MaskProgram &program,
          std::optional<unsigned> maxRanges = std::nullopt,
          std::map<std::string, std::string> views = {})
      : terms(&context), world(terms, options(maxRanges, std::move(views))), unknowns(terms) {
    fault = world.declare(program);
    if (!fault)
      mask = proofs::Encoder(terms, world, unknowns, program).encode(program.mask).term;
  }
  static proofs::WorldOptions options(std::optional<unsigned> maxRanges,
                                      std::map<std::string, std::string> views) {
    proofs::WorldOptions options;
    options.heads = 4;
    options.maxRanges = maxRanges;
    options.documentViews = std::move(views);
    return options;
  }

  proofs::Terms terms;
  proofs::World world;
  proofs::Unknowns unknowns;
  std::optional<std::string> fault;
  proofs::Term mask;
};

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Wide powerOf(unsigned bits) { return Wide(1) << bits; }

/// The only number of a type that differs from `x` by a multiple of its span.
Wide wrapped(Wide x, unsigned width) {
  Wide span = powerOf(width), rest = x % span;
  if (rest < 0)
    rest += span;
  return rest >= span / 2 ? rest - span : rest;
}
Wide unsignedOf(Wide x, unsigned width) { return x < 0 ? x + powerOf(width) : x; }

/// What an operation gives; a Bool that is set is -1.
Wide expected(Op op, ScalarType type, Wide a, Wide b) {
  bool isBool = type == ScalarType::Bool, isCompare = op >= Op::CmpEq && op <= Op::CmpUge;
  auto given = [&](Wide x) { return static_cast<int64_t>(isBool ? -x : x); };
  Wide result = naiveInteger(op, type, given(a), given(b));
  return isBool && !isCompare ? -result : result;
}

std::vector<Wide> edgesOf(unsigned width) {
  if (width == 1)
    return {-1, 0};
  Wide low = -powerOf(width - 1), high = powerOf(width - 1) - 1;
  return {low, low + 1, -9, -8, -2,        -1,    0,        1,        2,   3,
          7,   8,       31, 32, width - 1, width, high / 3, high - 1, high};
}

/// The mask "op(x, y) == r" with parameters x and r, and y a parameter or a constant. All are of 64
/// bits, x and y cut to the type of the operation.
MaskProgram equation(Op op, ScalarType type, std::optional<int64_t> y) {
  ProgramBuilder build;
  auto param = [&](const char *name) {
    NodeId id = build.node(Op::Param, ScalarType::I64, {}, build.param(name, ScalarType::I64));
    return type == ScalarType::I64 ? id : build.node(Op::Trunc, type, {id});
  };
  bool isCompare = op >= Op::CmpEq && op <= Op::CmpUge;
  NodeId a = param("x");
  NodeId b = y ? build.program.constant(type, *y) : param("y");
  NodeId result = build.node(op, isCompare ? ScalarType::Bool : type, {a, b});
  NodeId r = build.node(Op::Param, ScalarType::I64, {}, build.param("r", ScalarType::I64));
  if (isCompare || type != ScalarType::I64)
    result = build.node(isCompare ? Op::ZExt : Op::SExt, ScalarType::I64, {result});
  build.program.mask = build.mask(Op::CmpEq, {result, r});
  return std::move(build.program);
}

class EncoderTest : public ::testing::Test {
protected:
  /// Checks op(x, y) for all edges x, and y likewise or only `constant`.
  void checkOperation(Op op, ScalarType type, std::optional<int64_t> constant) {
    unsigned width = core::bitWidth(type);
    // Bits of two unknown numbers are written out only in the search for an example.
    MaskProgram program = equation(op, type, constant);
    ASSERT_EQ(core::verify(program), std::nullopt);
    Encoded encoded(context, program, 3);
    std::vector<proofs::Term> params = symbolsOf(encoded.world.q.term, "param");
    TermValue value(0, 0);
    for (Wide x : edgesOf(width))
      for (Wide y : constant ? std::vector<Wide>{*constant} : edgesOf(width)) {
        // Names in the order of declaration: x, y, r. What a narrow type cuts off is set besides.
        Wide above = width < 64 ? 5 * powerOf(width) : 0, result = expected(op, type, x, y);
        value.set(params.front(), x + above);
        if (!constant)
          value.set(params[1], y - above);
        for (Wide r : {result, result + (result > 0 ? -1 : 1)}) {
          value.set(params.back(), r);
          ASSERT_EQ(value.of(encoded.mask), r == result)
              << core::toString(op) << " " << core::toString(type) << " " << proofs::toString(x)
              << " " << proofs::toString(y) << " is " << proofs::toString(result);
        }
      }
  }

  mlir::MLIRContext context;
};

TEST_F(EncoderTest, Operations) {
  for (ScalarType type : {ScalarType::I8, ScalarType::I16, ScalarType::I32, ScalarType::I64})
    for (int op = static_cast<int>(Op::Add); op <= static_cast<int>(Op::CmpUge); ++op) {
      if (op == static_cast<int>(Op::Not))
        continue;
      checkOperation(static_cast<Op>(op), type, std::nullopt);
      for (Wide y : edgesOf(core::bitWidth(type)))
        checkOperation(static_cast<Op>(op), type, static_cast<int64_t>(y));
    }
}

TEST_F(EncoderTest, OperationsOnBits) {
  for (Op op : {Op::Add,    Op::Sub,    Op::Mul,    Op::MinS,   Op::MaxS,   Op::MinU,   Op::MaxU,
                Op::And,    Op::Or,     Op::Xor,    Op::CmpEq,  Op::CmpNe,  Op::CmpSlt, Op::CmpSle,
                Op::CmpSgt, Op::CmpSge, Op::CmpUlt, Op::CmpUle, Op::CmpUgt, Op::CmpUge})
    checkOperation(op, ScalarType::Bool, std::nullopt);
}

TEST_F(EncoderTest, Casts) {
  const ScalarType types[] = {ScalarType::Bool, ScalarType::I8, ScalarType::I16, ScalarType::I32,
                              ScalarType::I64};
  for (ScalarType from : types)
    for (ScalarType to : types)
      for (Op op : {Op::SExt, Op::ZExt, Op::Trunc, Op::Not}) {
        unsigned width = core::bitWidth(from), wide = core::bitWidth(to);
        if (op == Op::Not ? from != to : (op == Op::Trunc) != (wide < width) || from == to)
          continue;
        // The mask "op(x) == r", with numbers of 64 bits.
        ProgramBuilder build;
        NodeId x = build.node(Op::Param, ScalarType::I64, {}, build.param("x", ScalarType::I64));
        NodeId r = build.node(Op::Param, ScalarType::I64, {}, build.param("r", ScalarType::I64));
        NodeId result = from == ScalarType::I64 ? x : build.node(Op::Trunc, from, {x});
        result = build.node(op, to, {result});
        if (to != ScalarType::I64)
          result = build.node(Op::SExt, ScalarType::I64, {result});
        build.program.mask = build.mask(Op::CmpEq, {result, r});
        ASSERT_EQ(core::verify(build.program), std::nullopt);
        Encoded encoded(context, build.program);
        std::vector<proofs::Term> params = symbolsOf(encoded.world.q.term, "param");
        TermValue value(0, 0);
        for (Wide edge : edgesOf(width)) {
          value.set(params[0], edge);
          Wide wanted = op == Op::Not ? -1 - edge : op == Op::ZExt ? unsignedOf(edge, width) : edge;
          for (Wide off : {0, 1}) {
            value.set(params[1], wrapped(wanted, wide) + off);
            ASSERT_EQ(value.of(encoded.mask), !off)
                << core::toString(op) << " " << core::toString(from) << " " << core::toString(to)
                << " " << proofs::toString(edge);
          }
        }
      }
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Loops with one carried value, as quantifiers need them, unless the other is read.
void dropSecondResults(MaskProgram &program) {
  std::vector<bool> isRead(program.nodes.size());
  for (const core::Node &node : program.nodes)
    if (node.op == Op::ForResult)
      isRead[node.ref] = true;
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    core::Node &loop = program.nodes[i];
    if (loop.op != Op::For || isRead[i] || loop.imm != 2)
      continue;
    NodeId moved = loop.operands[6];
    loop.operands = {loop.operands[0], loop.operands[1], loop.operands[2], loop.operands[3],
                     loop.operands[5]};
    loop.imm = 1;
    core::Node zero;
    zero.type = ScalarType::I64;
    for (core::Node &node : program.nodes)
      if (node.op == Op::LoopCarried && node.ref == static_cast<int32_t>(i) && node.imm == 1)
        node = zero;
    program.nodes[moved] = zero;
  }
}

struct Element {
  int64_t b, h, q, k;
};

int64_t elementOf(const core::TableData &table, ScalarType type, const std::vector<int64_t> &at) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < 0 || at[d] >= table.extents[d])
      return 0;
    offset += at[d] * table.strides[d];
  }
  const auto *bytes = static_cast<const unsigned char *>(table.data);
  size_t size = core::bitWidth(type) / 8;
  int64_t value = 0;
  std::memcpy(&value, bytes + static_cast<size_t>(offset) * size, size);
  return type == ScalarType::F32 ? value
                                 : static_cast<int64_t>(wrapped(value, core::bitWidth(type)));
}

/// Something that no rule may hang on.
Wide junk(const std::vector<Wide> &arguments) {
  Wide sum = 1000003;
  for (Wide argument : arguments)
    sum = (sum * 31 + argument) % powerOf(70);
  return sum % 2 ? -sum : sum;
}

/// Gives each symbol of a query over randomProgram() its value in a batch, at one element.
void bind(TermValue &value, const Encoded &encoded, const MaskProgram &program,
          const core::Batch &batch, Element at) {
  proofs::Term any = encoded.world.q.term;
  auto one = [&](const char *prefix) { return symbolsOf(any, prefix).front(); };
  const core::BatchShape &shape = batch.shape;
  auto b = static_cast<size_t>(at.b);
  value.set(one("b"), at.b);
  value.set(one("h"), at.h);
  value.set(one("q"), at.q);
  value.set(one("k"), at.k);
  value.set(one("score"), 0);
  value.set(encoded.world.seqLen, shape.seqLen[b]);
  std::vector<proofs::Term> params = symbolsOf(any, "param");
  for (size_t i = 0; i < params.size(); ++i) {
    auto single = static_cast<float>(batch.params[i].f);
    uint32_t bits;
    std::memcpy(&bits, &single, sizeof(bits));
    value.set(params[i],
              program.params[i].type == ScalarType::F32 ? Wide(bits) : Wide(batch.params[i].i));
  }
  const core::TableData &ranges = batch.tables[0], &documents = batch.tables[1];
  int64_t first = ranges.rangeOffsets[b], count = ranges.rangeOffsets[b + 1] - first;
  value.set(one("ranges"), count);
  auto bound = [&ranges, first, count](bool isEnd, const std::vector<Wide> &i) -> Wide {
    if (i[0] < 0 || i[0] >= count)
      return junk(i);
    const core::Range &range = ranges.ranges[static_cast<size_t>(first + int64_t(i[0]))];
    return isEnd ? range.end : range.start;
  };
  value.set(one("start"), [bound](const std::vector<Wide> &i) { return bound(false, i); });
  value.set(one("end"), [bound](const std::vector<Wide> &i) { return bound(true, i); });
  int64_t from = documents.documentOffsets[b], length = shape.seqLen[b];
  value.set(one("document"), [&documents, from, length](const std::vector<Wide> &i) -> Wide {
    // Outside, an id that is another's.
    if (i[0] < 0 || i[0] >= length)
      return documents.documents[static_cast<size_t>(from)];
    return documents.documents[static_cast<size_t>(from + int64_t(i[0]))];
  });
  for (int32_t rows : {2, 3}) {
    const char *names[2] = {rows == 2 ? "row_lo" : "doc_lo", rows == 2 ? "row_hi" : "doc_hi"};
    core::Interval row = core::queryRangeByDefinition(
        program, batch, rows, core::RequestIndex(at.b), core::QueryPos(at.q));
    for (int end : {0, 1})
      for (proofs::Term symbol : symbolsOf(any, names[end]))
        value.set(symbol, end ? row.hi : row.lo);
  }
  std::vector<proofs::Term> functions = symbolsOf(any, "table"), extents = symbolsOf(any, "extent");
  size_t next = 0, extent = 0;
  for (size_t t = 4; t < program.tables.size(); ++t, ++next) {
    const core::TableDecl &decl = program.tables[t];
    const core::TableData &table = batch.tables[t];
    for (size_t d = 0; d < decl.dims.size(); ++d)
      if (!proofs::isImplicit(decl.dims[d]))
        value.set(extents[extent++], table.extents[d]);
    int64_t token = shape.tokenOf(core::RequestIndex(at.b), core::QueryPos(at.q)).value;
    int64_t kvHead = at.h / (batch.numHeads / batch.numKvHeads);
    value.set(functions[next],
              [&decl, &table, at, token, kvHead](const std::vector<Wide> &i) -> Wide {
                std::vector<int64_t> index;
                size_t read = 0;
                for (core::TableDim dim : decl.dims)
                  switch (dim) {
                  case core::TableDim::B:
                    index.push_back(at.b);
                    break;
                  case core::TableDim::H:
                    index.push_back(at.h);
                    break;
                  case core::TableDim::HKv:
                    index.push_back(kvHead);
                    break;
                  case core::TableDim::Token:
                    index.push_back(token);
                    break;
                  default: {
                    Wide wide = i[read++];
                    if (wide < 0 || wide >= table.extents[index.size()])
                      return junk(i);
                    index.push_back(static_cast<int64_t>(wide));
                  }
                  }
                return elementOf(table, decl.element, index);
              });
  }
}

/// A batch for randomProgram() that obeys the rules: tables over k span the keys, and the rows are
/// those of the ranges.
core::Batch legalBatch(std::mt19937 &random, const MaskProgram &program) {
  core::Batch batch = randomBatch(random, program);
  batch.tables[2].rows.clear();
  const std::vector<int64_t> &lengths = batch.shape.seqLen;
  int64_t requests = batch.shape.numReqs();
  int64_t keys = *std::max_element(lengths.begin(), lengths.end());
  std::vector<int8_t> bytes(static_cast<size_t>(requests * keys));
  for (int8_t &byte : bytes)
    byte = static_cast<int8_t>(static_cast<int>(random() % 12) - 3);
  batch.tables[7] = plainTable({requests, keys}, bytes);
  batch.tables[9] = plainTable({keys}, std::vector<float>(static_cast<size_t>(keys), 0.5f));
  return batch;
}

struct Tried {
  int elements = 0, kept = 0, quantifiers = 0, skipped = 0;
};

/// Compares one program at random elements, with and without a limit on ranges.
void checkMask(mlir::MLIRContext &context, std::mt19937 &random, const MaskProgram &program,
               Tried &tried) {
  for (std::optional<unsigned> limit : {std::optional<unsigned>(), std::optional<unsigned>(3)}) {
    Encoded encoded(context, program, limit);
    ASSERT_EQ(encoded.fault, std::nullopt);
    if (!encoded.unknowns.getNames().empty()) {
      ++tried.skipped;
      continue;
    }
    proofs::Term any = encoded.world.q.term;
    mlir::Block *block = any.getDefiningOp()->getBlock();
    tried.quantifiers += !block->getOps<mlir::smt::ExistsOp>().empty() ||
                         !block->getOps<mlir::smt::ForallOp>().empty();
    for (int i = 0; i < 3; ++i) {
      core::Batch batch = legalBatch(random, program);
      core::MaskEvaluator evaluator(program, batch);
      TermValue value(-2, 12);
      for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
        int64_t queries = batch.shape.queryLen(core::RequestIndex(b));
        int64_t keys = batch.shape.seqLen[static_cast<size_t>(b)];
        if (!queries || !keys)
          continue;
        int64_t q = batch.shape.contextLen[static_cast<size_t>(b)] +
                    static_cast<int64_t>(random() % static_cast<uint64_t>(queries));
        Element at{b, static_cast<int64_t>(random() % 4), q,
                   static_cast<int64_t>(random() % static_cast<uint64_t>(keys))};
        bind(value, encoded, program, batch, at);
        bool obeys = true;
        for (proofs::Term rule : assertionsOf(any))
          obeys &= value.of(rule) != 0;
        // With a limit the length of loops is a condition besides.
        ASSERT_TRUE(obeys || limit) << "a legal batch breaks a rule";
        if (!obeys)
          continue;
        bool kept = evaluator.keep(core::RequestIndex(at.b), core::HeadIndex(at.h),
                                   core::QueryPos(at.q), core::KeyPos(at.k));
        ASSERT_EQ(value.of(encoded.mask), kept)
            << core::toFormula(program, program.mask) << " at " << at.b << " " << at.h << " "
            << at.q << " " << at.k;
        ++tried.elements;
        tried.kept += kept;
      }
    }
  }
}

TEST_F(EncoderTest, Masks) {
  std::mt19937 random(7);
  for (Wildness wildness : {Wildness::Named, Wildness::Comparisons, Wildness::Anything}) {
    Tried tried;
    for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
      MaskProgram program = randomProgram(random, wildness);
      dropSecondResults(program);
      ASSERT_EQ(core::verify(program), std::nullopt);
      checkMask(context, random, program, tried);
    }
    std::printf("%d elements, %d kept, %d queries with quantifiers, %d with unknown operations\n",
                tried.elements, tried.kept, tried.quantifiers, tried.skipped);
    EXPECT_GT(tried.elements, 300);
    EXPECT_GT(tried.kept, 60);
    EXPECT_GT(tried.quantifiers, 20);
  }
}

} // namespace
