// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/MicroBatch.h"

#include "attn/Core/MaskEval.h"
#include "attn/Runtime/StepFacts.h"

#include <algorithm>
#include <cstdlib>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

namespace {

/// Request `b` of a batch as a part has it.
struct Slice {
  int64_t begin = 0; ///< tokens
  int64_t end = 0;
  int64_t contextLen = 0;
  int64_t seqLen = 0; ///< keys that are there
  bool cutAtBegin = false;
  bool cutAtEnd = false;
};

} // namespace

static Slice sliceOf(const BatchShape &shape, int64_t b, const SubRange &part, bool keysWritten) {
  const int64_t first = shape.queryStartLoc[b], last = shape.queryStartLoc[b + 1];
  Slice slice;
  slice.begin = std::clamp(part.tokenBegin, first, last);
  slice.end = std::max(slice.begin, std::clamp(part.tokenEnd, first, last));
  slice.contextLen = shape.queryOf(RequestIndex(b), TokenIndex(slice.begin)).value;
  slice.seqLen = shape.seqLen[b];
  if (slice.end < last && !keysWritten) {
    const int64_t cut = shape.queryOf(RequestIndex(b), TokenIndex(slice.end)).value;
    slice.seqLen = std::clamp<int64_t>(cut, 0, slice.seqLen);
  }
  slice.cutAtBegin = slice.begin > first && slice.begin < slice.end;
  slice.cutAtEnd = slice.end < last && slice.begin < slice.end;
  return slice;
}

/// Tokens of a part: those of its requests that lie in its token range.
static Interval tokensOf(const BatchShape &shape, const SubRange &part) {
  const int64_t begin = std::max(part.tokenBegin, shape.queryStartLoc[part.requestBegin]);
  const int64_t end = std::min(part.tokenEnd, shape.queryStartLoc[part.requestEnd]);
  return {begin, std::max(begin, end)};
}

Halves rt::cutBefore(const BatchShape &shape, TokenIndex token) {
  // The first request that ends past the cut, or has no tokens and starts there.
  int64_t second = 0;
  while (second < shape.numReqs() && shape.queryStartLoc[second + 1] <= token.value &&
         shape.queryStartLoc[second] < token.value)
    ++second;
  const bool isCut = second < shape.numReqs() && shape.queryStartLoc[second] < token.value;
  return {{0, second + isCut, 0, token.value},
          {second, shape.numReqs(), token.value, shape.numTokens()}};
}

//===----------------------------------------------------------------------===//
// What may be cut
//===----------------------------------------------------------------------===//

static std::string requestPrefix(int64_t b) { return "request " + std::to_string(b) + ": "; }

static Status checkPart(const BatchShape &shape, const SubRange &part) {
  auto check = [](const char *what, int64_t begin, int64_t end, int64_t most) {
    if (0 <= begin && begin <= end && end <= most)
      return Status();
    return Status(Error{std::string("part: ") + what + " [" + std::to_string(begin) + ", " +
                        std::to_string(end) + ") expected to lie in [0, " + std::to_string(most) +
                        ")"});
  };
  if (Status status = check("requests", part.requestBegin, part.requestEnd, shape.numReqs());
      !status)
    return status;
  return check("tokens", part.tokenBegin, part.tokenEnd, shape.numTokens());
}

/// Whether a program uses a request's number other than as the row of a table.
static bool computesWithRequest(const MaskProgram &program) {
  for (const Node &node : program.nodes)
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (program.nodes[node.operands[i]].op != Op::IndexB)
        continue;
      if (node.op != Op::TableLoad || program.tables[node.ref].dims[i] != TableDim::B)
        return true;
    }
  return false;
}

