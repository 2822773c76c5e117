// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recipes of a plan: what steps of random batches build against the definitions, and where it lies.
#include "CudaRecipes.h"

#include <cstring>
#include <map>
#include <set>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

void expectRangeTensor(const rt::CudaRecipe &r, const Step &step, bool forGraphs) {
  const TableData &mm = step.batch.tables[0];
  const int64_t requests = step.batch.shape.numReqs();
  EXPECT_EQ(r.counts.host[0].requests, requests);
  EXPECT_EQ(r.counts.host[0].items, static_cast<int64_t>(mm.ranges.size()));
  if (mm.ranges.empty() && !forGraphs) {
    EXPECT_EQ(r.ranges.host.size, 0);
    return;
  }
  ASSERT_EQ(r.ranges.host.size, requests * kPerRequest);
  for (int64_t b = 0; b < requests; ++b)
    for (int64_t i = 0; i < kPerRequest; ++i) {
      const bool isThere = i < mm.rangeOffsets[b + 1] - mm.rangeOffsets[b];
      const Range want = isThere ? mm.ranges[mm.rangeOffsets[b] + i] : Range{-1, -1};
      const Range got = r.ranges.host[b * kPerRequest + i];
      ASSERT_EQ(std::pair(got.start, got.end), std::pair(want.start, want.end))
          << "request " << b << " range " << i;
    }
}

void expectPageRuns(const rt::CudaRecipe &r, const Step &step) {
  const BatchShape &shape = step.batch.shape;
  EXPECT_EQ(r.counts.host[0].requests, shape.numReqs());
  EXPECT_EQ(r.counts.host[0].items, r.runs.host.size);
  ASSERT_EQ(r.offsets.host.size, shape.numReqs() + 1);
  ASSERT_EQ(r.offsets.host[0], 0);
  ASSERT_EQ(r.offsets.host[shape.numReqs()], r.runs.host.size);
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    // Every page with a key of the launch, once, in order.
    std::vector<std::pair<int64_t, int64_t>> want, got;
    for (int64_t k = shape.keyBegin[b]; k < shape.keyEnd[b]; ++k) {
      const int64_t page = k / kPageSize;
      if (want.empty() || want.back().first != page)
        want.push_back({page, step.table[b * kWidth + page]});
    }
    for (int64_t i = r.offsets.host[b]; i < r.offsets.host[b + 1]; ++i) {
      const rt::PageRun &run = r.runs.host[i];
      ASSERT_GE(run.count, 1);
      // As long as it can be.
      if (!got.empty()) {
        ASSERT_NE(run.cachePage, got.back().second + 1);
      }
      for (int64_t j = 0; j < run.count; ++j)
        got.push_back({run.page + j, int64_t(run.cachePage) + j});
    }
    ASSERT_EQ(got, want) << "request " << b;
  }
}

/// A key block of a tile with what a kernel does there.
using Block = std::tuple<int64_t, uint32_t, int32_t>;

void append(std::vector<Block> &blocks, const TileEntry &entry, int64_t keyTile) {
  for (int64_t i = entry.blocks - 1; i >= 0; --i)
    blocks.push_back({entry.keyBegin + i * keyTile, entry.classes, entry.visible});
}

