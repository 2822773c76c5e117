// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes empty-row, numerics, softcap, alibi, strides and overflow.
#include "FieldSupport.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

#include <sys/mman.h>

using namespace field;
using namespace exec;
using namespace attn::core;
using truth::request;

static constexpr double kInf = std::numeric_limits<double>::infinity();
static const char kCausal[] = "    %m = attn.causal %q, %k\n";

TEST(FieldFailures, R039_empty_row_only_key_masked) {
  const std::string spec =
      kernel("heads(1) kv_heads(1) dim(2) q(f32) kv(f32)",
             "    %zero = arith.constant 0 : index\n    %m = arith.cmpi ne, %k, %zero : index\n");
  const Launch launch = {{request(1, 1)}, {}, {}};
  expectRows(spec, launch, {{{}}});
  const LoadedKernel &k = compiled(spec);
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, {{{}}}));
  attention.fillRandom(1);
  for (const Outputs &out : {attention.reference(), attention.native()}) {
    EXPECT_EQ(out.o, (std::vector<double>{0, 0}));
    EXPECT_EQ(out.lse, (std::vector<double>{-kInf}));
  }
}

TEST(FieldFailures, R041_empty_row_sequence_without_keys) {
  const std::string spec = kernel("heads(2) kv_heads(1) dim(16) q(f32) kv(f32)", "");
  truth::Request none = request(2, 0);
  expectRows(spec, {{request(3, 5), none, request(4, 4)}, {}, {}},
             {{{{0, 4}}, {{0, 4}}, {{0, 4}}}, {{}, {}}, {{{0, 3}}, {{0, 3}}, {{0, 3}}, {{0, 3}}}});
}

TEST(FieldFailures, R044_empty_row_merges_as_nothing) {
  const std::string spec = kernel("heads(4) kv_heads(1) dim(16) q(f32) kv(f32)", kCausal);
  const Launch launch = {{request(6, 2)}, {}, {}};
  const Rows rows = {{{}, {}, {}, {}, {{0, 0}}, {{0, 1}}}};
  expectRows(spec, launch, rows);
  const LoadedKernel &k = compiled(spec);
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, rows), {2, false, false});
  attention.fillRandom(9);
  attention.poisonInvisible();
  Outputs other;
  for (int64_t i = 0; i < 6 * 4 * 16; ++i)
    other.o.push_back(0.25 * double(i % 7));
  for (int64_t i = 0; i < 6 * 4; ++i)
    other.lse.push_back(-3.5 + double(i));
  for (const Outputs &out : {attention.reference(), attention.native()}) {
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < 4; ++t)
        EXPECT_EQ(out.lse[h * 6 + t], -kInf);
    const Outputs merged = merge(out, other, 6, 4, 16);
    for (int64_t i = 0; i < 4 * 4 * 16; ++i)
      ASSERT_EQ(merged.o[i], other.o[i]);
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < 4; ++t)
        EXPECT_EQ(merged.lse[h * 6 + t], other.lse[h * 6 + t]);
  }
}

TEST(FieldFailures, R046_numerics_very_negative_scores_are_legal) {
  const std::string spec = kernel("heads(16) kv_heads(1) dim(128) q(f32) kv(f32)", "");
  const Launch launch = {{request(1, 64)}, {}, {}};
  const LoadedKernel &k = compiled(spec);
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, {{{{0, 63}}}}));
  attention.fillRandom(2);
  attention.fillQ(0);
  attention.fillK(0);
  for (int64_t h = 0; h < 16; ++h)
    attention.setQ(0, h, 0, 1);
  for (int64_t key = 0; key < 64; ++key)
    attention.setK(0, key, 0, 0, key == 0 ? -55000.0f : -60000.0f);
  for (int64_t d = 0; d < 128; ++d)
    attention.setV(0, 0, 0, d, static_cast<float>(d) - 50);
  for (const Outputs &out : {attention.reference(), attention.native()})
    for (int64_t h = 0; h < 16; ++h) {
      EXPECT_NEAR(out.lse[h], -55000 / std::sqrt(128.0), 0.01);
      for (int64_t d = 0; d < 128; ++d)
        ASSERT_NEAR(out.o[h * 128 + d], double(d) - 50, 1e-4) << "head " << h;
    }
  EXPECT_EQ(compareRows(attention.naive(), attention.native(), 1, 16, 128, 1e-5), "");
}

TEST(FieldFailures, R048_numerics_band_that_forgets_old_keys) {
  const std::string spec = kernel("heads(1) kv_heads(1) dim(2) q(f32) kv(f32)",
                                  "    %c = attn.causal %q, %k\n"
                                  "    %w = attn.sliding %q, %k count(10)\n"
                                  "    %m = attn.and %c, %w\n");
  const Launch launch = {{request(600, 600)}, {}, {}};
  Rows rows(1);
  for (Int q = 0; q < 600; ++q)
    rows[0].push_back({{q < 9 ? 0 : q - 9, q}});
  expectRows(spec, launch, rows);
  const LoadedKernel &k = compiled(spec);
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, rows));
  attention.fillQ(1);
  attention.fillK(1);
  attention.fillV(1);
  for (const Outputs &out : {attention.reference(), attention.native()})
    for (double value : out.o)
      ASSERT_NEAR(value, 1.0, 1e-6);
}

