// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Derived host facts against definitions written down naively, on random batches.
#include "attn/Runtime/StepFacts.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

using Ints = std::vector<int64_t>;

BatchShape shapeOf(const Ints &queryLens, const Ints &seqLens) {
  BatchShape shape;
  shape.queryStartLoc = {0};
  for (size_t b = 0; b < queryLens.size(); ++b) {
    shape.queryStartLoc.push_back(shape.queryStartLoc.back() + queryLens[b]);
    shape.seqLen.push_back(seqLens[b]);
    shape.contextLen.push_back(seqLens[b] - queryLens[b]);
    shape.keyBegin.push_back(0);
    shape.keyEnd.push_back(seqLens[b]);
  }
  return shape;
}

BatchShape randomShape(Random &random, int64_t mostRequests = 9) {
  Ints queryLens, seqLens;
  for (int64_t n = random.in(0, mostRequests); n > 0; --n) {
    queryLens.push_back(random.in(0, 2) ? random.in(0, 12) : random.in(0, 1));
    seqLens.push_back(random.in(0, 30));
  }
  return shapeOf(queryLens, seqLens);
}

TEST(StepFacts, LongestQueryIsExactAndRounded) {
  const Ints expected = {0, 1, 2, 4, 4, 8, 8, 8, 8, 16};
  for (int64_t n = 0; n < 10; ++n) {
    EXPECT_EQ(rt::roundUpToPowerOfTwo(n), expected[n]);
    const rt::QueryLengths longest = rt::longestQuery(shapeOf({0, n, 0}, {5, 9, 0}));
    EXPECT_EQ(longest.exact, n);
    EXPECT_EQ(longest.rounded, expected[n]);
  }
  EXPECT_EQ(rt::roundUpToPowerOfTwo(-5), 0);
  EXPECT_EQ(rt::roundUpToPowerOfTwo(kPositionLimit), kPositionLimit);
  EXPECT_EQ(rt::roundUpToPowerOfTwo((int64_t(1) << 61) + 1), int64_t(1) << 62);
  EXPECT_EQ(rt::longestQuery({}).exact, 0);
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const BatchShape shape = randomShape(random);
    int64_t longest = 0;
    for (int64_t b = 0; b < shape.numReqs(); ++b)
      longest = std::max(longest, shape.queryStartLoc[b + 1] - shape.queryStartLoc[b]);
    EXPECT_EQ(rt::longestQuery(shape).exact, longest);
  }
}

