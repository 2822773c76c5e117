// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomProgram.h"

#include <algorithm>

namespace attn::test {

using namespace attn::core;

namespace {

using Type = ScalarType;

class Generator {
public:
  Generator(std::mt19937 &random, Wildness wildness) : random(random), wildness(wildness) {
    build.param("left", Type::I32);
    build.param("count", Type::I32);
    build.param("big", Type::I64);
    build.param("f", Type::F32);
    ranges = build.table("mm", TableKind::Ranges);
    documents = build.table("docs", TableKind::Documents);
    build.table("range_rows", TableKind::QueryRanges, ranges);
    build.table("document_rows", TableKind::QueryRanges, documents);
    plain.push_back(build.plain("per_b", {TableDim::B}, Type::I32));
    plain.push_back(build.plain("per_token", {TableDim::Token, TableDim::HKv}, Type::I64));
    plain.push_back(build.plain("per_h", {TableDim::H}, Type::I32));
    plain.push_back(build.plain("per_k", {TableDim::B, TableDim::K}, Type::I8));
    plain.push_back(build.plain("per_slot", {TableDim::Slot, TableDim::Bucket}, Type::I32));
    floats = build.plain("floats", {TableDim::K}, Type::F32);
  }

  MaskProgram run() {
    build.program.mask = boolean(4);
    return std::move(build.program);
  }

private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random()) % n; }
  bool anything() const { return wildness == Wildness::Anything; }

  /// A small or, at times, an extreme number.
  int64_t literal() {
    switch (pick(12)) {
    case 0:
      return INT32_MAX;
    case 1:
      return INT32_MIN;
    case 2:
      return kPositionLimit - 1 + pick(3);
    default:
      return static_cast<int64_t>(pick(16)) - 4;
    }
  }

  /// A radius or count: literal, parameter, or an element that varies with request, head or token.
  NodeId radius() {
    switch (pick(5)) {
    case 0:
      return build.node(Op::Param, Type::I32, {}, pick(2));
    case 1:
      return build.node(Op::Param, Type::I64, {}, 2);
    case 2:
      return load(plain[pick(3)], 0);
    default:
      return build.i32(literal());
    }
  }

  NodeId load(int32_t table, int depth) {
    const TableDecl decl = build.program.tables[table];
    std::vector<NodeId> operands;
    for (TableDim dim : decl.dims) {
      bool free = dim == TableDim::K || dim == TableDim::Slot || dim == TableDim::Bucket;
      operands.push_back(free && depth > 0 ? integer(depth - 1, Type::I64) : build.k());
    }
    return build.node(Op::TableLoad, decl.element, operands, table);
  }

  NodeId named() {
    switch (pick(8)) {
    case 0:
      return build.mask(Op::Causal);
    case 1: {
      int64_t sides = 1 + pick(3);
      std::vector<NodeId> operands = {radius()};
      if (sides == 3)
        operands.push_back(radius());
      return build.mask(Op::Window, operands, -1, sides);
    }
    case 2:
      return build.mask(Op::MmPrefix, {}, ranges);
    case 3:
      return build.mask(Op::MmPrefix, {radius()}, ranges);
    case 4:
      return build.mask(Op::Prefix, {radius()});
    case 5:
      return build.mask(Op::Document, {}, documents);
    case 6:
      return build.mask(Op::Global, {radius()});
    default: {
      int32_t rows = 2 + pick(2);
      NodeId lo = pick(3) ? build.node(Op::RowLo, Type::I64, {}, rows) : build.i64(literal());
      NodeId hi = pick(3) ? build.node(Op::RowHi, Type::I64, {}, rows) : build.i64(literal());
      return build.mask(Op::InRows, {lo, hi});
    }
    }
  }

