// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asynchronous copies: PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy" and
// "Tensors" (boxes, out-of-bound access, swizzling modes).
#include "SemanticsSupport.h"

using namespace attn::sim;
using namespace attn::sim::test;

namespace {

/// One box: place in shared memory, coordinates, innermost first.
struct BoxCopy {
  uint32_t offset;
  std::vector<int> at;
};

uint32_t bytesOf(const TensorMap &map) {
  uint32_t bytes = static_cast<uint32_t>(map.elementBytes);
  for (int i = 0; i < map.rank; ++i)
    bytes *= map.box[i];
  return bytes;
}

std::string coordinates(const BoxCopy &copy) {
  std::string text = "[%map, {";
  for (size_t i = 0; i < copy.at.size(); ++i)
    text += (i ? ", " : "") + std::to_string(copy.at[i]);
  return text + "}]";
}

/// Shared memory after the copies, `bytes` of it, all of which they must cover.
std::vector<uint8_t> loadBoxes(const TensorMap &map, const std::vector<BoxCopy> &copies,
                               uint32_t bytes, GlobalBuffer data) {
  TinyKernel kernel;
  kernel.map = map;
  kernel.buffers = {data};
  kernel.sharedBytes = bytes + 8;
  kernel.outWords = bytes / 8;
  const std::string rank = std::to_string(map.rank);
  kernel.body = "mov.u32 %r1, smem;\nadd.s32 %r2, %r1, " + std::to_string(bytes) +
                ";\nsetp.ne.b32 %p1, %t, 0;\n@%p1 bra READY;\n"
                "mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.mbarrier_init.release.cluster;\n"
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], " +
                std::to_string(bytesOf(map) * copies.size()) + ";\n";
  for (const BoxCopy &copy : copies)
    kernel.body += "add.s32 %r3, %r1, " + std::to_string(copy.offset) + ";\ncp.async.bulk.tensor." +
                   rank + "d.shared::cta.global.mbarrier::complete_tx::bytes [%r3], " +
                   coordinates(copy) + ", [%r2];\n";
  kernel.body += R"(READY:
bar.sync 0;
{ .reg .pred P; WAIT: mbarrier.try_wait.parity.shared::cta.b64 P, [%r2], 0; @P bra DONE; bra WAIT; DONE: }
mov.u32 %r4, %t;
COPY:
setp.ge.u32 %p2, %r4, )" +
                 std::to_string(bytes / 8) + R"(;
@%p2 bra END;
mad.lo.s32 %r5, %r4, 8, %r1;
ld.shared.b64 %d1, [%r5];
mul.wide.u32 %d2, %r4, 8;
add.s64 %d2, %out, %d2;
st.global.b64 [%d2], %d1;
add.s32 %r4, %r4, 32;
bra COPY;
END:)";
  std::vector<uint64_t> out = runClean(kernel);
  std::vector<uint8_t> result(bytes);
  std::memcpy(result.data(), out.data(), std::min<size_t>(bytes, out.size() * 8));
  return result;
}

uint16_t halfAt(const std::vector<uint8_t> &bytes, size_t offset) {
  return static_cast<uint16_t>(bytes[offset] | bytes[offset + 1] << 8);
}

/// A matrix of 16-bit elements, none of them 0.
struct Matrix {
  Matrix(int rows, int cols) : rows(rows), cols(cols), words(rows * cols / 4 + 2) {
    for (int row = 0; row < rows; ++row)
      for (int col = 0; col < cols; ++col)
        data()[row * cols + col] = value(row, col);
  }
  /// What a copy reads at (row, col): 0 outside.
  uint16_t value(int row, int col) const {
    if (row < 0 || row >= rows || col < 0 || col >= cols)
      return 0;
    return static_cast<uint16_t>(row * 256 + col + 1);
  }
  uint16_t *data() { return reinterpret_cast<uint16_t *>(words.data()); }
  GlobalBuffer buffer(bool writable = false) {
    return {"matrix", data(), words.size() * 8, writable};
  }
  TensorMap map(uint32_t boxCols, uint32_t boxRows, int swizzle) {
    TensorMap map;
    map.rank = 2;
    map.elementBytes = 2;
    map.data = data();
    map.dims = {uint64_t(cols), uint64_t(rows)};
    map.strides = {0, uint64_t(cols) * 2};
    map.box = {boxCols, boxRows};
    map.swizzleBytes = swizzle;
    return map;
  }
  int rows, cols;
  std::vector<uint64_t> words; // 16-byte aligned, as the heap is
};

