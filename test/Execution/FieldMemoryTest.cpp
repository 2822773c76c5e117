// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Field failures of the classes paged, strides and overflow: where operands lie.
#include "FieldRecord.h"

#include "gtest/gtest.h"

#include <limits>

#include <sys/mman.h>

using namespace field;
using namespace exec;
using namespace attn::core;
using truth::request;

static const char kCausal[] = "    %m = attn.causal %q, %k\n";

TEST(FieldFailures, R050_paged_unwritten_slots_hold_nan) {
  const std::string shape = "heads(8) kv_heads(8) dim(64) q(f32) kv(f32)";
  Launch launch;
  Launch dense;
  Rows rows;
  for (Int length : {32, 64, 96, 48}) {
    launch.requests.push_back(request(1, length));
    dense.requests.push_back(request(1, 128));
    dense.requests.back().contextLen = length - 1;
    rows.push_back({{{0, length - 1}}});
  }
  // A cache of 128 slots for each sequence is a page of that size.
  Trial trial(kernel(shape, ""), launch, rows, {128, false, false});
  trial.fillRandom(31);
  const Outputs want = trial.naive();
  const Outputs before = trial.native();
  const Outputs beforeReference = trial.reference();
  EXPECT_EQ(compareRows(want, before, 4, 8, 64, 1e-5), "");
  trial.poisonInvisible();
  const Outputs after = trial.native();
  EXPECT_EQ(after.o, before.o);
  EXPECT_EQ(after.lse, before.lse);
  EXPECT_EQ(trial.reference().o, beforeReference.o);
  expectRows(kernel(shape, ""), launch, rows);

  // The same cache as 128 keys of each sequence, of which a table says how many are live.
  dense.tables.push_back(
      denseTable("live", ScalarType::I32, {4}, std::vector<int32_t>{32, 64, 96, 48}));
  expectRows(kernel(shape + " tables(%live: !attn.table<[b], i32>)",
                    "    %n = attn.load %live[%b] : !attn.table<[b], i32>\n"
                    "    %m = attn.prefix %k, %n\n"),
             dense, rows);
}

TEST(FieldFailures, R072_paged_table_entries_past_the_live_length) {
  const std::string spec = kernel("heads(2) kv_heads(1) dim(16) q(f32) kv(f32)", kCausal);
  const Launch launch = {{request(3, 20)}, {}, {}};
  Trial trial(spec, launch, {{{{0, 17}}, {{0, 18}}, {{0, 19}}}});
  trial.fillRandom(17);
  const Outputs want = trial.naive();
  const Problem plain = trial.problem;
  std::vector<float> cache(8 * pageElements(trial.spec(), 16),
                           std::numeric_limits<float>::quiet_NaN());
  const std::vector<int32_t> tables[] = {{7, 3}, {7, 3, -1, 1 << 30}};
  Outputs native[2];
  int runs[2];
  for (int i = 0; i < 2; ++i) {
    trial.problem =
        inPages(plain, cache.data(), tables[i].data(), static_cast<int64_t>(tables[i].size()), 16);
    native[i] = trial.native();
    runs[i] = trial.recorded();
    EXPECT_EQ(compareRows(want, native[i], 3, 2, 16, 1e-5), "");
    EXPECT_EQ(compareRows(want, trial.reference(), 3, 2, 16, 1e-9), "");
  }
  EXPECT_EQ(native[0].o, native[1].o);
  EXPECT_EQ(native[0].lse, native[1].lse);
  Record::get().sameRows({runs[0], 0}, {runs[1], 0}, 3, true);
}

