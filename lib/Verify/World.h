// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a mask reads, as symbols of one query: the indices, parameters and tables of any batch. Both
// masks of a question read the same world.
//
// Nothing here is an axiom over all entries of a table. A read gives the symbol's value moved into
// the range that the batch format allows, so every value is legal and every legal value is reached.
#ifndef ATTN_LIB_VERIFY_WORLD_H
#define ATTN_LIB_VERIFY_WORLD_H

#include "Terms.h"

#include "attn/Core/MaskProgram.h"

#include <functional>
#include <map>

namespace attn::proofs {

/// A value of a mask program. Bool: a boolean term. Integers: an integer term, signed, and bounds
/// of it. F32: an integer term, of which only equality means something.
struct Coded {
  Term term;
  Wide lo = 0, hi = 0;
};

/// What a model says of a batch, as names of terms.
struct Observations {
  std::string b, h, q, k, seqLen;
  std::map<std::string, std::string> params;
  struct Ranges {
    std::string count;
    std::vector<std::pair<std::string, std::string>> bounds;
  };
  std::map<std::string, Ranges> ranges;
  struct Document {
    bool isRead = false;   ///< by a mask
    std::string sameAsKey; ///< whether the query's document is the key's
    std::string lo, hi;    ///< of the query's document
  };
  std::map<std::string, Document> documents;
  struct Table {
    std::vector<std::string> extents; ///< one for each dim that is no index of the row
    std::vector<bool> isKeys;         ///< of these dims: spans the keys
    struct Read {
      std::vector<std::string> indices;
      std::string value;
    };
    std::vector<Read> reads;
  };
  std::map<std::string, Table> tables;

  /// All of them.
  std::vector<std::string> names() const;
};

/// More than any batch, table or list has.
inline constexpr int64_t kMaxExtent = int64_t(1) << 62;

struct WorldOptions {
  int64_t heads = 1;
  std::map<std::string, std::string> documentViews; ///< as in ProveOptions
  /// Requests have at most so many live ranges; the query has no quantifiers then.
  std::optional<unsigned> maxRanges;
};

class World {
public:
  World(Terms &terms, const WorldOptions &options) : terms(terms), options(options) {
    addIndices();
  }

  /// Declares what `program` reads and states the rules of the batch format for it. To be called
  /// for all programs before the first read. Returns why that is impossible, or nothing.
  std::optional<std::string> declare(const core::MaskProgram &program);

  Coded b, h, q, k, score;
  Term seqLen;

  Coded param(const core::ParamDecl &decl) const { return params.at(decl.name); }
  Coded numRanges(const core::TableDecl &table) const;
  /// Bounds of live range number `index`, which is one: live, whatever the model says.
  std::pair<Coded, Coded> rangeBounds(const core::TableDecl &table, Term index) const;
  /// Half-open row of a table that is built from `source`.
  std::pair<Coded, Coded> row(const core::TableDecl &source) const;
  Term inDocument(const core::TableDecl &table);
  /// `indices`: one for each dim; those of implicit dims are ignored.
  Coded element(const core::TableDecl &table, const std::vector<Coded> &indices);

  /// "Some live range r satisfies body(start, end)", by enumeration if the number is limited.
  Term someRange(const core::TableDecl &table,
                 const std::function<Term(const Coded &, const Coded &)> &body) const;

  /// Names what a model has to say; once, after all reads. Needs maxRanges.
  Observations observe();
  /// Requires a small batch: at most size + 1 keys and elements along a dim of a table.
  /// `positions`: and q and the bounds of ranges in [-1, size]; `values`: and every parameter and
  /// element of a table.
  void box(int64_t size, bool positions, bool values);

  const WorldOptions &getOptions() const { return options; }

private:
  struct Ranges {
    Term count, start, end;
  };
  struct Document {
    Term id, lo, hi;
    bool isRead = false;
  };
  struct Plain {
    core::TableDecl decl;
    Term function;
    std::vector<Term> extents; ///< of explicit dims
    std::vector<std::pair<std::vector<Term>, Term>> reads;
  };

  int64_t maxRanges() const { return options.maxRanges ? *options.maxRanges : kMaxExtent; }
  void addIndices();
  void addRanges(const core::TableDecl &table);
  void addDocuments(const core::TableDecl &table);
  void addPlain(const core::TableDecl &table);
  std::optional<std::string> addView(const core::TableDecl &table);
  void addRangeRow(const core::TableDecl &source);
  void addDocumentRow(const core::TableDecl &source);
  Term clamp(Term low, Term value, Term high) const;
  Coded symbol(llvm::StringRef name, Wide lo, Wide hi);
  /// Id of the document at a position of the table.
  Term documentId(const Document &document, Term position) const;
  Term isInDocuments(Term position) const;
  Term sameDocument(const Document &document) const;

  Terms &terms;
  WorldOptions options;
  std::map<std::string, core::TableDecl> decls;
  std::map<std::string, core::ParamDecl> paramDecls;
  std::map<std::string, Coded> params;
  std::map<std::string, Ranges> ranges;
  std::map<std::string, Document> documents;
  std::map<std::string, Plain> tables;
  std::map<std::string, std::pair<Coded, Coded>> rows; ///< by source
};

/// Smallest and largest value of an integer type.
Wide minOf(core::ScalarType type);
Wide maxOf(core::ScalarType type);

/// True if a dim of a table is addressed by the row's own indices.
bool isImplicit(core::TableDim dim);

} // namespace attn::proofs

#endif // ATTN_LIB_VERIFY_WORLD_H
