// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builders in the caller's memory.
#include "Support.h"

#include "attn/Runtime/Builders.h"

#include <algorithm>

using namespace attn;
using namespace attn::capi;

Failure capi::tooSmall(const char *name, int64_t capacity, int64_t needed) {
  return Failure(ATTN_TOO_LARGE, std::string(name) + " is " + std::to_string(capacity) +
                                     ", expected at least " + std::to_string(needed));
}

attn_status capi::findSource(const core::MaskProgram &program, const char *name, bool rangesOnly,
                             size_t &table) {
  const std::string kind = rangesOnly ? "ranges table" : "ranges or documents table";
  std::vector<std::string> names;
  size_t found = program.tables.size();
  for (size_t i = 0; i < program.tables.size(); ++i) {
    const core::TableDecl &decl = program.tables[i];
    if (decl.kind != core::TableKind::Ranges &&
        (rangesOnly || decl.kind != core::TableKind::Documents))
      continue;
    names.push_back(decl.name);
    if (!name || decl.name == name)
      found = i;
  }
  const std::string list = " (the kernel has: " + rt::quotedList(names) + ")";
  if (!name && names.size() != 1)
    return Failure(ATTN_INVALID_ARGUMENT,
                   "table is null and there is not exactly one " + kind + list);
  if (found == program.tables.size())
    return Failure(ATTN_INVALID_ARGUMENT, "no " + kind + " '" + std::string(name) + "'" + list);
  table = found;
  return ATTN_OK;
}

attn_status attn_plan_query_ranges(const attn_plan *plan, const char *name, int32_t *rows,
                                   int64_t capacity, int64_t *numRows, int64_t *covered) {
  static_assert(sizeof(core::Range) == 2 * sizeof(int32_t), "a row is a pair of int32");
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!numRows)
      return nullArgument("num_rows");
    if (!plan->isPrepared)
      return notPrepared();
    const core::MaskProgram &program = plan->settings.kernel->spec.program;
    size_t table = 0;
    if (attn_status status = findSource(program, name, false, table); status != ATTN_OK)
      return status;
    const core::Batch &batch = plan->bound.batch;
    *numRows = batch.shape.numTokens();
    if (!rows)
      return ATTN_OK;
    if (capacity < *numRows)
      return tooSmall("capacity", capacity, *numRows);
    auto *out = reinterpret_cast<core::Range *>(rows);
    const int64_t count = program.tables[table].kind == core::TableKind::Documents
                              ? rt::buildDocumentRows(batch.shape, batch.tables[table], out)
                              : rt::buildQueryRanges(batch.shape, batch.tables[table], out);
    if (covered)
      *covered = count;
    return ATTN_OK;
  });
}

/// Copies records and their segments into the caller's arrays, which are large enough.
static void copyRecords(const std::vector<core::TileRecord> &from, attn_tile_record *records,
                        attn_segment *segments) {
  int64_t next = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const core::TileRecord &record = from[i];
    records[i] = {record.request.value,
                  record.queryBegin.value,
                  record.queryCount,
                  record.headBegin.value,
                  record.headCount,
                  next,
                  static_cast<int64_t>(record.segments.size())};
    for (const core::Segment &segment : record.segments)
      segments[next++] = {segment.begin, segment.end, segment.cls, 0};
  }
}

attn_status attn_plan_tile_records(const attn_plan *plan, const attn_tile_shape *given,
                                   attn_tile_record *records, int64_t recordCapacity,
                                   attn_segment *segments, int64_t segmentCapacity,
                                   int64_t *numRecords, int64_t *numSegments) {
  static_assert(uint32_t(ATTN_SEGMENT_FULL) == core::kSegmentFull &&
                    uint32_t(ATTN_SEGMENT_PARTIAL) == core::kSegmentPartial,
                "class bits are the same on both sides");
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!numRecords)
      return nullArgument("num_records");
    if (!numSegments)
      return nullArgument("num_segments");
    if (!plan->isPrepared)
      return notPrepared();
    if (attn_status status = requireExactLengths(*plan, "a tile record"); status != ATTN_OK)
      return status;
    attn_tile_shape shape;
    if (auto fault = readStruct(given, "attn_tile_shape", shape))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    const int64_t limit = core::kPositionLimit;
    if (shape.queries < 1 || shape.queries > limit || shape.keys < 1 || shape.keys > limit ||
        shape.key_anchor < -limit || shape.key_anchor > limit)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "attn_tile_shape: " + std::to_string(shape.queries) + " queries, " +
                         std::to_string(shape.keys) + " keys, anchor " +
                         std::to_string(shape.key_anchor) + "; expected 1 to " +
                         std::to_string(limit) + ", an anchor no further from 0 than that");
    const std::vector<core::TileRecord> built =
        rt::buildTileRecords(plan->settings.kernel->spec.program, plan->bound.batch,
                             {shape.queries, shape.keys}, shape.key_anchor);
    *numRecords = static_cast<int64_t>(built.size());
    *numSegments = 0;
    for (const core::TileRecord &record : built)
      *numSegments += static_cast<int64_t>(record.segments.size());
    if (!records || !segments)
      return ATTN_OK;
    if (recordCapacity < *numRecords)
      return tooSmall("record_capacity", recordCapacity, *numRecords);
    if (segmentCapacity < *numSegments)
      return tooSmall("segment_capacity", segmentCapacity, *numSegments);
    copyRecords(built, records, segments);
    return ATTN_OK;
  });
}

attn_status attn_alibi_slopes(int64_t totalHeads, int64_t firstHead, int64_t count, float *slopes) {
  return guarded([&]() -> attn_status {
    if (!slopes)
      return nullArgument("slopes");
    if (totalHeads < 1 || totalHeads > core::kPositionLimit || firstHead < 0 || count < 0 ||
        firstHead > totalHeads || count > totalHeads - firstHead)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "heads [" + std::to_string(firstHead) + ", +" + std::to_string(count) +
                         ") expected to lie in [0, " + std::to_string(totalHeads) + ")");
    const std::vector<float> values = rt::alibiSlopes(totalHeads, firstHead, count);
    std::copy(values.begin(), values.end(), slopes);
    return ATTN_OK;
  });
}
