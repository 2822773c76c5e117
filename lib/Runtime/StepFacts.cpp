// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/StepFacts.h"

#include <algorithm>
#include <limits>
#include <string>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

/// An error if the caller's memory for `what` is too small; `optional`: size 0 means not wanted.
static Status checkSize(const char *what, int64_t size, int64_t expected, bool optional) {
  if (size >= expected || (optional && size == 0))
    return {};
  return Error{std::string(what) + ": memory for " + std::to_string(size) +
               " elements, expected at least " + std::to_string(expected)};
}

//===----------------------------------------------------------------------===//
// Query lengths
//===----------------------------------------------------------------------===//

int64_t rt::roundUpToPowerOfTwo(int64_t n) {
  if (n < 1)
    return 0;
  int64_t power = 1;
  while (power < n)
    power *= 2;
  return power;
}

QueryLengths rt::longestQuery(const BatchShape &shape) {
  QueryLengths longest;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    longest.exact = std::max(longest.exact, shape.queryLen(RequestIndex(b)));
  longest.rounded = roundUpToPowerOfTwo(longest.exact);
  return longest;
}

//===----------------------------------------------------------------------===//
// Decodes and prefills
//===----------------------------------------------------------------------===//

bool rt::hasRangesTable(const MaskProgram &program) {
  return std::any_of(program.tables.begin(), program.tables.end(),
                     [](const TableDecl &table) { return table.kind == TableKind::Ranges; });
}

bool rt::hasLiveRanges(const Batch &batch) {
  return std::any_of(batch.tables.begin(), batch.tables.end(),
                     [](const TableData &table) { return !table.ranges.empty(); });
}

Result<StepCounts> rt::classifyRequests(const BatchShape &shape, Span<const uint8_t> isPrefilling,
                                        const SplitRule &rule, Span<uint8_t> isPrefill) {
  const int64_t n = shape.numReqs();
  if (Status status = checkSize("is_prefilling", isPrefilling.size, n, false); !status)
    return Error{status.message()};
  if (Status status = checkSize("classes of requests", isPrefill.size, n, true); !status)
    return Error{status.message()};
  const bool shortAreDecodes = rule.shortExtendsAreDecodes && !rule.hasRanges;
  StepCounts counts;
  for (int64_t b = 0; b < n; ++b) {
    const int64_t queries = shape.queryLen(RequestIndex(b));
    const bool prefill = queries > rule.decodeThreshold || (isPrefilling[b] && !shortAreDecodes);
    if (isPrefill.size)
      isPrefill[b] = prefill;
    if (prefill) {
      ++counts.prefills;
      counts.prefillTokens += queries;
      counts.longestPrefill = std::max(counts.longestPrefill, queries);
      counts.anyPrefillHasContext |= queries > 0 && shape.contextLen[b] > 0;
      continue;
    }
    // A request without tokens does not part those around it.
    counts.decodesFirst &= counts.prefillTokens == 0 || queries == 0;
    ++counts.decodes;
    counts.decodeTokens += queries;
    counts.longestDecode = std::max(counts.longestDecode, queries);
  }
  return counts;
}

Result<int64_t> rt::prefillPart(const BatchShape &shape, Span<const uint8_t> isPrefill,
                                const PrefillPart &out) {
  const int64_t n = shape.numReqs();
  if (Status status = checkSize("classes of requests", isPrefill.size, n, false); !status)
    return Error{status.message()};
  int64_t prefills = 0;
  for (int64_t b = 0; b < n; ++b)
    prefills += isPrefill[b] != 0;
  if (Status status = checkSize("numbers of the prefills", out.requests.size, prefills, false);
      !status)
    return Error{status.message()};
  if (Status status =
          checkSize("query offsets of the prefills", out.queryStartLoc.size, prefills + 1, false);
      !status)
    return Error{status.message()};
  if (Status status =
          checkSize("computed tokens of the prefills", out.computedTokens.size, prefills, false);
      !status)
    return Error{status.message()};
  out.queryStartLoc[0] = 0;
  for (int64_t b = 0, i = 0; b < n; ++b) {
    if (!isPrefill[b])
      continue;
    out.requests[i] = b;
    out.queryStartLoc[i + 1] = out.queryStartLoc[i] + shape.queryLen(RequestIndex(b));
    out.computedTokens[i] = std::max<int64_t>(shape.contextLen[b], 0);
    ++i;
  }
  return prefills;
}

//===----------------------------------------------------------------------===//
// Tokens whose logits are wanted
//===----------------------------------------------------------------------===//

static Status checkLogits(const BatchShape &shape, Span<const int64_t> indices) {
  for (int64_t i = 0; i < indices.size; ++i) {
    if (indices[i] < 0 || indices[i] >= shape.numTokens())
      return Error{"logits index " + std::to_string(i) + " is " + std::to_string(indices[i]) +
                   ", expected a token of 0 to " + std::to_string(shape.numTokens() - 1)};
    if (i && indices[i] <= indices[i - 1])
      return Error{"logits index " + std::to_string(i) + " is " + std::to_string(indices[i]) +
                   ", expected ascending tokens after " + std::to_string(indices[i - 1])};
  }
  return {};
}

