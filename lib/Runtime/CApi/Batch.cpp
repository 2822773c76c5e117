// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn_batch to the input of a binder: reads the caller's arrays, checks what has to hold before
// they can be read, and leaves the rest to bindBatch.
#include "Support.h"

#include <algorithm>

using namespace attn;
using namespace attn::capi;

using Fault = std::optional<std::string>;

namespace {

/// Offsets [num_reqs + 1] of a list whose elements are about to be read.
Fault readOffsets(const std::string &place, const int64_t *offsets, int64_t numReqs,
                  const void *elements, std::vector<int64_t> &out) {
  if (!offsets)
    return place + ".offsets is null";
  out.assign(offsets, offsets + numReqs + 1);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] < (i ? out[i - 1] : 0))
      return place + ".offsets[" + std::to_string(i) + "] is " + std::to_string(out[i]) +
             ", expected ascending offsets from 0";
  if (out.front() != out.back() && !elements)
    return place + " has offsets but no elements";
  return std::nullopt;
}

std::optional<core::ScalarType> scalarType(int32_t type) {
  switch (type) {
  case ATTN_SCALAR_I8:
    return core::ScalarType::I8;
  case ATTN_SCALAR_I32:
    return core::ScalarType::I32;
  case ATTN_SCALAR_I64:
    return core::ScalarType::I64;
  case ATTN_SCALAR_F32:
    return core::ScalarType::F32;
  }
  return std::nullopt;
}

/// Slots of contiguous keys; a slot plus a length must not overflow.
Fault checkKvStart(const attn_batch &batch) {
  constexpr int64_t kLargest = INT64_MAX - core::kPositionLimit;
  for (int64_t b = 0; batch.kv_start && b < batch.num_reqs; ++b)
    if (batch.kv_start[b] < 0 || batch.kv_start[b] > kLargest)
      return "kv_start[" + std::to_string(b) + "] is " + std::to_string(batch.kv_start[b]) +
             ", expected 0 to " + std::to_string(kLargest);
  return std::nullopt;
}

/// The member of a table's input, whose memory is used again.
template <class T>
T &engage(std::optional<T> &member) {
  return member ? *member : member.emplace();
}

} // namespace

/// The input of a batch's next table, with the memory that a table of the batch before left there.
rt::TableInput &BatchReader::nextTable(const char *name) {
  if (numTables == given.tables.size())
    given.tables.emplace_back();
  rt::TableInput &table = given.tables[numTables++];
  table.name = name;
  return table;
}

Fault BatchReader::readRequests(const attn_batch &batch) {
  if (batch.num_reqs < 0)
    return "num_reqs is " + std::to_string(batch.num_reqs);
  if (!batch.query_start_loc)
    return std::string("query_start_loc is null");
  if (batch.num_reqs > 0 && !batch.seq_lens)
    return std::string("seq_lens is null");
  if (batch.query_start_loc[0] != 0)
    return "query_start_loc[0] is " + std::to_string(batch.query_start_loc[0]) + ", expected 0";
  given.requests.clear();
  for (int64_t b = 0; b < batch.num_reqs; ++b) {
    rt::RequestInput request;
    request.queryLen = int64_t(batch.query_start_loc[b + 1]) - batch.query_start_loc[b];
    request.seqLen = batch.seq_lens[b];
    if (batch.context_lens)
      request.contextLen = batch.context_lens[b];
    if (batch.seq_len_is_bound && batch.seq_len_is_bound[b]) {
      request.seqLenBound = request.seqLen;
      if (batch.seq_len_least)
        request.seqLenLeast = batch.seq_len_least[b];
    }
    if (batch.is_prefilling)
      request.isPrefilling = batch.is_prefilling[b] != 0;
    if (batch.key_begin)
      request.keyBegin = batch.key_begin[b];
    if (batch.key_end)
      request.keyEnd = batch.key_end[b];
    given.requests.push_back(request);
  }
  return std::nullopt;
}

Fault BatchReader::readParams(const attn_batch &batch) {
  size_t count = 0;
  Fault fault = forEach(batch.params, batch.num_params, "params",
                        [&](const std::string &place, const attn_param &param) -> Fault {
                          if (!param.name)
                            return place + ".name is null";
                          if (count == given.params.size())
                            given.params.emplace_back();
                          rt::ParamInput &input = given.params[count++];
                          input.name = param.name;
                          input.isInteger = param.is_float == 0;
                          input.i = param.i;
                          input.f = param.f;
                          return std::nullopt;
                        });
  given.params.resize(count);
  return fault;
}

Fault BatchReader::readRanges(const attn_batch &batch) {
  if (given.mmRanges) {
    spareRanges = std::move(*given.mmRanges);
    given.mmRanges.reset();
  }
  return forEach(batch.ranges, batch.num_ranges, "ranges",
                 [&](const std::string &place, const attn_ranges &list) -> Fault {
                   if (!list.table && given.mmRanges)
                     return place + ": ranges without a table name are given twice";
                   rt::RangesInput *ranges = nullptr;
                   if (list.table) {
                     rt::TableInput &table = nextTable(list.table);
                     table.documents.reset();
                     table.dense.reset();
                     ranges = &engage(table.ranges);
                   } else {
                     ranges = &given.mmRanges.emplace(std::move(spareRanges));
                   }
                   if (Fault fault = readOffsets(place, list.offsets, batch.num_reqs, list.bounds,
                                                 ranges->offsets))
                     return fault;
                   ranges->ranges.resize(static_cast<size_t>(ranges->offsets.back()));
                   for (int64_t i = ranges->offsets.front(); i < ranges->offsets.back(); ++i)
                     ranges->ranges[i] = {list.bounds[2 * i], list.bounds[2 * i + 1]};
                   return std::nullopt;
                 });
}