/// Place of 16-byte chunk `chunk` of row `row` in a box at a multiple of 1024, by the figures of
/// the swizzling modes: rows of 128 bytes exchange 8 chunks by row % 8; of 64 bytes 4 chunks by row
/// / 2 % 4; of 32 bytes 2 chunks by row / 4 % 2.
size_t placeOf(int swizzle, size_t rowBytes, size_t row, size_t chunk) {
  switch (swizzle) {
  case 128:
    chunk ^= row % 8;
    break;
  case 64:
    chunk ^= row / 2 % 4;
    break;
  case 32:
    chunk ^= row / 4 % 2;
    break;
  default:
    break;
  }
  return row * rowBytes + chunk * 16;
}

void checkBox(int swizzle, int boxCols, int boxRows, int row, int col) {
  SCOPED_TRACE("swizzle " + std::to_string(swizzle) + ", box at " + std::to_string(row) + ", " +
               std::to_string(col));
  Matrix matrix(20, 72);
  std::vector<uint8_t> shared = loadBoxes(matrix.map(boxCols, boxRows, swizzle), {{0, {col, row}}},
                                          boxCols * boxRows * 2, matrix.buffer());
  for (int r = 0; r < boxRows; ++r)
    for (int c = 0; c < boxCols; ++c)
      ASSERT_EQ(halfAt(shared, placeOf(swizzle, boxCols * 2, r, c / 8) + c % 8 * 2),
                matrix.value(row + r, col + c))
          << "row " << r << " col " << c;
}

} // namespace

TEST(SimTensor, BoxesInside) {
  checkBox(128, 64, 16, 3, 8);
  checkBox(64, 32, 16, 3, 40);
  checkBox(32, 16, 16, 0, 0);
  checkBox(0, 24, 7, 5, 1);
}

// Elements outside the tensor are zero: before row 0, past the last row, left and right.
TEST(SimTensor, BoxesThatReachOutside) {
  checkBox(128, 64, 16, -5, 0);
  checkBox(128, 64, 16, 12, 0);
  checkBox(128, 64, 16, -40, 0);
  checkBox(128, 64, 16, 20, 0);
  checkBox(128, 64, 16, 0, 40);
  checkBox(128, 64, 16, 0, -8);
  checkBox(128, 64, 16, -3, 72);
  checkBox(0, 24, 32, -2, 60);
}

// The swizzle follows the address in shared memory, not the row of the box: boxes of one row, side
// by side, give the image of one box of all rows. Any row may be missing in the tensor.
TEST(SimTensor, BoxesOfOneRow) {
  Matrix matrix(20, 72);
  std::vector<BoxCopy> copies;
  for (int r = 0; r < 16; ++r)
    copies.push_back({static_cast<uint32_t>(128 * r), {0, r - 2}});
  std::vector<uint8_t> rows = loadBoxes(matrix.map(64, 1, 128), copies, 2048, matrix.buffer());
  std::vector<uint8_t> whole =
      loadBoxes(matrix.map(64, 16, 128), {{0, {0, -2}}}, 2048, matrix.buffer());
  EXPECT_EQ(rows, whole);
  EXPECT_EQ(halfAt(rows, placeOf(128, 128, 5, 3)), matrix.value(3, 24));
}

// Five dimensions as the kernels use them: 64 columns, keys, halves of the head, heads, pages.
TEST(SimTensor, FiveDimensions) {
  constexpr int kKeys = 6, kHalves = 2, kHeads = 3, kPages = 2;
  std::vector<uint16_t> data(64 * kKeys * kHalves * kHeads * kPages + 8);
  auto *base = reinterpret_cast<uint16_t *>((reinterpret_cast<uintptr_t>(data.data()) + 15) &
                                            ~uintptr_t(15));
  // A page holds keys, a key heads, a head 128 columns.
  auto index = [](int col, int key, int half, int head, int page) {
    return (((page * kKeys + key) * kHeads + head) * kHalves + half) * 64 + col;
  };
  for (int i = 0; i < 64 * kKeys * kHalves * kHeads * kPages; ++i)
    base[i] = static_cast<uint16_t>(i + 1);
  TensorMap map;
  map.rank = 5;
  map.elementBytes = 2;
  map.data = base;
  map.dims = {64, kKeys, kHalves, kHeads, kPages};
  map.strides = {0, kHeads * kHalves * 128, 128, kHalves * 128, kKeys * kHeads * kHalves * 128};
  map.box = {64, 8, kHalves, 1, 1};
  map.swizzleBytes = 128;
  std::vector<uint8_t> shared = loadBoxes(map, {{0, {0, 1, 0, 2, 1}}}, 8 * kHalves * 128,
                                          {"pages", data.data(), data.size() * 2, false});
  for (int half = 0; half < kHalves; ++half)
    for (int r = 0; r < 8; ++r)
      for (int c = 0; c < 64; ++c)
        ASSERT_EQ(halfAt(shared, placeOf(128, 128, half * 8 + r, c / 8) + c % 8 * 2),
                  r + 1 < kKeys ? base[index(c, r + 1, half, 2, 1)] : 0)
            << half << " " << r << " " << c;
}

