// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sets of small requests for the exhaustive tests, with the truth of every atom on them, and the
// judge that compares one kernel with it.
#ifndef ATTN_TEST_EXECUTION_CASESETS_H
#define ATTN_TEST_EXECUTION_CASESETS_H

#include "Harness.h"
#include "MaskCases.h"

#include "attn/Core/MaskEval.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <memory>
#include <optional>

namespace exec {

/// What was compared so far.
struct Counts {
  int64_t kernels = 0;
  int64_t cases = 0;          ///< (kernel, setting, request)
  int64_t pairs = 0;          ///< (q, k) of the native mask entry
  int64_t evaluatorPairs = 0; ///< (q, k) of the evaluator
  int64_t tileCases = 0;      ///< cases whose tile classes were judged
  int64_t tileBuilds = 0;     ///< requests that tile records were built for
  int64_t degenerate = 0;     ///< further cases, with the tables of one of `cases`
  int64_t tiles = 0;          ///< tiles judged
  int64_t tilesVisited = 0;
  int64_t tilesFull = 0;
  int64_t probeRows = 0;       ///< rows whose key set the forward entry revealed
  int64_t intervalKernels = 0; ///< kernels whose manifest promises exact tiles
  int64_t exactKernels = 0;    ///< kernels whose tiles were held to that
  int64_t failures = 0;
};

/// Tables of a program as text: their kinds and sources.
std::string tableSignature(const std::vector<attn::core::TableDecl> &tables);

/// Binds requests to a kernel with all parameters 1. Nothing with a message in `error` if the
/// binder refuses them.
std::optional<attn::core::Batch> bindRequests(const attn::core::KernelSpec &spec,
                                              const std::vector<truth::Request> &requests,
                                              std::string &error);

/// Whether two batches have the same lengths and, byte for byte, the same tables.
bool sameTables(const attn::core::Batch &a, const attn::core::Batch &b);

/// Requests that fit into one launch. Dense masks of it have `stride` bytes a row.
class CaseSet {
public:
  explicit CaseSet(std::vector<truth::Request> requests);

  const std::vector<truth::Request> &requests() const { return list; }
  int64_t rows() const { return numRows; }
  int64_t stride() const { return rowStride; }
  int64_t pairs() const { return numPairs; }
  /// At most 6 queries and 7 keys each, and rows of 8 bytes: a mask of a request fits a word.
  bool isSmall() const { return small; }

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
  bool small = true;
  std::vector<uint8_t> valid;  ///< 1 where a pair exists
  std::vector<uint8_t> poison; ///< kPoison elsewhere
  std::map<std::pair<masks::Atom, std::vector<masks::Int>>, std::vector<uint8_t>> truths;
  std::map<std::string, attn::core::Batch> batches;
  std::map<std::string, std::unique_ptr<attn::rt::NativeTables>> nativeTables;
  std::vector<std::vector<uint8_t>> scratch;
};

/// Spreads keys whose few bits that differ lie far apart: multiplication alone, LLVM's default,
/// lets them share long runs of slots.
struct MixedKey : llvm::DenseMapInfo<uint64_t> {
  /// The finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
  static unsigned getHashValue(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return static_cast<unsigned>(x ^ (x >> 31));
  }
};

/// Compares one kernel with the truth; prints the first few differences.
class Judge {
public:
  /// `named`: the mask is made of mask operations, so its tiles must be exact, not only sound.
  Judge(const LoadedKernel &kernel, const masks::Expr &expr, bool named, bool literals,
        Counts &counts);

  /// Binds the set and computes its truth for these parameters; the checks are about them. False,
  /// after a failure, if the batch was refused.
  bool start(CaseSet &cases, const std::vector<masks::Int> &params);
  /// The dense mask of the native code on every pair of the set.
  void checkMask();
  /// Exact, row and box answers of the evaluator.
  void checkEvaluator(attn::rt::TileShape box);
  /// Tile records of every request.
  void checkTiles(attn::rt::TileShape shape, int64_t anchor);
  /// The same on a set whose queries are the last ones, but of a small set a request is left out if
  /// tiles of this shape and anchor (each at most 7) of one with its lengths and its mask were
  /// judged for this kernel before.
  void checkNewTiles(attn::rt::TileShape shape, int64_t anchor);
  /// The keys that the forward entry attends to.
  void checkForward();

private:
  void judge(const attn::core::Batch &part, attn::rt::TileShape shape, int64_t anchor,
             const KeptFn &keptIn, const std::vector<int64_t> *numbers);
  void fail(int64_t request, const std::string &what);

  const LoadedKernel &kernel;
  const masks::Expr &expr;
  bool exact;
  bool literals;
  Counts &counts;
  CaseSet *set = nullptr;
  std::vector<masks::Int> current;
  attn::core::Batch *batch = nullptr;
  bool tilesJudged = false; ///< since start()
  std::vector<int64_t> words;
  std::vector<uint8_t> want;
  std::vector<uint8_t> got;
  llvm::DenseSet<uint64_t, MixedKey> seen; ///< tilings, lengths and masks that were judged
};

} // namespace exec

#endif // ATTN_TEST_EXECUTION_CASESETS_H
