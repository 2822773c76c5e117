// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Barriers of both kinds, what is wrong with their use, and what else ends a CTA early.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

using RK = Report::Kind;

TEST(MachineBarriers, MbarrierMisuse) {
  Kernel kernel;
  kernel.body = "mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
  expectReport(kernel, RK::BarrierMisuse, "mbarrier.arrive");
  const std::string two = replaced(kInit, "[%bar], 1", "[%bar], 2");
  const std::string arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
  kernel.body = two + arrive + arrive + wait(0);
  expectClean(kernel);
  kernel.body = two + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%bar], 3;\n";
  expectReport(kernel, RK::BarrierMisuse, "mbarrier.arrive");
  kernel.body = two + "@%p0 mbarrier.arrive_drop.shared::cta.b64 _, [%bar], 3;\n";
  expectReport(kernel, RK::BarrierMisuse, "mbarrier.arrive_drop");
  kernel.body = two + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%bar], -1;\n";
  expectReport(kernel, RK::BarrierMisuse, "mbarrier.arrive");
  kernel.body = kInit + "@%p0 mbarrier.init.shared::cta.b64 [%bar], 2;\n";
  expectReport(kernel, RK::BarrierMisuse, "[%bar], 2");
  kernel.body = kInit + "@%p0 mbarrier.inval.shared::cta.b64 [%bar];\n"
                        "@%p0 mbarrier.init.shared::cta.b64 [%bar], 2;\n";
  expectClean(kernel);
  kernel.body = kInit + "@%p0 st.shared.b32 [%bar], 2;\n";
  expectReport(kernel, RK::BarrierMisuse, "st.shared");
  kernel.body =
      kInit + "@%p0 mbarrier.inval.shared::cta.b64 [%bar];\n@%p0 st.shared.b32 [%bar], 2;\n";
  expectClean(kernel);
  kernel.body =
      kInit + "add.s32 %r0, %bar, 4;\n" + "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r0];\n";
  expectReport(kernel, RK::Misaligned, "mbarrier.arrive");
}

TEST(MachineBarriers, TransactionBytes) {
  Kernel kernel;
  // Fewer bytes than are copied, more than are copied.
  kernel.body = kInit + replaced(kLoad, "[%bar], 1024", "[%bar], 512") + wait(0);
  for (const Policy &policy : policies())
    EXPECT_TRUE(run(kernel, policy).has(RK::BarrierMisuse)) << run(kernel, policy).text();
  kernel.body = kInit + replaced(kLoad, "[%bar], 1024", "[%bar], 1040") + wait(0);
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_TRUE(result.has(RK::Deadlock)) << result.text();
    EXPECT_NE(result.text().find("lacks 0 arrivals and 16 bytes"), std::string::npos)
        << result.text();
  }
  // The copy first, its bytes afterwards.
  kernel.body = kInit + R"(
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 1024, [%bar];
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;
)" + wait(0);
  expectClean(kernel);
}

TEST(MachineBarriers, InitIsHandedOver) {
  Kernel kernel;
  kernel.body =
      replaced(kInit, "@%p0 fence.mbarrier_init.release.cluster;\n", "") + kLoad + wait(0);
  expectReport(kernel, RK::MissingProxyFence, "cp.async.bulk");
  kernel.body =
      replaced(kInit, "fence.mbarrier_init.release.cluster", "fence.proxy.async") + kLoad + wait(0);
  expectClean(kernel);
  kernel.body = replaced(kInit, "bar.sync 0;\n", "") + kLoad + wait(0);
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_TRUE(result.has(RK::DataRace) || result.has(RK::BarrierMisuse)) << result.text();
  }
}

