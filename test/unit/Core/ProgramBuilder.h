// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short spellings for building mask programs and batches in tests.
#ifndef ATTN_TEST_UNIT_CORE_PROGRAMBUILDER_H
#define ATTN_TEST_UNIT_CORE_PROGRAMBUILDER_H

#include "attn/Core/Batch.h"

#include <string>
#include <vector>

namespace attn::test {

struct ProgramBuilder {
  core::MaskProgram program;

  using Id = core::NodeId;
  using Op = core::Op;
  using Type = core::ScalarType;

  Id node(Op op, Type type, std::vector<Id> operands = {}, int32_t ref = -1, int64_t imm = 0);
  Id i64(int64_t v) { return program.constant(Type::I64, v); }
  Id i32(int64_t v) { return program.constant(Type::I32, v); }
  Id f32(double v);
  Id boolean(bool v) { return program.constant(Type::Bool, v); }
  Id q() { return node(Op::IndexQ, Type::I64); }
  Id k() { return node(Op::IndexK, Type::I64); }
  Id mask(Op op, std::vector<Id> operands = {}, int32_t ref = -1, int64_t imm = 0) {
    return node(op, Type::Bool, std::move(operands), ref, imm);
  }
  Id window(Id left) { return mask(Op::Window, {left}, -1, 1); }
  Id andOf(Id a, Id b) { return mask(Op::And, {a, b}); }
  Id orOf(Id a, Id b) { return mask(Op::Or, {a, b}); }
  Id notOf(Id a) { return mask(Op::Not, {a}); }
  int32_t param(std::string name, Type type);
  int32_t table(std::string name, core::TableKind kind, int32_t source = -1);
  int32_t plain(std::string name, std::vector<core::TableDim> dims, Type element);

  /// The scan that users write by hand: for r in [0, num_ranges): any |= s <= q <= e and s <= k <=
  /// e.
  Id scanRanges(int32_t ranges);
};

/// Adds a request to the shape (default context: seq_len - query_len).
void addRequest(core::BatchShape &shape, int64_t queryLen, int64_t seqLen);
void addRequest(core::BatchShape &shape, int64_t queryLen, int64_t seqLen, int64_t contextLen);

/// Ranges of each request, dead ones dropped.
core::TableData rangesTable(const core::BatchShape &shape,
                            const std::vector<std::vector<core::Range>> &ranges);
/// Document ids of each request.
core::TableData documentsTable(const std::vector<std::vector<int32_t>> &documents);

/// A dense table that owns its elements.
template <class T>
core::TableData plainTable(std::vector<int64_t> extents, const std::vector<T> &values) {
  core::TableData data;
  data.extents = extents;
  data.strides.assign(extents.size(), 1);
  for (size_t i = extents.size(); i-- > 1;)
    data.strides[i - 1] = data.strides[i] * extents[i];
  const unsigned char *bytes = reinterpret_cast<const unsigned char *>(values.data());
  data.owned.assign(bytes, bytes + values.size() * sizeof(T));
  data.data = data.owned.data();
  return data;
}

} // namespace attn::test

#endif // ATTN_TEST_UNIT_CORE_PROGRAMBUILDER_H