TEST(StepFacts, OneTokenOfAPromptIsAPrefill) {
  // A decode, the one-token end of a prompt, a speculative decode of three tokens.
  const BatchShape shape = shapeOf({1, 1, 3}, {40, 25, 90});
  const std::vector<uint8_t> prefilling = {0, 1, 0};
  std::vector<uint8_t> classes(3, 9);
  auto classify = [&](int64_t threshold, bool shortAreDecodes, bool hasRanges) {
    Result<rt::StepCounts> counts =
        rt::classifyRequests(shape, prefilling, {threshold, shortAreDecodes, hasRanges}, classes);
    EXPECT_TRUE(counts);
    return classes;
  };
  EXPECT_EQ(classify(1, false, false), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(classify(3, false, false), (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(classify(3, true, false), (std::vector<uint8_t>{0, 0, 0}));
  EXPECT_EQ(classify(3, true, true), (std::vector<uint8_t>{0, 1, 0})) << "a range may hold it";
}

TEST(StepFacts, ClassesAndPrefillPartByDefinition) {
  Random random(2);
  int64_t mixed = 0;
  for (int round = 0; round < 500; ++round) {
    const BatchShape shape = randomShape(random);
    const int64_t n = shape.numReqs();
    std::vector<uint8_t> prefilling(n), classes(n, 7);
    for (uint8_t &flag : prefilling)
      flag = random.in(0, 1);
    const rt::SplitRule rule{random.in(0, 4), random.in(0, 1) == 1, random.in(0, 1) == 1};
    Result<rt::StepCounts> counts = rt::classifyRequests(shape, prefilling, rule, classes);
    ASSERT_TRUE(counts) << counts.message();

    rt::StepCounts expected;
    Ints requests, computed;
    std::vector<bool> tokenIsPrefill;
    for (int64_t b = 0; b < n; ++b) {
      const int64_t queries = shape.queryLen(RequestIndex(b));
      bool decode = queries <= rule.decodeThreshold;
      if (prefilling[b] && (!rule.shortExtendsAreDecodes || rule.hasRanges))
        decode = false;
      ASSERT_EQ(classes[b], !decode);
      tokenIsPrefill.insert(tokenIsPrefill.end(), queries, !decode);
      (decode ? expected.decodes : expected.prefills) += 1;
      (decode ? expected.decodeTokens : expected.prefillTokens) += queries;
      int64_t &longest = decode ? expected.longestDecode : expected.longestPrefill;
      longest = std::max(longest, queries);
      if (decode)
        continue;
      expected.anyPrefillHasContext |= queries > 0 && shape.contextLen[b] > 0;
      requests.push_back(b);
      computed.push_back(std::max<int64_t>(shape.contextLen[b], 0));
    }
    expected.decodesFirst = std::is_sorted(tokenIsPrefill.begin(), tokenIsPrefill.end());
    EXPECT_EQ(counts->decodes, expected.decodes);
    EXPECT_EQ(counts->decodeTokens, expected.decodeTokens);
    EXPECT_EQ(counts->prefills, expected.prefills);
    EXPECT_EQ(counts->prefillTokens, expected.prefillTokens);
    EXPECT_EQ(counts->longestDecode, expected.longestDecode);
    EXPECT_EQ(counts->longestPrefill, expected.longestPrefill);
    EXPECT_EQ(counts->anyPrefillHasContext, expected.anyPrefillHasContext);
    EXPECT_EQ(counts->decodesFirst, expected.decodesFirst);
    mixed += counts->decodes && counts->prefills;
    // Counts alone are the same.
    EXPECT_EQ(rt::classifyRequests(shape, prefilling, rule, {})->prefillTokens,
              expected.prefillTokens);

    Ints gotRequests(requests.size()), offsets(requests.size() + 1), gotComputed(requests.size());
    Result<int64_t> prefills = rt::prefillPart(shape, classes, {gotRequests, offsets, gotComputed});
    ASSERT_TRUE(prefills) << prefills.message();
    EXPECT_EQ(*prefills, expected.prefills);
    EXPECT_EQ(gotRequests, requests);
    EXPECT_EQ(gotComputed, computed);
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(offsets[i + 1] - offsets[i], shape.queryLen(RequestIndex(requests[i])));
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_EQ(offsets.back(), expected.prefillTokens);
  }
  EXPECT_GT(mixed, 100);
}

TEST(StepFacts, LiveRanges) {
  Batch batch;
  EXPECT_FALSE(rt::hasLiveRanges(batch));
  batch.tables.resize(2);
  EXPECT_FALSE(rt::hasLiveRanges(batch));
  batch.tables[1].ranges.push_back({2, 5});
  EXPECT_TRUE(rt::hasLiveRanges(batch));
}

TEST(StepFacts, LogitsOfTheBatch) {
  // One request wants its last token, one its last two, one none.
  const BatchShape shape = shapeOf({15, 5, 8, 4}, {41, 31, 40, 4});
  const Ints indices = {14, 18, 19, 31};
  Ints offsets(5), lengths(4), contexts(4);
  Result<rt::LogitsCounts> counts = rt::logitsPart(shape, indices, {offsets, lengths, contexts});
  ASSERT_TRUE(counts) << counts.message();
  EXPECT_EQ(counts->tokens, 4);
  EXPECT_EQ(counts->longestRequest, 2);
  EXPECT_EQ(offsets, (Ints{0, 1, 3, 3, 4}));
  EXPECT_EQ(lengths, (Ints{1, 2, 0, 1}));
  EXPECT_EQ(contexts, (Ints{40, 29, 32, 3}));
}

TEST(StepFacts, LogitsByDefinition) {
  Random random(3);
  int64_t gaps = 0;
  for (int round = 0; round < 500; ++round) {
    const BatchShape shape = randomShape(random);
    const int64_t n = shape.numReqs();
    // Runs of tokens, now and then with a hole.
    Ints indices;
    const bool holes = random.in(0, 3) == 0;
    for (int64_t b = 0; b < n; ++b) {
      int64_t begin = random.in(shape.queryStartLoc[b], shape.queryStartLoc[b + 1]);
      int64_t end = random.in(begin, shape.queryStartLoc[b + 1]);
      for (int64_t t = begin; t < end; ++t)
        if (!holes || random.in(0, 2))
          indices.push_back(t);
    }
    bool consecutive = true;
    int64_t longest = 0;
    Ints expectedOffsets = {0}, expectedLengths, expectedContexts;
    for (int64_t b = 0; b < n; ++b) {
      Ints mine;
      for (int64_t t : indices)
        if (t >= shape.queryStartLoc[b] && t < shape.queryStartLoc[b + 1])
          mine.push_back(t);
      longest = std::max<int64_t>(longest, mine.size());
      expectedLengths.push_back(mine.size());
      expectedOffsets.push_back(expectedOffsets.back() + expectedLengths.back());
      expectedContexts.push_back(shape.contextLen[b] +
                                 (mine.empty() ? 0 : mine[0] - shape.queryStartLoc[b]));
      for (size_t i = 1; i < mine.size(); ++i)
        consecutive &= mine[i] == mine[i - 1] + 1;
    }
    gaps += !consecutive;
    Ints offsets(n + 1), lengths(n), contexts(n);
    Result<rt::LogitsCounts> counts = rt::logitsPart(shape, indices, {offsets, lengths, {}});
    ASSERT_TRUE(counts) << counts.message();
    EXPECT_EQ(counts->tokens, static_cast<int64_t>(indices.size()));
    EXPECT_EQ(counts->longestRequest, longest);
    EXPECT_EQ(offsets, expectedOffsets);
    EXPECT_EQ(lengths, expectedLengths);
    Result<rt::LogitsCounts> positions = rt::logitsPart(shape, indices, {{}, {}, contexts});
    EXPECT_EQ(positions.ok(), consecutive);
    if (consecutive) {
      EXPECT_EQ(contexts, expectedContexts);
    }
  }
  EXPECT_GT(gaps, 20);
}

TEST(StepFacts, ChunksEndAtMultiples) {
  // 3 computed tokens: the first chunk is finished first. 8 computed: starts a chunk.
  const Ints offsets = {0, 6, 6, 15}, computed = {3, 2, 8};
  Ints starts(7), sequences(6), last(3);
  Result<int64_t> chunks = rt::chunkTable({offsets, computed, 4}, {starts, sequences, last});
  ASSERT_TRUE(chunks) << chunks.message();
  EXPECT_EQ(*chunks, 6);
  EXPECT_EQ(starts, (Ints{0, 1, 5, 6, 10, 14, 15}));
  EXPECT_EQ(sequences, (Ints{0, 0, 0, 2, 2, 2}));
  EXPECT_EQ(last, (Ints{2, -1, 5}));
}

TEST(StepFacts, ChunksByDefinition) {
  Random random(4);
  for (int round = 0; round < 500; ++round) {
    Ints offsets = {0}, computed;
    for (int64_t n = random.in(0, 7); n > 0; --n) {
      offsets.push_back(offsets.back() + random.in(0, 25));
      computed.push_back(random.in(0, 25));
    }
    const int64_t sequences = static_cast<int64_t>(computed.size());
    const int64_t size = random.in(1, 9);
    // Token by token: a chunk starts with a sequence or at a multiple of the size.
    Ints expectedStarts, expectedSequence, expectedLast(sequences, -1);
    for (int64_t i = 0; i < sequences; ++i)
      for (int64_t t = offsets[i]; t < offsets[i + 1]; ++t) {
        if (t == offsets[i] || (computed[i] + t - offsets[i]) % size == 0) {
          expectedStarts.push_back(t);
          expectedSequence.push_back(i);
        }
        expectedLast[i] = static_cast<int64_t>(expectedStarts.size()) - 1;
      }
    expectedStarts.push_back(offsets.back());
    const rt::ChunkInput input{offsets, computed, size};
    Result<int64_t> count = rt::countChunks(input);
    ASSERT_TRUE(count) << count.message();
    ASSERT_EQ(*count, static_cast<int64_t>(expectedSequence.size()));
    EXPECT_LE(*count, *rt::mostChunks(offsets.back(), sequences, size));
    Ints starts(*count + 1), sequence(*count), last(sequences);
    Result<int64_t> filled = rt::chunkTable(input, {starts, sequence, last});
    ASSERT_TRUE(filled) << filled.message();
    EXPECT_EQ(*filled, *count);
    EXPECT_EQ(starts, expectedStarts);
    EXPECT_EQ(sequence, expectedSequence);
    EXPECT_EQ(last, expectedLast);
  }
}

/// Most chunks of `tokens` tokens in `sequences` sequences from `at` on, over all positions.
int64_t mostByTrial(int64_t tokens, int64_t sequences, int64_t size) {
  if (sequences == 0)
    return tokens == 0 ? 0 : -1000;
  int64_t most = -1000;
  for (int64_t own = 0; own <= tokens; ++own)
    for (int64_t position = 0; position < size; ++position) {
      int64_t chunks = 0;
      for (int64_t t = 0; t < own; ++t)
        chunks += t == 0 || (position + t) % size == 0;
      most = std::max(most, chunks + mostByTrial(tokens - own, sequences - 1, size));
    }
  return most;
}

TEST(StepFacts, MostChunksIsReached) {
  for (int64_t size = 1; size <= 4; ++size)
    for (int64_t sequences = 1; sequences <= 3; ++sequences)
      for (int64_t tokens = 0; tokens <= 9; ++tokens)
        EXPECT_EQ(*rt::mostChunks(tokens, sequences, size), mostByTrial(tokens, sequences, size))
            << tokens << " tokens, " << sequences << " sequences, chunks of " << size;
}

TEST(StepFacts, Refusals) {
  const BatchShape shape = shapeOf({2, 3}, {4, 5});
  std::vector<uint8_t> two = {0, 1}, one = {0};
  Ints few(1), enough(4);
  EXPECT_EQ(rt::classifyRequests(shape, one, {}, two).message(),
            "is_prefilling: memory for 1 elements, expected at least 2");
  EXPECT_EQ(rt::classifyRequests(shape, two, {}, one).message(),
            "classes of requests: memory for 1 elements, expected at least 2");
  EXPECT_EQ(rt::prefillPart(shape, two, {enough, few, enough}).message(),
            "query offsets of the prefills: memory for 1 elements, expected at least 2");
  EXPECT_EQ(rt::prefillPart(shape, two, {{}, enough, enough}).message(),
            "numbers of the prefills: memory for 0 elements, expected at least 1");
  auto logits = [&](Ints indices) {
    Result<rt::LogitsCounts> counts = rt::logitsPart(shape, indices, {enough, enough, enough});
    return counts ? "" : counts.message();
  };
  EXPECT_EQ(logits({1, 5}), "logits index 1 is 5, expected a token of 0 to 4");
  EXPECT_EQ(logits({-1}), "logits index 0 is -1, expected a token of 0 to 4");
  EXPECT_EQ(logits({3, 3}), "logits index 1 is 3, expected ascending tokens after 3");
  EXPECT_EQ(logits({2, 4}), "request 1: logits of 2 tokens from 2 to 4, expected tokens that "
                            "follow each other");
  const Ints offsets = {0, 5};
  const Ints computed = {3};
  EXPECT_EQ(rt::countChunks({offsets, computed, 0}).message(),
            "chunk size is 0, expected at least 1");
  EXPECT_EQ(rt::countChunks({offsets, {}, 2}).message(),
            "computed tokens: memory for 0 elements, expected at least 1");
  EXPECT_EQ(rt::chunkTable({offsets, computed, 2}, {few, enough, enough}).message(),
            "chunk starts: memory for 1 elements, expected at least 4");
}

TEST(StepFacts, ChunksOfNoSequencesAreRefused) {
  const Ints computed = {3, 4};
  Ints out(16);
  auto table = [&](Ints offsets, Ints tokens, int64_t size) {
    Result<int64_t> chunks = rt::chunkTable({offsets, tokens, size}, {out, out, out});
    return chunks ? std::to_string(*chunks) + " chunks" : chunks.message();
  };
  EXPECT_EQ(table({0, 5, 2}, computed, 2),
            "query offset 2 is 2, expected ascending offsets from 5 to 2147483647");
  EXPECT_EQ(table({-1, 5, 6}, computed, 2),
            "query offset 0 is -1, expected ascending offsets from 0 to 2147483647");
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(table({0, 5, most}, computed, 2),
            "query offset 2 is 9223372036854775807, expected ascending offsets from 5 to "
            "2147483647");
  EXPECT_EQ(table({0, 5, 6}, {0, -1}, 2),
            "computed tokens of sequence 1 are -1, expected 0 to 1073741823");
  EXPECT_EQ(table({0, 5, 6}, {most, 0}, 2),
            "computed tokens of sequence 0 are 9223372036854775807, expected 0 to 1073741823");
  // A chunk may be longer than any sequence.
  EXPECT_EQ(table({0, 5, 6}, computed, most), "2 chunks");
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(rt::mostChunks(4, 2, 0).message(), "chunk size is 0, expected at least 1");
  EXPECT_EQ(rt::mostChunks(4, 2, -3).message(), "chunk size is -3, expected at least 1");
  EXPECT_EQ(rt::mostChunks(-1, 2, 3).message(),
            "-1 tokens of 2 sequences, expected neither below 0");
}

} // namespace
