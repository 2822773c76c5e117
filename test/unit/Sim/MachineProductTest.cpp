// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor copies and wgmma together: layouts, swizzles, register A, and the hazards of products.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

using RK = Report::Kind;

namespace {

uint16_t toBF16(int value) {
  const float f = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>(bits >> 16);
}

std::string numbered(const char *prefix, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::string(prefix) + std::to_string(first + i);
  return text + "}";
}

/// D[64][64] = A[64][k] B, small integers; B is [64][k], or [k][64] if it is transposed.
struct Matrices {
  int k;
  bool transposed;
  std::vector<int> a, b;

  Matrices(int k, bool transposed) : k(k), transposed(transposed), a(64 * k), b(64 * k) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<int>(i * 7 % 13) - 6;
      b[i] = static_cast<int>(i * 5 % 11) - 5;
    }
  }
  int product(int row, int column) const {
    int sum = 0;
    for (int i = 0; i < k; ++i)
      sum += a[row * k + i] * (transposed ? b[i * 64 + column] : b[column * k + i]);
    return sum;
  }
  std::vector<uint32_t> words() const {
    std::vector<uint32_t> result(64 * k);
    uint16_t *halves = reinterpret_cast<uint16_t *>(result.data());
    for (size_t i = 0; i < a.size(); ++i) {
      halves[i] = toBF16(a[i]);
      halves[a.size() + i] = toBF16(b[i]);
    }
    return result;
  }
};

TensorMap mapOf(int columns, int rows, int swizzle) {
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 2;
  map.dims = {uint64_t(columns), uint64_t(rows), 1, 1, 1};
  map.strides = {0, uint64_t(columns) * 2, 0, 0, 0};
  map.box = {uint32_t(columns), uint32_t(rows), 1, 1, 1};
  map.swizzleBytes = swizzle;
  return map;
}

/// The descriptor of a tile at %s + `offset` in `d`.
std::string descriptor(const std::string &d, int offset, int swizzle, int leading, int stride) {
  const uint64_t code = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  const uint64_t high = code << 62 | uint64_t(stride >> 4) << 32 | uint64_t(leading >> 4) << 16;
  return "add.s32 %r90, %s, " + std::to_string(offset) + ";\nshr.u32 %r90, %r90, 4;\n" +
         "cvt.u64.u32 " + d + ", %r90;\nor.b64 " + d + ", " + d + ", " +
         std::to_string(static_cast<int64_t>(high)) + ";\n";
}

/// A at 0, B at 8 KiB, copied by the maps m0 and m1.
const std::string kCopies = R"(
mov.b64 %d10, m0;
cvta.param.u64 %d10, %d10;
mov.b64 %d11, m1;
cvta.param.u64 %d11, %d11;
add.s32 %r80, %s, 8192;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], BYTES;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%d10, {0, 0}], [%bar];
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r80], [%d11, {0, 0}], [%bar];
)";

/// Accumulators to `out`, 32 words a thread.
std::string writeOut() {
  std::string text = "mul.wide.u32 %d0, %t, 128;\nadd.s64 %d0, %out, %d0;\n";
  for (int i = 0; i < 32; ++i)
    text += "st.global.f32 [%d0+" + std::to_string(4 * i) + "], %f" + std::to_string(i) + ";\n";
  return text;
}