TEST(MachineBarriers, PhasesThatAreSkipped) {
  Kernel kernel;
  // Warp 1 waits for phase 0, and then only after phases 1 and 2 have gone by for phase 1.
  kernel.threads = 64;
  const std::string arrive = "@%p0 mbarrier.arrive.shared::cta.b64 _, [%bar];\n";
  kernel.body = kInit + arrive + wait(0) + "bar.sync 0;\n" + arrive + arrive + "bar.sync 0;\n" +
                "setp.eq.u32 %p1, %w, 0;\n@%p1 bra END;\n" + wait(1) + "END:\n";
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_TRUE(result.has(RK::BarrierMisuse)) << result.text();
    EXPECT_NE(result.text().find("a phase was skipped"), std::string::npos) << result.text();
  }
  kernel.body = kInit + arrive + wait(0) + "bar.sync 0;\n" + arrive + wait(1) + "bar.sync 0;\n" +
                arrive + wait(0);
  expectClean(kernel);
  // Waiting for the same phase again is fine.
  kernel.body = kInit + arrive + wait(0) + wait(0);
  expectClean(kernel);
}

TEST(MachineBarriers, ArriveReturnsAState) {
  Kernel kernel;
  kernel.threads = 32;
  kernel.body = kInit + R"(
@%p0 mbarrier.arrive.shared::cta.b64 %d0, [%bar];
@!%p0 bra END;
AGAIN:
mbarrier.test_wait.shared::cta.b64 %p1, [%bar], %d0;
@!%p1 bra AGAIN;
END:
)";
  expectClean(kernel);
}

TEST(MachineBarriers, NamedBarriers) {
  Kernel kernel;
  // Warps 0 and 1 produce, warps 2 and 3 consume: arrive and sync on one barrier.
  kernel.body = R"(
setp.ge.u32 %p1, %w, 2;
@%p1 bra TAKE;
st.shared.b32 [%a], %t;
bar.arrive 3, 128;
bra END;
TAKE:
bar.sync 3, 128;
ld.shared.b32 %r0, [%a+-256];
st.global.b32 [%o], %r0;
END:
)";
  EXPECT_EQ(expectClean(kernel)[70], 6u);
  Kernel broken = kernel;
  broken.body = replaced(kernel.body, "bar.sync 3, 128;\n", "bar.sync 3, 64;\n");
  for (const Policy &policy : policies()) {
    const Result result = run(broken, policy);
    EXPECT_TRUE(result.has(RK::BarrierMisuse) || result.has(RK::DataRace) ||
                result.has(RK::Uninitialised))
        << result.text();
  }
  broken.body = replaced(kernel.body, "bar.arrive 3, 128;\n", "");
  expectReport(broken, RK::Deadlock, "bar.sync 3");
  broken.body = "bar.sync 16;\n";
  expectReport(broken, RK::BarrierMisuse, "bar.sync");
  broken.body = "bar.sync 1, 100;\n";
  expectReport(broken, RK::BarrierMisuse, "bar.sync");
  // Warps that have returned are not waited for.
  broken.body = "setp.eq.u32 %p1, %w, 3;\n@%p1 ret;\nbar.sync 0;\n";
  expectClean(broken);
}

TEST(MachineBarriers, Divergence) {
  Kernel kernel;
  kernel.body = "and.b32 %r0, %t, 1;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 bra END;\nbar.sync 0;\nEND:\n";
  expectReport(kernel, RK::DivergentBarrier, "bar.sync");
  kernel.body = "and.b32 %r0, %t, 1;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 bar.sync 0;\n";
  expectReport(kernel, RK::DivergentBarrier, "bar.sync");
  kernel.body = "and.b32 %r0, %t, 1;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 bra END;\n"
                "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\nEND:\nbar.sync 0;\n";
  expectReport(kernel, RK::DivergentBarrier, "shfl");
}

