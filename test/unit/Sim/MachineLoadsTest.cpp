// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads of shared memory that are under way when a copy writes what they read.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

using RK = Report::Kind;

static const std::string kMatrix = R"(
mad.lo.u32 %r9, %t, 16, %s;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];
)";
static const std::string kWord = "ld.shared.b32 %r1, [%a];\n";
static const std::string kArrive = "bar.warp.sync -1;\n"
                                   "@%p0 mbarrier.arrive.shared::cta.b64 _, [%bar2];\n";
static const std::string kUse = "st.global.b32 [%o], %r1;\n";
static const std::string kFence = "fence.proxy.async.shared::cta;\n";
static const std::string kCopy =
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;\n"
    "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 1024, "
    "[%bar];\n";

/// Warp 0 does `reader` with what a copy brought; warp 1 waits for its arrival at %bar2, then does
/// `writer`.
static Kernel handOver(const std::string &reader, const std::string &writer = kCopy) {
  Kernel kernel;
  kernel.threads = 64;
  kernel.body = "@%p0 mbarrier.init.shared::cta.b64 [%bar2], 1;\n" + kInit + kLoad + wait(0) +
                "setp.eq.u32 %p1, %t, 32;\nsetp.ne.u32 %p2, %w, 0;\n@%p2 bra WRITER;\n" + reader +
                "bra END;\nWRITER:\n" + wait(0, "%bar2") + writer + "END:\n";
  // What copies is waited for, by the writer or by all.
  if (writer.find("cp.async") != std::string::npos && writer.find("wait") == std::string::npos)
    kernel.body += wait(1);
  return kernel;
}

TEST(MachineLoads, CopyAfterAnArrivalBehindTheLoad) {
  for (const std::string &load : {kMatrix, kWord}) {
    const Kernel kernel = handOver(load + kArrive + kUse);
    expectReport(kernel, RK::LoadInFlight, "@%p1 cp.async.bulk");
    expectReport(kernel, RK::LoadInFlight, load == kWord ? "ld.shared" : "ldmatrix");
    expectClean(handOver(load + kUse + kArrive));
    expectClean(handOver(load + "add.u32 %r5, %r1, 1;\n" + kArrive + kUse));
    // What nobody ever uses may be anything.
    expectClean(handOver(load + kArrive));
    // A copy of the registers is none.
    expectReport(handOver(load + "mov.b32 %r5, %r1;\n" + kArrive + "st.global.b32 [%o], %r5;\n"),
                 RK::LoadInFlight, "@%p1 cp.async.bulk");
    expectClean(handOver(load + "mov.b32 %r5, %r1;\nadd.u32 %r6, %r5, 1;\n" + kArrive + kUse));
  }
}

TEST(MachineLoads, ReportNamesTheWholeStory) {
  const Kernel kernel = handOver(kMatrix + kArrive + kUse);
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    ASSERT_EQ(result.reports.size(), 1u) << result.text();
    const Report &report = result.reports[0];
    EXPECT_EQ(
        report.text,
        "line " + std::to_string(lineOf(kernel, "@%p1 cp.async.bulk")) +
            ": warp 1 of CTA 0 issues a copy that writes shared+0x0, which the load of line " +
            std::to_string(lineOf(kernel, "ldmatrix")) +
            " (warp 0) may still be reading: what orders the two comes before the first use "
            "of its registers, and that warp runs no fence.proxy.async before it");
  }
}

TEST(MachineLoads, ProxyFences) {
  for (const std::string &load : {kMatrix, kWord}) {
    expectClean(handOver(load + kFence + kArrive + kUse));
    expectClean(handOver(load + "fence.proxy.async;\n" + kArrive + kUse));
    for (const char *fence : {"fence.proxy.async.global;\n", "fence.acq_rel.cta;\n"})
      expectReport(handOver(load + fence + kArrive + kUse), RK::LoadInFlight, "@%p1 cp.async.bulk");
    // Behind the arrival, and by the warp that copies.
    expectReport(handOver(load + kArrive + kFence + kUse), RK::LoadInFlight, "@%p1 cp.async.bulk");
    expectReport(handOver(load + kArrive + kUse, kFence + kCopy), RK::LoadInFlight,
                 "@%p1 cp.async.bulk");
  }
}

TEST(MachineLoads, OnlyCopiesComeFirst) {
  expectClean(handOver(kMatrix + kArrive + kUse, "st.shared.b32 [%a+-128], 5;\n"));
  expectClean(handOver(kWord + kArrive + kUse, "st.shared.b32 [%a+-128], 5;\n"));
  // Where nothing orders the two, that is all there is to say.
  const Kernel kernel = handOver(kArrive + kMatrix + kUse, "st.shared.b32 [%s], 5;\n");
  expectReport(kernel, RK::DataRace, "st.shared");
}

TEST(MachineLoads, OtherBytes) {
  // The copy writes bytes 512 to 1535, the load reads those before or behind.
  const std::string behind = replaced(kCopy, "[%s], [%in]", "[%r10], [%in]");
  const std::string at = "add.u32 %r10, %s, 512;\n";
  for (const std::string &load : {kMatrix, kWord}) {
    Kernel kernel = handOver(load + kArrive + kUse, at + behind);
    expectClean(kernel);
    kernel.body = replaced(kernel.body, "512;", load == kWord ? "112;" : "496;");
    expectReport(kernel, RK::LoadInFlight, "@%p1 cp.async.bulk");
  }
}