Kernel product(const Matrices &m, int swizzle) {
  Kernel kernel;
  kernel.in = m.words();
  kernel.outWords = 64 * 64;
  kernel.maps = {mapOf(m.k, 64, swizzle),
                 m.transposed ? mapOf(64, m.k, 128) : mapOf(m.k, 64, swizzle)};
  std::string &body = kernel.body;
  body = kInit + replaced(kCopies, "BYTES", std::to_string(2 * 64 * m.k * 2)) + wait(0);
  const int row = swizzle ? swizzle : 16;
  body += descriptor("%d1", 0, swizzle, 16, 8 * row);
  body += m.transposed ? descriptor("%d2", 8192, 128, 1024, 1024)
                       : descriptor("%d2", 8192, swizzle, 16, 8 * row);
  body += "setp.ne.s32 %p1, 0, 0;\nsetp.eq.s32 %p2, 0, 0;\nwgmma.fence.sync.aligned;\n";
  for (int k = 0; k < m.k; k += 16) {
    body += "add.s64 %d3, %d1, " + std::to_string(k * 2 / 16) + ";\n";
    body += "add.s64 %d4, %d2, " + std::to_string((m.transposed ? k * 128 : k * 2) / 16) + ";\n";
    body += "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " + numbered("%f", 0, 32) +
            ", %d3, %d4, " + (k ? "%p2" : "%p1") + ", 1, 1, 0, " + (m.transposed ? "1" : "0") +
            ";\n";
  }
  body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" + writeOut();
  // The data of the second map lies behind the first.
  kernel.mapOffsets = {0, uint64_t(64) * m.k * 2};
  return kernel;
}

void expectProduct(const Matrices &m, const std::vector<uint32_t> &out) {
  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < 32; ++i) {
      float value;
      std::memcpy(&value, &out[t * 32 + i], 4);
      const int row = t / 32 * 16 + t % 32 / 4 + (i / 2 % 2) * 8;
      const int column = i / 4 * 8 + t % 4 * 2 + i % 2;
      ASSERT_EQ(value, m.product(row, column)) << "row " << row << ", column " << column;
    }
}

} // namespace

TEST(MachineProducts, SwizzledTiles) {
  for (int swizzle : {32, 64, 128}) {
    const Matrices m(swizzle / 2, false);
    expectProduct(m, expectClean(product(m, swizzle)));
  }
}

TEST(MachineProducts, TilesWithoutSwizzle) {
  // Rows of 16 bytes: the second half of k is another box.
  const Matrices m(16, false);
  Kernel kernel = product(m, 0);
  TensorMap a = mapOf(16, 64, 0);
  a.box[0] = 8;
  kernel.maps = {a, a};
  const std::string single = "[%s], [%d10, {0, 0}], [%bar];\n";
  const std::string copy =
      "@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes ";
  std::string more = single;
  more += "add.s32 %r81, %s, 1024;\n" + copy + "[%r81], [%d10, {8, 0}], [%bar];\n";
  more += "add.s32 %r81, %s, 9216;\n" + copy + "[%r81], [%d11, {8, 0}], [%bar];\n";
  kernel.body = replaced(kernel.body, single, more);
  kernel.body =
      replaced(kernel.body, descriptor("%d1", 0, 0, 16, 128), descriptor("%d1", 0, 0, 1024, 128));
  kernel.body = replaced(kernel.body, descriptor("%d2", 8192, 0, 16, 128),
                         descriptor("%d2", 8192, 0, 1024, 128));
  expectProduct(m, expectClean(kernel));
}

TEST(MachineProducts, TransposedB) {
  const Matrices m(64, true);
  expectProduct(m, expectClean(product(m, 128)));
}

TEST(MachineProducts, WrongSwizzleIsAWrongResult) {
  const Matrices m(64, false);
  Kernel kernel = product(m, 128);
  kernel.maps[0].swizzleBytes = 0;
  const std::vector<uint32_t> wrong = expectClean(kernel);
  EXPECT_NE(wrong, expectClean(product(m, 128)));
}

