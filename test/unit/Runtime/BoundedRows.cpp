// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows whose length is known on the device only: what the host refuses and lists, by
// trying every length.
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/WorkList.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// causal or mm_prefix(mm).
KernelSpec rangesSpec() {
  KernelSpec spec = plainSpec();
  TableDecl mm;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  spec.program.tables = {mm};
  MaskProgram &p = spec.program;
  p.mask = add(p, Op::Or, {add(p, Op::Causal), add(p, Op::MmPrefix, {}, 0)});
  return spec;
}

rt::BatchInput inputOf(const rt::RequestInput &request, int64_t start, int64_t end) {
  rt::BatchInput input;
  input.requests = {request};
  input.mmRanges = rt::RangesInput{{{start, end}}, {0, 1}};
  return input;
}

std::string messageOf(const KernelSpec &spec, const rt::BatchInput &input) {
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  return bound ? "" : bound.message();
}

} // namespace

// A range is refused if and only if some query of the row, for some length that it may have, lies
// in it.
TEST(BoundedRows, EveryLengthAndRange) {
  const KernelSpec spec = rangesSpec();
  int accepted = 0, refused = 0;
  for (int64_t queries = 1; queries <= 3; ++queries)
    for (int64_t least = queries; least <= 8; ++least)
      for (int64_t length = least; length <= 8; ++length)
        for (int64_t largest = length; largest <= 8; ++largest)
          for (int64_t start = 0; start <= 9; ++start)
            for (int64_t end = 0; end <= 10; ++end) {
              rt::RequestInput request;
              request.queryLen = queries;
              request.seqLen = length;
              request.seqLenBound = largest;
              request.isPrefilling = false;
              if (least > queries)
                request.seqLenLeast = least;
              bool reaches = false;
              for (int64_t exact = least; exact <= largest; ++exact)
                for (int64_t q = exact - queries; q < exact; ++q)
                  reaches |= start < end && start <= q && q <= end;
              Result<rt::BoundBatch> bound = rt::bindBatch(spec, inputOf(request, start, end));
              ASSERT_EQ(bound.ok(), !reaches)
                  << queries << " queries, length " << least << " to " << largest << ", range ["
                  << start << ", " << end << "]";
              reaches ? ++refused : ++accepted;
              if (!bound)
                continue;
              ASSERT_EQ(bound->batch.shape.leastSeqLen, std::vector<int64_t>{least});
              ASSERT_EQ(bound->batch.shape.mostSeqLen, std::vector<int64_t>{largest});
              // What the host builds does not depend on the length on the device.
              ASSERT_EQ(bound->batch.tables[0].ranges.size(),
                        start < end && start < least - queries ? 1u : 0u);
            }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(BoundedRows, Refusals) {
  const KernelSpec spec = rangesSpec();
  rt::RequestInput row;
  row.queryLen = 2;
  row.seqLen = 20;
  row.seqLenBound = 22;
  const std::string place = "request 0: ";
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_bound: given for a prefill row, expected a decode row "
                    "(is_prefilling: false)");
  row.isPrefilling = false;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)), "");
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 5)),
            place + "range 0 [3, 5] reaches into positions 0 to 21 that the row may take, whose "
                    "seq_len is known on the device only (seq_len_least says how far down they "
                    "go)");
  row.seqLenLeast = 8;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 5)), "");
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 6)),
            place + "range 0 [3, 6] reaches into positions 6 to 21 that the row may take, whose "
                    "seq_len is known on the device only (seq_len_least says how far down they "
                    "go)");
  // Past the bound: not scheduled yet.
  EXPECT_EQ(messageOf(spec, inputOf(row, 22, 30)), "");
  // A row's own keys are there, whatever the bounds.
  for (bool hasLeast : {false, true}) {
    rt::RequestInput longer = row;
    longer.queryLen = 21;
    longer.isPrefilling = false;
    longer.seqLenLeast.reset();
    if (hasLeast)
      longer.seqLenLeast = 21;
    EXPECT_EQ(messageOf(spec, inputOf(longer, 3, 3)),
              place + "seq_len is 20, expected at least query_len 21 of a row with seq_len_bound");
  }
  row.seqLenLeast = 1;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_least is 1, expected query_len 2 to seq_len 20");
  row.seqLenLeast = 21;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_least is 21, expected query_len 2 to seq_len 20");
  row.seqLenLeast.reset();
  row.contextLen = 18;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)), "");
  row.contextLen = 17;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "context_len is 17, expected seq_len - query_len 18 of a row with "
                    "seq_len_bound");
  row.contextLen.reset();
  row.seqLenBound.reset();
  row.seqLenLeast = 8;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_least: given without seq_len_bound");
}