/// The first range, of any table, with a key on either side of a cut at position `cut`; null if
/// there is none.
static const Range *rangeAcross(const Batch &batch, int64_t b, int64_t cut) {
  for (const TableData &table : batch.tables)
    for (int64_t r = table.rangeOffsets.empty() ? 0 : table.rangeOffsets[b],
                 end = table.rangeOffsets.empty() ? 0 : table.rangeOffsets[b + 1];
         r < end; ++r)
      if (table.ranges[r].start < cut && cut <= table.ranges[r].end)
        return &table.ranges[r];
  return nullptr;
}

namespace {

/// Past the last key of the launch that a row may keep, over all heads.
class Reach {
public:
  Reach(const KernelSpec &spec, const Batch &batch)
      : eval(spec.program, batch), batch(batch), heads(1) {
    if (spec.program.mask >= 0 && dependence(spec.program, spec.program.mask).h)
      heads = batch.numHeads;
  }

  int64_t of(int64_t b, int64_t q) {
    const Interval keys = {batch.shape.keyBegin[b], batch.shape.keyEnd[b]};
    int64_t reach = -kPositionLimit;
    for (int64_t h = 0; h < heads; ++h) {
      const IntervalSet kept =
          eval.rowKeysBound(RequestIndex(b), HeadIndex(h), QueryPos(q)) & IntervalSet(keys);
      if (!kept.empty())
        reach = std::max(reach, kept.hull().hi);
    }
    return reach;
  }

private:
  MaskEvaluator eval;
  const Batch &batch;
  int64_t heads;
};

} // namespace

/// A request that loses tokens at its end, and with them keys.
static Status checkEnd(const KernelSpec &spec, const BoundBatch &bound, int64_t b,
                       const Slice &slice) {
  const BatchShape &shape = bound.batch.shape;
  const int64_t cut = shape.queryOf(RequestIndex(b), TokenIndex(slice.end)).value;
  const std::string where =
      "cut before token " + std::to_string(slice.end) + ", position " + std::to_string(cut) + ", ";
  auto refuse = [&](const std::string &why) {
    std::string text = requestPrefix(b) + where + why + "; declare the keys written";
    Result<TokenIndex> safe = nearestSafeCut(spec, bound, RequestIndex(b), TokenIndex(slice.end));
    return Error{safe ? text + " or cut before token " + std::to_string(safe->value) : text};
  };
  if (const Range *range = rangeAcross(bound.batch, b, cut))
    return refuse("lies inside range [" + std::to_string(range->start) + ", " +
                  std::to_string(range->end) + "]");
  Reach reach(spec, bound.batch);
  for (int64_t t = slice.begin; t < slice.end; ++t) {
    const int64_t q = shape.queryOf(RequestIndex(b), TokenIndex(t)).value;
    if (reach.of(b, q) > slice.seqLen)
      return refuse("leaves out keys that the row at position " + std::to_string(q) + " may keep");
  }
  return {};
}

Status rt::checkSlice(const KernelSpec &spec, const BoundBatch &bound, const SubRange &part,
                      const SliceOptions &options) {
  const BatchShape &shape = bound.batch.shape;
  if (Status status = checkPart(shape, part); !status)
    return status;
  if (part.requestBegin > 0 && computesWithRequest(spec.program))
    return Error{"kernel '" + spec.name + "' computes with the number of a request, which is " +
                 "another in a part that starts at request " + std::to_string(part.requestBegin)};
  for (int64_t b = part.requestBegin; b < part.requestEnd; ++b) {
    const Slice slice = sliceOf(shape, b, part, options.keysWritten);
    if (!slice.cutAtBegin && !slice.cutAtEnd)
      continue;
    if (bound.hasSeqLenBound[b])
      return Error{requestPrefix(b) +
                   "seq_len_bound: its positions are known on the device only, "
                   "expected a cut between requests, got one inside, of tokens " +
                   std::to_string(slice.begin) + " to " + std::to_string(slice.end - 1)};
    if (!slice.cutAtEnd || options.keysWritten)
      continue;
    if (Status status = checkEnd(spec, bound, b, slice); !status)
      return status;
  }
  return {};
}