TEST(MachineProducts, AFromRegisters) {
  const Matrices m(16, false);
  Kernel kernel = product(m, 32);
  // Registers r: row lane / 4 (+ 8), k = lane % 4 * 2 (+ 8), read from the matrix in memory.
  std::string load =
      "and.b32 %r1, %t, 31;\nshr.u32 %r2, %r1, 2;\nand.b32 %r3, %r1, 3;\n"
      "mad.lo.u32 %r2, %w, 16, %r2;\nmul.lo.u32 %r2, %r2, 32;\n"
      "mad.lo.u32 %r2, %r3, 4, %r2;\ncvt.u64.u32 %d5, %r2;\nadd.s64 %d5, %in, %d5;\n";
  for (int r = 0; r < 4; ++r)
    load += "ld.global.b32 %r" + std::to_string(10 + r) + ", [%d5+" +
            std::to_string(r % 2 * 8 * 32 + r / 2 * 16) + "];\n";
  kernel.body = replaced(kernel.body, "wgmma.fence", load + "wgmma.fence");
  kernel.body = replaced(kernel.body, ", %d3, %d4, %p1, 1, 1, 0, 0;",
                         ", {%r10, %r11, %r12, %r13}, %d4, %p1, 1, 1, 0;");
  expectProduct(m, expectClean(kernel));
  // Registers of A written after the fence.
  Kernel broken = kernel;
  broken.body = replaced(kernel.body, "wgmma.fence.sync.aligned;\n",
                         "wgmma.fence.sync.aligned;\nmov.b32 %r10, 0;\n");
  expectReport(broken, RK::MissingWgmmaFence, "mov.b32 %r10");
  // Written while the product may still read them.
  broken.body = replaced(kernel.body, "wgmma.commit", "mov.b32 %r10, 0;\nwgmma.commit");
  expectReport(broken, RK::RegisterInFlight, "mov.b32 %r10");
  // Behind the wait it is fine.
  broken.body = replaced(kernel.body, "aligned 0;\n", "aligned 0;\nmov.b32 %r10, 0;\n");
  expectClean(broken);
}

TEST(MachineProducts, RegistersInFlight) {
  const Matrices m(64, false);
  const Kernel kernel = product(m, 128);
  Kernel broken = kernel;
  broken.body =
      replaced(kernel.body, "wgmma.wait_group", "add.f32 %f5, %f5, %f5;\nwgmma.wait_group");
  expectReport(broken, RK::RegisterInFlight, "add.f32 %f5");
  broken.body = replaced(kernel.body, "aligned 0;\n", "aligned 1;\n");
  expectReport(broken, RK::RegisterInFlight, "st.global.f32 [%d0+0]");
  // Not committed: the wait does not cover it.
  broken.body = replaced(kernel.body, "wgmma.commit_group.sync.aligned;\n", "");
  expectReport(broken, RK::RegisterInFlight, "st.global.f32 [%d0+0]");
}

TEST(MachineProducts, WgmmaFence) {
  const Matrices m(64, false);
  const Kernel kernel = product(m, 128);
  Kernel broken = kernel;
  broken.body = replaced(kernel.body, "wgmma.fence.sync.aligned;\n", "");
  expectReport(broken, RK::MissingWgmmaFence, "wgmma.mma_async");
  // A second product on accumulators that were read since.
  const size_t at = kernel.body.find("wgmma.mma_async");
  const std::string again = kernel.body.substr(at, kernel.body.find('\n', at) - at + 1) +
                            "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  broken.body = kernel.body + again;
  expectReport(broken, RK::MissingWgmmaFence, "st.global.f32 [%d0+0]");
  broken.body = kernel.body + "wgmma.fence.sync.aligned;\n" + again;
  expectClean(broken);
}