// Which document a row belongs to would follow from its position.
TEST(BoundedRows, DocumentsNeedExactLengths) {
  KernelSpec spec = plainSpec();
  TableDecl documents;
  documents.name = "doc";
  documents.kind = TableKind::Documents;
  spec.program.tables = {documents};
  rt::BatchInput input;
  input.requests.resize(1);
  input.requests[0].queryLen = 1;
  input.requests[0].seqLen = 3;
  input.requests[0].seqLenBound = 4;
  rt::TableInput table;
  table.name = "doc";
  table.documents = rt::DocumentsInput{{0, 0, 1}, {0, 3}};
  input.tables = {table};
  EXPECT_EQ(messageOf(spec, input),
            "request 0: table 'doc' needs an exact seq_len, got seq_len_bound");
}

//===----------------------------------------------------------------------===//
// Work lists
//===----------------------------------------------------------------------===//

namespace {

NodeId windowOf(MaskProgram &p) {
  return add(p, Op::And, {add(p, Op::Causal), add(p, Op::Window, {param(p, 0)}, -1, 1)});
}

struct BoundedMask {
  const char *name;
  NodeId (*build)(MaskProgram &);
  bool (*keep)(int64_t left, int64_t n, int64_t h, int64_t q, int64_t k);
};

const BoundedMask kBoundedMasks[] = {
    {"everything", [](MaskProgram &) { return NodeId(-1); },
     [](int64_t, int64_t, int64_t, int64_t, int64_t) { return true; }},
    {"causal", [](MaskProgram &p) { return add(p, Op::Causal); },
     [](int64_t, int64_t, int64_t, int64_t q, int64_t k) { return k <= q; }},
    {"window", windowOf,
     [](int64_t left, int64_t, int64_t, int64_t q, int64_t k) { return k <= q && q - k <= left; }},
    {"window or prefix",
     [](MaskProgram &p) {
       return add(p, Op::Or, {windowOf(p), add(p, Op::Prefix, {param(p, 1)})});
     },
     [](int64_t left, int64_t n, int64_t, int64_t q, int64_t k) {
       return (k <= q && q - k <= left) || k < n;
     }},
    {"not window", [](MaskProgram &p) { return add(p, Op::Not, {windowOf(p)}); },
     [](int64_t left, int64_t, int64_t, int64_t q, int64_t k) {
       return !(k <= q && q - k <= left);
     }},
    {"global", [](MaskProgram &p) { return add(p, Op::Global, {param(p, 1)}); },
     [](int64_t, int64_t n, int64_t, int64_t q, int64_t k) { return k < n || q < n; }},
    {"by head",
     [](MaskProgram &p) {
       const NodeId ten = p.constant(ScalarType::I64, 10);
       const NodeId reach = add(p, Op::Mul, ScalarType::I64, {index(p, Op::IndexH), ten});
       const NodeId q = index(p, Op::IndexQ), k = index(p, Op::IndexK);
       const NodeId difference = add(p, Op::Sub, ScalarType::I64, {q, k});
       return add(p, Op::CmpSge, {difference, reach});
     },
     [](int64_t, int64_t, int64_t h, int64_t q, int64_t k) { return q - k >= 10 * h; }},
    {"not followed",
     [](MaskProgram &p) {
       const NodeId three = p.constant(ScalarType::I64, 3);
       const NodeId rest = add(p, Op::RemS, ScalarType::I64, {index(p, Op::IndexK), three});
       return add(p, Op::CmpEq, {rest, p.constant(ScalarType::I64, 0)});
     },
     [](int64_t, int64_t, int64_t, int64_t, int64_t k) { return k % 3 == 0; }},
};

/// What one batch's list does wrong for some length of some request; empty: nothing.
std::string faultOf(const rt::WorkList &list, const Batch &batch, const CudaLaunch &launch,
                    const BoundedMask &mask) {
  const BatchShape &shape = batch.shape;
  const int64_t left = batch.params[0].i, n = batch.params[1].i;
  std::vector<int64_t> rowsSeen(shape.numTokens() * batch.numHeads, 0);
  std::vector<int32_t> bitmaps;
  for (const WorkItem &item : list.work) {
    const TileHeader &tile = list.tiles[item.tile];
    const int64_t b = tile.request, queries = shape.queryLen(RequestIndex(b));
    for (int64_t i = 0; i < tile.rows; ++i)
      ++rowsSeen[item.head * shape.numTokens() + tile.tokenBegin + i];
    if (!shape.isBound(b)) {
      if (tile.isBound)
        return "a tile of a known length is bound";
      continue;
    }
    if (!tile.isBound || tile.rows > kMostBoundRows || tile.keyEnd != shape.mostSeqLen[b] ||
        tile.queryBegin != tile.tokenBegin - shape.queryStartLoc[b] - queries)
      return "header of request " + std::to_string(b);
    for (int64_t length = shape.leastSeqLen[b]; length <= shape.mostSeqLen[b]; ++length)
      for (int64_t i = 0; i < tile.rows; ++i) {
        const int64_t q = length + tile.queryBegin + i;
        std::vector<uint32_t> classOf(shape.mostSeqLen[b] + launch.keyTile, kGroupSkip);
        for (int32_t e = tile.entryBegin; e < tile.entryBegin + tile.entryCount; ++e) {
          const TileEntry &entry = list.entries[e];
          for (int64_t k = entry.keyBegin; k < entry.keyBegin + entry.blocks * launch.keyTile; ++k)
            if (k >= 0 && k < static_cast<int64_t>(classOf.size()))
              classOf[k] = entry.classes >> (kGroupClassBits * (i / kGroupRows)) & 3;
        }
        for (int64_t k = 0; k < static_cast<int64_t>(classOf.size()); ++k) {
          const bool isKept =
              k >= shape.keyBegin[b] && k < length && mask.keep(left, n, item.head, q, k);
          if (isKept && tile.entryCount > 0 && ((tile.halves >> (i / kGroupRows)) & 1)) {
            const TileEntry &highest = list.entries[tile.entryBegin];
            const int64_t end = highest.keyBegin + highest.blocks * launch.keyTile;
            if (k >= end - launch.keyTile + launch.keyTile / 2)
              return "request " + std::to_string(b) + " of " + std::to_string(length) +
                     " keys: q " + std::to_string(q) + " needs more than half of a block";
          }
          if (isKept ? classOf[k] == kGroupSkip : classOf[k] == kGroupFull)
            return "request " + std::to_string(b) + " of " + std::to_string(length) + " keys: q " +
                   std::to_string(q) + ", key " + std::to_string(k) +
                   (isKept ? " is left out" : " is not tested");
        }
      }
    if (item.head)
      continue;
    for (int32_t e = tile.entryBegin; e < tile.entryBegin + tile.entryCount; ++e) {
      const TileEntry &entry = list.entries[e];
      bool isFull = false;
      for (int64_t g = 0; g < launch.groups; ++g)
        isFull |= (entry.classes >> (kGroupClassBits * g) & 3) == kGroupFull;
      if ((entry.visible < 0) != (isFull || launch.testsVisible) ||
          (entry.visible >= 0 && entry.blocks != 1))
        return "bitmap of an entry of request " + std::to_string(b);
      if (entry.visible >= 0)
        bitmaps.push_back(entry.visible);
    }
  }
  for (int64_t seen : rowsSeen)
    if (seen != 1)
      return "a row is done " + std::to_string(seen) + " times";
  std::sort(bitmaps.begin(), bitmaps.end());
  if (std::adjacent_find(bitmaps.begin(), bitmaps.end()) != bitmaps.end())
    return "two entries write one bitmap";
  return "";
}

} // namespace

