// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BindTables.h"

#include <algorithm>
#include <utility>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

/// Binds the tables of one batch, one declaration after the other.
class TableBinder {
public:
  TableBinder(const KernelSpec &spec, const BatchInput &input, Batch &batch, BindScratch &scratch)
      : spec(spec), decls(spec.program.tables), input(input), batch(batch), scratch(scratch) {}

  Status bind();

private:
  Status assignInputs();
  Status bindOne(size_t table);
  Status bindRanges(size_t table, const RangesInput &ranges);
  Status checkRange(size_t table, size_t b, size_t number, const std::array<int64_t, 2> &range,
                    bool &live) const;
  Status bindDocuments(size_t table, const DocumentsInput &documents);
  Status takeDocuments(size_t table, size_t b, const int32_t *ids, int64_t length);
  Status bindDense(size_t table, const DenseInput &dense);
  Status checkOffsets(size_t table, const std::vector<int64_t> &offsets, size_t total) const;
  Status checkExtent(size_t table, size_t dim, int64_t extent) const;

  Error error(size_t table, const std::string &what) const {
    return Error{"table '" + decls[table].name + "': " + what};
  }
  std::vector<std::string> namesOf(TableKind kind) const {
    std::vector<std::string> names;
    for (const TableDecl &decl : decls)
      if (decl.kind == kind)
        names.push_back(decl.name);
    return names;
  }
  int64_t countOf(TableKind kind) const {
    return std::count_if(decls.begin(), decls.end(),
                         [&](const TableDecl &decl) { return decl.kind == kind; });
  }

  const KernelSpec &spec;
  const std::vector<TableDecl> &decls;
  const BatchInput &input;
  Batch &batch;
  BindScratch &scratch;
};

const char *describe(TableKind kind) {
  switch (kind) {
  case TableKind::Plain:
    return "a dense table";
  case TableKind::Ranges:
    return "a list of ranges for each request";
  case TableKind::Documents:
    return "a list of document ids for each request";
  case TableKind::QueryRanges:
    return "built by the runtime";
  }
  return "";
}

/// The input that goes with a declaration's kind is set, and no other.
bool matches(const TableInput &table, TableKind kind) {
  return table.ranges.has_value() == (kind == TableKind::Ranges) &&
         table.documents.has_value() == (kind == TableKind::Documents) &&
         table.dense.has_value() == (kind == TableKind::Plain);
}

} // namespace

/// Finds the input of every declaration; unnamed ranges go to the only ranges table.
Status TableBinder::assignInputs() {
  scratch.given.assign(decls.size(), {});
  for (const TableInput &table : input.tables) {
    auto decl = std::find_if(decls.begin(), decls.end(),
                             [&](const TableDecl &d) { return d.name == table.name; });
    if (decl == decls.end()) {
      std::vector<std::string> names;
      for (const TableDecl &d : decls)
        if (d.kind != TableKind::QueryRanges)
          names.push_back(d.name);
      return Error{"table '" + table.name + "': kernel '" + spec.name +
                   "' has no such table (it has: " + quotedList(names) + ")"};
    }
    const size_t i = decl - decls.begin();
    if (decl->kind == TableKind::QueryRanges)
      return error(i, "is built by the runtime and cannot be given");
    GivenTable &given = scratch.given[i];
    if (given.isGiven())
      return error(i, "given twice");
    if (!matches(table, decl->kind))
      return error(i, std::string("expected ") + describe(decl->kind));
    given = {table.ranges ? &*table.ranges : nullptr, table.documents ? &*table.documents : nullptr,
             table.dense ? &*table.dense : nullptr};
  }

  const int64_t rangesTables = countOf(TableKind::Ranges);
  if (!input.mmRanges || rangesTables == 0)
    return {};
  if (rangesTables > 1)
    return Error{"mm_ranges: kernel '" + spec.name + "' has several ranges tables (" +
                 quotedList(namesOf(TableKind::Ranges)) + "); give each by name as a table"};
  for (size_t i = 0; i < decls.size(); ++i) {
    if (decls[i].kind != TableKind::Ranges)
      continue;
    if (scratch.given[i].isGiven())
      return error(i, "given twice, by name and as mm_ranges");
    scratch.given[i].ranges = &*input.mmRanges;
  }
  return {};
}

/// Offsets of a per-request list: num_reqs + 1 of them, ascending, within the list.
Status TableBinder::checkOffsets(size_t table, const std::vector<int64_t> &offsets,
                                 size_t total) const {
  const size_t expected = batch.shape.seqLen.size() + 1;
  if (offsets.size() != expected)
    return error(table, "given for " + std::to_string(static_cast<int64_t>(offsets.size()) - 1) +
                            " requests, expected " + std::to_string(expected - 1));
  for (size_t i = 0; i < expected; ++i)
    if (offsets[i] < (i ? offsets[i - 1] : 0) || offsets[i] > static_cast<int64_t>(total))
      return error(table, "offset " + std::to_string(i) + " is " + std::to_string(offsets[i]) +
                              ", expected ascending offsets from 0 to " + std::to_string(total));
  return {};
}

