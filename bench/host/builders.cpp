// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of the host's metadata builders, in one process with memcpy. One thread.
#include "Steps.h"

#include "attn/Runtime/Builders.h"

#include <benchmark/benchmark.h>

#include <cstring>
#include <string>

using namespace attn;
using namespace attn::core;

// The step of the acceptance bar: 16,384 tokens of 64 requests, 512 ranges.
static Batch mixedStep() { return bench::step(64, 256, 3840, 8); }
// A decode step of 256 requests.
static Batch decodeStep() { return bench::step(256, 1, 8191, 0); }

static void copyTable(benchmark::State &state) {
  std::vector<Range> from(16384), to(16384);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * sizeof(Range));
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 16384 * sizeof(Range));
}
BENCHMARK(copyTable)->Name("memcpy of a query table, 128 KiB");

static void queryTable(benchmark::State &state) {
  const Batch batch = mixedStep();
  const MaskProgram mask = bench::maskOf("gemma");
  bench::StepBuilder builder(mask, "gemma", batch);
  for (auto _ : state) {
    benchmark::DoNotOptimize(builder.buildTable(batch));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(builder.rows.size() * sizeof(Range)));
}
BENCHMARK(queryTable)->Name("query table of the mixed step");

static void workList(benchmark::State &state) {
  const Batch batch = mixedStep();
  const MaskProgram mask = bench::maskOf("gemma");
  bench::StepBuilder builder(mask, "gemma", batch);
  for (auto _ : state)
    benchmark::DoNotOptimize(builder.buildList(batch).work.size);
}
BENCHMARK(workList)->Name("records and work list of the mixed step");

static void splits(benchmark::State &state, const Batch &batch) {
  const MaskProgram mask = bench::maskOf("gemma");
  bench::StepBuilder builder(mask, "gemma", batch);
  const rt::WorkListView list = builder.buildList(batch);
  for (auto _ : state)
    benchmark::DoNotOptimize(builder.buildSplits(list));
}
static void plan(benchmark::State &state, const Batch &batch) {
  const MaskProgram mask = bench::maskOf("gemma");
  bench::StepBuilder builder(mask, "gemma", batch);
  const rt::WorkListView list = builder.buildList(batch);
  for (auto _ : state)
    benchmark::DoNotOptimize(builder.buildPlan(list, {rt::Splits::Kind::Count, 2}));
}
BENCHMARK_CAPTURE(splits, mixed, mixedStep())->Name("splits of the mixed step");
BENCHMARK_CAPTURE(plan, mixed, mixedStep())->Name("plan of two pieces of the mixed step");

static void wholeStep(benchmark::State &state, const Batch &batch) {
  const MaskProgram mask = bench::maskOf("gemma");
  bench::StepBuilder builder(mask, "gemma", batch);
  for (auto _ : state) {
    benchmark::DoNotOptimize(builder.buildTable(batch));
    benchmark::DoNotOptimize(builder.buildSplits(builder.buildList(batch)));
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(wholeStep, mixed, mixedStep())->Name("mixed step: table, records, list, splits");
BENCHMARK_CAPTURE(splits, decode, decodeStep())->Name("splits of the decode step");
BENCHMARK_CAPTURE(plan, decode, decodeStep())->Name("plan of two pieces of the decode step");
BENCHMARK_CAPTURE(wholeStep, decode, decodeStep())
    ->Name("decode step: table, records, list, splits");

static void pageRuns(benchmark::State &state, int64_t runLength) {
  constexpr int64_t kPages = 512, kPageSize = 16;
  const Batch batch = bench::step(64, 1, kPages * kPageSize - 1, 0);
  std::vector<int32_t> entries(64 * kPages);
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i] = static_cast<int32_t>(i + i / runLength * 7);
  std::vector<rt::PageRun> runs(entries.size());
  std::vector<int64_t> offsets(65);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        rt::buildPageRuns(batch.shape, {entries.data(), kPages, kPageSize}, runs, offsets).ok());
  state.counters["ns an entry"] = benchmark::Counter(static_cast<double>(entries.size()) * 1e-9,
                                                     benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(pageRuns, alone, 1)->Name("page runs of 32,768 entries, none side by side");
BENCHMARK_CAPTURE(pageRuns, five, 5)->Name("page runs of 32,768 entries, five side by side");
BENCHMARK_CAPTURE(pageRuns, all, 1000000)->Name("page runs of 32,768 entries, all side by side");

// Twice the tokens, twice the time.
static void scaling(benchmark::State &state, const char *name) {
  const Batch batch = bench::step(1, state.range(0), 0, state.range(0) / 40);
  const MaskProgram mask = bench::maskOf(name);
  bench::StepBuilder builder(mask, name, batch);
  for (auto _ : state)
    benchmark::DoNotOptimize(builder.buildList(batch).work.size);
}
BENCHMARK_CAPTURE(scaling, gemma, "gemma")->RangeMultiplier(2)->Range(8192, 65536);
BENCHMARK_CAPTURE(scaling, document, "document")->RangeMultiplier(2)->Range(8192, 65536);
BENCHMARK_CAPTURE(scaling, global, "global")->RangeMultiplier(2)->Range(8192, 65536);
BENCHMARK_CAPTURE(scaling, rswa, "rswa")->RangeMultiplier(2)->Range(8192, 65536);
BENCHMARK_CAPTURE(scaling, predicate, "predicate")
    ->RangeMultiplier(2)
    ->Range(4096, 16384)
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