TEST(FieldFailures, R052_softcap_comes_before_the_mask) {
  const std::string spec = kernel("heads(1) kv_heads(1) dim(4) q(f32) kv(f32)", kCausal,
                                  "    %x = attn.soft_cap %s, 1.0\n");
  const Launch launch = {{request(3, 3)}, {}, {}};
  const Rows rows = {{{{0, 0}}, {{0, 1}}, {{0, 2}}}};
  expectRows(spec, launch, rows,
             [](double s, int64_t, int64_t, int64_t, int64_t) { return std::tanh(s); });
  const LoadedKernel &k = compiled(spec);
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, rows));
  attention.fillQ(0);
  attention.fillK(1);
  attention.fillV(0);
  for (int64_t key = 0; key < 3; ++key)
    attention.setV(0, key, 0, key, 1);
  for (const Outputs &out : {attention.reference(), attention.native()}) {
    EXPECT_EQ(out.o[0], 1.0);
    EXPECT_EQ(out.o[1], 0.0);
    EXPECT_EQ(out.o[2], 0.0);
    EXPECT_NEAR(out.o[2 * 4 + 2], 1.0 / 3, 1e-6);
  }
}

TEST(FieldFailures, R058_alibi_slopes_of_a_rank) {
  auto spec = [](int heads) {
    return kernel("heads(" + std::to_string(heads) +
                      ") kv_heads(1) dim(16) q(f32) kv(f32) tables(%slopes: !attn.table<[h], f32>)",
                  kCausal,
                  "    %slope = attn.load %slopes[%h] : !attn.table<[h], f32>\n"
                  "    %x = attn.alibi %s, %q, %k, %slope\n");
  };
  auto slopes = [](int first, int count) {
    std::vector<float> values;
    for (int h = first; h < first + count; ++h)
      values.push_back(std::ldexp(1.0f, -(h + 1)));
    return denseTable("slopes", ScalarType::F32, {count}, values);
  };
  const std::vector<truth::Request> requests = {request(2, 2), request(4, 9)};
  const Rows rows = {{{{0, 0}}, {{0, 1}}}, {{{0, 5}}, {{0, 6}}, {{0, 7}}, {{0, 8}}}};
  auto scoreFrom = [](int first) {
    return [first](double s, int64_t, int64_t h, int64_t q, int64_t k) {
      return s - std::ldexp(1.0, -static_cast<int>(first + h + 1)) * double(q > k ? q - k : k - q);
    };
  };
  expectRows(spec(8), {requests, {}, {slopes(0, 8)}}, rows, scoreFrom(0));
  // Rank 1 owns heads 4..7: slopes 2^-5 to 2^-8.
  expectRows(spec(4), {requests, {}, {slopes(4, 4)}}, rows, scoreFrom(4));
}

TEST(FieldFailures, R082_strides_transposed_v) {
  const std::string spec = kernel("heads(2) kv_heads(2) dim(16) q(f32) kv(f32)", "");
  const Launch launch = {{request(8, 8)}, {}, {}};
  const LoadedKernel &k = compiled(spec);
  Attention attention(k, bound(k, launch),
                      keepFrom(launch.requests, {std::vector<Keys>(8, Keys{{0, 7}})}));
  attention.fillRandom(4);
  const Outputs nativeBefore = attention.native();
  const Outputs referenceBefore = attention.reference();
  // V as [heads, slots, dim] seen through the strides of a transposed view.
  const KvView plain = attention.problem.v;
  std::vector<float> transposed(2 * 8 * 16);
  for (int64_t key = 0; key < 8; ++key)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t d = 0; d < 16; ++d)
        transposed[(h * 8 + key) * 16 + d] =
            loadElement(plain.data, DType::F32, plain.offset(attention.problem.kv, 0, key, h) + d);
  attention.problem.v.data = transposed.data();
  attention.problem.v.slotStride = 16;
  attention.problem.v.headStride = 8 * 16;
  EXPECT_EQ(attention.native().o, nativeBefore.o);
  EXPECT_EQ(attention.reference().o, referenceBefore.o);
}

//===----------------------------------------------------------------------===//
// Offsets past 2^31 elements, in memory that is reserved but never touched
//===----------------------------------------------------------------------===//