  /// An integer that does not depend on k.
  NodeId rowConstant() {
    switch (pick(7)) {
    case 0:
      return build.node(Op::Param, Type::I64, {}, 2);
    case 1:
      return load(plain[1], 0);
    case 2:
      return build.node(pick(2) ? Op::RowLo : Op::RowHi, Type::I64, {}, 2 + pick(2));
    case 3:
      return build.node(Op::Add, Type::I64, {build.q(), build.i64(literal())});
    case 4:
      return build.node(Op::Mul, Type::I64, {build.q(), build.i64(pick(4))});
    case 5:
      return build.i64(literal());
    default:
      return build.q();
    }
  }

  /// k +- something, possibly scaled, divided or narrowed.
  NodeId linear() {
    NodeId x = build.k();
    switch (pick(6)) {
    case 0:
      return build.node(Op::Add, Type::I64, {x, rowConstant()});
    case 1:
      return build.node(Op::Sub, Type::I64, {rowConstant(), x});
    case 2:
      return build.node(Op::Mul, Type::I64, {x, build.i64(static_cast<int64_t>(pick(7)) - 3)});
    case 3: {
      Op ops[] = {Op::DivS, Op::FloorDivS, Op::ShrS};
      NodeId shifted = build.node(Op::Sub, Type::I64, {x, build.i64(pick(4))});
      return build.node(ops[pick(3)], Type::I64, {shifted, build.i64(1 + pick(4))});
    }
    case 4: {
      NodeId narrow = build.node(Op::Trunc, Type::I32, {x});
      NodeId moved = build.node(Op::Add, Type::I32, {narrow, build.i32(pick(5))});
      return build.node(Op::SExt, Type::I64, {moved});
    }
    default:
      return x;
    }
  }

  Op anyCompare() {
    return static_cast<Op>(static_cast<int>(Op::CmpEq) + static_cast<int>(pick(10)));
  }

  NodeId comparison() {
    NodeId a = linear(), b = rowConstant();
    return pick(2) ? build.mask(anyCompare(), {a, b}) : build.mask(anyCompare(), {b, a});
  }

  /// A loop over [0, n) whose body is made by `body(iv, acc)`.
  template <class Body>
  NodeId loop(NodeId ub, Type type, NodeId init, Body body) {
    NodeId lb = build.i64(0), step = build.i64(1 + pick(2));
    NodeId iv = build.node(Op::LoopIndex, Type::I64);
    NodeId acc = build.node(Op::LoopCarried, type, {}, -1, 0);
    NodeId other = build.node(Op::LoopCarried, Type::I64, {}, -1, 1);
    NodeId start = build.i64(literal());
    loopIndices.push_back(iv);
    NodeId yield = body(iv, acc);
    loopIndices.pop_back();
    NodeId moved = build.node(Op::Add, Type::I64, {other, iv});
    NodeId id = build.node(Op::For, type, {lb, ub, step, init, start, yield, moved}, -1, 2);
    for (NodeId leaf : {iv, acc, other})
      build.program.nodes[leaf].ref = id;
    // At times the second result decides instead.
    if (type != Type::I64 || pick(3))
      return id;
    return build.node(Op::ForResult, Type::I64, {}, id, 1);
  }

  NodeId booleanLoop(int depth) {
    NodeId ub = pick(2) ? build.node(Op::NumRanges, Type::I64, {}, ranges) : build.i64(pick(4));
    bool isAny = pick(2);
    return loop(ub, Type::Bool, build.boolean(!isAny), [&](NodeId iv, NodeId acc) {
      NodeId s = build.node(Op::RangeStart, Type::I64, {iv}, ranges);
      NodeId e = build.node(Op::RangeEnd, Type::I64, {iv}, ranges);
      NodeId term = build.andOf(build.mask(Op::CmpSle, {s, linear()}),
                                build.mask(Op::CmpSge, {e, build.k()}));
      if (pick(2))
        term = build.andOf(term, build.mask(Op::CmpSle, {s, build.q()}));
      if (anything())
        term = build.mask(Op::Xor, {term, boolean(depth - 1)});
      return build.mask(isAny ? Op::Or : Op::And, {acc, term});
    });
  }