Fault BatchReader::readDocuments(const attn_batch &batch) {
  return forEach(batch.documents, batch.num_documents, "documents",
                 [&](const std::string &place, const attn_documents &list) -> Fault {
                   if (!list.table)
                     return place + ".table is null";
                   rt::TableInput &table = nextTable(list.table);
                   table.ranges.reset();
                   table.dense.reset();
                   rt::DocumentsInput &documents = engage(table.documents);
                   if (Fault fault = readOffsets(place, list.offsets, batch.num_reqs, list.ids,
                                                 documents.offsets))
                     return fault;
                   documents.ids.clear();
                   if (documents.offsets.back() > 0)
                     documents.ids.assign(list.ids, list.ids + documents.offsets.back());
                   return std::nullopt;
                 });
}

Fault BatchReader::readTables(const attn_batch &batch) {
  return forEach(batch.tables, batch.num_tables, "tables",
                 [&](const std::string &place, const attn_dense_table &from) -> Fault {
                   if (!from.table)
                     return place + ".table is null";
                   std::optional<core::ScalarType> element = scalarType(from.element);
                   if (!element)
                     return place + ".element is " + std::to_string(from.element) +
                            ", expected an attn_scalar_type";
                   if (from.rank < 0 || from.rank > ATTN_MAX_TABLE_RANK)
                     return place + ".rank is " + std::to_string(from.rank) + ", expected 0 to 4";
                   rt::TableInput &table = nextTable(from.table);
                   table.ranges.reset();
                   table.documents.reset();
                   rt::DenseInput &dense = engage(table.dense);
                   dense.element = *element;
                   dense.data = from.data;
                   dense.extents.assign(from.extents, from.extents + from.rank);
                   dense.strides.clear();
                   if (std::any_of(from.strides, from.strides + from.rank,
                                   [](int64_t stride) { return stride != 0; }))
                     dense.strides.assign(from.strides, from.strides + from.rank);
                   return std::nullopt;
                 });
}

Fault BatchReader::readPages(const attn_batch &batch, PlanDevice device) {
  given.pageSize.reset();
  if (batch.page_size != 0)
    given.pageSize = batch.page_size;
  if (batch.page_size != 0 && device == PlanDevice::Cuda && batch.num_pages < 1)
    return "num_pages is " + std::to_string(batch.num_pages) +
           ", expected the pages of the cache on device 'cuda'";
  if (given.blockTable) {
    spareTable = std::move(*given.blockTable);
    given.blockTable.reset();
  }
  if (!batch.block_table)
    return batch.page_size != 0 && device != PlanDevice::Cuda
               ? Fault("block_table is null, given page_size " + std::to_string(batch.page_size))
               : std::nullopt;
  if (batch.block_table_width < 0 || batch.block_table_stride < batch.block_table_width)
    return "block_table_stride is " + std::to_string(batch.block_table_stride) +
           ", expected at least block_table_width " + std::to_string(batch.block_table_width);
  rt::BlockTableInput &table = given.blockTable.emplace(std::move(spareTable));
  table.entries = batch.block_table;
  table.stride = batch.block_table_stride;
  table.widths.assign(batch.num_reqs, batch.block_table_width);
  table.numPages.reset();
  if (batch.num_pages != 0)
    table.numPages = batch.num_pages;
  return std::nullopt;
}

void BatchReader::reserve(int64_t requests, int64_t ranges) {
  given.requests.reserve(static_cast<size_t>(requests));
  spareRanges.ranges.reserve(static_cast<size_t>(ranges));
  spareRanges.offsets.reserve(static_cast<size_t>(requests) + 1);
  spareTable.widths.reserve(static_cast<size_t>(requests));
}

Fault BatchReader::read(const attn_batch &batch, PlanDevice device) {
  const uint64_t unknown = batch.flags & ~uint64_t(ATTN_BATCH_ALLOW_PARTIAL_RANGES);
  if (unknown)
    return "flags: unknown bits " + std::to_string(unknown);
  if (batch.num_cuts < 0)
    return "num_cuts is " + std::to_string(batch.num_cuts);
  if (batch.num_cuts > 0 && !batch.cuts)
    return std::string("cuts is null");
  given.allowPartialRanges = batch.flags & ATTN_BATCH_ALLOW_PARTIAL_RANGES;
  numTables = 0;
  for (auto read : {&BatchReader::readRequests, &BatchReader::readParams, &BatchReader::readRanges,
                    &BatchReader::readDocuments, &BatchReader::readTables})
    if (Fault fault = (this->*read)(batch))
      return fault;
  given.tables.resize(numTables);
  if (Fault fault = readPages(batch, device))
    return fault;
  return checkKvStart(batch);
}