TEST(MachineProducts, OperandsInSharedMemory) {
  const Matrices m(64, false);
  const Kernel kernel = product(m, 128);
  Kernel broken = kernel;
  broken.body = replaced(kernel.body, wait(0), "");
  expectReport(broken, RK::ReadBeforeComplete, "wgmma.mma_async");
  // Overwritten by a copy, by a store, before the wait.
  const std::string store = "st.shared.b32 [%a], 0;\n";
  broken.body = replaced(kernel.body, "wgmma.wait_group", store + "wgmma.wait_group");
  expectReport(broken, RK::OverwriteWhileRead, "st.shared");
  broken.body = replaced(kernel.body, "aligned 0;\n", "aligned 0;\nbar.sync 0;\n" + store);
  expectClean(broken);
  // Only the own warp has waited: the other three may still read.
  broken.body =
      replaced(kernel.body, "aligned 0;\n", "aligned 0;\n" + replaced(store, "[%a]", "[%r80]"));
  expectReport(broken, RK::OverwriteWhileRead, "st.shared");
  // A store before the product needs the fence.
  broken.body = replaced(kernel.body, "setp.ne.s32 %p1", store + "bar.sync 0;\nsetp.ne.s32 %p1");
  broken.body = replaced(broken.body, "[%a], 0", "[%a], 1");
  expectReport(broken, RK::MissingProxyFence, "wgmma.mma_async");
  broken.body = replaced(broken.body, "bar.sync 0;\nsetp.ne.s32 %p1",
                         "fence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.ne.s32 %p1");
  expectClean(broken);
}

TEST(MachineProducts, WholeWarpgroups) {
  const Matrices m(64, false);
  Kernel kernel = product(m, 128);
  kernel.body =
      replaced(kernel.body, "wgmma.fence", "setp.eq.u32 %p3, %w, 2;\n@%p3 bra END;\nwgmma.fence") +
      "END:\n";
  expectReport(kernel, RK::Deadlock, "wgmma.wait_group");
  kernel = product(m, 128);
  kernel.body =
      replaced(kernel.body, "wgmma.fence", "setp.eq.u32 %p3, %t, 2;\n@%p3 bra END;\nwgmma.fence") +
      "END:\n";
  expectReport(kernel, RK::DivergentBarrier, "wgmma.fence");
  kernel = product(m, 128);
  kernel.body.resize(kernel.body.find("wgmma.wait_group"));
  expectReport(kernel, RK::UnfinishedAtExit, "1, 1, 0, 0;\nwgmma.commit");
}

TEST(MachineProducts, BoxesPastTheEdge) {
  Kernel kernel;
  kernel.threads = 64;
  for (size_t i = 0; i < kernel.in.size(); ++i)
    kernel.in[i] = static_cast<uint32_t>(i + 1);
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 4;
  map.dims = {12, 5, 1, 1, 1};
  map.strides = {0, 64, 0, 0, 0};
  map.box = {8, 8, 1, 1, 1};
  kernel.maps = {map};
  kernel.body = kInit + R"(
mov.b64 %d10, m0;
cvta.param.u64 %d10, %d10;
mov.b32 %r0, 8;
mov.b32 %r1, -1;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 256;
@%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%d10, {%r0, %r1}], [%bar];
)" + wait(0) + "ld.shared.b32 %r2, [%a];\nst.global.b32 [%o], %r2;\n";
  const std::vector<uint32_t> out = expectClean(kernel);
  for (int i = 0; i < 64; ++i) {
    const int column = 8 + i % 8, row = i / 8 - 1;
    const bool inside = column < 12 && row >= 0 && row < 5;
    EXPECT_EQ(out[i], inside ? uint32_t(row * 16 + column + 1) : 0u) << i;
  }
  EXPECT_EQ(run(kernel, {}).counters.tmaLoadBytes, 5u * 16);
  // A map that describes more than there is.
  kernel.maps[0].dims[1] = 10000;
  kernel.body = replaced(kernel.body, "%r1, -1", "%r1, 9000");
  expectReport(kernel, RK::OutOfBounds, "cp.async.bulk.tensor");
}

TEST(MachineProducts, TensorStores) {
  Kernel kernel;
  kernel.threads = 64;
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 4;
  map.dims = {8, 6, 1, 1, 1};
  map.strides = {0, 32, 0, 0, 0};
  map.box = {8, 8, 1, 1, 1};
  kernel.maps = {map};
  kernel.mapsToOut = true;
  kernel.body = R"(
mov.b64 %d10, m0;
cvta.param.u64 %d10, %d10;
st.shared.b32 [%a], %t;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d10, {0, 0}], [%s];
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
)";
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i < 48 ? i : 0u) << i;
}

