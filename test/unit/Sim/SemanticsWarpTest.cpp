// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes of a warp, warps of a CTA: PTX ISA, "Parallel Synchronization and Communication
// Instructions" and "Control Flow Instructions".
#include "SemanticsSupport.h"

using namespace attn::sim;
using namespace attn::sim::test;

/// Runs `body`, which leaves a result in %r0, on one warp; the result of lane l must be want(l).
static void expectLanes(const std::string &body, uint32_t (*want)(uint32_t lane)) {
  SCOPED_TRACE(body);
  TinyKernel kernel;
  kernel.body = body + "\nst.global.b32 [%o], %r0;";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], want(lane)) << "lane " << lane;
}

// PTX ISA, "shfl.sync". %r9 is 100 + lane; a source outside the segment gives the lane's own value.
TEST(SimWarp, Shuffle) {
  auto shuffle = [](const std::string &mode, const std::string &b, const std::string &c) {
    return "add.s32 %r9, %t, 100;\nshfl.sync." + mode + ".b32 %r0, %r9, " + b + ", " + c + ", -1;";
  };
  expectLanes(shuffle("bfly", "16", "31"), [](uint32_t l) { return 100 + (l ^ 16); });
  expectLanes(shuffle("bfly", "3", "31"), [](uint32_t l) { return 100 + (l ^ 3); });
  expectLanes(shuffle("idx", "5", "31"), [](uint32_t) { return 105u; });
  expectLanes(shuffle("idx", "37", "31"), [](uint32_t) { return 105u; }); // 5 low bits
  expectLanes(shuffle("idx", "%t", "31"), [](uint32_t l) { return 100 + l; });
  expectLanes(shuffle("up", "1", "0"), [](uint32_t l) { return 100 + (l ? l - 1 : 0); });
  expectLanes(shuffle("up", "4", "0"), [](uint32_t l) { return 100 + (l < 4 ? l : l - 4); });
  expectLanes(shuffle("down", "1", "31"), [](uint32_t l) { return 100 + (l < 31 ? l + 1 : 31); });
  // Segments of 8 lanes: bits 8 to 12 of c keep the upper two bits of the lane.
  expectLanes(shuffle("down", "3", "0x181f"),
              [](uint32_t l) { return 100 + (l % 8 < 5 ? l + 3 : l); });
  expectLanes(shuffle("up", "3", "0x1800"),
              [](uint32_t l) { return 100 + (l % 8 < 3 ? l : l - 3); });
  expectLanes(shuffle("idx", "6", "0x181f"), [](uint32_t l) { return 100 + (l / 8 * 8 + 6); });
  expectLanes(shuffle("bfly", "8", "0x181f"), [](uint32_t l) {
    // Lane l ^ 8 lies past the end of the segment for every second segment.
    return 100 + (l & 8 ? l ^ 8 : l);
  });
  // The clamp of down may lie inside the segment.
  expectLanes(shuffle("down", "2", "10"),
              [](uint32_t l) { return 100 + (l + 2 <= 10 ? l + 2 : l); });
}

// The same section: the second result says whether the source was in range.
TEST(SimWarp, ShufflePredicate) {
  expectLanes("shfl.sync.down.b32 %r1|%p1, %t, 4, 31, -1;\nselp.b32 %r0, 1, 0, %p1;",
              [](uint32_t l) { return uint32_t(l + 4 <= 31); });
  expectLanes("shfl.sync.up.b32 %r1|%p1, %t, 4, 0, -1;\nselp.b32 %r0, 1, 0, %p1;",
              [](uint32_t l) { return uint32_t(l >= 4); });
  expectLanes("shfl.sync.idx.b32 _|%p1, %t, 20, 15, -1;\nselp.b32 %r0, 1, 0, %p1;",
              [](uint32_t) { return 0u; });
}

// PTX ISA, "vote.sync", "activemask", "match.sync", "redux.sync", "elect.sync".
TEST(SimWarp, Votes) {
  const std::string low = "setp.lt.u32 %p1, %t, 5;\n";
  expectLanes(low + "vote.sync.ballot.b32 %r0, %p1, -1;", [](uint32_t) { return 0x1fu; });
  expectLanes(low + "vote.sync.ballot.b32 %r0, !%p1, -1;", [](uint32_t) { return 0xffffffe0u; });
  auto vote = [&](const std::string &mode, const std::string &predicate) {
    return low + "setp.lt.u32 %p2, %t, 32;\nvote.sync." + mode + ".pred %p3, " + predicate +
           ", -1;\nselp.b32 %r0, 1, 0, %p3;";
  };
  expectLanes(vote("any", "%p1"), [](uint32_t) { return 1u; });
  expectLanes(vote("all", "%p1"), [](uint32_t) { return 0u; });
  expectLanes(vote("all", "%p2"), [](uint32_t) { return 1u; });
  expectLanes(vote("any", "!%p2"), [](uint32_t) { return 0u; });
  expectLanes(vote("uni", "%p1"), [](uint32_t) { return 0u; });
  expectLanes(vote("uni", "!%p2"), [](uint32_t) { return 1u; });
  expectLanes("activemask.b32 %r0;", [](uint32_t) { return 0xffffffffu; });
  expectLanes("shr.u32 %r1, %t, 3;\nmatch.any.sync.b32 %r0, %r1, -1;",
              [](uint32_t l) { return 0xffu << (l / 8 * 8); });
  expectLanes("redux.sync.add.s32 %r0, %t, -1;", [](uint32_t) { return 496u; });
  expectLanes("redux.sync.max.u32 %r0, %t, -1;", [](uint32_t) { return 31u; });
  expectLanes("sub.s32 %r1, %t, 5;\nredux.sync.min.s32 %r0, %r1, -1;",
              [](uint32_t) { return 0xfffffffbu; });
}