void expectSplitPlan(const rt::CudaRecipe &r, const rt::WorkListView &list, int64_t keyTile) {
  const rt::RecipeCounts &counts = r.counts.host[0];
  ASSERT_EQ(counts.tiles, list.tiles.size);
  ASSERT_EQ(r.tiles.host.size, list.tiles.size);
  EXPECT_EQ(r.tiles.host.data, list.tiles.data);
  EXPECT_EQ(r.visible.host.data, list.visible.data);
  ASSERT_EQ(r.pieceBegin.host.size, list.tiles.size + 1);
  EXPECT_EQ(counts.pieces, r.pieces.host.size);
  EXPECT_EQ(counts.entries, r.entries.host.size);
  EXPECT_EQ(counts.work, r.work.host.size);
  EXPECT_EQ(counts.combines, r.combines.host.size);
  ASSERT_EQ(r.pieceBegin.host[list.tiles.size], r.pieces.host.size);
  for (int64_t t = 0; t < list.tiles.size; ++t) {
    std::vector<Block> want, got;
    const TileHeader &tile = list.tiles[t];
    for (int64_t e = 0; e < tile.entryCount; ++e)
      append(want, list.entries[tile.entryBegin + e], keyTile);
    const int64_t begin = r.pieceBegin.host[t], end = r.pieceBegin.host[t + 1];
    size_t least = want.size(), most = 0;
    for (int64_t p = begin; p < end; ++p) {
      const rt::SplitPiece &piece = r.pieces.host[p];
      ASSERT_EQ(piece.tile, t);
      ASSERT_EQ(piece.number, p - begin);
      ASSERT_EQ(piece.count, end - begin);
      const size_t before = got.size();
      for (int64_t e = 0; e < piece.entryCount; ++e)
        append(got, r.entries.host[piece.entryBegin + e], keyTile);
      ASSERT_EQ(got.size() - before, static_cast<size_t>(piece.blocks));
      least = std::min(least, got.size() - before);
      most = std::max(most, got.size() - before);
    }
    ASSERT_EQ(got, want) << "tile " << t;
    ASSERT_LE(most - least, 1u);
    const int64_t blocks = static_cast<int64_t>(want.size());
    ASSERT_LE(end - begin, std::max<int64_t>(std::min(r.recipe->pieces, blocks), 1));
    if (r.recipe->policy == SplitPolicy::Count) {
      ASSERT_EQ(end - begin, std::max<int64_t>(std::min(r.recipe->pieces, blocks), 1));
    }
    if (r.recipe->policy == SplitPolicy::Sm100Relbias) {
      ASSERT_EQ(end - begin, 1); // code for sm_90
    }
  }
  int64_t at = 0, row = 0, combine = 0;
  for (const WorkItem &item : list.work) {
    const int64_t begin = r.pieceBegin.host[item.tile];
    const int64_t pieces = r.pieceBegin.host[item.tile + 1] - begin;
    const int64_t rows = list.tiles[item.tile].rows;
    if (pieces > 1) {
      const rt::SplitCombine &c = r.combines.host[combine++];
      ASSERT_EQ(std::tuple(int64_t(c.tile), int64_t(c.head), int64_t(c.pieces), int64_t(c.rows),
                           c.partialRow),
                std::tuple(int64_t(item.tile), int64_t(item.head), pieces, rows, row));
    }
    for (int64_t p = 0; p < pieces; ++p, ++at) {
      const rt::SplitWork &work = r.work.host[at];
      ASSERT_EQ(std::tuple(int64_t(work.piece), work.head, work.partialRow),
                std::tuple(begin + p, item.head, pieces > 1 ? row : -1));
      row += pieces > 1 ? rows : 0;
    }
  }
  EXPECT_EQ(at, r.work.host.size);
  EXPECT_EQ(combine, r.combines.host.size);
  EXPECT_EQ(row, counts.partialRows);
}

} // namespace

void CudaRecipes::expectCopied(const rt::CudaRecipe &r) const {
  expectCopied(r.counts);
  expectCopied(r.ranges);
  expectCopied(r.runs);
  expectCopied(r.offsets);
  expectCopied(r.pieces);
  expectCopied(r.pieceBegin);
  expectCopied(r.entries);
  expectCopied(r.work);
  expectCopied(r.combines);
  expectCopied(r.tiles);
  expectCopied(r.visible);
}

void CudaRecipes::expectStep(const rt::CudaPlan &plan, const Step &step, bool forGraphs) const {
  for (const Recipe &recipe : kernel->binary().recipes) {
    SCOPED_TRACE(recipe.name);
    const Result<rt::CudaRecipe> r = plan.recipe(recipe.name);
    ASSERT_TRUE(r.ok()) << r.message();
    EXPECT_EQ(r->recipe, &recipe);
    switch (recipe.kind) {
    case RecipeKind::RangeTensor:
      expectRangeTensor(*r, step, forGraphs);
      break;
    case RecipeKind::PageRuns:
      expectPageRuns(*r, step);
      break;
    case RecipeKind::SplitPlan:
      expectSplitPlan(*r, plan.workList(), kernel->shape().keyTile);
      break;
    }
    expectCopied(*r);
  }
}

