// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "World.h"

#include "attn/Core/IndexSpaces.h"

#include <algorithm>

using namespace attn;
using namespace attn::proofs;
using core::kPositionLimit;
using core::ScalarType;
using core::TableKind;

/// Largest request of a small batch.
static constexpr int64_t kMaxBoxRequest = 3;

Wide proofs::minOf(ScalarType type) { return -(Wide(1) << (core::bitWidth(type) - 1)); }
Wide proofs::maxOf(ScalarType type) { return (Wide(1) << (core::bitWidth(type) - 1)) - 1; }

bool proofs::isImplicit(core::TableDim dim) {
  switch (dim) {
  case core::TableDim::B:
  case core::TableDim::H:
  case core::TableDim::HKv:
  case core::TableDim::Token:
    return true;
  default:
    return false;
  }
}

static bool isSame(const core::TableDecl &a, const core::TableDecl &b) {
  return a.kind == b.kind && a.dims == b.dims && (a.dims.empty() || a.element == b.element);
}

Coded World::symbol(llvm::StringRef name, Wide lo, Wide hi) {
  Term term = terms.integerSymbol(name);
  terms.require(terms.between(terms.integer(lo), term, terms.integer(hi)));
  return {term, lo, hi};
}

Term World::clamp(Term low, Term value, Term high) const {
  return terms.ite(terms.lt(value, low), low, terms.ite(terms.lt(high, value), high, value));
}

//===----------------------------------------------------------------------===//
// Rules of the batch format
//===----------------------------------------------------------------------===//

void World::addIndices() {
  b = symbol("b", 0, kMaxExtent);
  h = symbol("h", 0, options.heads - 1);
  q = symbol("q", 1 - kPositionLimit, kPositionLimit - 1);
  k = symbol("k", 0, kPositionLimit - 1);
  seqLen = symbol("seq_len", 1, kPositionLimit - 1).term;
  terms.require(terms.lt(k.term, seqLen));
  score = symbol("score", 0, (Wide(1) << 32) - 1);
}

void World::addRanges(const core::TableDecl &table) {
  Ranges &entry = ranges[table.name];
  entry.count = symbol("ranges", 0, maxRanges()).term;
  entry.start = terms.function("start", 1);
  entry.end = terms.function("end", 1);
}

void World::addDocuments(const core::TableDecl &table) {
  documents[table.name].id = terms.function("document", 1);
}

Term World::documentId(const Document &document, Term position) const {
  return clamp(terms.integer(minOf(ScalarType::I32)), terms.apply(document.id, {position}),
               terms.integer(maxOf(ScalarType::I32)));
}

Term World::isInDocuments(Term position) const {
  return terms.land(terms.le(terms.integer(0), position), terms.lt(position, seqLen));
}

std::optional<std::string> World::addView(const core::TableDecl &table) {
  const std::string &source = options.documentViews.at(table.name);
  if (!documents.count(source))
    return "table '" + table.name + "' is to be a view of '" + source +
           "', which is no documents table";
  const std::vector<core::TableDim> dims = {core::TableDim::B, core::TableDim::K};
  if (table.dims != dims || (table.element != ScalarType::I32 && table.element != ScalarType::I8))
    return "table '" + table.name + "' cannot be a view of documents";
  return std::nullopt;
}

void World::addPlain(const core::TableDecl &table) {
  Plain &entry = tables[table.name];
  entry.decl = table;
  for (core::TableDim dim : table.dims) {
    if (isImplicit(dim))
      continue;
    Term extent = symbol("extent", 0, kMaxExtent).term;
    if (dim == core::TableDim::K)
      terms.require(terms.le(seqLen, extent));
    entry.extents.push_back(extent);
  }
  entry.function = terms.function("table", static_cast<unsigned>(entry.extents.size()));
}

/// Hull of the live ranges that hold q: each end is attained, and none lies outside.
void World::addRangeRow(const core::TableDecl &source) {
  Coded lo = symbol("row_lo", -kPositionLimit, kPositionLimit);
  Coded hi = symbol("row_hi", -kPositionLimit, kPositionLimit);
  rows[source.name] = {lo, hi};
  auto holdsQ = [&](const Coded &start, const Coded &end) {
    return terms.between(start.term, q.term, end.term);
  };
  Term none = terms.lnot(someRange(source, holdsQ));
  Term empty = terms.land(terms.equal(lo.term, terms.integer(kPositionLimit)),
                          terms.equal(hi.term, terms.integer(-kPositionLimit)));
  Term from = someRange(source, [&](const Coded &start, const Coded &end) {
    return terms.land(holdsQ(start, end), terms.equal(start.term, lo.term));
  });
  Term to = someRange(source, [&](const Coded &start, const Coded &end) {
    return terms.land(holdsQ(start, end),
                      terms.equal(terms.add(end.term, terms.integer(1)), hi.term));
  });
  Term outside = someRange(source, [&](const Coded &start, const Coded &end) {
    return terms.land(holdsQ(start, end),
                      terms.lor(terms.lt(start.term, lo.term), terms.le(hi.term, end.term)));
  });
  Term hull = terms.land(terms.land(from, to), terms.lnot(outside));
  terms.require(terms.lor(terms.land(none, empty), hull));
}