// Stores clip at the bounds and undo the swizzle.
TEST(SimTensor, StoreOfABox) {
  for (int row : {2, -3, 15}) {
    Matrix matrix(20, 72), before(20, 72);
    TinyKernel kernel;
    kernel.map = matrix.map(64, 8, 128);
    kernel.buffers = {matrix.buffer(true)};
    kernel.sharedBytes = 1024;
    // Element (r, c) is 0x8000 + 64 r + c, where the swizzle puts it.
    std::vector<uint16_t> image(512);
    for (int r = 0; r < 8; ++r)
      for (int c = 0; c < 64; ++c)
        image[placeOf(128, 128, r, c / 8) / 2 + c % 8] = static_cast<uint16_t>(0x8000 + 64 * r + c);
    kernel.in.resize(128);
    std::memcpy(kernel.in.data(), image.data(), 1024);
    kernel.body = R"(mov.u32 %r1, smem;
mad.lo.s32 %r2, %t, 32, %r1;
mul.wide.u32 %d1, %t, 32;
add.s64 %d1, %in, %d1;
ld.global.v2.b64 {%d2, %d3}, [%d1];
st.shared.v2.b64 [%r2], {%d2, %d3};
ld.global.v2.b64 {%d2, %d3}, [%d1+16];
st.shared.v2.b64 [%r2+16], {%d2, %d3};
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.b32 %p1, %t, 0;
@%p1 bra END;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {8, )" +
                  std::to_string(row) + R"(}], [%r1];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END:)";
    runClean(kernel);
    for (int r = 0; r < 20; ++r)
      for (int c = 0; c < 72; ++c) {
        bool inBox = r >= row && r < row + 8 && c >= 8;
        ASSERT_EQ(matrix.data()[r * 72 + c],
                  inBox ? 0x8000 + 64 * (r - row) + c - 8 : before.value(r, c))
            << "box at " << row << ", row " << r << " col " << c;
      }
  }
}

// PTX ISA, "cp.async.bulk": bytes as they lie.
TEST(SimTensor, BulkCopy) {
  TinyKernel kernel;
  kernel.sharedBytes = 512 + 8;
  for (uint64_t i = 0; i < 64; ++i)
    kernel.in.push_back(i * 0x0101010101010101);
  kernel.body = R"(mov.u32 %r1, smem;
setp.ne.b32 %p1, %t, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r1+512], 1;
fence.mbarrier_init.release.cluster;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+512], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1+16], [%in+64], 256, [%r1+512];
READY:
bar.sync 0;
{ .reg .pred P; WAIT: mbarrier.try_wait.parity.shared::cta.b64 P, [%r1+512], 0; @P bra DONE; bra WAIT; DONE: }
mad.lo.s32 %r2, %t, 8, %r1;
ld.shared.b64 %d1, [%r2+16];
st.global.b64 [%o], %d1;)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint64_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], (i + 8) * 0x0101010101010101);
}

// PTX ISA, "cp.async": the rest of the 16 bytes is zero.
TEST(SimTensor, SmallCopies) {
  TinyKernel kernel;
  kernel.sharedBytes = 512;
  for (uint64_t i = 0; i < 64; ++i)
    kernel.in.push_back(i + 1);
  kernel.outWords = 64;
  kernel.body = R"(mov.u32 %r1, smem;
mad.lo.s32 %r2, %t, 16, %r1;
mul.wide.u32 %d1, %t, 16;
add.s64 %d2, %in, %d1;
and.b32 %r3, %t, 1;
shl.b32 %r3, %r3, 3;
cp.async.cg.shared.global [%r2], [%d2], 16, %r3;
cp.async.commit_group;
cp.async.wait_group 0;
ld.shared.v2.b64 {%d3, %d4}, [%r2];
add.s64 %d5, %out, %d1;
st.global.v2.b64 [%d5], {%d3, %d4};)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint64_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[2 * lane], lane % 2 ? 2 * lane + 1 : 0);
    EXPECT_EQ(out[2 * lane + 1], 0u);
  }
}