Result<TokenIndex> rt::nearestSafeCut(const KernelSpec &spec, const BoundBatch &bound,
                                      RequestIndex b, TokenIndex token) {
  const BatchShape &shape = bound.batch.shape;
  if (b.value < 0 || b.value >= shape.numReqs())
    return Error{"request " + std::to_string(b.value) + ", expected 0 to " +
                 std::to_string(shape.numReqs() - 1)};
  const int64_t first = shape.queryStartLoc[b.value], last = shape.queryStartLoc[b.value + 1];
  if (token.value < first || token.value > last)
    return Error{requestPrefix(b.value) + "cut before token " + std::to_string(token.value) +
                 ", expected " + std::to_string(first) + " to " + std::to_string(last)};
  int64_t best = token.value - first <= last - token.value ? first : last;
  if (bound.hasSeqLenBound[b.value])
    return TokenIndex(best);
  Reach reach(spec, bound.batch);
  int64_t furthest = -kPositionLimit; // of the rows before the cut
  for (int64_t t = first + 1; t < last; ++t) {
    const int64_t cut = shape.queryOf(b, TokenIndex(t)).value;
    furthest = std::max(furthest, reach.of(b.value, cut - 1));
    if (std::abs(t - token.value) < std::abs(best - token.value) ||
        (std::abs(t - token.value) == std::abs(best - token.value) && t < best))
      if (furthest <= std::max<int64_t>(cut, 0) && !rangeAcross(bound.batch, b.value, cut))
        best = t;
  }
  return TokenIndex(best);
}

//===----------------------------------------------------------------------===//
// Slices of a bound batch
//===----------------------------------------------------------------------===//

/// Ranges of the part's requests that are live in it.
static void sliceRanges(const TableData &from, const SubRange &part, const BatchShape &shape,
                        TableData &to) {
  to.rangeOffsets.push_back(0);
  for (int64_t b = part.requestBegin; b < part.requestEnd; ++b) {
    for (int64_t r = from.rangeOffsets[b]; r < from.rangeOffsets[b + 1]; ++r)
      if (from.ranges[r].start < shape.seqLen[b - part.requestBegin])
        to.ranges.push_back(from.ranges[r]);
    to.rangeOffsets.push_back(static_cast<int64_t>(to.ranges.size()));
  }
}

static void sliceDocuments(const std::vector<int32_t> &ids, const std::vector<int64_t> &offsets,
                           const SubRange &part, const std::vector<int64_t> &seqLen,
                           std::vector<int32_t> &outIds, std::vector<int64_t> &outOffsets) {
  outOffsets.push_back(0);
  for (int64_t b = part.requestBegin; b < part.requestEnd; ++b) {
    const auto begin = ids.begin() + offsets[b];
    outIds.insert(outIds.end(), begin, begin + seqLen[b - part.requestBegin]);
    outOffsets.push_back(static_cast<int64_t>(outIds.size()));
  }
}

/// Moves the base of a dense table to the part's first request and token. Returns the elements
/// skipped.
static int64_t sliceDims(const TableDecl &decl, const std::vector<int64_t> &strides,
                         const SubRange &part, Interval tokens, std::vector<int64_t> &extents) {
  int64_t skipped = 0;
  for (size_t dim = 0; dim < decl.dims.size(); ++dim) {
    if (decl.dims[dim] == TableDim::B) {
      skipped += part.requestBegin * strides[dim];
      extents[dim] = part.requestEnd - part.requestBegin;
    } else if (decl.dims[dim] == TableDim::Token) {
      skipped += tokens.lo * strides[dim];
      extents[dim] = tokens.size();
    }
  }
  return skipped;
}

