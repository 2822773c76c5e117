// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lengths, positions, parameters and pages of a batch. Tables are in BindTables.cpp.
#include "attn/Runtime/BatchBinding.h"

#include "BindTables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

std::string rt::quotedList(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "none" : text;
}

static Error requestError(size_t b, const std::string &what) {
  return Error{"request " + std::to_string(b) + ": " + what};
}

/// A length: 0 <= value < kPositionLimit.
static Status checkLength(size_t b, const char *field, int64_t value) {
  if (value >= 0 && value < kPositionLimit)
    return {};
  return requestError(b, std::string(field) + " is " + std::to_string(value) + ", expected 0 to " +
                             std::to_string(kPositionLimit - 1));
}

bool rt::isPrefilling(const RequestInput &request) {
  return request.isPrefilling.value_or(request.queryLen > 1);
}

Interval rt::boundedPositions(const RequestInput &request) {
  const int64_t least = request.seqLenLeast.value_or(request.queryLen);
  return {least - request.queryLen, request.seqLenBound.value_or(request.seqLen)};
}

/// A row whose length is known on the device only: only a decode row may be one, as rows of a
/// prefill lie inside ranges, and what follows from its length must not be given.
static Status checkBoundedRow(size_t b, const RequestInput &request) {
  if (!request.seqLenBound)
    return request.seqLenLeast ? requestError(b, "seq_len_least: given without seq_len_bound")
                               : Status();
  if (isPrefilling(request))
    return requestError(b, "seq_len_bound: given for a prefill row, expected a decode row "
                           "(is_prefilling: false)");
  // The keys of a decode row's own queries are there.
  if (request.seqLen < request.queryLen)
    return requestError(b, "seq_len is " + std::to_string(request.seqLen) +
                               ", expected at least query_len " + std::to_string(request.queryLen) +
                               " of a row with seq_len_bound");
  const int64_t least = request.seqLenLeast.value_or(request.queryLen);
  if (request.seqLenLeast && (least < request.queryLen || least > request.seqLen))
    return requestError(b, "seq_len_least is " + std::to_string(least) + ", expected query_len " +
                               std::to_string(request.queryLen) + " to seq_len " +
                               std::to_string(request.seqLen));
  if (request.contextLen && *request.contextLen != request.seqLen - request.queryLen)
    return requestError(b, "context_len is " + std::to_string(*request.contextLen) +
                               ", expected seq_len - query_len " +
                               std::to_string(request.seqLen - request.queryLen) +
                               " of a row with seq_len_bound");
  if (request.keyEnd && *request.keyEnd != request.seqLen)
    return requestError(b, "key_end is " + std::to_string(*request.keyEnd) + ", expected seq_len " +
                               std::to_string(request.seqLen) + " of a row with seq_len_bound");
  return {};
}

/// The lengths of one request and the positions that follow from them.
static Status checkRequest(size_t b, const RequestInput &request, int64_t contextLen) {
  if (Status status = checkLength(b, "query_len", request.queryLen); !status)
    return status;
  if (Status status = checkLength(b, "seq_len", request.seqLen); !status)
    return status;
  if (contextLen <= -kPositionLimit || contextLen >= kPositionLimit)
    return requestError(
        b, "context_len is " + std::to_string(contextLen) + ", expected a position between " +
               std::to_string(1 - kPositionLimit) + " and " + std::to_string(kPositionLimit - 1));
  if (contextLen + request.queryLen > kPositionLimit)
    return requestError(b, "context_len " + std::to_string(contextLen) + " plus query_len " +
                               std::to_string(request.queryLen) + " passes the last position " +
                               std::to_string(kPositionLimit - 1));
  if (request.seqLenBound) {
    if (Status status = checkLength(b, "seq_len_bound", *request.seqLenBound); !status)
      return status;
    if (*request.seqLenBound < request.seqLen)
      return requestError(b, "seq_len_bound is " + std::to_string(*request.seqLenBound) +
                                 ", expected at least seq_len " + std::to_string(request.seqLen));
  }
  if (Status status = checkBoundedRow(b, request); !status)
    return status;
  const int64_t begin = request.keyBegin.value_or(0);
  const int64_t end = request.keyEnd.value_or(request.seqLen);
  if (begin < 0 || begin > end || end > request.seqLen)
    return requestError(b, "keys [" + std::to_string(begin) + ", " + std::to_string(end) +
                               ") expected to lie in [0, " + std::to_string(request.seqLen) + ")");
  return {};
}