  NodeId boolean(int depth) {
    if (!shared.empty() && loopIndices.empty() && pick(8) == 0)
      return shared[pick(static_cast<unsigned>(shared.size()))];
    NodeId id = freshBoolean(depth);
    if (loopIndices.empty())
      shared.push_back(id);
    return id;
  }

  NodeId freshBoolean(int depth) {
    if (depth <= 0)
      return pick(12) == 0 ? build.boolean(pick(2)) : named();
    switch (pick(wildness == Wildness::Named ? 7 : anything() ? 14 : 11)) {
    case 0:
    case 1:
      return build.andOf(boolean(depth - 1), boolean(depth - 1));
    case 2:
    case 3:
      return build.orOf(boolean(depth - 1), boolean(depth - 1));
    case 4:
      return build.notOf(boolean(depth - 1));
    case 5:
      return build.mask(pick(3)   ? Op::Xor
                        : pick(2) ? Op::CmpEq
                                  : Op::CmpNe,
                        {boolean(depth - 1), boolean(depth - 1)});
    case 6:
      return named();
    case 7:
    case 8:
      return comparison();
    case 9:
      return booleanLoop(depth - 1);
    case 10:
      return build.mask(Op::Select, {boolean(depth - 1), boolean(depth - 1), boolean(depth - 1)});
    case 11: {
      NodeId x = build.node(Op::FAdd, Type::F32,
                            {load(floats, depth), build.node(Op::Param, Type::F32, {}, 3)});
      NodeId y = build.node(Op::SIToFP, Type::F32, {integer(depth - 1, Type::I64)});
      return build.mask(Op::FCmpOlt, {x, y});
    }
    default: {
      Type types[] = {Type::I64, Type::I64, Type::I32, Type::I8, Type::I16, Type::Bool};
      Type type = types[pick(6)];
      return build.mask(anyCompare(), {integer(depth - 1, type), integer(depth - 1, type)});
    }
    }
  }

  NodeId integer(int depth, Type type) {
    if (type == Type::Bool)
      return boolean(depth);
    if (type != Type::I64 && pick(3))
      return build.node(Op::Trunc, type, {integer(depth, Type::I64)});
    if (depth <= 0 || pick(6) == 0)
      return integerLeaf(type);
    if (pick(8) == 0)
      return build.node(Op::Select, type,
                        {boolean(depth - 1), integer(depth - 1, type), integer(depth - 1, type)});
    if (type == Type::I64)
      switch (pick(10)) {
      case 0:
        return build.node(pick(2) ? Op::SExt : Op::ZExt, type, {integer(depth - 1, Type::I32)});
      case 1:
        return build.node(pick(2) ? Op::SExt : Op::ZExt, type, {load(plain[3], depth)});
      case 2:
        return build.node(pick(2) ? Op::SExt : Op::ZExt, type, {boolean(depth - 1)});
      case 3:
        return build.node(pick(2) ? Op::RangeStart : Op::RangeEnd, type, {integer(depth - 1, type)},
                          ranges);
      case 4:
        return loop(build.i64(pick(4)), type, build.i64(literal()), [&](NodeId iv, NodeId acc) {
          return build.node(pick(2) ? Op::Add : Op::MaxS, type,
                            {acc, pick(2) ? integer(depth - 1, type) : iv});
        });
      default:
        break;
      }
    if (pick(10) == 0)
      return build.node(Op::Not, type, {integer(depth - 1, type)});
    Op op;
    do
      op = static_cast<Op>(static_cast<int>(Op::Add) + static_cast<int>(pick(20)));
    while (op == Op::Not);
    return build.node(op, type, {integer(depth - 1, type), integer(depth - 1, type)});
  }