/// Judges one range; `live` tells whether it is scheduled and not degenerate.
Status TableBinder::checkRange(size_t table, size_t b, size_t number,
                               const std::array<int64_t, 2> &range, bool &live) const {
  const int64_t start = range[0], end = range[1];
  const int64_t seqLen = batch.shape.seqLen[b];
  auto fail = [&](const std::string &what) {
    std::string name = countOf(TableKind::Ranges) > 1 ? " of '" + decls[table].name + "'" : "";
    return Error{"request " + std::to_string(b) + ": range " + std::to_string(number) + " [" +
                 std::to_string(start) + ", " + std::to_string(end) + "]" + name + " " + what};
  };
  if (start < 0)
    return fail("starts before 0");
  if (start >= kPositionLimit || end >= kPositionLimit || end <= -kPositionLimit)
    return fail("passes the last position " + std::to_string(kPositionLimit - 1));
  if (input.requests[b].seqLenBound) {
    // Its rows are built as lying outside of every range.
    const Interval rows = boundedPositions(input.requests[b]);
    if (start < end && !intersect(rows, Interval::fromInclusive(start, end)).empty())
      return fail("reaches into positions " + std::to_string(rows.lo) + " to " +
                  std::to_string(rows.hi - 1) +
                  " that the row may take, whose seq_len is known on the device only "
                  "(seq_len_least says how far down they go)");
    live = start < end && start < rows.lo;
    return {};
  }
  live = start < end && start < seqLen;
  if (!live || end < seqLen || input.allowPartialRanges)
    return {};
  const int64_t queryBegin = batch.shape.contextLen[b];
  const int64_t queryEnd = queryBegin + batch.shape.queryLen(RequestIndex(b));
  if (queryBegin < queryEnd && start < queryEnd && end >= queryBegin)
    return fail("holds a scheduled query and ends at or past seq_len " + std::to_string(seqLen) +
                "; its keys are not all there (partial_ranges: \"allow\" accepts that)");
  return {};
}

Status TableBinder::bindRanges(size_t table, const RangesInput &ranges) {
  if (Status status = checkOffsets(table, ranges.offsets, ranges.ranges.size()); !status)
    return status;
  TableData &data = batch.tables[table];
  data.ranges.clear();
  data.rangeOffsets.clear();
  data.rangeOffsets.push_back(0);
  for (size_t b = 0; b + 1 < ranges.offsets.size(); ++b) {
    for (int64_t i = ranges.offsets[b]; i < ranges.offsets[b + 1]; ++i) {
      const std::array<int64_t, 2> &range = ranges.ranges[i];
      bool live = false;
      if (Status status = checkRange(table, b, i - ranges.offsets[b], range, live); !status)
        return status;
      if (live)
        data.ranges.push_back({static_cast<int32_t>(range[0]), static_cast<int32_t>(range[1])});
    }
    data.rangeOffsets.push_back(static_cast<int64_t>(data.ranges.size()));
  }
  return {};
}

/// Appends ids to `to`, and where documents start to `starts`: a few ids at a time, while they are
/// at hand. Most stretches of that length lie in one document.
static void copyIds(const int32_t *ids, int64_t length, std::vector<int32_t> &to,
                    std::vector<std::pair<int32_t, int64_t>> &starts) {
  constexpr int64_t kStretch = 32;
  starts.clear();
  if (length > 0)
    starts.emplace_back(ids[0], 0);
  for (int64_t begin = 0; begin < length; begin += kStretch) {
    const int64_t end = std::min(begin + kStretch, length);
    to.insert(to.end(), ids + begin, ids + end);
    int32_t changes = 0;
    for (int64_t k = std::max<int64_t>(begin, 1); k < end; ++k)
      changes |= ids[k] ^ ids[k - 1];
    for (int64_t k = std::max<int64_t>(begin, 1); changes && k < end; ++k)
      if (ids[k] != ids[k - 1])
        starts.emplace_back(ids[k], k);
  }
}

/// Adds the ids of a request. The keys of a document lie together.
Status TableBinder::takeDocuments(size_t table, size_t b, const int32_t *ids, int64_t length) {
  auto fail = [&](const std::string &what) {
    return Error{"request " + std::to_string(b) + ": table '" + decls[table].name + "' " + what};
  };
  if (input.requests[b].seqLenBound)
    return fail("needs an exact seq_len, got seq_len_bound");
  if (length != batch.shape.seqLen[b])
    return fail("has " + std::to_string(length) + " document ids, expected seq_len " +
                std::to_string(batch.shape.seqLen[b]));
  std::vector<std::pair<int32_t, int64_t>> &starts = scratch.starts;
  copyIds(ids, length, batch.tables[table].documents, starts);
  std::sort(starts.begin(), starts.end());
  int64_t again = length;
  for (size_t i = 1; i < starts.size(); ++i)
    if (starts[i].first == starts[i - 1].first)
      again = std::min(again, starts[i].second);
  if (again == length)
    return {};
  return fail("has document id " + std::to_string(ids[again]) + " again at key " +
              std::to_string(again) + ", expected the keys of a document to be contiguous");
}