static Status bindShape(const BatchInput &input, BoundBatch &bound) {
  BatchShape &shape = bound.batch.shape;
  for (std::vector<int64_t> *numbers :
       {&shape.queryStartLoc, &shape.seqLen, &shape.contextLen, &shape.keyBegin, &shape.keyEnd,
        &bound.kvStart, &shape.leastSeqLen, &shape.mostSeqLen})
    numbers->clear();
  bound.hasSeqLenBound.clear();
  bound.isPrefilling.clear();
  shape.queryStartLoc.push_back(0);
  bound.kvStart.push_back(0);
  for (size_t b = 0; b < input.requests.size(); ++b) {
    const RequestInput &request = input.requests[b];
    // The default is taken after the lengths are known to be sane, else it could overflow.
    int64_t contextLen = request.contextLen.value_or(0);
    if (Status status = checkRequest(b, request, contextLen); !status)
      return status;
    contextLen = request.contextLen.value_or(request.seqLen - request.queryLen);
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + request.queryLen);
    bound.kvStart.push_back(bound.kvStart.back() + request.seqLen);
    shape.seqLen.push_back(request.seqLen);
    shape.contextLen.push_back(contextLen);
    shape.keyBegin.push_back(request.keyBegin.value_or(0));
    shape.keyEnd.push_back(request.keyEnd.value_or(request.seqLen));
    bound.hasSeqLenBound.push_back(request.seqLenBound.has_value());
    bound.isPrefilling.push_back(isPrefilling(request));
  }
  const bool hasBounds =
      std::any_of(input.requests.begin(), input.requests.end(),
                  [](const RequestInput &r) { return r.seqLenBound.has_value(); });
  for (size_t b = 0; hasBounds && b < input.requests.size(); ++b) {
    const RequestInput &request = input.requests[b];
    const Interval positions = boundedPositions(request);
    shape.leastSeqLen.push_back(request.seqLenBound ? positions.lo + request.queryLen
                                                    : request.seqLen);
    shape.mostSeqLen.push_back(request.seqLenBound ? positions.hi : request.seqLen);
  }
  return {};
}

static std::string toText(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "%.9g", value);
  return buffer;
}

/// Why `input` is not a legal value of `decl`, or the value.
static Result<ParamValue> paramValue(const ParamDecl &decl, const ParamInput &input) {
  const auto who = [&] { return "param '" + decl.name + "': "; };
  ParamValue value;
  if (decl.type == ScalarType::F32) {
    const double given = input.isInteger ? static_cast<double>(input.i) : input.f;
    value.f = static_cast<float>(given);
    if (std::isfinite(value.f))
      return value;
    if (std::isfinite(given))
      return Error{who() + toText(given) + " does not fit f32"};
    return Error{who() + "expected a finite f32, got " + toText(given)};
  }
  if (!input.isInteger)
    return Error{who() + "expected an integer (" + std::string(toString(decl.type)) + "), got " +
                 toText(input.f)};
  if (decl.type == ScalarType::I32 && input.i != static_cast<int32_t>(input.i))
    return Error{who() + std::to_string(input.i) + " does not fit i32"};
  if (decl.minValue && input.i < *decl.minValue)
    return Error{who() + "expected at least " + std::to_string(*decl.minValue) + ", got " +
                 std::to_string(input.i)};
  value.i = input.i;
  return value;
}

static Status bindParams(const KernelSpec &spec, const BatchInput &input, Batch &batch,
                         std::vector<uint8_t> &given) {
  const std::vector<ParamDecl> &decls = spec.program.params;
  given.assign(decls.size(), false);
  batch.params.resize(decls.size());
  for (const ParamInput &param : input.params) {
    auto decl = std::find_if(decls.begin(), decls.end(),
                             [&](const ParamDecl &d) { return d.name == param.name; });
    if (decl == decls.end()) {
      std::vector<std::string> names;
      for (const ParamDecl &d : decls)
        names.push_back(d.name);
      return Error{"param '" + param.name + "': kernel '" + spec.name +
                   "' has no such parameter (it has: " + quotedList(names) + ")"};
    }
    const size_t i = decl - decls.begin();
    if (given[i])
      return Error{"param '" + param.name + "': given twice"};
    Result<ParamValue> value = paramValue(*decl, param);
    if (!value)
      return value.takeError();
    batch.params[i] = *value;
    given[i] = true;
  }
  for (size_t i = 0; i < decls.size(); ++i)
    if (!given[i])
      return Error{"param '" + decls[i].name + "': missing (" +
                   std::string(toString(decls[i].type)) + ")"};
  return {};
}

