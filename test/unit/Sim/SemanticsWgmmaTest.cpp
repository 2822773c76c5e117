// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async" against a triple
// loop. Inputs are small integers, so every order of adding gives the same sum.
#include "SemanticsSupport.h"

using namespace attn::sim;
using namespace attn::sim::test;

namespace {

/// D (64 x n) = A (64 x k) B (k x n), k as wide as a row of 128 bytes: four instructions.
struct Case {
  int n;
  const char *type = "bf16";
  bool registerA = false;
  bool transposedA = false, transposedB = false; ///< stored along m, n
  bool accumulate = false;                       ///< onto what is in D
  int scaleA = 1, scaleB = 1;
};

constexpr int kSteps = 4;

int valueA(int m, int k) { return (m * 7 + k * 3) % 11 - 5; }
int valueB(int k, int n) { return (n * 5 + k * 2) % 13 - 6; }
/// Accumulator i of a thread before the product.
int initial(int i) { return i % 7 - 3; }

bool isByte(const Case &c) { return std::string(c.type)[0] == 'e'; }
int elementBytes(const Case &c) { return isByte(c) ? 1 : 2; }
int depth(const Case &c) { return 128 / elementBytes(c); }

/// A small integer as an fp8 of so many exponent bits.
uint32_t byteOf(int value, int exponentBits) {
  if (value == 0)
    return 0;
  int exponent = 0;
  double fraction = std::frexp(std::abs(value), &exponent); // [0.5, 1)
  int mantissaBits = 7 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  auto mantissa = static_cast<uint32_t>(std::ldexp(fraction, mantissaBits + 1));
  return (value < 0 ? 0x80u : 0) | static_cast<uint32_t>(exponent - 1 + bias) << mantissaBits |
         (mantissa & ((1u << mantissaBits) - 1));
}

uint32_t encodeElement(const Case &c, int value) {
  std::string type = c.type;
  if (type == "bf16")
    return bf16Of(static_cast<float>(value));
  if (type == "f16")
    return f16Of(value);
  return byteOf(value, type == "e4m3" ? 4 : 5);
}

/// Puts element (row, col) of a matrix of rows of 128 bytes where the 128-byte swizzle wants it.
void put(const Case &c, std::vector<uint8_t> &image, size_t base, int row, int col, int value) {
  int bytes = elementBytes(c), perChunk = 16 / bytes;
  size_t at = base + static_cast<size_t>(row) * 128 + ((col / perChunk) ^ (row % 8)) * 16 +
              col % perChunk * bytes;
  uint32_t bits = encodeElement(c, value);
  for (int i = 0; i < bytes; ++i)
    image[at + i] = static_cast<uint8_t>(bits >> (8 * i));
}

constexpr size_t kBytesA = 64 * 128;

/// A, then B. Along k: a row of 128 bytes for each m or n. Along m or n: groups of 64, each with a
/// row for each k.
std::vector<uint8_t> sharedImage(const Case &c) {
  size_t bytesB = c.transposedB ? static_cast<size_t>(c.n) / 64 * depth(c) * 128
                                : static_cast<size_t>(c.n) * 128;
  std::vector<uint8_t> image((kBytesA + bytesB + 1023) / 1024 * 1024);
  for (int k = 0; k < depth(c); ++k) {
    for (int m = 0; m < 64; ++m) {
      if (c.transposedA)
        put(c, image, 0, k, m, valueA(m, k));
      else
        put(c, image, 0, m, k, valueA(m, k));
    }
    for (int n = 0; n < c.n; ++n) {
      if (c.transposedB)
        put(c, image, kBytesA, n / 64 * depth(c) + k, n % 64, valueB(k, n));
      else
        put(c, image, kBytesA, n, k, valueB(k, n));
    }
  }
  return image;
}

/// Registers of A of a thread: register j of a step holds row lane / 4 (+ 8 if j is odd) and the
/// lower or upper half of the k's.
std::vector<uint64_t> fragmentsA(const Case &c) {
  std::vector<uint64_t> words;
  int per = 4 / elementBytes(c), stepDepth = depth(c) / kSteps;
  for (int t = 0; t < 128; ++t)
    for (int step = 0; step < kSteps; ++step)
      for (int j = 0; j < 4; ++j) {
        int m = t / 32 * 16 + t % 32 / 4 + j % 2 * 8;
        int k = step * stepDepth + j / 2 * stepDepth / 2 + t % 4 * per;
        uint64_t word = 0;
        for (int i = 0; i < per; ++i)
          word |= uint64_t(encodeElement(c, valueA(m, k + i))) << (8 * elementBytes(c) * i);
        words.push_back(word);
      }
  return words;
}

std::string list(const std::string &prefix, int first, int count) {
  std::string text = "{";
  for (int i = first; i < first + count; ++i)
    text += (i > first ? ", " : "") + prefix + std::to_string(i);
  return text + "}";
}

/// Descriptor of a matrix at %r1 + offset: start, then leading and stride offset, all over 16, and
/// the code of the 128-byte swizzle.
std::string descriptor(const std::string &to, size_t offset, bool transposed, int groupBytes) {
  uint64_t leading = transposed ? groupBytes / 16 : 1;
  uint64_t fixed = 1ull << 62 | 64ull << 32 | leading << 16;
  return "add.s32 %r200, %r199, " + std::to_string(offset) +
         ";\nshr.u32 %r200, %r200, 4;\nand.b32 %r200, %r200, 0x3fff;\ncvt.u64.u32 " + to +
         ", %r200;\nor.b64 " + to + ", " + to + ", " + std::to_string(fixed) + ";\n";
}

std::string products(const Case &c) {
  std::string text = "wgmma.fence.sync.aligned;\n";
  const std::string shape = "m64n" + std::to_string(c.n) + "k" + std::to_string(depth(c) / kSteps);
  // A step of k is 32 bytes of a row, or 16 rows of 128 bytes.
  int stepA = c.transposedA ? 128 : 2, stepB = c.transposedB ? 128 : 2;
  for (int step = 0; step < kSteps; ++step) {
    bool add = step > 0 || c.accumulate;
    text += "add.s64 %d6, %d4, " + std::to_string(step * stepA) + ";\nadd.s64 %d7, %d5, " +
            std::to_string(step * stepB) + ";\nwgmma.mma_async.sync.aligned." + shape + ".f32." +
            c.type + "." + c.type + " " + list("%r", 0, c.n / 2) + ", " +
            (c.registerA ? list("%a", 4 * step, 4) : "%d6") + ", %d7, " + (add ? "%p1" : "%p2") +
            ", " + std::to_string(c.scaleA) + ", " + std::to_string(c.scaleB);
    if (!isByte(c)) {
      text += c.registerA ? "" : c.transposedA ? ", 1" : ", 0";
      text += c.transposedB ? ", 1" : ", 0";
    }
    text += ";\n";
  }
  return text + "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
}

void check(const Case &c) {
  SCOPED_TRACE(std::string(c.type) + " n " + std::to_string(c.n) +
               (c.registerA ? " registers A" : "") + (c.transposedA ? " A along m" : "") +
               (c.transposedB ? " B along n" : ""));
  TinyKernel kernel;
  kernel.threads = 128;
  std::vector<uint8_t> image = sharedImage(c);
  kernel.sharedBytes = static_cast<uint32_t>(image.size());
  kernel.in.resize(image.size() / 8);
  std::memcpy(kernel.in.data(), image.data(), image.size());
  std::vector<uint64_t> fragments = fragmentsA(c);
  kernel.in.insert(kernel.in.end(), fragments.begin(), fragments.end());
  const int accumulators = c.n / 2;
  kernel.outWords = static_cast<size_t>(128) * accumulators;
  // The image goes to shared memory by plain stores, 16 bytes a thread and round.
  kernel.body = "mov.u32 %r199, smem;\nmov.u32 %r198, %t;\nFILL:\nmad.lo.s32 %r197, %r198, 16, "
                "%r199;\nmul.wide.u32 %d1, %r198, 16;\nadd.s64 %d1, %in, %d1;\n"
                "ld.global.v2.b64 {%d2, %d3}, [%d1];\nst.shared.v2.b64 [%r197], {%d2, %d3};\n"
                "add.s32 %r198, %r198, 128;\nsetp.lt.u32 %p3, %r198, " +
                std::to_string(image.size() / 16) +
                ";\n@%p3 bra FILL;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
                "setp.eq.b32 %p1, 0, 0;\nsetp.ne.b32 %p2, 0, 0;\n";
  for (int i = 0; i < accumulators; ++i)
    kernel.body += "mov.b32 %r" + std::to_string(i) + ", " +
                   std::to_string(bitsOf(static_cast<float>(initial(i)))) + ";\n";
  kernel.body += "mul.wide.u32 %d8, %t, 128;\nadd.s64 %d8, %in, %d8;\n";
  for (int i = 0; i < 16 && c.registerA; ++i)
    kernel.body += "ld.global.b32 %a" + std::to_string(i) + ", [%d8+" +
                   std::to_string(image.size() + 8 * static_cast<size_t>(i)) + "];\n";
  kernel.body += descriptor("%d4", 0, c.transposedA, 8192) +
                 descriptor("%d5", kBytesA, c.transposedB, depth(c) * 128) + products(c) +
                 "mul.wide.u32 %d9, %t, " + std::to_string(8 * accumulators) +
                 ";\nadd.s64 %d9, %out, %d9;\n";
  for (int i = 0; i < accumulators; ++i)
    kernel.body +=
        "st.global.b32 [%d9+" + std::to_string(8 * i) + "], %r" + std::to_string(i) + ";\n";
  std::vector<uint64_t> out = runClean(kernel);

  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < accumulators; ++i) {
      int m = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
      int n = i / 4 * 8 + t % 4 * 2 + i % 2;
      int want = 0;
      for (int k = 0; k < depth(c); ++k)
        want += valueA(m, k) * valueB(k, n);
      want = want * c.scaleA * c.scaleB + (c.accumulate ? initial(i) : 0);
      ASSERT_EQ(floatOf(out[static_cast<size_t>(t) * accumulators + i]), static_cast<float>(want))
          << "row " << m << " column " << n;
    }
}

} // namespace

TEST(SimWgmma, DescriptorsAlongK) {
  for (int n : {8, 24, 64, 128, 256})
    for (const char *type : {"bf16", "f16"})
      check({n, type});
}

TEST(SimWgmma, RegistersOfA) {
  for (int n : {64, 128, 256})
    for (const char *type : {"bf16", "f16"})
      check({n, type, true});
}

TEST(SimWgmma, MatricesAlongN) {
  for (int n : {64, 128, 256})
    for (const char *type : {"bf16", "f16"})
      for (bool registerA : {false, true})
        check({n, type, registerA, false, true});
}

TEST(SimWgmma, MatricesAlongM) {
  check({64, "bf16", false, true, false});
  check({128, "f16", false, true, true});
}

TEST(SimWgmma, AccumulatesAndNegates) {
  check({64, "bf16", false, false, false, true});
  check({64, "bf16", true, false, true, true});
  check({64, "bf16", false, false, false, true, -1, 1});
  check({64, "f16", false, false, false, false, 1, -1});
  check({64, "bf16", true, false, false, true, -1, -1});
}

TEST(SimWgmma, Bytes) {
  for (const char *type : {"e4m3", "e5m2"}) {
    check({64, type});
    check({128, type, true});
  }
}