namespace {
/// A field of an encoded map, by the layout in Sim.h.
uint64_t field(const std::array<uint8_t, 128> &bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= uint64_t(bytes[at + i]) << (8 * i);
  return value;
}
} // namespace

TEST(MachineProducts, TensorMapsAreEncodedAsDocumented) {
  TensorMap map;
  map.rank = 4;
  map.elementBytes = 2;
  map.data = reinterpret_cast<const void *>(uintptr_t(0x7f1234567890));
  map.dims = {64, uint64_t(1) << 32, 3, 4, 99};
  map.strides = {7, 1024, (uint64_t(1) << 40) - 16, 32, 99};
  map.box = {64, 256, 2, 1, 99};
  map.elementStrides = {1, 2, 3, 8, 99};
  map.swizzleBytes = 128;
  const auto bytes = encode(map);
  ASSERT_TRUE(bytes.ok()) << bytes.message();
  EXPECT_EQ(std::string(bytes->begin(), bytes->begin() + 8), "TTA_MAP1");
  EXPECT_EQ(field(*bytes, 8, 8), 0x7f1234567890u);
  const uint64_t strides[] = {1024, (uint64_t(1) << 40) - 16, 32, 0};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(field(*bytes, 16 + 8 * i, 8), strides[i]) << i;
  const uint64_t last[] = {63, 0xFFFFFFFF, 2, 3, 0}, box[] = {64, 256, 2, 1, 0},
                 steps[] = {1, 2, 3, 8, 0};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(field(*bytes, 48 + 4 * i, 4), last[i]) << i;
    EXPECT_EQ(field(*bytes, 68 + 2 * i, 2), box[i]) << i;
    EXPECT_EQ(field(*bytes, 78 + i, 1), steps[i]) << i;
  }
  EXPECT_EQ(field(*bytes, 83, 1), 4u);
  EXPECT_EQ(field(*bytes, 84, 1), 2u);
  EXPECT_EQ(field(*bytes, 85, 1), 128u);
  for (size_t i = 86; i < 128; ++i)
    EXPECT_EQ((*bytes)[i], 0) << i;
}

TEST(MachineProducts, TensorMapsThatDoNotFit) {
  TensorMap map = mapOf(64, 8, 128);
  ASSERT_TRUE(encode(map).ok());
  auto refuses = [&](auto change, const std::string &why) {
    TensorMap broken = map;
    change(broken);
    const auto bytes = encode(broken);
    ASSERT_FALSE(bytes.ok()) << why;
    EXPECT_EQ(bytes.message(), "tensor map: " + why);
  };
  refuses([](TensorMap &m) { m.rank = 0; }, "rank 0, expected 1 to 5");
  refuses([](TensorMap &m) { m.rank = 6; }, "rank 6, expected 1 to 5");
  refuses([](TensorMap &m) { m.elementBytes = 3; }, "elements of 3 bytes, expected 1, 2, 4 or 8");
  refuses([](TensorMap &m) { m.elementBytes = 258; },
          "elements of 258 bytes, expected 1, 2, 4 or 8");
  refuses([](TensorMap &m) { m.swizzleBytes = 384; },
          "a swizzle of 384 bytes, expected 0, 32, 64 or 128");
  refuses([](TensorMap &m) { m.dims[1] = (uint64_t(1) << 32) + 1; },
          "dimension 1: extent 4294967297, expected 1 to 2^32");
  refuses([](TensorMap &m) { m.dims[0] = 0; }, "dimension 0: extent 0, expected 1 to 2^32");
  refuses([](TensorMap &m) { m.box[0] = 65536 + 64; },
          "dimension 0: a box of 65600, expected 1 to 65535");
  refuses([](TensorMap &m) { m.elementStrides[1] = 257; },
          "dimension 1: an element stride of 257, expected 1 to 255");
}