Result<LogitsCounts> rt::logitsPart(const BatchShape &shape, Span<const int64_t> logitsIndices,
                                    const LogitsPart &out) {
  const int64_t n = shape.numReqs();
  if (Status status = checkLogits(shape, logitsIndices); !status)
    return Error{status.message()};
  if (Status status = checkSize("query offsets of the logits", out.queryStartLoc.size, n + 1, true);
      !status)
    return Error{status.message()};
  if (Status status = checkSize("query lengths of the logits", out.queryLen.size, n, true); !status)
    return Error{status.message()};
  if (Status status = checkSize("first positions of the logits", out.contextLen.size, n, true);
      !status)
    return Error{status.message()};
  LogitsCounts counts;
  if (out.queryStartLoc.size)
    out.queryStartLoc[0] = 0;
  for (int64_t b = 0; b < n; ++b) {
    const int64_t first = counts.tokens;
    while (counts.tokens < logitsIndices.size &&
           logitsIndices[counts.tokens] < shape.queryStartLoc[b + 1])
      ++counts.tokens;
    const int64_t rows = counts.tokens - first;
    if (out.contextLen.size && rows &&
        logitsIndices[counts.tokens - 1] - logitsIndices[first] != rows - 1)
      return Error{"request " + std::to_string(b) + ": logits of " + std::to_string(rows) +
                   " tokens from " + std::to_string(logitsIndices[first]) + " to " +
                   std::to_string(logitsIndices[counts.tokens - 1]) +
                   ", expected tokens that follow each other"};
    counts.longestRequest = std::max(counts.longestRequest, rows);
    if (out.queryStartLoc.size)
      out.queryStartLoc[b + 1] = counts.tokens;
    if (out.queryLen.size)
      out.queryLen[b] = rows;
    if (out.contextLen.size)
      out.contextLen[b] =
          rows ? shape.queryOf(RequestIndex(b), TokenIndex(logitsIndices[first])).value
               : shape.contextLen[b];
  }
  return counts;
}

//===----------------------------------------------------------------------===//
// Chunked scans
//===----------------------------------------------------------------------===//

static Status checkChunkSize(int64_t chunkSize) {
  if (chunkSize < 1)
    return Error{"chunk size is " + std::to_string(chunkSize) + ", expected at least 1"};
  return {};
}

static Status checkChunkInput(const ChunkInput &input) {
  constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();
  if (Status status = checkChunkSize(input.chunkSize); !status)
    return status;
  if (Status status = checkSize("query offsets", input.queryStartLoc.size, 1, false); !status)
    return status;
  const int64_t sequences = input.queryStartLoc.size - 1;
  if (Status status = checkSize("computed tokens", input.computedTokens.size, sequences, false);
      !status)
    return status;
  for (int64_t i = 0; i <= sequences; ++i) {
    const int64_t least = i ? input.queryStartLoc[i - 1] : 0;
    if (input.queryStartLoc[i] < least || input.queryStartLoc[i] > kMostTokens)
      return Error{"query offset " + std::to_string(i) + " is " +
                   std::to_string(input.queryStartLoc[i]) + ", expected ascending offsets from " +
                   std::to_string(least) + " to " + std::to_string(kMostTokens)};
  }
  for (int64_t i = 0; i < sequences; ++i)
    if (input.computedTokens[i] < 0 || input.computedTokens[i] >= kPositionLimit)
      return Error{"computed tokens of sequence " + std::to_string(i) + " are " +
                   std::to_string(input.computedTokens[i]) + ", expected 0 to " +
                   std::to_string(kPositionLimit - 1)};
  return {};
}

/// Chunks of `tokens` tokens after `computed` ones.
static int64_t chunksOf(int64_t computed, int64_t tokens, int64_t chunkSize) {
  if (tokens == 0)
    return 0;
  return (computed + tokens - 1) / chunkSize - computed / chunkSize + 1;
}

Result<int64_t> rt::countChunks(const ChunkInput &input) {
  if (Status status = checkChunkInput(input); !status)
    return Error{status.message()};
  int64_t chunks = 0;
  for (int64_t i = 0; i + 1 < input.queryStartLoc.size; ++i)
    chunks += chunksOf(input.computedTokens[i], input.queryStartLoc[i + 1] - input.queryStartLoc[i],
                       input.chunkSize);
  return chunks;
}

Result<int64_t> rt::mostChunks(int64_t tokens, int64_t sequences, int64_t chunkSize) {
  if (Status status = checkChunkSize(chunkSize); !status)
    return Error{status.message()};
  if (tokens < 0 || sequences < 0)
    return Error{std::to_string(tokens) + " tokens of " + std::to_string(sequences) +
                 " sequences, expected neither below 0"};
  // The first token of a sequence may end a chunk, so may the second be alone in its chunk; from
  // there on each chunk takes chunkSize tokens.
  const int64_t first = std::min(tokens, sequences);
  const int64_t second = std::min(tokens - first, first);
  return first + second + (tokens - first - second) / chunkSize;
}

Result<int64_t> rt::chunkTable(const ChunkInput &input, const ChunkTable &out) {
  Result<int64_t> chunks = countChunks(input);
  if (!chunks)
    return chunks;
  const int64_t sequences = input.queryStartLoc.size - 1;
  if (Status status = checkSize("chunk starts", out.chunkStart.size, *chunks + 1, false); !status)
    return Error{status.message()};
  if (Status status = checkSize("sequences of chunks", out.sequence.size, *chunks, false); !status)
    return Error{status.message()};
  if (Status status = checkSize("last chunks", out.lastChunk.size, sequences, false); !status)
    return Error{status.message()};
  int64_t chunk = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t end = input.queryStartLoc[i + 1];
    int64_t position = input.computedTokens[i];
    for (int64_t token = input.queryStartLoc[i]; token < end; ++chunk) {
      out.chunkStart[chunk] = token;
      out.sequence[chunk] = i;
      const int64_t room = std::min(input.chunkSize - position % input.chunkSize, end - token);
      token += room;
      position += room;
    }
    out.lastChunk[i] = end > input.queryStartLoc[i] ? chunk - 1 : -1;
  }
  out.chunkStart[chunk] = input.queryStartLoc[sequences];
  return chunk;
}
