// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Guards of the builders' speed that any machine can run: times in one process against memcpy of a
// query table, and against those of a batch eight times as long. Processor time, best of several;
// bench/host has the figures.
#include "../../../bench/host/Steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

using namespace attn;
using namespace attn::core;

namespace {

double processorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds of a call; `calls` of them are one sample.
template <class Fn>
double bestSeconds(int calls, Fn fn) {
  double best = 1e9;
  for (int sample = 0; sample < 30; ++sample) {
    const double start = processorSeconds();
    for (int i = 0; i < calls; ++i)
      fn();
    best = std::min(best, (processorSeconds() - start) / calls);
  }
  return best;
}

/// Seconds of a copy of 16,384 rows.
double copySeconds() {
  std::vector<Range> from(16384, {1, 2}), to(16384);
  return bestSeconds(50, [&] {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(Range));
    asm volatile("" : : "r"(to.data()) : "memory");
  });
}

double listSeconds(const char *mask, int64_t tokens, int calls) {
  const Batch batch = bench::step(1, tokens, 0, tokens / 40);
  const MaskProgram program = bench::maskOf(mask);
  bench::StepBuilder builder(program, mask, batch);
  return bestSeconds(calls, [&] { builder.buildList(batch); });
}

} // namespace

// The query table of 16,384 tokens is 128 KiB, whatever the context.
TEST(HostSpeed, BytesOfTheQueryTable) {
  const Batch batch = bench::step(64, 256, 262144 - 256, 8);
  const MaskProgram program = bench::maskOf("gemma");
  bench::StepBuilder builder(program, "gemma", batch);
  EXPECT_EQ(builder.rows.size() * sizeof(Range), 128u << 10);
  // 512 ranges of 20 tokens.
  EXPECT_EQ(builder.buildTable(batch), 512 * 20);
}

// Twenty times as long as what is usual, so that noise and other compilers pass; what looks at
// single rows takes hundreds of times as long.
TEST(HostSpeed, AgainstCopies) {
  const double copy = copySeconds();
  const Batch mixed = bench::step(64, 256, 3840, 8), decode = bench::step(256, 1, 8191, 0);
  const MaskProgram program = bench::maskOf("gemma");
  bench::StepBuilder mixedBuilder(program, "gemma", mixed), decodeBuilder(program, "gemma", decode);
  const double table = bestSeconds(20, [&] { mixedBuilder.buildTable(mixed); });
  const double mixedStep =
      bestSeconds(10, [&] { mixedBuilder.buildSplits(mixedBuilder.buildList(mixed)); });
  const double decodeStep =
      bestSeconds(10, [&] { decodeBuilder.buildSplits(decodeBuilder.buildList(decode)); });
  std::printf("copy of 128 KiB %.2f us; table %.2f, list and splits %.2f, of a decode step %.2f\n",
              copy * 1e6, table * 1e6, mixedStep * 1e6, decodeStep * 1e6);
  EXPECT_LT(table, 20 * copy);
  EXPECT_LT(mixedStep, 200 * copy);
  EXPECT_LT(decodeStep, 80 * copy);
}

// Eight times the length: time grows eightfold, or a bit more where caches end; quadratic work
// grows 64-fold.
TEST(HostSpeed, TimeGrowsWithLength) {
  for (const char *mask : {"gemma", "document", "global", "rswa"}) {
    const double small = listSeconds(mask, 8192, 5), large = listSeconds(mask, 65536, 2);
    std::printf("%s: %.1f us, eight times as long: %.1f us, ratio %.1f\n", mask, small * 1e6,
                large * 1e6, large / small);
    EXPECT_LT(large, 24 * small) << mask;
  }
}

// Masks that do not fuse: four times the length, by abstract evaluation.
TEST(HostSpeed, TimeOfPredicatesGrowsWithLength) {
  const Batch shortBatch = bench::step(1, 1024, 0, 0), longBatch = bench::step(1, 4096, 0, 0);
  const MaskProgram program = bench::maskOf("predicate");
  auto secondsOf = [&](const Batch &batch) {
    bench::StepBuilder builder(program, "predicate", batch);
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double start = processorSeconds();
      builder.buildList(batch);
      best = std::min(best, processorSeconds() - start);
    }
    return best;
  };
  const double small = secondsOf(shortBatch), large = secondsOf(longBatch);
  std::printf("predicate: %.1f ms, four times as long: %.1f ms, ratio %.1f\n", small * 1e3,
              large * 1e3, large / small);
  EXPECT_LT(large, 10 * small);
}