/// The live entries of one request's row of the block table.
static Status checkPages(size_t b, const BlockTableInput &table, int64_t seqLen, int64_t pageSize) {
  const int64_t live = livePages(seqLen, pageSize);
  if (table.widths[b] < live)
    return requestError(b, "block_table has " + std::to_string(table.widths[b]) +
                               " entries, expected at least " + std::to_string(live) +
                               " for seq_len " + std::to_string(seqLen) + " in pages of " +
                               std::to_string(pageSize));
  const int32_t *row = table.entries + static_cast<int64_t>(b) * table.stride;
  for (int64_t i = 0; i < live; ++i) {
    if (row[i] >= 0 && (!table.numPages || row[i] < *table.numPages))
      continue;
    std::string expected =
        table.numPages ? "0 to " + std::to_string(*table.numPages - 1) : std::string("at least 0");
    return requestError(b, "block_table[" + std::to_string(i) + "] is " + std::to_string(row[i]) +
                               ", expected a page id of " + expected +
                               ", because the page holds keys");
  }
  return {};
}

static Status checkPaging(const BatchInput &input) {
  if (input.pageSize && (*input.pageSize < 1 || *input.pageSize >= kPositionLimit))
    return Error{"page_size is " + std::to_string(*input.pageSize) + ", expected 1 to " +
                 std::to_string(kPositionLimit - 1)};
  if (!input.blockTable)
    return {};
  if (!input.pageSize)
    return Error{"block_table: given without page_size"};
  for (size_t b = 0; b < input.requests.size(); ++b)
    if (Status status = checkPages(b, *input.blockTable, input.requests[b].seqLen, *input.pageSize);
        !status)
      return status;
  return {};
}

BatchBinder::BatchBinder(const KernelSpec &spec)
    : spec(&spec), scratch(std::make_unique<BindScratch>()) {}
BatchBinder::BatchBinder(BatchBinder &&) noexcept = default;
BatchBinder &BatchBinder::operator=(BatchBinder &&) noexcept = default;
BatchBinder::~BatchBinder() = default;

Status BatchBinder::bind(const BatchInput &input, BoundBatch &bound) {
  if (spec->numKvHeads < 1 || spec->numHeads < 1 || spec->numHeads % spec->numKvHeads)
    return Error{"kernel '" + spec->name + "': heads " + std::to_string(spec->numHeads) +
                 " expected to be a multiple of kv_heads " + std::to_string(spec->numKvHeads)};
  bound.batch.numHeads = spec->numHeads;
  bound.batch.numKvHeads = spec->numKvHeads;
  if (Status status = bindShape(input, bound); !status)
    return status;
  if (Status status = checkPaging(input); !status)
    return status;
  // From here on names that were given are looked up, and unknown ones quoted.
  Status status = bindParams(*spec, input, bound.batch, scratch->hasParam);
  if (status)
    status = bindTables(*spec, input, bound.batch, *scratch);
  return status ? Status() : Status(Error{oneLine(status.message())});
}

void BatchBinder::reserve(BoundBatch &bound, int64_t requests, int64_t ranges) const {
  BatchShape &shape = bound.batch.shape;
  const size_t count = static_cast<size_t>(requests) + 1;
  for (std::vector<int64_t> *numbers :
       {&shape.queryStartLoc, &shape.seqLen, &shape.contextLen, &shape.keyBegin, &shape.keyEnd,
        &bound.kvStart, &shape.leastSeqLen, &shape.mostSeqLen})
    numbers->reserve(count);
  bound.hasSeqLenBound.reserve(count);
  bound.isPrefilling.reserve(count);
  bound.batch.tables.resize(spec->program.tables.size());
  for (size_t i = 0; i < spec->program.tables.size(); ++i)
    if (spec->program.tables[i].kind == TableKind::Ranges) {
      bound.batch.tables[i].ranges.reserve(static_cast<size_t>(ranges));
      bound.batch.tables[i].rangeOffsets.reserve(count);
    }
}

Result<BoundBatch> rt::bindBatch(const KernelSpec &spec, const BatchInput &input) {
  BoundBatch bound;
  if (Status status = BatchBinder(spec).bind(input, bound); !status)
    return Error{status.message()};
  return bound;
}

Status rt::requireExactLengths(const BoundBatch &bound, std::string_view who) {
  for (size_t b = 0; b < bound.hasSeqLenBound.size(); ++b)
    if (bound.hasSeqLenBound[b])
      return requestError(b, "seq_len_bound: " + std::string(who) +
                                 " needs exact lengths (seq_len alone)");
  return {};
}