TEST(SimWarp, ElectOfOneLane) {
  TinyKernel kernel;
  // Lanes 4 to 15 take part.
  kernel.body = R"(setp.ge.u32 %p2, %t, 4;
setp.lt.u32 %p3, %t, 16;
and.pred %p2, %p2, %p3;
@!%p2 bra END;
elect.sync %r1|%p1, 0xfff0;
selp.b32 %r2, 256, 0, %p1;
or.b32 %r2, %r2, %r1;
st.global.b32 [%o], %r2;
END:)";
  std::vector<uint64_t> out = runClean(kernel);
  uint32_t leaders = 0;
  for (uint32_t lane = 4; lane < 16; ++lane) {
    leaders += out[lane] >> 8;
    EXPECT_EQ(out[lane] & 0xff, out[4] & 0xff);
    if (out[lane] >> 8) {
      EXPECT_EQ(out[lane] & 0xff, lane);
    }
  }
  EXPECT_EQ(leaders, 1u);
  EXPECT_EQ(out[0], 0u);
}

// PTX ISA, "Control Flow Instructions: bra": lanes part and meet again.
TEST(SimFlow, IfElse) {
  expectLanes(R"(and.b32 %r1, %t, 1;
setp.eq.b32 %p1, %r1, 0;
@%p1 bra EVEN;
add.s32 %r0, %t, 1000;
bra JOIN;
EVEN:
add.s32 %r0, %t, 2000;
JOIN:
vote.sync.ballot.b32 %r2, %p1, -1;
add.s32 %r0, %r0, %r2;)",
              [](uint32_t l) { return 0x55555555u + l + (l % 2 ? 1000 : 2000); });
}

TEST(SimFlow, LoopsOfDifferentLength) {
  // Sum of 0 to lane, then all lanes together.
  expectLanes(R"(mov.b32 %r0, 0;
mov.b32 %r1, 0;
LOOP:
add.s32 %r0, %r0, %r1;
add.s32 %r1, %r1, 1;
setp.le.u32 %p1, %r1, %t;
@%p1 bra LOOP;
shfl.sync.idx.b32 %r2, %r0, 31, 31, -1;
add.s32 %r0, %r0, %r2;)",
              [](uint32_t l) { return l * (l + 1) / 2 + 496; });
}

TEST(SimFlow, NestedBranchesAndScopes) {
  expectLanes(R"(mov.b32 %r0, 0;
setp.lt.u32 %p1, %t, 16;
@!%p1 bra UPPER;
setp.lt.u32 %p2, %t, 8;
@%p2 bra FIRST;
add.s32 %r0, %r0, 2;
bra INNER;
FIRST:
add.s32 %r0, %r0, 1;
INNER:
activemask.b32 %r1;
and.b32 %r1, %r1, 0xffff0000;
add.s32 %r0, %r0, %r1;
bra END;
UPPER:
{ .reg .pred P; setp.eq.b32 P, %t, 20; @P bra SKIP; mov.b32 %r0, 3; SKIP: }
{ .reg .pred P; setp.eq.b32 P, %t, 21; @P bra SKIP; add.s32 %r0, %r0, 10; SKIP: }
END:
vote.sync.any.pred %p3, %p1, -1;
@%p3 add.s32 %r0, %r0, 100;)",
              [](uint32_t l) {
                if (l < 16)
                  return l < 8 ? 101u : 102u;
                return 100u + (l == 20 ? 0 : 3) + (l == 21 ? 0 : 10);
              });
}

// PTX ISA, "Control Flow Instructions: ret, exit": the other lanes go on.
TEST(SimFlow, LanesThatReturn) {
  TinyKernel kernel;
  kernel.body = R"(st.global.b32 [%o], 1;
setp.ge.u32 %p1, %t, 10;
@%p1 exit;
activemask.b32 %r1;
vote.sync.ballot.b32 %r2, %p1, 0x3ff;
not.b32 %r2, %r2;
st.global.v2.b32 [%o], {%r1, %r2};)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane < 10 ? 0xffffffff000003ff : 1);
}