namespace {

/// Zero pages that cost nothing until written.
class SparseMemory {
public:
  explicit SparseMemory(size_t bytes) : size(bytes) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
  }
  ~SparseMemory() {
    if (ok())
      munmap(data, size);
  }
  SparseMemory(const SparseMemory &) = delete;
  SparseMemory &operator=(const SparseMemory &) = delete;
  bool ok() const { return data != MAP_FAILED; }
  void *get() const { return data; }

private:
  void *data;
  size_t size;
};

} // namespace

TEST(FieldFailures, R066_overflow_page_id_times_stride) {
  const std::string spec = kernel("heads(8) kv_heads(8) dim(128) q(f32) kv(bf16)", kCausal);
  const LoadedKernel &k = compiled(spec);
  const Launch launch = {{request(2, 11)}, {}, {}};
  const Rows rows = {{{{0, 9}}, {{0, 10}}}};
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, rows));
  attention.fillRandom(6);
  const Outputs want = attention.naive();
  // K and V interleaved: a page has 2 x 16 slots x 8 heads x 128 elements, so page 65536 starts at
  // element 2^31.
  const int64_t pageElements = 2 * 16 * 8 * 128;
  ASSERT_EQ(pageElements * 65536, int64_t(1) << 31);
  SparseMemory cache((65537 * pageElements) * 2);
  ASSERT_TRUE(cache.ok()) << "cannot reserve address space";
  const Problem plain = attention.problem;
  Outputs native[2];
  for (int32_t page : {65535, 65536}) {
    auto *base = static_cast<uint16_t *>(cache.get()) + page * pageElements;
    for (int64_t key = 0; key < 16; ++key)
      for (int64_t h = 0; h < 8; ++h)
        for (int64_t d = 0; d < 128; ++d) {
          const int64_t at = (key * 8 + h) * 128 + d;
          auto element = [&](const KvView &view) {
            return key < 11
                       ? loadElement(view.data, DType::BF16, view.offset(plain.kv, 0, key, h) + d)
                       : std::numeric_limits<float>::quiet_NaN();
          };
          storeElement(base, DType::BF16, at, element(plain.k));
          storeElement(base, DType::BF16, 16 * 8 * 128 + at, element(plain.v));
        }
    Problem paged = plain;
    paged.k.data = cache.get();
    paged.v.data = static_cast<uint16_t *>(cache.get()) + 16 * 8 * 128;
    paged.k.pageStride = paged.v.pageStride = pageElements;
    paged.kv = {};
    paged.kv.pageTable = &page;
    paged.kv.requestStride = 1;
    paged.kv.pageSize = 16;
    native[page - 65535] = runNative(k, paged);
    EXPECT_EQ(compareRows(want, native[page - 65535], 2, 8, 128, 1e-5), "") << "page " << page;
    attention.problem = paged;
    EXPECT_EQ(compareRows(want, attention.reference(), 2, 8, 128, 1e-9), "") << "page " << page;
  }
  EXPECT_EQ(native[0].o, native[1].o);
  EXPECT_EQ(native[0].lse, native[1].lse);
}

TEST(FieldFailures, R068_overflow_token_times_stride) {
  // 32 heads of 256 elements for each of 262144 tokens are 2^31 elements; here three tokens lie
  // 2^30 elements apart.
  const std::string spec = kernel("heads(32) kv_heads(4) dim(256) q(bf16) kv(f32)", kCausal);
  const LoadedKernel &k = compiled(spec);
  const Launch launch = {{request(1, 4), request(2, 5)}, {}, {}};
  const Rows rows = {{{{0, 3}}}, {{{0, 3}}, {{0, 4}}}};
  Attention attention(k, bound(k, launch), keepFrom(launch.requests, rows));
  attention.fillRandom(8);
  const Outputs want = attention.naive();
  const int64_t rowElements = 32 * 256;
  const int64_t stride = (int64_t(1) << 30) + 8;
  SparseMemory queries((2 * stride + rowElements) * 2);
  SparseMemory results((2 * stride + rowElements) * 4);
  ASSERT_TRUE(queries.ok() && results.ok()) << "cannot reserve address space";
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < rowElements; ++i)
      storeElement(queries.get(), DType::BF16, t * stride + i,
                   loadElement(attention.problem.q.data, DType::BF16, t * rowElements + i));
  attention.problem.q = {queries.get(), DType::BF16, stride, 256};
  EXPECT_EQ(compareRows(want, attention.reference(), 3, 32, 256, 1e-9), "");
  EXPECT_EQ(compareRows(want, attention.native(), 3, 32, 256, 1e-5), "");

  // The results of the last token past 2^31 elements too.
  Outputs got;
  got.lse.assign(3 * 32, 0);
  std::vector<float> lse(3 * 32);
  runNativeInto(k, attention.problem, static_cast<float *>(results.get()), stride, 256, lse.data(),
                3);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < rowElements; ++i)
      got.o.push_back(static_cast<float *>(results.get())[t * stride + i]);
  got.lse.assign(lse.begin(), lse.end());
  EXPECT_EQ(compareRows(want, got, 3, 32, 256, 1e-5), "");
}