  NodeId integerLeaf(Type type) {
    if (type == Type::I32 && pick(2))
      return pick(2) ? build.node(Op::Param, type, {}, pick(2)) : load(plain[pick(2) * 2], 0);
    if (type != Type::I64)
      return build.program.constant(type, static_cast<int64_t>(pick(12)) - 6);
    if (!loopIndices.empty() && pick(2))
      return loopIndices[pick(static_cast<unsigned>(loopIndices.size()))];
    switch (pick(8)) {
    case 0:
      return build.node(Op::IndexB, type);
    case 1:
      return build.node(Op::IndexH, type);
    case 2:
    case 3:
      return build.k();
    case 4:
      return build.q();
    case 5:
      return rowConstant();
    case 6:
      return build.node(Op::NumRanges, type, {}, ranges);
    default:
      return build.i64(literal());
    }
  }

  std::mt19937 &random;
  Wildness wildness;
  ProgramBuilder build;
  int32_t ranges = 0, documents = 0, floats = 0;
  std::vector<int32_t> plain;
  std::vector<NodeId> loopIndices; ///< of the loops around the current place
  std::vector<NodeId> shared;      ///< Bool nodes outside of loops
};

} // namespace

MaskProgram randomProgram(std::mt19937 &random, Wildness wildness) {
  return Generator(random, wildness).run();
}

Batch randomBatch(std::mt19937 &random, const MaskProgram &program) {
  auto pick = [&](unsigned n) { return static_cast<int64_t>(random() % n); };
  Batch batch;
  batch.numHeads = 4;
  batch.numKvHeads = 2;
  std::vector<std::vector<Range>> ranges;
  std::vector<std::vector<int32_t>> documents;
  for (int64_t n = 1 + pick(3); n > 0; --n) {
    int64_t queryLen = pick(5), seqLen = pick(11);
    if (pick(3) == 0)
      addRequest(batch.shape, queryLen, seqLen, pick(6));
    else
      addRequest(batch.shape, queryLen, seqLen);
    ranges.emplace_back();
    for (int64_t r = pick(4); r > 0; --r) {
      int32_t start = static_cast<int32_t>(pick(10));
      ranges.back().push_back({start, start + static_cast<int32_t>(pick(6))});
    }
    documents.emplace_back();
    int32_t id = static_cast<int32_t>(pick(5)) - 2;
    for (int64_t p = 0; p < seqLen; ++p) {
      id += pick(3) == 0;
      documents.back().push_back(id);
    }
  }
  int64_t extremes[] = {INT64_MAX, INT64_MIN, kPositionLimit, -kPositionLimit, 3};
  int64_t big = pick(2) ? extremes[pick(5)] : pick(12);
  batch.params = {{pick(6), 0}, {1 + pick(6), 0}, {big, 0}, {0, 0.1 * double(pick(30))}};

  auto numbers = [&](int64_t count, auto zero) {
    std::vector<decltype(zero)> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<decltype(zero)>(pick(12) - 3));
    return values;
  };
  const BatchShape &shape = batch.shape;
  int64_t requests = shape.numReqs(), tokens = shape.numTokens();
  batch.tables.resize(program.tables.size());
  batch.tables[0] = rangesTable(shape, ranges);
  batch.tables[1] = documentsTable(documents);
  if (pick(2) && tokens > 0) // Rows that someone built: any rows do.
    for (int64_t t = 0; t < tokens; ++t) {
      int32_t start = static_cast<int32_t>(pick(8));
      bool outside = pick(3) == 0;
      batch.tables[2].rows.push_back(outside ? Range{-1, -1}
                                             : Range{start, start + static_cast<int32_t>(pick(5))});
    }
  batch.tables[4] = plainTable({requests}, numbers(requests, int32_t()));
  batch.tables[5] = plainTable({tokens, 2}, numbers(tokens * 2, int64_t()));
  batch.tables[6] = plainTable({3}, numbers(3, int32_t())); // one head short: loads 0
  batch.tables[7] = plainTable({requests, 7}, numbers(requests * 7, int8_t()));
  batch.tables[8] = plainTable({5, 3}, numbers(15, int32_t()));
  batch.tables[9] = plainTable({6}, numbers(6, float()));
  return batch;
}

} // namespace attn::test