TEST(FieldFailures, R082_strides_transposed_v) {
  const std::string spec = kernel("heads(2) kv_heads(2) dim(16) q(f32) kv(f32)", "");
  const Launch launch = {{request(8, 8)}, {}, {}};
  Trial trial(spec, launch, {std::vector<Keys>(8, Keys{{0, 7}})});
  trial.fillRandom(4);
  const Outputs nativeBefore = trial.native();
  const Outputs referenceBefore = trial.reference();
  // V as [heads, slots, dim] seen through the strides of a transposed view.
  const KvView plain = trial.problem.v;
  std::vector<float> transposed(2 * 8 * 16);
  for (int64_t key = 0; key < 8; ++key)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t d = 0; d < 16; ++d)
        transposed[(h * 8 + key) * 16 + d] =
            loadElement(plain.data, DType::F32, plain.offset(trial.problem.kv, 0, key, h) + d);
  trial.problem.v.data = transposed.data();
  trial.problem.v.slotStride = 16;
  trial.problem.v.headStride = 8 * 16;
  EXPECT_EQ(trial.native().o, nativeBefore.o);
  EXPECT_EQ(trial.reference().o, referenceBefore.o);
  Record::get().notApplicable("the strides: tensor files are row-major; attn-device-test gives K "
                              "and V in every order of slots and heads");
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
  Trial trial(spec, {{request(2, 11)}, {}, {}}, {{{{0, 9}}, {{0, 10}}}});
  trial.fillRandom(6);
  const Outputs want = trial.naive();
  const Problem plain = trial.problem;
  // K and V interleaved: page 65536 starts at element 2^31. With a cache for each, as a GPU is
  // given them, it starts at byte 2^31 and page 131072 at element 2^31.
  const int64_t elements = pageElements(trial.spec(), 16);
  ASSERT_EQ(elements * 65536, int64_t(1) << 31);
  SparseMemory cache(131073 * elements * 2);
  ASSERT_TRUE(cache.ok()) << "cannot reserve address space";
  const int32_t pages[] = {65535, 65536, 131072};
  Outputs first;
  int firstRun = -1;
  for (const int32_t &page : pages) {
    SCOPED_TRACE(page);
    trial.problem = inPages(plain, cache.get(), &page, 1, 16);
    const Outputs native = trial.native();
    EXPECT_EQ(compareRows(want, native, 2, 8, 128, 1e-5), "");
    EXPECT_EQ(compareRows(want, trial.reference(), 2, 8, 128, 1e-9), "");
    if (&page == pages) {
      first = native;
      firstRun = trial.recorded();
      continue;
    }
    EXPECT_EQ(native.o, first.o);
    EXPECT_EQ(native.lse, first.lse);
    Record::get().sameRows({firstRun, 0}, {trial.recorded(), 0}, 2, true);
  }
}

TEST(FieldFailures, R068_overflow_token_times_stride) {
  // 32 heads of 256 elements for each of 262144 tokens are 2^31 elements; here three tokens lie
  // 2^30 elements apart.
  const std::string spec = kernel("heads(32) kv_heads(4) dim(256) q(bf16) kv(f32)", kCausal);
  Trial trial(spec, {{request(1, 4), request(2, 5)}, {}, {}}, {{{{0, 3}}}, {{{0, 3}}, {{0, 4}}}});
  trial.fillRandom(8);
  const Outputs want = trial.naive();
  const int64_t rowElements = 32 * 256;
  const int64_t stride = (int64_t(1) << 30) + 8;
  SparseMemory queries((2 * stride + rowElements) * 2);
  SparseMemory results((2 * stride + rowElements) * 4);
  ASSERT_TRUE(queries.ok() && results.ok()) << "cannot reserve address space";
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < rowElements; ++i)
      storeElement(queries.get(), DType::BF16, t * stride + i,
                   loadElement(trial.problem.q.data, DType::BF16, t * rowElements + i));
  trial.problem.q = {queries.get(), DType::BF16, stride, 256};
  EXPECT_EQ(compareRows(want, trial.reference(), 3, 32, 256, 1e-9), "");
  EXPECT_EQ(compareRows(want, trial.native(), 3, 32, 256, 1e-5), "");
  Record::get().notApplicable("the distance between tokens: tensor files are row-major");

  // The results of the last token past 2^31 elements too.
  Outputs got;
  std::vector<float> lse(3 * 32);
  runNativeInto(compiled(spec), trial.problem, static_cast<float *>(results.get()), stride, 256,
                lse.data(), 3);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < rowElements; ++i)
      got.o.push_back(static_cast<float *>(results.get())[t * stride + i]);
  got.lse.assign(lse.begin(), lse.end());
  EXPECT_EQ(compareRows(want, got, 3, 32, 256, 1e-5), "");
}