// Special registers of a CTA of two warps in a grid of three (PTX ISA, "Special registers").
TEST(SimFlow, SpecialRegisters) {
  TinyKernel kernel;
  kernel.threads = 64;
  kernel.ctas = 3;
  kernel.outWords = 3 * 64 * 4;
  kernel.body = R"(mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %nctaid.x;
mov.u32 %r4, %laneid;
mov.u32 %r5, %warpid;
mad.lo.s32 %r6, %r1, %r2, %t;
mul.wide.u32 %d1, %r6, 32;
add.s64 %d1, %out, %d1;
st.global.v4.b32 [%d1], {%r1, %r2, %r3, %r4};
mov.u32 %r7, %ctaid.y;
mov.u32 %r8, %nctaid.z;
mov.u32 %r9, %lanemask_lt;
st.global.v4.b32 [%d1+16], {%r5, %r7, %r8, %r9};)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint64_t i = 0; i < 192; ++i) {
    EXPECT_EQ(out[4 * i], 64ull << 32 | i / 64);
    EXPECT_EQ(out[4 * i + 1], (i % 32) << 32 | 3);
    EXPECT_EQ(out[4 * i + 2], i % 64 / 32);
    EXPECT_EQ(out[4 * i + 3], ((1ull << i % 32) - 1) << 32 | 1);
  }
}

// PTX ISA, "bar": everybody waits for everybody, or for so many threads of a named barrier.
TEST(SimBarrier, WarpsExchange) {
  TinyKernel kernel;
  kernel.threads = 128;
  kernel.outWords = 128;
  kernel.sharedBytes = 512;
  kernel.body = R"(mov.u32 %r1, smem;
mad.lo.s32 %r2, %t, 4, %r1;
add.s32 %r3, %t, 1000;
st.shared.b32 [%r2], %r3;
bar.sync 0;
xor.b32 %r4, %t, 127;
mad.lo.s32 %r5, %r4, 4, %r1;
ld.shared.b32 %r6, [%r5];
st.global.b32 [%o], %r6;)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], 1000 + (i ^ 127));
}

TEST(SimBarrier, NamedArriveAndSync) {
  // Warps 0 and 1 write and arrive, warp 2 waits for both and reads; warp 3 stays out.
  TinyKernel kernel;
  kernel.threads = 128;
  kernel.outWords = 128;
  kernel.sharedBytes = 512;
  kernel.body = R"(mov.u32 %r1, smem;
shr.u32 %r2, %t, 5;
setp.eq.b32 %p1, %r2, 3;
@%p1 bra END;
setp.eq.b32 %p2, %r2, 2;
@%p2 bra READ;
mad.lo.s32 %r3, %t, 4, %r1;
st.shared.b32 [%r3], %t;
bar.arrive 5, 96;
bra END;
READ:
mov.b32 %r9, 5;
bar.sync %r9, 96;
and.b32 %r4, %t, 31;
mad.lo.s32 %r5, %r4, 4, %r1;
ld.shared.b32 %r6, [%r5];
ld.shared.b32 %r7, [%r5+128];
add.s32 %r8, %r6, %r7;
st.global.b32 [%o], %r8;
END:)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[64 + lane], 2 * lane + 32);
}

// PTX ISA, "setmaxnreg": a warpgroup gives registers back, two others take them; values stay.
TEST(SimFlow, RegistersChangeHands) {
  TinyKernel kernel;
  kernel.threads = 384;
  kernel.outWords = 384;
  kernel.body = R"(mov.u32 %r0, %t;
setp.ge.u32 %p1, %t, 128;
@%p1 bra MORE;
setmaxnreg.dec.sync.aligned.u32 24;
bra.uni JOIN;
MORE:
setmaxnreg.inc.sync.aligned.u32 240;
JOIN:
add.s32 %r0, %r0, 7;
st.global.b32 [%o], %r0;)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint64_t i = 0; i < 384; ++i)
    EXPECT_EQ(out[i], i + 7);
}

/// One thread on an mbarrier at shared+0 of `count`; every TEST0 and TEST1 asks for a parity.
static std::vector<uint64_t> phases(const std::string &count,
                                    const std::vector<std::string> &steps) {
  TinyKernel kernel;
  kernel.sharedBytes = 8;
  kernel.body = "setp.ne.b32 %p1, %t, 0;\n@%p1 bra END;\nmov.u32 %r1, smem;\n"
                "mbarrier.init.shared::cta.b64 [%r1], " +
                count + ";\n";
  size_t tests = 0;
  for (const std::string &step : steps) {
    if (step.substr(0, 4) != "TEST") {
      kernel.body += step + "\n";
      continue;
    }
    kernel.body += "mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1], " + step.substr(4) +
                   ";\nselp.b64 %d1, 1, 2, %p2;\nst.global.b64 [%out+" +
                   std::to_string(8 * tests++) + "], %d1;\n";
  }
  kernel.body += "END:";
  std::vector<uint64_t> out = runClean(kernel);
  out.resize(tests);
  for (uint64_t &value : out)
    value = value == 1;
  return out;
}