// "shfl.sync", "vote.sync": the lanes of the mask, and they alone.
TEST(MachineBarriers, MembersOfAWarp) {
  Kernel kernel;
  kernel.threads = 32;
  const std::string low = "setp.lt.u32 %p1, %t, 16;\nselp.b32 %r5, 0xffff, 0xffffffff, %p1;\n";
  kernel.body = low + "vote.sync.ballot.b32 %r0, %p1, %r5;\n";
  expectReport(kernel, RK::DivergentBarrier, "vote");
  kernel.body = low + "shfl.sync.bfly.b32 %r0, %t, 1, 31, %r5;\n";
  expectReport(kernel, RK::DivergentBarrier, "shfl");
  kernel.body = low + "bar.warp.sync %r5;\n";
  expectReport(kernel, RK::DivergentBarrier, "bar.warp");
  // Lane 0 names everybody, lane 16 only the upper half.
  kernel.body = "setp.lt.u32 %p1, %t, 16;\nselp.b32 %r5, 0xffffffff, 0xffff0000, %p1;\n"
                "vote.sync.ballot.b32 %r0, %p1, %r5;\n";
  expectReport(kernel, RK::DivergentBarrier, "vote");
  // A lane that is not in its own mask.
  kernel.body = low + "@%p1 vote.sync.ballot.b32 %r0, %p1, 0xff;\n";
  expectReport(kernel, RK::DivergentBarrier, "vote");
  kernel.body = low + "@%p1 vote.sync.ballot.b32 %r0, %p1, 0xffff;\n";
  expectClean(kernel);
  // Values of lanes that do not take part.
  kernel.body = low + "@%p1 shfl.sync.idx.b32 %r0, %t, 20, 31, 0xffff;\n";
  expectReport(kernel, RK::DivergentBarrier, "shfl");
  kernel.body = low + "@%p1 shfl.sync.bfly.b32 %r0, %t, 16, 31, 0xffff;\n";
  expectReport(kernel, RK::DivergentBarrier, "shfl");
  kernel.body = low + "@%p1 shfl.sync.bfly.b32 %r0, %t, 8, 31, 0xffff;\n";
  expectClean(kernel);
  kernel.body = low + "@%p1 ret;\nshfl.sync.idx.b32 %r0, %t, 3, 31, -1;\n";
  expectReport(kernel, RK::DivergentBarrier, "shfl");
}

// One lane waits while the others are already at something for the whole warp.
TEST(MachineBarriers, LanesThatComeLater) {
  Kernel kernel;
  kernel.threads = 64;
  const std::string waits = kInit + R"(
setp.ge.u32 %p1, %t, 32;
@%p1 bra GIVE;
mov.b32 %r3, 5;
setp.ne.u32 %p2, %t, 0;
@%p2 bra TOGETHER;
)" + wait(0) + R"(
mov.b32 %r3, 9;
bra TOGETHER;
GIVE:
setp.eq.u32 %p3, %t, 32;
@%p3 mbarrier.arrive.shared::cta.b64 _, [%bar];
bra END;
TOGETHER:
)";
  kernel.body = waits + "shfl.sync.idx.b32 %r0, %r3, 0, 31, -1;\nst.global.b32 [%o], %r0;\nEND:\n";
  EXPECT_EQ(expectClean(kernel)[31], 9u);
  kernel.body = waits + "bar.sync 1, 32;\nst.global.b32 [%o], %r3;\nEND:\n";
  EXPECT_EQ(expectClean(kernel)[31], 5u);
  kernel.body = waits + "bar.warp.sync -1;\nst.global.b32 [%o], %r3;\nEND:\n";
  expectClean(kernel);
  // Nobody arrives.
  kernel.body = replaced(waits, "%p3, %t, 32", "%p3, %t, 99") + "bar.warp.sync -1;\nEND:\n";
  for (const Policy &policy : policies())
    EXPECT_TRUE(run(kernel, policy).has(RK::Deadlock)) << run(kernel, policy).text();
  // Two groups wait for each other in different places.
  kernel.body = "setp.lt.u32 %p1, %t, 16;\n@%p1 bra LOW;\nshfl.sync.idx.b32 %r0, %t, 0, 31, -1;\n"
                "bra END;\nLOW:\nbar.warp.sync -1;\nEND:\n";
  kernel.threads = 32;
  expectReport(kernel, RK::DivergentBarrier, "shfl");
  expectReport(kernel, RK::DivergentBarrier, "bar.warp");
}