Status TableBinder::bindDocuments(size_t table, const DocumentsInput &documents) {
  if (Status status = checkOffsets(table, documents.offsets, documents.ids.size()); !status)
    return status;
  TableData &data = batch.tables[table];
  data.documentOffsets = documents.offsets;
  data.documents.clear();
  data.documents.reserve(documents.ids.size());
  // Offsets need not begin at 0.
  data.documents.insert(data.documents.end(), documents.ids.data(),
                        documents.ids.data() + documents.offsets[0]);
  for (size_t b = 0; b + 1 < documents.offsets.size(); ++b)
    if (Status status = takeDocuments(table, b, documents.ids.data() + documents.offsets[b],
                                      documents.offsets[b + 1] - documents.offsets[b]);
        !status)
      return status;
  return {};
}

Status TableBinder::checkExtent(size_t table, size_t dim, int64_t extent) const {
  const BatchShape &shape = batch.shape;
  const TableDim space = decls[table].dims[dim];
  auto fail = [&](const std::string &expected) {
    return error(table, "dimension " + std::to_string(dim) + " (" + std::string(toString(space)) +
                            ") is " + std::to_string(extent) + ", expected " + expected);
  };
  auto expectExactly = [&](int64_t expected) {
    return extent == expected ? Status() : Status(fail(std::to_string(expected)));
  };
  switch (space) {
  case TableDim::B:
    return expectExactly(shape.numReqs());
  case TableDim::Token:
    return expectExactly(shape.numTokens());
  case TableDim::H:
    return expectExactly(batch.numHeads);
  case TableDim::HKv:
    return expectExactly(batch.numKvHeads);
  case TableDim::K: {
    int64_t longest = 0;
    for (int64_t length : shape.seqLen)
      longest = std::max(longest, length);
    return extent >= longest
               ? Status()
               : Status(fail("at least the largest seq_len " + std::to_string(longest)));
  }
  case TableDim::Slot:
  case TableDim::Bucket:
    return extent >= 0 ? Status() : Status(fail("at least 0"));
  }
  return {};
}

Status TableBinder::bindDense(size_t table, const DenseInput &dense) {
  const TableDecl &decl = decls[table];
  if (dense.element != decl.element)
    return error(table, "has elements of type " + std::string(toString(dense.element)) +
                            ", expected " + std::string(toString(decl.element)));
  if (dense.extents.size() != decl.dims.size())
    return error(table, "has " + std::to_string(dense.extents.size()) + " dimensions, expected " +
                            std::to_string(decl.dims.size()));
  for (size_t dim = 0; dim < decl.dims.size(); ++dim)
    if (Status status = checkExtent(table, dim, dense.extents[dim]); !status)
      return status;
  TableData &data = batch.tables[table];
  data.extents = dense.extents;
  data.strides = dense.strides;
  if (dense.strides.empty()) {
    data.strides.resize(dense.extents.size());
    if (!denseStrides(data.extents.data(), data.extents.size(), data.strides.data()))
      return error(table, "has more elements than 64 bits count");
  }
  if (data.strides.size() != decl.dims.size())
    return error(table, "has " + std::to_string(dense.strides.size()) + " strides, expected " +
                            std::to_string(decl.dims.size()));
  const bool isEmpty =
      std::find(dense.extents.begin(), dense.extents.end(), 0) != dense.extents.end();
  data.owned = dense.owned;
  data.data = dense.data ? dense.data : data.owned.data();
  if (!data.data && !isEmpty)
    return error(table, "has no data");
  return {};
}

Status TableBinder::bindOne(size_t table) {
  const TableKind kind = decls[table].kind;
  if (kind == TableKind::QueryRanges)
    return {};
  const GivenTable &given = scratch.given[table];
  if (!given.isGiven()) {
    // No range at all is a legal batch of a kernel with one ranges table; with several, a table
    // that is not named is more likely forgotten.
    if (kind != TableKind::Ranges || countOf(TableKind::Ranges) > 1)
      return error(table, std::string("missing, expected ") + describe(kind));
    batch.tables[table].ranges.clear();
    batch.tables[table].rangeOffsets.assign(batch.shape.seqLen.size() + 1, 0);
    return {};
  }
  switch (kind) {
  case TableKind::Ranges:
    return bindRanges(table, *given.ranges);
  case TableKind::Documents:
    return bindDocuments(table, *given.documents);
  case TableKind::Plain:
    return bindDense(table, *given.dense);
  case TableKind::QueryRanges:
    break;
  }
  return {};
}

Status TableBinder::bind() {
  if (Status status = assignInputs(); !status)
    return status;
  batch.tables.resize(decls.size());
  for (size_t table = 0; table < decls.size(); ++table)
    if (Status status = bindOne(table); !status)
      return status;
  return {};
}

Status rt::bindTables(const KernelSpec &spec, const BatchInput &input, Batch &batch,
                      BindScratch &scratch) {
  return TableBinder(spec, input, batch, scratch).bind();
}