TEST(MachineLoads, LanesThatDoNotRead) {
  // The copy writes what the last four lanes would read.
  const std::string init = "add.u32 %r11, %a, 1024;\nst.shared.b32 [%r11], 1;\n" + kFence;
  const std::string some = "setp.lt.u32 %p3, %t, 28;\n@%p3 ld.shared.b32 %r1, [%r11];\n";
  const std::string writer =
      "add.u32 %r10, %s, 1136;\n" + replaced(kCopy, "[%s], [%in]", "[%r10], [%in]") + wait(1);
  const std::string reader = init + some + kArrive + "@%p3 st.global.b32 [%o], %r1;\n";
  expectClean(handOver(reader, writer));
  expectReport(handOver(replaced(reader, "28;", "29;"), writer), RK::LoadInFlight,
               "@%p1 cp.async.bulk");
  // One lane's use says that the load has read for all; one that no lane runs says nothing.
  const std::string use = "@%p0 add.u32 %r5, %r1, 1;\n";
  expectClean(handOver(kWord + use + kArrive + kUse));
  expectReport(handOver(kWord + replaced(use, "%p0", "%p2") + kArrive + kUse), RK::LoadInFlight,
               "@%p1 cp.async.bulk");
}

TEST(MachineLoads, OverwrittenRegisters) {
  // What was read is lost, so it may have been anything.
  const std::string next = "ld.shared.b32 %r1, [%bar2+16];\n";
  const std::string init = "@%p0 st.shared.b32 [%bar2+16], 1;\nbar.warp.sync -1;\n";
  for (const std::string &over :
       {next, std::string("mov.b32 %r1, 0;\n"), std::string("add.u32 %r1, %t, 1;\n")}) {
    expectClean(handOver(init + kWord + over + kArrive + kUse));
    expectClean(handOver(init + kWord + kArrive + over + kUse));
    // Another register still holds it.
    const std::string copy = "mov.b32 %r5, %r1;\n";
    expectReport(handOver(init + kWord + copy + over + kArrive + "st.global.b32 [%o], %r5;\n"),
                 RK::LoadInFlight, "@%p1 cp.async.bulk");
  }
  expectReport(handOver(init + next + kWord + kArrive + kUse), RK::LoadInFlight,
               "@%p1 cp.async.bulk");
  // One of four registers.
  expectReport(handOver(kMatrix + "mov.b32 %r2, 0;\n" + kArrive + kUse), RK::LoadInFlight,
               "@%p1 cp.async.bulk");
}

TEST(MachineLoads, Vectors) {
  const std::string load = "mad.lo.u32 %r9, %t, 8, %s;\nld.shared.v2.b32 {%r1, %r2}, [%r9];\n";
  expectReport(handOver(load + kArrive + kUse), RK::LoadInFlight, "@%p1 cp.async.bulk");
  // One register stands for both.
  expectClean(handOver(load + "add.u32 %r5, %r2, 1;\n" + kArrive + kUse));
  // Packed, they are still not used.
  const std::string pack = "mov.b64 %d5, {%r1, %r2};\n", use = "add.s64 %d6, %d5, 1;\n";
  expectReport(handOver(load + pack + kArrive + use), RK::LoadInFlight, "@%p1 cp.async.bulk");
  expectClean(handOver(load + pack + use + kArrive + kUse));
  const std::string two = kWord + "ld.shared.b32 %r2, [%a+512];\n" + pack;
  expectClean(handOver(two + use + kArrive));
}

TEST(MachineLoads, TheNextTurnIsAnotherLoad) {
  // What is used is what the turn before read.
  const std::string loop = "mov.b32 %r2, 0;\nmov.b32 %r7, 0;\nTURN:\n" + kWord +
                           "add.u32 %r3, %r2, 1;\nmov.b32 %r2, %r1;\nadd.u32 %r7, %r7, 1;\n"
                           "setp.lt.u32 %p3, %r7, 2;\n@%p3 bra TURN;\n";
  const std::string use = "add.u32 %r3, %r2, 1;\n";
  expectReport(handOver(loop + kArrive + use), RK::LoadInFlight, "@%p1 cp.async.bulk");
  expectClean(handOver(loop + use + kArrive));
}

// Whoever runs first: the copy is not ordered behind the use, whether or not that is over.
TEST(MachineLoads, UseThatIsOver) {
  const std::string late = "bar.sync 1, 64;\n" + kCopy + wait(1);
  const std::string reader = kMatrix + kArrive + kUse;
  expectClean(handOver(reader + "bar.arrive 1, 64;\n", late));
  // A fence before the last thing that orders the two.
  expectClean(handOver(kMatrix + "bar.arrive 1, 64;\n" + kFence + kArrive + kUse, late));
  // With work before the copy the use is over by then, and nothing makes sure of it.
  const std::string busy = "mov.b32 %r20, 0;\nBUSY:\nadd.u32 %r20, %r20, 1;\n"
                           "setp.lt.u32 %p4, %r20, 300;\n@%p4 bra BUSY;\n";
  expectReport(handOver(reader, busy + kCopy), RK::LoadInFlight, "@%p1 cp.async.bulk");
  expectClean(handOver(reader + "bar.arrive 1, 64;\n", busy + late));
}