static TableData sliceTable(const TableDecl &decl, const TableData &from, const SubRange &part,
                            Interval tokens, const BatchShape &shape) {
  TableData to;
  switch (decl.kind) {
  case TableKind::Ranges:
    sliceRanges(from, part, shape, to);
    break;
  case TableKind::Documents:
    sliceDocuments(from.documents, from.documentOffsets, part, shape.seqLen, to.documents,
                   to.documentOffsets);
    break;
  case TableKind::QueryRanges:
    if (!from.rows.empty())
      to.rows.assign(from.rows.begin() + tokens.lo, from.rows.begin() + tokens.hi);
    break;
  case TableKind::Plain:
    to.extents = from.extents;
    to.strides = from.strides;
    const int64_t skipped = sliceDims(decl, from.strides, part, tokens, to.extents);
    if (from.data)
      to.data = static_cast<const uint8_t *>(from.data) + skipped * (bitWidth(decl.element) / 8);
    break;
  }
  return to;
}

Result<MicroBatch> rt::sliceBatch(const KernelSpec &spec, const BoundBatch &bound,
                                  const SubRange &part, const SliceOptions &options) {
  if (Status status = checkSlice(spec, bound, part, options); !status)
    return Error{status.message()};
  const BatchShape &from = bound.batch.shape;
  const Interval tokens = tokensOf(from, part);
  MicroBatch micro;
  micro.requestBegin = part.requestBegin;
  micro.tokenBegin = tokens.lo;
  Batch &batch = micro.bound.batch;
  batch.numHeads = bound.batch.numHeads;
  batch.numKvHeads = bound.batch.numKvHeads;
  batch.params = bound.batch.params;
  BatchShape &shape = batch.shape;
  shape.queryStartLoc.push_back(0);
  for (int64_t b = part.requestBegin; b < part.requestEnd; ++b) {
    const Slice slice = sliceOf(from, b, part, options.keysWritten);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + slice.end - slice.begin);
    shape.seqLen.push_back(slice.seqLen);
    shape.contextLen.push_back(slice.contextLen);
    shape.keyEnd.push_back(std::min(from.keyEnd[b], slice.seqLen));
    shape.keyBegin.push_back(std::min(from.keyBegin[b], shape.keyEnd.back()));
    if (!from.mostSeqLen.empty()) {
      const bool isBound = bound.hasSeqLenBound[b];
      shape.leastSeqLen.push_back(isBound ? from.leastSeqLen[b] : slice.seqLen);
      shape.mostSeqLen.push_back(isBound ? from.mostSeqLen[b] : slice.seqLen);
    }
    micro.bound.kvStart.push_back(bound.kvStart[b]);
    micro.bound.isPrefilling.push_back(bound.isPrefilling[b]);
    micro.bound.hasSeqLenBound.push_back(bound.hasSeqLenBound[b]);
  }
  micro.bound.kvStart.push_back(bound.kvStart[part.requestEnd]);
  for (size_t i = 0; i < spec.program.tables.size(); ++i)
    batch.tables.push_back(
        sliceTable(spec.program.tables[i], bound.batch.tables[i], part, tokens, shape));
  return micro;
}

//===----------------------------------------------------------------------===//
// Slices of an input
//===----------------------------------------------------------------------===//

static RangesInput sliceRangesInput(const RangesInput &from, const SubRange &part) {
  RangesInput to;
  const int64_t first = from.offsets[part.requestBegin];
  for (int64_t b = part.requestBegin; b <= part.requestEnd; ++b)
    to.offsets.push_back(from.offsets[b] - first);
  to.ranges.assign(from.ranges.begin() + first,
                   from.ranges.begin() + from.offsets[part.requestEnd]);
  return to;
}

/// Ranges that a kernel ignores are not checked by bindBatch.
static bool isPerRequest(const RangesInput &ranges, const BoundBatch &bound) {
  const std::vector<int64_t> &offsets = ranges.offsets;
  return static_cast<int64_t>(offsets.size()) == bound.batch.shape.numReqs() + 1 &&
         offsets.front() >= 0 && std::is_sorted(offsets.begin(), offsets.end()) &&
         offsets.back() <= static_cast<int64_t>(ranges.ranges.size());
}