// For every length that a row may have, no kept pair is left out and no other escapes the mask.
TEST(BoundedRows, ListsHoldForEveryLength) {
  Random random(20);
  int64_t entries = 0, full = 0;
  for (int round = 0; round < 400; ++round) {
    const BoundedMask &mask = kBoundedMasks[round % std::size(kBoundedMasks)];
    KernelSpec spec = plainSpec();
    spec.program = MaskProgram();
    spec.program.params = {{"left", ScalarType::I32, 0}, {"n", ScalarType::I32, 0}};
    spec.program.mask = mask.build(spec.program);
    CudaLaunch launch;
    launch.groups = random.in(1, 3);
    launch.keyTile = 16 * random.in(1, 8);
    launch.threads = 128 * (launch.groups + 1);
    const bool isFollowed = std::string(mask.name) != "not followed";
    launch.testsVisible = !isFollowed;
    rt::BatchInput input;
    input.params = {{"left", true, random.in(0, 80), 0}, {"n", true, random.in(0, 60), 0}};
    for (int64_t b = random.in(1, 4); b > 0; --b) {
      rt::RequestInput request;
      request.queryLen = random.in(0, 3) ? random.in(1, 4) : random.in(0, 70);
      request.seqLen = request.queryLen + random.in(0, 150);
      request.isPrefilling = false;
      if (request.queryLen && random.in(0, 3)) {
        request.seqLenLeast = std::max(request.queryLen, request.seqLen - random.in(0, 40));
        request.seqLenBound = request.seqLen + random.in(0, 40);
        request.keyBegin = random.in(0, 3) ? 0 : random.in(0, request.seqLen);
      }
      input.requests.push_back(request);
    }
    Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
    ASSERT_TRUE(bound.ok()) << bound.message();
    std::vector<int64_t> kvStart(bound->batch.shape.numReqs() + 1, 0);
    Batch &batch = bound->batch;
    const rt::WorkListKeys keys{random.in(0, 1) ? kvStart.data() : nullptr, 256};
    const TilePlan plan = isFollowed ? TilePlan::Intervals : TilePlan::Abstract;
    Result<rt::WorkList> list = rt::buildWorkList(spec.program, batch, launch, plan, keys);
    ASSERT_TRUE(list.ok()) << list.message();
    EXPECT_EQ(faultOf(*list, batch, launch, mask), "") << mask.name << ", round " << round;
    // The length that the device has is not looked at.
    for (int64_t b = 0; b < batch.shape.numReqs(); ++b)
      if (batch.shape.isBound(b)) {
        batch.shape.seqLen[b] = batch.shape.keyEnd[b] = -1000;
        batch.shape.contextLen[b] = -5000;
      }
    Result<rt::WorkList> same = rt::buildWorkList(spec.program, batch, launch, plan, keys);
    ASSERT_TRUE(same.ok()) << same.message();
    ASSERT_EQ(same->entries.size(), list->entries.size());
    EXPECT_EQ(std::memcmp(same->entries.data(), list->entries.data(),
                          list->entries.size() * sizeof(TileEntry)),
              0);
    EXPECT_EQ(std::memcmp(same->tiles.data(), list->tiles.data(),
                          list->tiles.size() * sizeof(TileHeader)),
              0);
    // Sized by the limits of just this batch it fits.
    rt::WorkListBuilder builder(spec.program, launch, plan);
    rt::WorkListLimits limits;
    limits.requests = batch.shape.numReqs();
    limits.tokens = batch.shape.numTokens();
    limits.heads = batch.numHeads;
    for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
      limits.keys = std::max(limits.keys, batch.shape.longest(b));
      if (batch.shape.isBound(b))
        limits.slack =
            std::max(limits.slack, batch.shape.mostSeqLen[b] - batch.shape.leastSeqLen[b]);
    }
    const rt::WorkListSizes most = builder.mostSizes(limits);
    EXPECT_GE(most.tiles, static_cast<int64_t>(list->tiles.size()));
    EXPECT_GE(most.work, static_cast<int64_t>(list->work.size()));
    EXPECT_GE(most.entries, static_cast<int64_t>(list->entries.size())) << mask.name;
    EXPECT_GE(most.bitmaps * kVisibleWords, static_cast<int64_t>(list->visible.size()))
        << mask.name;
    for (const TileEntry &entry : list->entries) {
      ++entries;
      full += (entry.classes & (kGroupFull | kGroupFull << 2 | kGroupFull << 4)) != 0;
    }
  }
  std::printf("%lld entries, %lld with a full group\n", static_cast<long long>(entries),
              static_cast<long long>(full));
  EXPECT_GT(full, 200);
}
