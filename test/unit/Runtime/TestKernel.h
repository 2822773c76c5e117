// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hand-written kernel of Objects/TinyKernel.cpp as an artifact, and small helpers.
#ifndef ATTN_TEST_UNIT_RUNTIME_TESTKERNEL_H
#define ATTN_TEST_UNIT_RUNTIME_TESTKERNEL_H

#include "attn/Core/Manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace testing_rt {

/// Bytes of a file; empty if it cannot be read.
std::vector<uint8_t> readBytes(const std::string &path);
/// Bytes of an object of this folder.
std::vector<uint8_t> objectBytes(const std::string &name);

/// (causal and window(left)) or mm_prefix(mm), alibi slopes [h], scale from a parameter; 4 heads, 2
/// kv heads, dims 8 and 6, f32. Parameters left, scale; tables mm, slopes.
attn::core::KernelSpec tinySpec();
/// tinySpec with its code for the cpu, under the given kernel name.
attn::core::Artifact tinyArtifact(const std::string &name = "tiny");

/// A spec without parameters and tables that keeps every key.
attn::core::KernelSpec plainSpec();

/// Short spellings of nodes.
attn::core::NodeId add(attn::core::MaskProgram &p, attn::core::Op op, attn::core::ScalarType type,
                       std::vector<attn::core::NodeId> operands = {}, int32_t ref = -1,
                       int64_t imm = 0);
inline attn::core::NodeId add(attn::core::MaskProgram &p, attn::core::Op op,
                              std::vector<attn::core::NodeId> operands = {}, int32_t ref = -1,
                              int64_t imm = 0) {
  return add(p, op, attn::core::ScalarType::Bool, std::move(operands), ref, imm);
}
inline attn::core::NodeId param(attn::core::MaskProgram &p, int32_t number) {
  return add(p, attn::core::Op::Param, attn::core::ScalarType::I32, {}, number);
}
inline attn::core::NodeId index(attn::core::MaskProgram &p, attn::core::Op op) {
  return add(p, op, attn::core::ScalarType::I64);
}

/// Small fast random numbers.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
  uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  }
  /// Uniform in [lo, hi].
  int64_t in(int64_t lo, int64_t hi) { return lo + static_cast<int64_t>(next() % (hi - lo + 1)); }
  float real() { return static_cast<float>(in(-1000, 1000)) / 500; }

private:
  uint64_t state;
};

} // namespace testing_rt

#endif // ATTN_TEST_UNIT_RUNTIME_TESTKERNEL_H
