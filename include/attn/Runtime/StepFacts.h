// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an engine derives from a batch before a step, from host data only: longest query, decodes
// and prefills, the tokens whose logits are wanted, chunks for chunked scans. Results go into the
// caller's memory, whose sizes are given here; nothing is allocated but the text of an error. All
// functions take time in proportion to what they read and write.
//
// A BatchShape is one that bindBatch made or checked.
#ifndef ATTN_RUNTIME_STEPFACTS_H
#define ATTN_RUNTIME_STEPFACTS_H

#include "attn/Core/Batch.h"
#include "attn/Core/Status.h"
#include "attn/Runtime/Span.h"

#include <cstdint>

namespace attn::rt {

//===----------------------------------------------------------------------===//
// Query lengths
//===----------------------------------------------------------------------===//

/// The smallest power of two that is at least `n`, 0 for n < 1; n <= 2^62.
int64_t roundUpToPowerOfTwo(int64_t n);

/// The longest query: exact, and rounded up so that few values occur.
struct QueryLengths {
  int64_t exact = 0;
  int64_t rounded = 0;
};
QueryLengths longestQuery(const core::BatchShape &shape);

//===----------------------------------------------------------------------===//
// Decodes and prefills
//===----------------------------------------------------------------------===//

/// How requests are told apart. A request is a decode if it schedules at most `decodeThreshold`
/// tokens and is not prefilling, else a prefill. Where `shortExtendsAreDecodes`, prefilling
/// requests within the threshold count as decodes too, but never in a batch with ranges: a short
/// piece of a prompt may lie inside a range, a decode may not.
struct SplitRule {
  int64_t decodeThreshold = 1;
  bool shortExtendsAreDecodes = false;
  bool hasRanges = false; ///< see hasLiveRanges()
};

/// Whether the program reads a table of ranges.
bool hasRangesTable(const core::MaskProgram &program);
/// Whether some request of the batch has a live range in some table of ranges.
bool hasLiveRanges(const core::Batch &batch);

struct StepCounts {
  int64_t decodes = 0;
  int64_t decodeTokens = 0;
  int64_t prefills = 0;
  int64_t prefillTokens = 0;
  int64_t longestDecode = 0;  ///< query tokens
  int64_t longestPrefill = 0; ///< query tokens
  /// No decode comes after a prefill: tokens [0, decodeTokens) are those of the decodes.
  bool decodesFirst = true;
  /// Some prefill with scheduled tokens has computed tokens before them.
  bool anyPrefillHasContext = false;
};

/// Sorts requests into decodes and prefills. `isPrefilling` [num_reqs] is BoundBatch::isPrefilling.
/// `isPrefill` [num_reqs] receives 1 for a prefill, or has size 0: only the counts are wanted.
core::Result<StepCounts> classifyRequests(const core::BatchShape &shape,
                                          Span<const uint8_t> isPrefilling, const SplitRule &rule,
                                          Span<uint8_t> isPrefill);

/// The prefills as a batch of their own: [prefills] requests by number, their query offsets among
/// the prefills' tokens ([prefills + 1], from 0) and the tokens computed before ([prefills]; 0
/// where queries outnumber keys). Returns the number of prefills; too little memory is refused.
struct PrefillPart {
  Span<int64_t> requests;
  Span<int64_t> queryStartLoc;
  Span<int64_t> computedTokens;
};
core::Result<int64_t> prefillPart(const core::BatchShape &shape, Span<const uint8_t> isPrefill,
                                  const PrefillPart &out);

//===----------------------------------------------------------------------===//
// Tokens whose logits are wanted
//===----------------------------------------------------------------------===//

/// `logitsIndices` are tokens, ascending, without the padding of a captured graph.
struct LogitsCounts {
  int64_t tokens = 0;         ///< all of them
  int64_t longestRequest = 0; ///< most in one request
};

/// Layers that reuse the keys of an earlier layer need only the rows whose logits are wanted (fast
/// prefill): the batch of those rows, [num_reqs] lengths and first positions, [num_reqs + 1]
/// offsets. Keys stay as they are. Any of the three spans may have size 0.
struct LogitsPart {
  Span<int64_t> queryStartLoc;
  Span<int64_t> queryLen;
  Span<int64_t> contextLen; ///< the request's own where it has no such row
};

/// Refuses indices that are not ascending tokens, and, where contextLen is wanted, rows of a
/// request that do not follow each other: one request has consecutive positions.
core::Result<LogitsCounts> logitsPart(const core::BatchShape &shape,
                                      Span<const int64_t> logitsIndices, const LogitsPart &out);

//===----------------------------------------------------------------------===//
// Chunked scans
//===----------------------------------------------------------------------===//

/// Sequences of tokens: sequence i has tokens [queryStartLoc[i], queryStartLoc[i + 1]), the first
/// of which is at position computedTokens[i] (>= 0). A chunk ends where the position is a multiple
/// of `chunkSize` or the sequence ends, so where a sequence is cut into steps does not move its
/// chunks.
struct ChunkInput {
  Span<const int64_t> queryStartLoc;
  Span<const int64_t> computedTokens;
  int64_t chunkSize = 0;
};

struct ChunkTable {
  Span<int64_t> chunkStart; ///< [chunks + 1]: first token of each, then past the last
  Span<int64_t> sequence;   ///< [chunks]
  Span<int64_t> lastChunk;  ///< [sequences]; -1 for a sequence without tokens
};

/// Number of chunks. Offsets that are not ascending from at least 0 are refused, and positions that
/// no token has.
core::Result<int64_t> countChunks(const ChunkInput &input);
/// Most chunks that `tokens` tokens of `sequences` sequences can make, whatever their positions.
core::Result<int64_t> mostChunks(int64_t tokens, int64_t sequences, int64_t chunkSize);
/// Fills the table and returns the number of chunks; too little memory is refused.
core::Result<int64_t> chunkTable(const ChunkInput &input, const ChunkTable &out);

} // namespace attn::rt

#endif // ATTN_RUNTIME_STEPFACTS_H
