// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ProgramBuilder.h"

namespace attn::test {

using namespace attn::core;

NodeId ProgramBuilder::node(Op op, Type type, std::vector<Id> operands, int32_t ref, int64_t imm) {
  Node n;
  n.op = op;
  n.type = type;
  n.operands = std::move(operands);
  n.ref = ref;
  n.imm = imm;
  return program.add(std::move(n));
}

NodeId ProgramBuilder::f32(double v) {
  Node n;
  n.type = Type::F32;
  n.fimm = v;
  return program.add(std::move(n));
}

int32_t ProgramBuilder::param(std::string name, Type type) {
  program.params.push_back({std::move(name), type, std::nullopt});
  return static_cast<int32_t>(program.params.size()) - 1;
}

int32_t ProgramBuilder::table(std::string name, TableKind kind, int32_t source) {
  TableDecl decl;
  decl.name = std::move(name);
  decl.kind = kind;
  decl.source = source;
  program.tables.push_back(std::move(decl));
  return static_cast<int32_t>(program.tables.size()) - 1;
}

int32_t ProgramBuilder::plain(std::string name, std::vector<TableDim> dims, Type element) {
  int32_t number = table(std::move(name), TableKind::Plain);
  program.tables[number].dims = std::move(dims);
  program.tables[number].element = element;
  return number;
}

NodeId ProgramBuilder::scanRanges(int32_t ranges) {
  Id lb = i64(0), ub = node(Op::NumRanges, Type::I64, {}, ranges), step = i64(1);
  Id init = boolean(false);
  Id qPos = q(), kPos = k();
  Id iv = node(Op::LoopIndex, Type::I64), acc = node(Op::LoopCarried, Type::Bool);
  Id s = node(Op::RangeStart, Type::I64, {iv}, ranges);
  Id e = node(Op::RangeEnd, Type::I64, {iv}, ranges);
  Id inQ = andOf(mask(Op::CmpSle, {s, qPos}), mask(Op::CmpSge, {e, qPos}));
  Id inK = andOf(mask(Op::CmpSge, {kPos, s}), mask(Op::CmpSle, {kPos, e}));
  Id any = orOf(acc, andOf(inQ, inK));
  Id loop = node(Op::For, Type::Bool, {lb, ub, step, init, any}, -1, 1);
  program.nodes[iv].ref = program.nodes[acc].ref = loop;
  return loop;
}

void addRequest(BatchShape &shape, int64_t queryLen, int64_t seqLen) {
  addRequest(shape, queryLen, seqLen, seqLen - queryLen);
}

void addRequest(BatchShape &shape, int64_t queryLen, int64_t seqLen, int64_t contextLen) {
  if (shape.queryStartLoc.empty())
    shape.queryStartLoc.push_back(0);
  shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLen);
  shape.seqLen.push_back(seqLen);
  shape.contextLen.push_back(contextLen);
  shape.keyBegin.push_back(0);
  shape.keyEnd.push_back(seqLen);
}

TableData rangesTable(const BatchShape &shape, const std::vector<std::vector<Range>> &ranges) {
  TableData data;
  data.rangeOffsets.push_back(0);
  for (size_t b = 0; b < ranges.size(); ++b) {
    for (const Range &range : ranges[b])
      if (range.start < range.end && range.start < shape.seqLen[b])
        data.ranges.push_back(range);
    data.rangeOffsets.push_back(static_cast<int64_t>(data.ranges.size()));
  }
  return data;
}

TableData documentsTable(const std::vector<std::vector<int32_t>> &documents) {
  TableData data;
  data.documentOffsets.push_back(0);
  for (const std::vector<int32_t> &ids : documents) {
    data.documents.insert(data.documents.end(), ids.begin(), ids.end());
    data.documentOffsets.push_back(static_cast<int64_t>(data.documents.size()));
  }
  return data;
}

} // namespace attn::test
