// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Steps.h"

#include "attn/Runtime/Builders.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace attn;
using namespace attn::core;

namespace {

template <class T>
T valueOf(Result<T> result) {
  if (result)
    return std::move(*result);
  std::fprintf(stderr, "%s\n", result.message().c_str());
  std::exit(1);
}

/// Parameter 0: window radius, 1: global tokens. Table 0: ranges, 1: documents, 2: prefix [b].
class MaskBuilder {
public:
  MaskBuilder() {
    program.params = {{"left", ScalarType::I32, 0}, {"globals", ScalarType::I32, 0}};
    TableDecl ranges, documents, prefix;
    ranges.name = "mm";
    ranges.kind = TableKind::Ranges;
    documents.name = "doc";
    documents.kind = TableKind::Documents;
    prefix.name = "prefix_len";
    prefix.dims = {TableDim::B};
    program.tables = {ranges, documents, prefix};
  }

  NodeId add(Op op, std::vector<NodeId> operands = {}, int32_t ref = -1, int64_t imm = 0,
             ScalarType type = ScalarType::Bool) {
    Node node;
    node.op = op;
    node.type = type;
    node.operands = std::move(operands);
    node.ref = ref;
    node.imm = imm;
    return program.add(std::move(node));
  }
  NodeId param(int32_t number) { return add(Op::Param, {}, number, 0, ScalarType::I32); }
  NodeId causalWindow() {
    return add(Op::And, {add(Op::Causal), add(Op::Window, {param(0)}, -1, 1)});
  }
  NodeId everyThird() {
    const NodeId q = add(Op::IndexQ, {}, -1, 0, ScalarType::I64);
    const NodeId k = add(Op::IndexK, {}, -1, 0, ScalarType::I64);
    const NodeId sum = add(Op::Add, {q, k}, -1, 0, ScalarType::I64);
    const NodeId three = program.constant(ScalarType::I64, 3);
    const NodeId rest = add(Op::RemS, {sum, three}, -1, 0, ScalarType::I64);
    return add(Op::CmpEq, {rest, program.constant(ScalarType::I64, 0)});
  }

  MaskProgram program;
};

} // namespace

MaskProgram bench::maskOf(const char *name) {
  MaskBuilder b;
  NodeId &mask = b.program.mask;
  if (std::strcmp(name, "document") == 0) {
    mask = b.add(Op::And, {b.add(Op::Causal), b.add(Op::Document, {}, 1)});
  } else if (std::strcmp(name, "global") == 0) {
    const NodeId left = b.param(0);
    mask = b.add(Op::Or, {b.add(Op::Window, {left, left}, -1, 3), b.add(Op::Prefix, {b.param(1)})});
  } else if (std::strcmp(name, "rswa") == 0) {
    const NodeId prefix = b.add(Op::TableLoad, {b.add(Op::IndexB, {}, -1, 0, ScalarType::I64)}, 2,
                                0, ScalarType::I32);
    const NodeId seen =
        b.add(Op::Or, {b.add(Op::Prefix, {prefix}), b.add(Op::Window, {b.param(0)}, -1, 1)});
    mask = b.add(Op::And, {b.add(Op::Causal), seen});
  } else if (std::strcmp(name, "predicate") == 0) {
    mask = b.add(Op::And, {b.causalWindow(), b.everyThird()});
  } else {
    mask = b.add(Op::Or, {b.causalWindow(), b.add(Op::MmPrefix, {b.param(0)}, 0)});
  }
  if (std::optional<std::string> fault = verify(b.program)) {
    std::fprintf(stderr, "%s: %s\n", name, fault->c_str());
    std::exit(1);
  }
  return b.program;
}

bool bench::isFollowedMask(const char *name) { return std::strcmp(name, "predicate") != 0; }

