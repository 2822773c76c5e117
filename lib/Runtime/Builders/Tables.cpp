// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds the tables a kernel's code declares on top of its program's.
#include "attn/Runtime/Builders.h"

#include <algorithm>

using namespace attn;
using namespace attn::core;

void rt::buildRows(const BatchShape &shape, TableKind sourceKind, const TableData &source,
                   Range *rows) {
  const int64_t covered = sourceKind == TableKind::Documents
                              ? buildDocumentRows(shape, source, rows)
                              : buildQueryRanges(shape, source, rows);
  if (covered == 0)
    std::fill(rows, rows + shape.numTokens(), Range{-1, -1});
}

void rt::buildTables(const BatchShape &shape, const std::vector<TableDecl> &decls,
                     std::vector<TableData> &tables) {
  tables.resize(decls.size());
  for (size_t i = 0; i < decls.size(); ++i) {
    if (decls[i].kind != TableKind::QueryRanges)
      continue;
    tables[i].rows.resize(shape.numTokens());
    buildRows(shape, decls[decls[i].source].kind, tables[decls[i].source], tables[i].rows.data());
  }
}