namespace {

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

TEST_F(CudaRecipes, AreTheirDefinitions) {
  load(allRecipes());
  for (bool forGraphs : {false, true}) {
    rt::CudaPlanOptions o = options();
    o.forGraphs = forGraphs;
    rt::CudaPlan plan = makePlan(o);
    rt::CudaPlan growing(*kernel);
    Random random(forGraphs ? 3 : 4);
    int64_t split = 0, runs = 0, ranges = 0, empty = 0;
    for (int i = 0; i < 200; ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      Step step;
      step.draw(random);
      const int slow = fake::slowCalls(fakeState());
      ASSERT_TRUE(build(plan, step).ok());
      EXPECT_EQ(fake::slowCalls(fakeState()), slow);
      expectStep(plan, step, forGraphs);
      if (!forGraphs) {
        ASSERT_TRUE(build(growing, step).ok());
        expectStep(growing, step, false);
      }
      if (HasFatalFailure() || HasNonfatalFailure())
        return;
      split += plan.recipe("measured")->combines.host.size > 0;
      runs += plan.recipe("runs")->runs.host.size;
      ranges += plan.recipe("images")->counts.host[0].items;
      empty += plan.recipe("images")->counts.host[0].items == 0;
    }
    // The batches have what there is to see.
    EXPECT_GT(split, 20);
    EXPECT_GT(runs, 1000);
    EXPECT_GT(ranges, 1000);
    EXPECT_GT(empty, 20);
  }
}

TEST_F(CudaRecipes, ThePolicyIsAsked) {
  load(allRecipes());
  rt::CudaPlan plan = makePlan(options());
  Random random(11);
  std::set<std::pair<int, int64_t>> chosen;
  for (int i = 0; i < 60; ++i) {
    Step step;
    step.draw(random);
    ASSERT_TRUE(build(plan, step).ok());
    const rt::Splits want =
        rt::measuredSplits(plan.workList(), {device->multiprocessors(), 1, kernel->shape().keyTile,
                                             64, 64, /*kvElement=*/2});
    const rt::Splits got = plan.recipe("measured")->splits;
    ASSERT_EQ(got.kind, want.kind);
    ASSERT_EQ(got.value, want.value);
    chosen.insert({int(got.kind), got.value});
  }
  EXPECT_GT(chosen.size(), 3u);
}

TEST(SplitsOf, NoTileHasMorePiecesThanTheRecipe) {
  rt::WorkList list;
  for (int32_t blocks : {100, 7, 1}) {
    TileHeader tile = {};
    tile.rows = 64;
    tile.entryBegin = static_cast<int32_t>(list.entries.size());
    tile.entryCount = 1;
    list.tiles.push_back(tile);
    list.entries.push_back({0, blocks, 2, -1});
    list.work.push_back({static_cast<int32_t>(list.tiles.size()) - 1, 0});
  }
  const rt::MeasuredLaunch launch = {4, 7, 64, 128, 128, 2};
  rt::RelbiasLaunch relbias;
  relbias.target = "sm_100a";
  relbias.isLocal = true;
  relbias.requests = relbias.longestQuery = 1;
  relbias.heads = relbias.kvHeads = 8;
  relbias.keys = 1 << 17;
  const auto ask = [&](Recipe recipe) {
    const rt::Splits s = rt::splitsOf(recipe, list, launch, relbias);
    return std::pair(s.kind, s.value);
  };
  using Kind = rt::Splits::Kind;
  EXPECT_EQ(ask(splitPlan(SplitPolicy::Count, 5, "s")), std::pair(Kind::Count, int64_t(5)));
  EXPECT_EQ(ask(splitPlan(SplitPolicy::Count, 1, "s")), std::pair(Kind::Whole, int64_t(1)));
  // Asks for 16 pieces, and never where there is a window; only the recipe says whether.
  EXPECT_EQ(ask(splitPlan(SplitPolicy::Sm100Relbias, 128, "s")),
            std::pair(Kind::Count, int64_t(16)));
  EXPECT_EQ(ask(splitPlan(SplitPolicy::Sm100Relbias, 6, "s")), std::pair(Kind::Count, int64_t(6)));
  Recipe local = splitPlan(SplitPolicy::Sm100Relbias, 128, "s");
  local.isLocal = true;
  EXPECT_EQ(ask(local), std::pair(Kind::Whole, int64_t(1)));
  relbias.target = "sm_90a";
  EXPECT_EQ(ask(splitPlan(SplitPolicy::Sm100Relbias, 128, "s")),
            std::pair(Kind::Whole, int64_t(1)));
  // The CTAs at a time are the recipe's.
  Recipe measured = splitPlan(SplitPolicy::Measured, 128, "s");
  rt::MeasuredLaunch alone = launch;
  std::set<int64_t> chosen;
  for (int64_t ctas : {1, 5}) {
    measured.ctasPerSm = alone.ctasPerSm = ctas;
    const rt::Splits want = rt::measuredSplits(list, alone);
    ASSERT_EQ(want.kind, Kind::Blocks);
    EXPECT_EQ(ask(measured), std::pair(Kind::Blocks, want.value));
    chosen.insert(want.value);
  }
  EXPECT_EQ(chosen.size(), 2u);
  measured.pieces = 4;
  EXPECT_EQ(ask(measured), std::pair(Kind::Blocks, int64_t(25)));
  measured.pieces = 1;
  EXPECT_EQ(ask(measured), std::pair(Kind::Whole, int64_t(1)));
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

TEST_F(CudaRecipes, LieInTheSlotsAsQueried) {
  std::map<std::string, size_t> bytes;
  rt::CudaStageSizes plain;
  {
    load({});
    plain = *rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options());
    rt::CudaPlan plan = makePlan(options());
    for (const rt::CudaField &field : plan.fields())
      EXPECT_EQ(field.name.find("recipe"), std::string::npos);
  }
  load(allRecipes());
  const rt::CudaStageSizes sizes =
      *rt::CudaPlan::querySizes(kernel->spec(), kernel->binary(), options());
  size_t recipes = 0;
  auto pinned = rt::CudaPinned::create(device, sizes.hostBytes);
  auto memory = rt::CudaMemory::create(device, sizes.deviceBytes);
  ASSERT_TRUE(pinned.ok() && memory.ok());
  rt::CudaPlanOptions o = options();
  o.workspace = {pinned->data(), sizes.hostBytes, memory->address(), sizes.deviceBytes};
  rt::CudaPlan plan = makePlan(o);
  for (const rt::CudaField &field : plan.fields()) {
    if (field.name.rfind("recipe '", 0) != 0)
      continue;
    EXPECT_EQ(field.home, rt::FieldHome::Step);
    bytes[field.name] = field.bytes;
    recipes += field.bytes;
  }
  EXPECT_EQ(bytes.size(), 6u);
  EXPECT_EQ(bytes.at("recipe 'images'"), 64 + kRequests * kPerRequest * 8);
  EXPECT_EQ(bytes.at("recipe 'runs'"), 64 + kPages * 12 + (kRequests + 1) * 8);
  EXPECT_GE(sizes.deviceBytes, plain.deviceBytes + 2 * recipes);
  EXPECT_LE(sizes.deviceBytes, plain.deviceBytes + 2 * (recipes + 6 * 6 * 512));

  // Two slots in turn, all inside the caller's memory.
  Random random(5);
  std::vector<std::pair<const void *, rt::CudaPointer>> places;
  for (int i = 0; i < 6; ++i) {
    Step step;
    step.draw(random);
    ASSERT_TRUE(build(plan, step).ok());
    const rt::CudaRecipe r = *plan.recipe("thirds");
    places.push_back({r.work.host.data, r.work.device});
    for (const auto &[host, address, end] :
         {std::tuple<const void *, rt::CudaPointer, size_t>{r.counts.host.data, r.counts.device,
                                                            64},
          {r.work.host.data, r.work.device, r.work.host.size * sizeof(rt::SplitWork)}}) {
      EXPECT_GE(static_cast<const uint8_t *>(host), pinned->data());
      EXPECT_LE(static_cast<const uint8_t *>(host) + end, pinned->data() + sizes.hostBytes);
      EXPECT_GE(address, memory->address());
      EXPECT_LE(address + end, memory->address() + sizes.deviceBytes);
    }
  }
  for (size_t i = 2; i < places.size(); ++i)
    EXPECT_EQ(places[i], places[i - 2]);
  EXPECT_NE(places[0].first, places[1].first);
  EXPECT_NE(places[0].second, places[1].second);
}

TEST_F(CudaRecipes, GraphsFindThemWhereTheyWere) {
  load(allRecipes());
  rt::CudaPlanOptions o = options();
  o.forGraphs = true;
  rt::CudaPlan plan = makePlan(o);
  Random random(6);
  std::map<std::string, std::vector<rt::CudaPointer>> first;
  for (int i = 0; i < 5; ++i) {
    Step step;
    step.draw(random);
    ASSERT_TRUE(build(plan, step).ok());
    for (const Recipe &recipe : kernel->binary().recipes) {
      const rt::CudaRecipe r = *plan.recipe(recipe.name);
      const std::vector<rt::CudaPointer> now = {
          r.counts.device,  r.ranges.device, r.runs.device,     r.offsets.device, r.pieces.device,
          r.entries.device, r.work.device,   r.combines.device, r.tiles.device};
      EXPECT_EQ(first.emplace(recipe.name, now).first->second, now);
    }
  }
}

/// Every recipe at its largest at once: nothing lies over anything else.
TEST_F(CudaRecipes, TheLargestStepFits) {
  load(allRecipes());
  rt::CudaPlanOptions o = options();
  Step step;
  Random random(1);
  do
    step.draw(random);
  while (step.batch.shape.numReqs() < 3 || step.batch.tables[0].ranges.size() < 8);
  o.limits.requests = step.batch.shape.numReqs();
  o.limits.tokens = step.batch.shape.numTokens();
  o.limits.ranges = static_cast<int64_t>(step.batch.tables[0].ranges.size());
  o.limits.pages = rt::mostPageRuns(step.batch.shape, kPageSize);
  rt::CudaPlan plan = makePlan(o);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(build(plan, step).ok());
    expectStep(plan, step, false);
  }
}

} // namespace
