// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sets of small requests for the exhaustive tests, with the truth of every atom on them, and the
// judge that compares one kernel with it.
#ifndef ATTN_TEST_EXECUTION_CASESETS_H
#define ATTN_TEST_EXECUTION_CASESETS_H

#include "Harness.h"
#include "MaskCases.h"

#include "attn/Core/MaskEval.h"

#include <map>
#include <memory>

namespace exec {

/// What was compared so far.
struct Counts {
  int64_t kernels = 0;
  int64_t cases = 0;          ///< (kernel, setting, request)
  int64_t pairs = 0;          ///< (q, k) of the native mask entry
  int64_t evaluatorPairs = 0; ///< (q, k) of the evaluator
  int64_t tiles = 0;          ///< tiles judged
  int64_t tilesVisited = 0;
  int64_t tilesFull = 0;
  int64_t probeRows = 0;       ///< rows whose key set the forward entry revealed
  int64_t intervalKernels = 0; ///< kernels whose manifest promises exact tiles
  int64_t exactKernels = 0;    ///< kernels whose tiles were held to that
  int64_t failures = 0;
};

/// Requests that fit into one launch. Dense masks of it have `stride` bytes a row.
class CaseSet {
public:
  explicit CaseSet(std::vector<truth::Request> requests);

  const std::vector<truth::Request> &requests() const { return list; }
  int64_t rows() const { return numRows; }
  int64_t stride() const { return rowStride; }
  int64_t pairs() const { return numPairs; }

  /// Truth of an atom on every pair, one byte each; kept for the next call.
  const std::vector<uint8_t> &truthOf(masks::Atom atom, const std::vector<masks::Int> &params);
  /// The dense mask that a kernel must write into a buffer of poison bytes.
  void expected(const masks::Expr &expr, const std::vector<masks::Int> &params,
                std::vector<uint8_t> &out);
  /// The batch for kernels with these tables, bound once for each signature; its parameters are the
  /// caller's to set. Null with a message in `error` if the binder refuses it.
  attn::core::Batch *batchFor(const attn::core::KernelSpec &spec, std::string &error);
  /// Native tables of that batch for this code, made once for each list of declarations.
  const attn::rt::NativeTables &tablesFor(const LoadedKernel &kernel,
                                          const attn::core::Batch &batch);

  static constexpr uint8_t kPoison = 0xCC;

private:
  std::vector<truth::Request> list;
  int64_t numRows = 0;
  int64_t rowStride = 1;
  int64_t numPairs = 0;
  std::vector<uint8_t> valid;  ///< 1 where a pair exists
  std::vector<uint8_t> poison; ///< kPoison elsewhere
  std::map<std::pair<masks::Atom, std::vector<masks::Int>>, std::vector<uint8_t>> truths;
  std::map<std::string, attn::core::Batch> batches;
  std::map<std::string, std::unique_ptr<attn::rt::NativeTables>> nativeTables;
  std::vector<std::vector<uint8_t>> scratch;
};

/// Compares one kernel with the truth; prints the first few differences.
class Judge {
public:
  /// `named`: the mask is made of mask operations, so its tiles must be exact, not only sound.
  Judge(const LoadedKernel &kernel, const masks::Expr &expr, bool named, bool literals,
        Counts &counts);

  /// The dense mask of the native code on every pair of the set.
  void checkMask(CaseSet &set, const std::vector<masks::Int> &params);
  /// Evaluator, row sets, boxes, tile records of `shape` and the forward entry.
  void checkRest(CaseSet &set, const std::vector<masks::Int> &params, attn::rt::TileShape shape,
                 int64_t anchor);

private:
  bool bind(CaseSet &set, const std::vector<masks::Int> &params);
  void checkEvaluator(CaseSet &set, attn::rt::TileShape box);
  void checkTiles(CaseSet &set, attn::rt::TileShape shape, int64_t anchor);
  void checkForward(CaseSet &set);
  void fail(const CaseSet &set, int64_t request, const std::string &what);

  const LoadedKernel &kernel;
  const masks::Expr &expr;
  bool exact;
  bool literals;
  Counts &counts;
  std::vector<masks::Int> current;
  attn::core::Batch *batch = nullptr;
  std::vector<int64_t> words;
  std::vector<uint8_t> want;
  std::vector<uint8_t> got;
};

} // namespace exec

#endif // ATTN_TEST_EXECUTION_CASESETS_H
