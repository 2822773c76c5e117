// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiny kernels for tests of what instructions do. A kernel gets an array of 64-bit words to read
// and one to write; it runs under several policies, which must agree and report nothing.
#ifndef ATTN_TEST_UNIT_SIM_SEMANTICSSUPPORT_H
#define ATTN_TEST_UNIT_SIM_SEMANTICSSUPPORT_H

#include "attn/Sim/Sim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

namespace attn::sim::test {

struct TinyKernel {
  /// Statements after declarations of: %in, %out (addresses), %t (thread), %o (address of word %t
  /// of the output), %map (address of the tensor map), %a0-%a63 and %r0-%r511 (b32), %d0-%d63
  /// (b64), %h0-%h15 (b16), %p0-%p15; "smem" is dynamic shared memory.
  std::string body;
  std::vector<uint64_t> in;
  size_t outWords = 32; ///< zeroed
  uint32_t threads = 32;
  uint32_t ctas = 1;
  uint32_t sharedBytes = 0;
  std::optional<TensorMap> map;
  std::vector<GlobalBuffer> buffers; ///< besides the arrays
};

/// The module of a kernel; the body begins on line kBodyLine.
constexpr int kBodyLine = 17;
std::string moduleText(const std::string &body);

core::Result<Outcome> launch(const TinyKernel &kernel, const Policy &policy,
                             std::vector<uint64_t> &out);
/// The output, the same under all policies; a report is a failure.
std::vector<uint64_t> runClean(const TinyKernel &kernel);

/// What an instruction makes of one set of operands.
struct Vector {
  std::vector<uint64_t> in;
  uint64_t out;
};

/// Runs `statement` on every vector, a lane each. $d is the result, $a, $b, $c, $e are operands in
/// order; `signature` says the registers of the result and the operands: h, r, d of 16, 32 and 64
/// bits, p a predicate (not zero: true).
std::vector<uint64_t> apply(const std::string &statement, const std::string &signature,
                            const std::vector<Vector> &vectors);
/// "op $d, $a, ..." gives `out` for each vector.
void expectOp(const std::string &op, const std::string &signature,
              const std::vector<Vector> &vectors);
void expectStatement(const std::string &statement, const std::string &signature,
                     const std::vector<Vector> &vectors);

inline uint64_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
inline uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}
inline float floatOf(uint64_t bits) {
  auto low = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &low, 4);
  return value;
}
/// bf16 of a value that it holds exactly.
inline uint16_t bf16Of(float value) { return static_cast<uint16_t>(bitsOf(value) >> 16); }
/// f16 of an integer of at most 11 bits.
inline uint16_t f16Of(int value) {
  if (value == 0)
    return 0;
  int exponent = 0;
  double fraction = std::frexp(std::abs(value), &exponent); // [0.5, 1)
  auto mantissa = static_cast<int>(std::ldexp(fraction, 11)) & 0x3ff;
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | mantissa);
}

} // namespace attn::sim::test

#endif // ATTN_TEST_UNIT_SIM_SEMANTICSSUPPORT_H