// PTX ISA, "mbarrier": a phase ends with the last pending arrival and when no bytes are expected; a
// test of a parity asks whether the last phase of that parity is over.
TEST(SimMbarrier, Phases) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];";
  using Bits = std::vector<uint64_t>;
  EXPECT_EQ(phases("1", {"TEST0", "TEST1", arrive, "TEST0", "TEST1", arrive, "TEST0", "TEST1"}),
            (Bits{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(phases("2", {arrive, "TEST0", arrive, "TEST0", arrive, "TEST1", arrive, "TEST1"}),
            (Bits{0, 1, 0, 1}));
  EXPECT_EQ(phases("3", {"mbarrier.arrive.shared::cta.b64 _, [%r1], 2;", "TEST0", arrive, "TEST0"}),
            (Bits{0, 1}));
}

// PTX ISA, "mbarrier.arrive_drop": later phases expect so many arrivals less.
TEST(SimMbarrier, ArriveDrop) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];";
  using Bits = std::vector<uint64_t>;
  EXPECT_EQ(phases("3", {"mbarrier.arrive_drop.shared::cta.b64 _, [%r1], 2;", "TEST0", arrive,
                         "TEST0", "TEST1", arrive, "TEST1"}),
            (Bits{0, 1, 0, 1}));
  EXPECT_EQ(phases("2", {"mbarrier.arrive_drop.shared::cta.b64 _, [%r1];", arrive, "TEST0", arrive,
                         "TEST1"}),
            (Bits{1, 1}));
  EXPECT_EQ(phases("2", {"mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%r1], 16;", arrive,
                         "TEST0", "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;",
                         "TEST0", arrive, "TEST1"}),
            (Bits{0, 1, 1}));
}

TEST(SimMbarrier, Transactions) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r1];";
  using Bits = std::vector<uint64_t>;
  EXPECT_EQ(
      phases("1", {"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 16;", arrive, "TEST0",
                   "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 12;", "TEST0",
                   "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 4;", "TEST0"}),
      (Bits{0, 0, 1}));
  EXPECT_EQ(phases("1", {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;", "TEST0",
                         "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 16;", "TEST0"}),
            (Bits{0, 1}));
}

// Two warps hand a slot to and fro: full and empty barriers, four rounds.
TEST(SimMbarrier, ProducerAndConsumer) {
  TinyKernel kernel;
  kernel.threads = 64;
  kernel.outWords = 64;
  kernel.sharedBytes = 16 + 128;
  kernel.body = R"(mov.u32 %r1, smem;
mad.lo.s32 %r2, %t, 4, %r1;
setp.ne.b32 %p1, %t, 0;
@%p1 bra READY;
mbarrier.init.shared::cta.b64 [%r1], 32;
mbarrier.init.shared::cta.b64 [%r1+8], 32;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
mov.b32 %r3, 0;
mov.b32 %r9, 0;
setp.ge.u32 %p2, %t, 32;
@%p2 bra CONSUME;
PRODUCE:
and.b32 %r4, %r3, 1;
xor.b32 %r4, %r4, 1;
{ .reg .pred P; WAIT: mbarrier.try_wait.parity.shared::cta.b64 P, [%r1+8], %r4; @P bra DONE; bra WAIT; DONE: }
mad.lo.s32 %r5, %r3, 100, %t;
st.shared.b32 [%r2+16], %r5;
mbarrier.arrive.shared::cta.b64 _, [%r1];
add.s32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 4;
@%p3 bra PRODUCE;
bra END;
CONSUME:
and.b32 %r4, %r3, 1;
{ .reg .pred P; WAIT: mbarrier.try_wait.parity.shared::cta.b64 P, [%r1], %r4; @P bra DONE; bra WAIT; DONE: }
ld.shared.b32 %r5, [%r2+-112];
mbarrier.arrive.shared::cta.b64 _, [%r1+8];
mad.lo.s32 %r9, %r9, 3, %r5;
add.s32 %r3, %r3, 1;
setp.lt.u32 %p3, %r3, 4;
@%p3 bra CONSUME;
st.global.b32 [%o], %r9;
END:)";
  std::vector<uint64_t> out = runClean(kernel);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t want = 0;
    for (uint32_t round = 0; round < 4; ++round)
      want = want * 3 + round * 100 + lane;
    EXPECT_EQ(out[32 + lane], want) << lane;
  }
}