// A warp that asks in a loop does other work meanwhile, without which nobody arrives.
TEST(MachineBarriers, Polling) {
  Kernel kernel;
  kernel.threads = 64;
  kernel.body =
      replaced(kInit, "@%p0 fence", "@%p0 mbarrier.init.shared::cta.b64 [%bar2], 1;\n@%p0 fence") +
      R"(
setp.ne.u32 %p1, %w, 0;
@%p1 bra OTHER;
mov.b32 %r1, 0;
POLL:
mbarrier.test_wait.parity.shared::cta.b64 %p2, [%bar], 0;
@%p2 bra END;
add.s32 %r1, %r1, 1;
setp.eq.u32 %p3, %r1, 500;
and.pred %p3, %p3, %p0;
@%p3 mbarrier.arrive.shared::cta.b64 _, [%bar2];
bra POLL;
OTHER:
)" + wait(0, "%bar2") +
      R"(
setp.eq.u32 %p4, %t, 32;
@%p4 mbarrier.arrive.shared::cta.b64 _, [%bar];
END:
)";
  expectClean(kernel);
  kernel.body = replaced(kernel.body, "test_wait", "try_wait");
  expectClean(kernel);
  // It counts and asks for ever.
  kernel.body = replaced(kernel.body, "%r1, 500", "%r1, -1");
  for (const Policy &policy : policies())
    EXPECT_TRUE(run(kernel, policy).has(RK::Deadlock)) << run(kernel, policy).text();
}

TEST(MachineBarriers, LanesComeTogetherAgain) {
  Kernel kernel;
  // A loop whose lanes leave at different times, then something for the whole warp.
  kernel.body = R"(
and.b32 %r0, %t, 7;
mov.b32 %r1, 0;
LOOP:
add.s32 %r1, %r1, %r0;
sub.s32 %r0, %r0, 1;
setp.gt.s32 %p1, %r0, 0;
@%p1 bra LOOP;
bar.sync 0;
shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
st.global.b32 [%o], %r2;
)";
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t n = (i ^ 1) & 7;
    EXPECT_EQ(out[i], n * (n + 1) / 2) << i;
  }
}

TEST(MachineBarriers, PathsThatMeetAtALowerAddress) {
  Kernel kernel;
  // What lane 0 does alone stands behind the barrier it comes back to, in a loop.
  kernel.body = R"(
mov.b32 %r1, 0;
mov.b32 %r2, 0;
bra.uni HEAD;
MEET:
bar.sync 0;
add.s32 %r1, %r1, 1;
HEAD:
setp.ge.s32 %p1, %r1, 3;
@%p1 bra DONE;
and.b32 %r3, %t, 31;
setp.ne.u32 %p2, %r3, 0;
@%p2 bra MEET;
add.s32 %r2, %r2, 5;
bra.uni MEET;
DONE:
bar.sync 0;
st.global.b32 [%o], %r2;
)";
  const std::vector<uint32_t> out = expectClean(kernel);
  EXPECT_EQ(out[32], 15u);
  EXPECT_EQ(out[33], 0u);
}

TEST(MachineBarriers, LanesWaitForEachOther) {
  Kernel kernel;
  kernel.threads = 32;
  // Lane 0 waits at an address below what lane 1 must do first.
  kernel.body = kInit + R"(
setp.eq.u32 %p1, %t, 1;
@%p1 bra GIVE;
)" + wait(0) + R"(
bra END;
GIVE:
mbarrier.arrive.shared::cta.b64 _, [%bar];
END:
bar.warp.sync -1;
)";
  expectClean(kernel);
}