Batch bench::step(int64_t requests, int64_t queryLen, int64_t context, int64_t ranges) {
  constexpr int64_t kRange = 20, kDocument = 700, kPrefix = 256;
  Batch batch;
  batch.numHeads = 8;
  batch.numKvHeads = 4;
  batch.params = {{1023, 0}, {64, 0}};
  batch.tables.resize(3);
  TableData &mm = batch.tables[0], &documents = batch.tables[1], &prefix = batch.tables[2];
  mm.rangeOffsets = documents.documentOffsets = batch.shape.queryStartLoc = {0};
  for (int64_t b = 0; b < requests; ++b) {
    batch.shape.queryStartLoc.push_back((b + 1) * queryLen);
    batch.shape.seqLen.push_back(context + queryLen);
    batch.shape.contextLen.push_back(context);
    batch.shape.keyBegin.push_back(0);
    batch.shape.keyEnd.push_back(context + queryLen);
    for (int64_t r = 0; r < ranges; ++r) {
      const int64_t start = context + queryLen * r / ranges + 3;
      mm.ranges.push_back({static_cast<int32_t>(start), static_cast<int32_t>(start + kRange - 1)});
    }
    mm.rangeOffsets.push_back(static_cast<int64_t>(mm.ranges.size()));
    for (int64_t k = 0; k < context + queryLen; ++k)
      documents.documents.push_back(static_cast<int32_t>(k / kDocument));
    documents.documentOffsets.push_back(static_cast<int64_t>(documents.documents.size()));
  }
  const std::vector<int32_t> prefixes(requests, kPrefix);
  prefix.owned.resize(requests * sizeof(int32_t));
  std::memcpy(prefix.owned.data(), prefixes.data(), prefix.owned.size());
  prefix.data = prefix.owned.data();
  prefix.extents = {requests};
  prefix.strides = {1};
  return batch;
}

CudaLaunch bench::launchShape() {
  CudaLaunch launch;
  launch.groups = 2;
  launch.keyTile = 80;
  launch.threads = 384;
  return launch;
}

static rt::WorkListLimits limitsOf(const Batch &batch) {
  rt::WorkListLimits limits;
  limits.requests = batch.shape.numReqs();
  limits.tokens = batch.shape.numTokens();
  limits.ranges = static_cast<int64_t>(batch.tables[0].ranges.size());
  limits.keys = *std::max_element(batch.shape.seqLen.begin(), batch.shape.seqLen.end());
  limits.heads = batch.numHeads;
  return limits;
}

bench::StepBuilder::StepBuilder(const MaskProgram &mask, const char *name, const Batch &largest)
    : rows(largest.shape.numTokens()), scratch(rt::mostRanges(largest.tables[0])),
      builder(mask, launchShape(),
              isFollowedMask(name) ? TilePlan::Intervals : TilePlan::Abstract) {
  const rt::WorkListLimits limits = limitsOf(largest);
  const rt::WorkListSizes sizes = builder.mostSizes(limits);
  builder.reserve(limits);
  work.resize(sizes.work);
  tiles.resize(sizes.tiles);
  entries.resize(sizes.entries);
  visible.resize(sizes.bitmaps * kVisibleWords);
}

int64_t bench::StepBuilder::buildTable(const Batch &batch) {
  return rt::buildQueryRanges(batch.shape, batch.tables[0], rows.data(), scratch);
}

rt::WorkListView bench::StepBuilder::buildList(const Batch &batch) {
  return valueOf(builder.build(batch, {nullptr, 1024}, {work, tiles, entries, visible}));
}

int64_t bench::StepBuilder::buildSplits(const rt::WorkListView &list) {
  const rt::Splits splits = rt::measuredSplits(list, {132, 1, launchShape().keyTile, 256, 256, 2});
  return splits.kind == rt::Splits::Kind::Whole ? 0 : buildPlan(list, splits);
}

int64_t bench::StepBuilder::buildPlan(const rt::WorkListView &list, const rt::Splits &splits) {
  const int64_t keyTile = launchShape().keyTile;
  auto fits = [&](const rt::SplitSizes &sizes) {
    return static_cast<int64_t>(plan.pieces.size()) >= sizes.pieces &&
           static_cast<int64_t>(plan.pieceBegin.size()) > sizes.tiles &&
           static_cast<int64_t>(plan.entries.size()) >= sizes.entries &&
           static_cast<int64_t>(plan.work.size()) >= sizes.work &&
           static_cast<int64_t>(plan.combines.size()) >= sizes.combines;
  };
  if (plan.work.empty() || !fits(plan.sizes)) {
    const rt::SplitSizes sizes = valueOf(rt::splitSizes(list, splits, keyTile));
    plan.pieces.resize(sizes.pieces);
    plan.pieceBegin.resize(sizes.tiles + 1);
    plan.entries.resize(sizes.entries);
    plan.work.resize(sizes.work);
    plan.combines.resize(sizes.combines);
  }
  plan.sizes = valueOf(
      rt::fillSplitPlan(list, splits, keyTile,
                        {plan.pieces, plan.pieceBegin, plan.entries, plan.work, plan.combines}));
  return plan.sizes.work;
}