/// Request `b`, of which `slice` is left.
static RequestInput sliceRequest(const BoundBatch &bound, int64_t b, const Slice &slice,
                                 RequestInput request) {
  if (slice.end - slice.begin == request.queryLen)
    return request;
  request.queryLen = slice.end - slice.begin;
  request.seqLen = slice.seqLen;
  request.contextLen = slice.contextLen;
  // One token of a prompt is still part of a prompt.
  request.isPrefilling = bound.isPrefilling[b] != 0;
  if (request.keyEnd)
    request.keyEnd = std::min(*request.keyEnd, slice.seqLen);
  if (request.keyBegin)
    request.keyBegin = std::min(*request.keyBegin, request.keyEnd.value_or(slice.seqLen));
  return request;
}

/// A table whose declaration is `decl`.
static TableInput sliceTableInput(const TableDecl &decl, const TableInput &from,
                                  const BoundBatch &bound, const SubRange &part,
                                  const std::vector<int64_t> &seqLen) {
  TableInput to;
  to.name = from.name;
  if (from.ranges)
    to.ranges = sliceRangesInput(*from.ranges, part);
  if (from.documents) {
    to.documents.emplace();
    sliceDocuments(from.documents->ids, from.documents->offsets, part, seqLen, to.documents->ids,
                   to.documents->offsets);
  }
  if (from.dense) {
    to.dense.emplace();
    to.dense->element = from.dense->element;
    to.dense->extents = from.dense->extents;
    to.dense->strides = from.dense->strides;
    if (to.dense->strides.empty()) {
      to.dense->strides.assign(to.dense->extents.size(), 1);
      for (size_t dim = to.dense->extents.size(); dim-- > 1;)
        to.dense->strides[dim - 1] = to.dense->strides[dim] * to.dense->extents[dim];
    }
    const int64_t skipped = sliceDims(decl, to.dense->strides, part,
                                      tokensOf(bound.batch.shape, part), to.dense->extents);
    const void *data = from.dense->data ? from.dense->data : from.dense->owned.data();
    if (data)
      to.dense->data = static_cast<const uint8_t *>(data) + skipped * (bitWidth(decl.element) / 8);
  }
  return to;
}

Result<BatchInput> rt::sliceInput(const KernelSpec &spec, const BatchInput &input,
                                  const SubRange &part, const SliceOptions &options) {
  Result<BoundBatch> bound = bindBatch(spec, input);
  if (!bound)
    return Error{bound.message()};
  if (Status status = checkSlice(spec, *bound, part, options); !status)
    return Error{status.message()};
  BatchInput to;
  std::vector<int64_t> seqLens;
  for (int64_t b = part.requestBegin; b < part.requestEnd; ++b) {
    const Slice slice = sliceOf(bound->batch.shape, b, part, options.keysWritten);
    to.requests.push_back(sliceRequest(*bound, b, slice, input.requests[b]));
    seqLens.push_back(slice.seqLen);
  }
  if (input.mmRanges && (hasRangesTable(spec.program) || isPerRequest(*input.mmRanges, *bound)))
    to.mmRanges = sliceRangesInput(*input.mmRanges, part);
  to.params = input.params;
  to.allowPartialRanges = input.allowPartialRanges;
  to.pageSize = input.pageSize;
  for (const TableInput &table : input.tables)
    for (const TableDecl &decl : spec.program.tables)
      if (decl.name == table.name)
        to.tables.push_back(sliceTableInput(decl, table, *bound, part, seqLens));
  if (input.blockTable) {
    to.blockTable = input.blockTable;
    to.blockTable->entries += part.requestBegin * input.blockTable->stride;
    to.blockTable->widths.assign(input.blockTable->widths.begin() + part.requestBegin,
                                 input.blockTable->widths.begin() + part.requestEnd);
  }
  return to;
}
