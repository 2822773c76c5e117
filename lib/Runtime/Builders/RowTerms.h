// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks whose rows are followed without looking at each row: the mask is brought into a disjunction
// of terms, and a term keeps, of row q in [qLo, qHi), the keys
//   [max(lo, q + loMove), min(hi, q + hiMove)).
// Bounds that come from a range or document table are constant on the runs of that table, so a
// request falls into pieces of rows that all have the same terms. Both ends of a term never move
// back as q grows and by at most one a row; what RowSums makes of that needs no row by itself.
#ifndef ATTN_LIB_RUNTIME_BUILDERS_ROWTERMS_H
#define ATTN_LIB_RUNTIME_BUILDERS_ROWTERMS_H

#include "RowRuns.h"

#include "attn/Core/MaskProgram.h"

#include <array>
#include <optional>
#include <vector>

namespace attn::rt {

struct RowTerm {
  int64_t lo, loMove, hi, hiMove;
  int64_t qLo, qHi;

  int64_t begin(int64_t q) const { return std::max(lo, q + loMove); }
  int64_t end(int64_t q) const { return std::min(hi, q + hiMove); }
};

/// Consecutive rows with the same terms.
struct RowPiece {
  core::Interval rows;
  const RowTerm *terms;
  int count;
};

/// The terms of one program. After bind() no call allocates, unless a request has more ranges out
/// of order than any before it.
class RowTerms {
public:
  static constexpr int kMostTerms = 8;

  /// The program must outlive the terms.
  explicit RowTerms(const core::MaskProgram &program);
  RowTerms(const RowTerms &) = delete;
  RowTerms &operator=(const RowTerms &) = delete;

  /// Whether the mask has the form at all; if not, nothing below may be called.
  bool isKnown() const { return known; }
  int64_t mostTerms() const { return static_cast<int64_t>(terms.size()); }
  /// Whether some term is there for a part of the rows only, as `q < n` of attn.global.
  bool hasRowLimits() const;
  void reserve(int64_t mostRanges);
  /// Takes parameters from `batch`, which must outlive the use. False if the batch cannot be
  /// followed: some value is too large, or rows were given.
  bool bind(const core::Batch &batch);
  /// Goes to the first row of a request, or to row `q`. False as above.
  bool start(core::RequestIndex b, core::HeadIndex h);
  bool start(core::RequestIndex b, core::HeadIndex h, int64_t q);
  /// The keys of one row of a request if they are one run, perhaps empty; nothing if they are
  /// several or cannot be followed. Instead of start(), not between it and next(). For masks that
  /// do not depend on the head.
  std::optional<core::Interval> runOf(core::RequestIndex b, int64_t q);

  /// Remembers the current row; rewind() comes back to it for another head of the same request.
  void mark();
  bool rewind(core::HeadIndex h);

  int64_t row() const { return at; }
  /// The piece that starts at row(), up to `end` (not past the request's rows); goes past it.
  RowPiece next(int64_t end) {
    const int64_t from = at;
    if (from >= rowsUntil)
      applyRows();
    at = std::min(end, rowsUntil);
    return {{from, at}, current.data(), count};
  }

private:
  /// Integer that does not depend on q and k.
  struct Scalar {
    enum Kind : uint8_t { Param, Load, Request, Head } kind;
    int32_t ref;
  };
  struct Factor {
    int64_t factor;
    int32_t scalar;
  };
  /// k * K + q * Q + row * (bound of a table's row) + factors + imm.
  struct Sum {
    int64_t k = 0, q = 0, row = 0, imm = 0;
    int32_t bound = -1; ///< of `row`: 2 * table run + (0: begin, 1: end)
    std::vector<Factor> factors;

    bool isScalar() const { return k == 0 && q == 0 && row == 0; }
  };
  /// sum >= 0.
  using Term = std::vector<Sum>;
  using Terms = std::vector<Term>;
  /// A table whose rows are read.
  struct Source {
    struct Place {
      RangeRuns ranges;
      DocumentRuns documents;
      RowRun run; ///< that holds row()
    };
    int32_t table = -1;
    bool isDocuments = false;
    std::vector<core::Range> sorted;
    Place place, marked;
    core::Interval row; ///< of place.run
  };
  /// A bound of a term by a table's row: `to` becomes the narrower of `from` and value + offset.
  struct RowBound {
    const int64_t *value;
    const int64_t *from;
    int64_t *to;
    int64_t offset;
    bool isLower;
  };
  void applyRows();
  void applyBounds();

  // Compilation: nothing where the form is not known.
  std::optional<Terms> termsOf(core::NodeId id, bool negated);
  std::optional<Terms> namedTerms(const core::Node &node, bool negated);
  std::optional<Terms> boolTerms(const core::Node &node, bool negated);
  std::optional<Terms> compareTerms(const core::Node &node, bool negated);
  std::optional<Sum> sumOf(core::NodeId id);
  std::optional<Sum> loadOf(const core::Node &node);
  Sum scalarSum(Scalar scalar);
  Sum boundSum(int32_t table, int side);
  static std::optional<Terms> conjunction(const std::optional<Terms> &a,
                                          const std::optional<Terms> &b);
  static std::optional<Terms> disjunction(std::optional<Terms> a, const std::optional<Terms> &b);
  bool checkTerms() const;

  bool readScalars(core::RequestIndex b, core::HeadIndex h);
  bool readScalar(size_t i, core::RequestIndex b, core::HeadIndex h);
  void resolve();
  void resolveSum(const Sum &sum, int term);

  const core::MaskProgram &program;
  bool known = false;
  int effort = 512; ///< nodes that are still looked at: shared nodes are visited again
  std::vector<Scalar> scalars;
  std::vector<int64_t> values; ///< of the scalars
  bool changes = false;        ///< a scalar depends on the request or the head
  Terms terms;
  std::vector<Source> sources;
  std::vector<int32_t> rowTables; ///< QueryRanges tables that are read

  const core::Batch *batch = nullptr;
  int64_t request = -1;
  int64_t at = 0;
  int64_t markedAt = 0;
  int64_t rowsUntil = 0; ///< `current` holds for the rows before
  std::array<RowTerm, kMostTerms> base, current;
  int count = 0;
  std::vector<RowBound> rowBounds;
  bool isApplied = false; ///< `current` is that of the sources' rows
};

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_BUILDERS_ROWTERMS_H