/// First key and past the last key of q's document. Ids are contiguous, so the keys between are
/// exactly those of the document.
void World::addDocumentRow(const core::TableDecl &source) {
  Coded lo = symbol("doc_lo", -kPositionLimit, kPositionLimit);
  Coded hi = symbol("doc_hi", -kPositionLimit, kPositionLimit);
  rows[source.name] = {lo, hi};
  Document &document = documents[source.name];
  document.isRead = true;
  document.lo = lo.term;
  document.hi = hi.term;
  Term empty = terms.land(terms.equal(lo.term, terms.integer(kPositionLimit)),
                          terms.equal(hi.term, terms.integer(-kPositionLimit)));
  Term ends = terms.land(terms.land(terms.le(terms.integer(0), lo.term), terms.le(lo.term, q.term)),
                         terms.land(terms.lt(q.term, hi.term), terms.le(hi.term, seqLen)));
  Term same = terms.equal(documentId(document, q.term), documentId(document, k.term));
  Term between = terms.land(terms.le(lo.term, k.term), terms.lt(k.term, hi.term));
  terms.require(
      terms.ite(isInDocuments(q.term), terms.land(ends, terms.equal(same, between)), empty));
}

std::optional<std::string> World::declare(const core::MaskProgram &program) {
  for (const core::ParamDecl &param : program.params) {
    auto known = paramDecls.find(param.name);
    if (known != paramDecls.end()) {
      if (known->second.type != param.type)
        return "parameter '" + param.name + "' has two types";
      continue;
    }
    paramDecls[param.name] = param;
    bool isFloat = param.type == ScalarType::F32;
    Wide lo = isFloat ? 0 : minOf(param.type);
    if (param.minValue)
      lo = *param.minValue;
    params[param.name] = symbol("param", lo, isFloat ? (Wide(1) << 32) - 1 : maxOf(param.type));
  }
  for (const core::TableDecl &table : program.tables) {
    if (table.kind == TableKind::QueryRanges)
      continue;
    auto [known, isNew] = decls.try_emplace(table.name, table);
    if (!isNew && !isSame(known->second, table))
      return "table '" + table.name + "' has two types";
    if (!isNew)
      continue;
    if (table.kind == TableKind::Ranges)
      addRanges(table);
    else if (table.kind == TableKind::Documents)
      addDocuments(table);
    else if (!options.documentViews.count(table.name))
      addPlain(table);
    else if (auto fault = addView(table))
      return fault;
  }
  for (const core::Node &node : program.nodes) {
    if (node.op != core::Op::RowLo && node.op != core::Op::RowHi)
      continue;
    const core::TableDecl &source = program.tables[program.tables[node.ref].source];
    if (rows.count(source.name))
      continue;
    if (source.kind == TableKind::Ranges)
      addRangeRow(source);
    else
      addDocumentRow(source);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

Coded World::numRanges(const core::TableDecl &table) const {
  return {ranges.at(table.name).count, 0, maxRanges()};
}

std::pair<Coded, Coded> World::rangeBounds(const core::TableDecl &table, Term index) const {
  const Ranges &entry = ranges.at(table.name);
  // 0 <= start < seq_len and start < end < limit: what a batch may hold and what makes it live.
  Term one = terms.integer(1);
  Term last = terms.sub(seqLen, one);
  Term start = clamp(terms.integer(0), terms.apply(entry.start, {index}), last);
  Term end = clamp(terms.add(start, one), terms.apply(entry.end, {index}),
                   terms.integer(kPositionLimit - 1));
  return {{start, 0, kPositionLimit - 2}, {end, 1, kPositionLimit - 1}};
}

Term World::someRange(const core::TableDecl &table,
                      const std::function<Term(const Coded &, const Coded &)> &body) const {
  Term count = ranges.at(table.name).count;
  auto at = [&](Term index) {
    auto [start, end] = rangeBounds(table, index);
    Term inList = terms.land(terms.le(terms.integer(0), index), terms.lt(index, count));
    return terms.land(inList, body(start, end));
  };
  if (!options.maxRanges)
    return terms.exists(at);
  Term any = terms.boolean(false);
  for (unsigned i = 0; i < *options.maxRanges; ++i)
    any = terms.lor(any, at(terms.integer(i)));
  return any;
}

std::pair<Coded, Coded> World::row(const core::TableDecl &source) const {
  return rows.at(source.name);
}

Term World::inDocument(const core::TableDecl &table) {
  Document &document = documents.at(table.name);
  document.isRead = true;
  return sameDocument(document);
}

Term World::sameDocument(const Document &document) const {
  return terms.land(isInDocuments(q.term),
                    terms.equal(documentId(document, q.term), documentId(document, k.term)));
}

Coded World::element(const core::TableDecl &table, const std::vector<Coded> &indices) {
  if (auto view = options.documentViews.find(table.name); view != options.documentViews.end()) {
    Term at = indices[1].term;
    bool isFlag = table.element == ScalarType::I8;
    documents.at(view->second).isRead = true;
    Term value = isFlag ? terms.integer(1) : documentId(documents.at(view->second), at);
    return {terms.ite(isInDocuments(at), value, terms.integer(0)), minOf(table.element),
            maxOf(table.element)};
  }
  Plain &entry = tables.at(table.name);
  std::vector<Term> arguments;
  Term inside = terms.boolean(true);
  for (size_t i = 0; i < table.dims.size(); ++i) {
    if (isImplicit(table.dims[i]))
      continue;
    Term index = indices[i].term;
    inside = terms.land(inside, terms.land(terms.le(terms.integer(0), index),
                                           terms.lt(index, entry.extents[arguments.size()])));
    arguments.push_back(index);
  }
  bool isFloat = table.element == ScalarType::F32;
  Wide lo = isFloat ? 0 : minOf(table.element);
  Wide hi = isFloat ? (Wide(1) << 32) - 1 : maxOf(table.element);
  Term value = clamp(terms.integer(lo), terms.apply(entry.function, arguments), terms.integer(hi));
  if (options.maxRanges)
    entry.reads.push_back({arguments, value});
  return {terms.ite(inside, value, terms.integer(0)), lo, hi};
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

Observations World::observe() {
  Observations seen;
  seen.b = terms.nameIt(b.term);
  seen.h = terms.nameIt(h.term);
  seen.q = terms.nameIt(q.term);
  seen.k = terms.nameIt(k.term);
  seen.seqLen = terms.nameIt(seqLen);
  for (const auto &[name, value] : params)
    seen.params[name] = terms.nameIt(value.term);
  for (const auto &[name, entry] : ranges) {
    Observations::Ranges &list = seen.ranges[name];
    list.count = terms.nameIt(entry.count);
    for (unsigned i = 0; i < *options.maxRanges; ++i) {
      auto [start, end] = rangeBounds(decls.at(name), terms.integer(i));
      list.bounds.push_back({terms.nameIt(start.term), terms.nameIt(end.term)});
    }
  }
  for (const auto &[name, entry] : documents) {
    Observations::Document &document = seen.documents[name];
    document.isRead = entry.isRead;
    document.sameAsKey = terms.nameIt(sameDocument(entry));
    if (entry.lo) {
      document.lo = terms.nameIt(entry.lo);
      document.hi = terms.nameIt(entry.hi);
    }
  }
  for (const auto &[name, entry] : tables) {
    Observations::Table &table = seen.tables[name];
    for (Term extent : entry.extents)
      table.extents.push_back(terms.nameIt(extent));
    for (core::TableDim dim : entry.decl.dims)
      if (!isImplicit(dim))
        table.isKeys.push_back(dim == core::TableDim::K);
    for (const auto &[indices, value] : entry.reads) {
      Observations::Table::Read read;
      for (Term index : indices)
        read.indices.push_back(terms.nameIt(index));
      read.value = terms.nameIt(value);
      table.reads.push_back(std::move(read));
    }
  }
  return seen;
}

std::vector<std::string> Observations::names() const {
  std::vector<std::string> all = {b, h, q, k, seqLen};
  auto add = [&](const std::string &name) {
    if (!name.empty())
      all.push_back(name);
  };
  for (const auto &[name, symbol] : params)
    add(symbol);
  for (const auto &[name, list] : ranges) {
    add(list.count);
    for (const auto &[start, end] : list.bounds)
      for (const std::string *symbol : {&start, &end})
        add(*symbol);
  }
  for (const auto &[name, document] : documents)
    for (const std::string *symbol : {&document.sameAsKey, &document.lo, &document.hi})
      add(*symbol);
  for (const auto &[name, table] : tables) {
    for (const std::string &extent : table.extents)
      add(extent);
    for (const Table::Read &read : table.reads) {
      for (const std::string &index : read.indices)
        add(index);
      add(read.value);
    }
  }
  return all;
}

void World::box(int64_t size, bool positions, bool values) {
  auto limit = [&](Term term, int64_t low) {
    terms.require(terms.between(terms.integer(low), term, terms.integer(size)));
  };
  // A table with a dim of requests is that much larger.
  terms.require(terms.le(b.term, terms.integer(std::min(size, kMaxBoxRequest))));
  if (positions) {
    limit(h.term, 0);
    limit(q.term, -1);
  }
  terms.require(terms.le(seqLen, terms.integer(size + 1)));
  for (const auto &[name, value] : params)
    if (values && paramDecls.at(name).type != ScalarType::F32)
      limit(value.term, -1);
  for (const auto &[name, entry] : ranges)
    for (unsigned i = 0; positions && i < *options.maxRanges; ++i)
      terms.require(
          terms.le(rangeBounds(decls.at(name), terms.integer(i)).second.term, terms.integer(size)));
  for (const auto &[name, entry] : tables) {
    for (Term extent : entry.extents)
      terms.require(terms.le(extent, terms.integer(size + 1)));
    for (const auto &[indices, value] : entry.reads)
      if (values && entry.decl.element != ScalarType::F32)
        limit(value, -1);
  }
}