TEST(MachineBarriers, Deadlock) {
  Kernel kernel;
  kernel.body = kInit + wait(0);
  expectReport(kernel, RK::Deadlock, "mbarrier.try_wait");
  const Result result = run(kernel, {});
  EXPECT_FALSE(result.finished);
  EXPECT_NE(result.text().find("waits for the mbarrier shared+0x4000 (phase 0 lacks 1 arrivals and "
                               "0 bytes)"),
            std::string::npos)
      << result.text();
  kernel.body = kInit + replaced(wait(0), "try_wait", "test_wait");
  expectReport(kernel, RK::Deadlock, "mbarrier.test_wait");
}

TEST(MachineBarriers, Registers) {
  Kernel kernel;
  kernel.threads = 256;
  // 256 registers a thread at the start: nothing to raise before somebody lowers.
  const std::string roles = R"(
setp.ge.u32 %p1, %w, 4;
@%p1 bra MORE;
setmaxnreg.dec.sync.aligned.u32 24;
bra END;
MORE:
setmaxnreg.inc.sync.aligned.u32 256;
END:
)";
  kernel.body = roles;
  expectClean(kernel);
  kernel.threads = 384;
  kernel.body = replaced(roles, "u32 256", "u32 232");
  expectClean(kernel);
  kernel.body = replaced(roles, "setmaxnreg.dec.sync.aligned.u32 24;\n", "");
  kernel.body = replaced(kernel.body, "u32 256", "u32 232");
  expectReport(kernel, RK::Deadlock, "setmaxnreg.inc");
  kernel.body = "setmaxnreg.inc.sync.aligned.u32 24;\n";
  expectReport(kernel, RK::Registers, "setmaxnreg");
  kernel.body =
      "setp.eq.u32 %p1, %w, 1;\n@%p1 bra END;\nsetmaxnreg.dec.sync.aligned.u32 24;\nEND:\n";
  EXPECT_TRUE(run(kernel, {}).has(RK::Registers));
}

TEST(MachineBarriers, StepLimitAndUnknownInstructions) {
  Kernel kernel;
  kernel.body = "FOREVER:\nbra FOREVER;\n";
  kernel.maxSteps = 10000;
  expectReport(kernel, RK::StepLimit, "bra FOREVER");
  kernel.threads = 64;
  const Result endless = run(kernel, {});
  for (const char *warp : {"warp 0 at line ", "warp 1 at line "})
    EXPECT_NE(endless.text().find(warp), std::string::npos) << endless.text();
  kernel.threads = 32;
  kernel.body = "add.s32 %r0, %t, 1;\nclusterlaunchcontrol.frobnicate.b32 %r0, %t;\nadd.wrong.s32 "
                "%r0, %t, 1;\n";
  const Result result = run(kernel, {});
  ASSERT_EQ(result.reports.size(), 2u) << result.text();
  EXPECT_EQ(result.reports[0].kind, RK::Unsupported);
  EXPECT_EQ(result.reports[0].line, lineOf(kernel, "clusterlaunch"));
  EXPECT_NE(result.reports[0].text.find("clusterlaunchcontrol.frobnicate.b32"), std::string::npos);
  EXPECT_FALSE(result.finished);
}

TEST(MachineBarriers, ThreadsOfTheHostChangeNothing) {
  Kernel kernel;
  kernel.ctas = 9;
  kernel.body = R"(
mov.u32 %r1, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r2, %r1, %r3, %t;
mul.wide.u32 %o, %r2, 4;
add.s64 %o, %out, %o;
st.global.b32 [%o], %r2;
)";
  const std::vector<uint32_t> one = expectClean(kernel);
  kernel.hostThreads = 4;
  EXPECT_EQ(one, expectClean(kernel));
  EXPECT_EQ(one[1000], 1000u);
  kernel.body = "atom.global.add.u32 %r0, [%out], 1;\n";
  EXPECT_EQ(run(kernel, {}).out[0], 9u * 128);
  // Reports come in the order of the CTAs.
  kernel.body =
      "mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r1, 3;\n@%p1 ret;\nld.shared.b32 %r0, [%a];\n";
  const Result result = run(kernel, {});
  ASSERT_EQ(result.reports.size(), 1u) << result.text();
  EXPECT_GE(result.reports[0].cta, 3);
}
