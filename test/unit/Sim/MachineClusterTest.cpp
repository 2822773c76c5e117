// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CTAs of a cluster: their barrier, each other's shared memory and mbarriers, multicast copies, and
// what goes wrong between them.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

using RK = Report::Kind;

namespace {

/// %r90: rank, %r91: that of the other CTA, %o: word of `out` of the thread of the grid, %r80: %a
/// and %r81: %bar of the other CTA, %p5: rank 1, %p6: first thread of rank 1, %p7: of rank 0.
const std::string kRanks = R"(
mov.u32 %r90, %cluster_ctarank;
xor.b32 %r91, %r90, 1;
mov.u32 %r92, %ctaid.x;
mov.u32 %r93, %ntid.x;
mad.lo.u32 %r94, %r92, %r93, %t;
mul.wide.u32 %o, %r94, 4;
add.s64 %o, %out, %o;
mapa.shared::cluster.u32 %r80, %a, %r91;
mapa.shared::cluster.u32 %r81, %bar, %r91;
setp.eq.u32 %p5, %r90, 1;
and.pred %p6, %p5, %p0;
setp.eq.u32 %p7, %r94, 0;
)";
const std::string kArrive = "barrier.cluster.arrive.release.aligned;\n";
const std::string kSync = kArrive + "barrier.cluster.wait.acquire.aligned;\n";
const std::string kReadOwn = "ld.shared.b32 %r0, [%a];\nst.global.b32 [%o], %r0;\n";

/// Mbarriers that both CTAs know.
std::string start() { return kRanks + kInit + kSync; }

std::string waitOfCluster(int parity, const std::string &barrier = "%bar") {
  return replaced(wait(parity, barrier), "parity.shared", "parity.acquire.cluster.shared");
}

Kernel pair(const std::string &body) {
  Kernel kernel;
  kernel.ctas = 2;
  kernel.cluster = {2, 1, 1};
  kernel.body = body;
  for (size_t i = 0; i < kernel.in.size(); ++i)
    kernel.in[i] = static_cast<uint32_t>(3 * i);
  return kernel;
}

} // namespace

// PTX ISA, "Special registers": %cluster_ctarank, %cluster_nctarank, %clusterid, %nclusterid,
// %cluster_ctaid, %cluster_nctaid, %is_explicit_cluster; "mapa", "getctarank".
TEST(MachineClusters, Ranks) {
  Kernel kernel = pair(kRanks + R"(
mov.u32 %r1, %cluster_nctarank;
mad.lo.u32 %r0, %r1, 16, %r90;
mov.u32 %r1, %clusterid.x;
mad.lo.u32 %r0, %r1, 256, %r0;
mov.u32 %r1, %nclusterid.x;
mad.lo.u32 %r0, %r1, 4096, %r0;
mov.u32 %r1, %cluster_ctaid.x;
mad.lo.u32 %r0, %r1, 65536, %r0;
mov.u32 %r1, %cluster_nctaid.x;
mad.lo.u32 %r0, %r1, 1048576, %r0;
getctarank.shared::cluster.u32 %r1, %r80;
mad.lo.u32 %r0, %r1, 16777216, %r0;
mov.pred %p1, %is_explicit_cluster;
@%p1 add.u32 %r0, %r0, 0x40000000;
st.global.b32 [%o], %r0;
)");
  kernel.ctas = 6;
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t cta = 0; cta < 6; ++cta) {
    const uint32_t rank = cta % 2, cluster = cta / 2;
    EXPECT_EQ(out[128 * cta + 5], 0x40000000 | (rank ^ 1) << 24 | 2 << 20 | rank << 16 | 3 << 12 |
                                      cluster << 8 | 2 << 4 | rank)
        << cta;
  }
}

// PTX ISA, "st", "ld" of .shared::cluster; "barrier.cluster": release and acquire by default.
TEST(MachineClusters, SharedMemoryOfTheOther) {
  const std::string store =
      "mad.lo.u32 %r1, %r90, 1000, %t;\nst.shared::cluster.b32 [%r80], %r1;\n";
  Kernel kernel = pair(kRanks + kSync + store + kSync + kReadOwn);
  const std::vector<uint32_t> out = expectClean(kernel);
  EXPECT_EQ(out[7], 1007u);
  EXPECT_EQ(out[128 + 7], 7u);
  EXPECT_EQ(run(kernel, {}).counters.clusterStoreBytes, 2u * 128 * 4);
  EXPECT_EQ(run(kernel, {}).counters.sharedStoreBytes, 0u);
  // Generic addresses name the other CTA as well.
  kernel.body =
      replaced(kernel.body, "st.shared::cluster.b32 [%r80]",
               "cvt.u64.u32 %d1, %r80;\ncvta.shared::cluster.u64 %d1, %d1;\nst.b32 [%d1]");
  EXPECT_EQ(expectClean(kernel), out);
  kernel.body = kRanks + kSync + store + kReadOwn + kSync;
  expectAny(kernel, {RK::DataRace, RK::Uninitialised});
  const std::string relaxed = replaced(kSync, ".release", ".relaxed");
  kernel.body = kRanks + kSync + store + relaxed + kReadOwn + kSync;
  expectReport(kernel, RK::DataRace, "ld.shared");
  // Loads, after which the other must not end at once.
  const std::string load = "st.shared.b32 [%a], %t;\n" + kSync +
                           "ld.shared::cluster.b32 %r0, [%r80];\nst.global.b32 [%o], %r0;\n";
  kernel.body = kRanks + load + kArrive + "barrier.cluster.wait;\n";
  EXPECT_EQ(expectClean(kernel)[130], 2u);
  EXPECT_EQ(run(kernel, {}).counters.clusterLoadBytes, 2u * 128 * 4);
  kernel.body = kRanks + load;
  expectReport(kernel, RK::UnfinishedAtExit, "ld.shared::cluster");
  // Overwritten while the other may still read.
  kernel.body = kRanks + load + "st.shared.b32 [%a], 5;\n" + kSync;
  expectReport(kernel, RK::DataRace, "st.shared.b32 [%a], 5");
}

TEST(MachineClusters, AddressesOfTheOther) {
  Kernel kernel = pair(kRanks + kSync + "st.shared.b32 [%r80], %t;\n");
  expectReport(kernel, RK::OutOfBounds, "st.shared.b32 [%r80]");
  kernel.body = kRanks + "mapa.shared::cluster.u32 %r1, %a, 2;\n";
  expectReport(kernel, RK::OutOfBounds, "mapa.shared::cluster.u32 %r1");
  kernel.body = kRanks + kSync + "st.shared::cluster.b32 [%r80+16448], %t;\n" + kSync;
  expectReport(kernel, RK::OutOfBounds, "st.shared::cluster");
  // Without a cluster there is only rank 0.
  kernel.cluster = {1, 1, 1};
  kernel.body = "st.shared::cluster.b32 [%a], %t;\n" + kSync;
  expectClean(kernel);
}

// PTX ISA, "barrier.cluster": every thread that has not returned arrives once, then waits.
TEST(MachineClusters, Barrier) {
  Kernel kernel = pair(kRanks + kArrive + kArrive);
  expectReport(kernel, RK::BarrierMisuse, "barrier.cluster.arrive");
  kernel.body = kRanks + "barrier.cluster.wait.aligned;\n";
  expectReport(kernel, RK::BarrierMisuse, "barrier.cluster.wait");
  kernel.body = kRanks + "@%p5 ret;\n" + kSync;
  expectClean(kernel);
  kernel.body = kRanks + kInit + "@%p5 bra OTHER;\n" + kSync + "ret;\nOTHER:\n" + wait(0);
  expectReport(kernel, RK::Deadlock, "barrier.cluster.wait");
  const Result result = run(kernel, {});
  EXPECT_NE(result.text().find("waits for the barrier of the cluster (128 threads are not there)"),
            std::string::npos)
      << result.text();
  EXPECT_NE(result.text().find("of CTA 1"), std::string::npos) << result.text();
  // Lanes that arrive at different times.
  kernel.body = kRanks + R"(
setp.lt.u32 %p1, %t, 10;
@%p1 bra LOW;
barrier.cluster.arrive;
barrier.cluster.wait;
bra END;
LOW:
barrier.cluster.arrive;
barrier.cluster.wait;
END:
)" + kSync;
  expectClean(kernel);
  kernel.body = kRanks + "setp.lt.u32 %p1, %t, 10;\n@%p1 bra END;\n" + kArrive + "END:\n";
  expectReport(kernel, RK::DivergentBarrier, "barrier.cluster.arrive");
}

// PTX ISA, "mbarrier.arrive" of .shared::cluster; "Scope": .cta, the default, orders nothing
// between CTAs.
TEST(MachineClusters, RemoteArrivals) {
  const std::string store = "@%p5 st.shared::cluster.b32 [%r80], %t;\nbar.sync 0;\n";
  const std::string arrive =
      "@%p6 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r81];\n@%p5 bra END;\n";
  const std::string end = kReadOwn + "END:\n";
  Kernel kernel = pair(start() + store + arrive + waitOfCluster(0) + end);
  EXPECT_EQ(expectClean(kernel)[9], 9u);
  kernel.body = start() + store + arrive + wait(0) + end;
  expectReport(kernel, RK::DataRace, "ld.shared.b32 %r0");
  EXPECT_NE(run(kernel, {}).text().find("of CTA 1) writes: no barrier of cluster scope"),
            std::string::npos)
      << run(kernel, {}).text();
  kernel.body = start() + store + replaced(arrive, ".release.cluster", "") + waitOfCluster(0) + end;
  expectReport(kernel, RK::DataRace, "ld.shared.b32 %r0");
  // The arrival alone is known to be over, whatever its scope.
  kernel.body = start() + replaced(arrive, ".release.cluster", "") + wait(0) + "END:\n";
  expectClean(kernel);
  // More than are expected; an mbarrier that may not be there yet; one that may be gone.
  kernel.body = start() + "@%p5 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r81];\n" +
                "@%p5 bra END;\n" + waitOfCluster(0) + "END:\n";
  Kernel two = kernel;
  two.body = replaced(kernel.body, "[%bar], 1;", "[%bar], 2;");
  two.body = replaced(two.body, "@%p5 mbarrier.arrive", "@%p6 mbarrier.arrive");
  two.body = replaced(two.body, "[%r81];", "[%r81], 3;");
  expectReport(two, RK::BarrierMisuse, "mbarrier.arrive");
  kernel.body = kRanks + kInit + arrive + waitOfCluster(0) + "END:\n";
  expectAny(kernel, {RK::DataRace, RK::BarrierMisuse});
  kernel.body = start() + arrive + "END:\n";
  expectReport(kernel, RK::UnfinishedAtExit, "mbarrier.arrive");
  kernel.body = start() + arrive + "END:\n" + kSync;
  expectClean(kernel);
}

namespace {
const std::string kExpect = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;\n";
const std::string kMulticast =
    "@%p7 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%s], [%in], 1024, [%bar], 3;\n";
} // namespace

// PTX ISA, "cp.async.bulk" with .multicast::cluster: the same offset of every CTA, and its
// mbarrier.
TEST(MachineClusters, Multicast) {
  Kernel kernel = pair(start() + kExpect + kMulticast + wait(0) + kReadOwn);
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], 3 * (i % 128)) << i;
  const Counters counters = run(kernel, {}).counters;
  EXPECT_EQ(counters.tmaLoads, 1u);
  EXPECT_EQ(counters.tmaLoadBytes, 1024u);
  // To the other CTA alone, and by its address.
  Kernel one = pair(start() + "@%p5 bra WAIT;\n" + replaced(kMulticast, ", 3;", ", 2;") +
                    "bra END;\nWAIT:\n" + kExpect + wait(0) + kReadOwn + "END:\n");
  EXPECT_EQ(expectClean(one)[130], 6u);
  one.body = replaced(one.body, ".multicast::cluster [%s], [%in], 1024, [%bar], 2;",
                      " [%r80], [%in], 1024, [%r81];");
  EXPECT_EQ(expectClean(one)[130], 6u);
  one.body = replaced(one.body, "1024, [%r81];", "1024, [%bar];");
  expectReport(one, RK::BarrierMisuse, "cp.async.bulk");
  // The other has not waited; the other has no barrier yet; there is no third CTA.
  kernel.body = start() + kExpect + kMulticast + "@%p5 bra END;\n" + wait(0) + "END:\n";
  expectReport(kernel, RK::UnfinishedAtExit, "cp.async.bulk");
  kernel.body = kRanks + kInit + kExpect + kMulticast + wait(0);
  expectAny(kernel, {RK::DataRace, RK::BarrierMisuse});
  kernel.body = start() + kExpect + replaced(kMulticast, ", 3;", ", 5;") + wait(0);
  expectReport(kernel, RK::OutOfBounds, "cp.async.bulk");
  kernel.body = start() + kExpect + replaced(kMulticast, ", 3;", ", 0;") + wait(0);
  expectReport(kernel, RK::OutOfBounds, "cp.async.bulk");
}

// A slot of both CTAs is filled again once the readers of both have said that they are done.
TEST(MachineClusters, SlotsOfBoth) {
  const std::string init =
      replaced(kInit, "@%p0 fence", "@%p0 mbarrier.init.shared::cta.b64 [%bar2], 2;\n@%p0 fence");
  const std::string first = kRanks + init + kSync + "mapa.shared::cluster.u32 %r82, %bar2, 0;\n" +
                            kExpect + kMulticast + wait(0) + kReadOwn + "bar.sync 0;\n";
  const std::string done = "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r82];\n" +
                           kExpect + "@!%p7 bra PAST;\n";
  const std::string again = kMulticast + "PAST:\n" + wait(1) + kReadOwn + kSync;
  Kernel kernel = pair(first + done + waitOfCluster(0, "%bar2") + again);
  expectClean(kernel);
  kernel.body = first + done + again;
  expectAny(kernel, {RK::OverwriteWhileRead, RK::ReadBeforeComplete});
  // Of .cta scope, the wait brings nothing of the other CTA.
  kernel.body = first + done + wait(0, "%bar2") + again;
  expectAny(kernel, {RK::OverwriteWhileRead, RK::ReadBeforeComplete});
  // The readers of the other CTA are not asked.
  kernel.body = replaced(first, "[%bar2], 2;", "[%bar2], 1;") +
                replaced(done, "@%p0 mb", "@%p7 mb") + waitOfCluster(0, "%bar2") + again;
  expectAny(kernel, {RK::OverwriteWhileRead, RK::ReadBeforeComplete});
}

// PTX ISA, "cp.async.bulk.tensor" with .multicast::cluster.
TEST(MachineClusters, TensorMulticast) {
  Kernel kernel = pair(start() + R"(
.reg .b16 %h;
mov.b64 %d10, m0;
cvta.param.u64 %d10, %d10;
add.u32 %r2, %r90, 1;
shl.b32 %r2, %r2, 0;
cvt.u16.u32 %h, 3;
shl.b32 %r3, %r90, 9;
add.u32 %r3, %s, %r3;
shl.b32 %r4, %r90, 2;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;
@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%d10, {0, %r4}], [%bar], %h;
)" + wait(0) +
                       "shl.b32 %r5, %t, 3;\nadd.u32 %r5, %s, %r5;\nld.shared.b32 %r0, [%r5];\n"
                       "st.global.b32 [%o], %r0;\n" +
                       kSync);
  // Each CTA brings 4 of the 8 rows of 32 words to both.
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 4;
  map.dims = {32, 8, 1, 1, 1};
  map.strides = {0, 128, 0, 0, 0};
  map.box = {32, 4, 1, 1, 1};
  kernel.maps = {map};
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], 3 * (2 * (i % 128))) << i;
  EXPECT_EQ(run(kernel, {}).counters.tmaLoadBytes, 1024u);
}

// PTX ISA, "cp.async.bulk" from shared::cta to shared::cluster: an asynchronous read as well.
TEST(MachineClusters, CopyToTheOther) {
  const std::string store = "st.shared.b32 [%a], %r94;\n";
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  const std::string expect = "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 512;\n";
  const std::string copy = "bar.sync 0;\nadd.u32 %r82, %r80, 1024;\n"
                           "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
                           "bytes [%r82], [%s], 512, [%r81];\n";
  const std::string read = wait(0) + "ld.shared.b32 %r0, [%a+1024];\nst.global.b32 [%o], %r0;\n";
  Kernel kernel = pair(start() + store + fence + expect + copy + read + kSync);
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 256; ++i)
    EXPECT_EQ(out[i], i ^ 128) << i;
  kernel.body = start() + store + expect + copy + read + kSync;
  expectReport(kernel, RK::MissingProxyFence, "cp.async.bulk");
  // The memory that it reads may be gone.
  kernel.body = start() + store + fence + expect + copy + read;
  expectReport(kernel, RK::UnfinishedAtExit, "cp.async.bulk");
  // The other knows when it is complete; this CTA does not, and overwrites what it reads.
  kernel.body = start() + store + fence + expect + copy + "st.shared.b32 [%a], 3;\n" + read + kSync;
  expectReport(kernel, RK::OverwriteWhileRead, "st.shared.b32 [%a], 3");
}

namespace {
/// Six tiles of 1 KiB through two slots: each CTA brings its half of a tile to both. Warp 0 loads,
/// the others add up; full barriers are at %bar, empty ones 16 bytes behind.
const std::string kPipeline = R"(
@%p0 mbarrier.init.shared::cta.b64 [%bar], 1;
@%p0 mbarrier.init.shared::cta.b64 [%bar+8], 1;
@%p0 mbarrier.init.shared::cta.b64 [%bar+16], 6;
@%p0 mbarrier.init.shared::cta.b64 [%bar+24], 6;
@%p0 fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mov.b32 %r10, 0;
mov.b32 %r20, 0;
setp.ne.u32 %p1, %w, 0;
@%p1 bra CONSUME;
@!%p0 bra END;
shl.b32 %r11, %r90, 9;
LOAD:
and.b32 %r12, %r10, 1;
mad.lo.u32 %r13, %r12, 8, %bar;
shr.u32 %r14, %r10, 1;
and.b32 %r14, %r14, 1;
xor.b32 %r15, %r14, 1;
EMPTY:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r13+16], %r15;
@!%p2 bra EMPTY;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 1024;
mad.lo.u32 %r16, %r12, 1024, %s;
add.u32 %r16, %r16, %r11;
mad.lo.u32 %r17, %r10, 1024, %r11;
cvt.u64.u32 %d0, %r17;
add.s64 %d0, %in, %d0;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r16], [%d0], 512, [%r13], 3;
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 6;
@%p3 bra LOAD;
bra END;
CONSUME:
and.b32 %r12, %r10, 1;
mad.lo.u32 %r13, %r12, 8, %bar;
shr.u32 %r14, %r10, 1;
and.b32 %r14, %r14, 1;
FULL:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r13], %r14;
@!%p2 bra FULL;
mad.lo.u32 %r16, %r12, 1024, %a;
ld.shared.b32 %r17, [%r16+-128];
ld.shared.b32 %r18, [%r16+384];
add.u32 %r20, %r20, %r17;
add.u32 %r20, %r20, %r18;
bar.warp.sync -1;
and.b32 %r19, %t, 31;
setp.eq.u32 %p4, %r19, 0;
mapa.shared::cluster.u32 %r21, %r13, 0;
mapa.shared::cluster.u32 %r22, %r13, 1;
@%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21+16];
@%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22+16];
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, 6;
@%p3 bra CONSUME;
END:
st.global.b32 [%o], %r20;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
)";
} // namespace

TEST(MachineClusters, Pipeline) {
  Kernel kernel = pair(kRanks + kPipeline);
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t t = 0; t < 256; ++t) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 6 && t % 128 >= 32; ++i)
      for (uint32_t half = 0; half < 2; ++half)
        sum += 3 * (256 * i + 128 * half + t % 128 - 32);
    EXPECT_EQ(out[t], sum) << t;
  }
  EXPECT_EQ(run(kernel, {}).counters.tmaLoadBytes, 6u * 1024);
  const std::vector<RK> all = {RK::OverwriteWhileRead, RK::ReadBeforeComplete,
                               RK::DataRace,           RK::BarrierMisuse,
                               RK::Deadlock,           RK::UnfinishedAtExit};
  auto broken = [&](const std::string &from, const std::string &to) {
    SCOPED_TRACE(from);
    expectAny(pair(kRanks + replaced(kPipeline, from, to)), all);
  };
  broken("@!%p2 bra EMPTY;\n", "");
  broken("@!%p2 bra FULL;\n", "");
  broken("parity.acquire.cluster.shared", "parity.shared");
  broken("@%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21+16];\n", "");
  broken("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22+16]",
         "mbarrier.arrive.shared::cluster.b64 _, [%r22+16]");
  broken("[%r13], 1024;", "[%r13], 512;");
  broken("[%r13], 3;", "[%r13], 1;");
  broken("[%bar+16], 6;", "[%bar+16], 3;");
  broken("xor.b32 %r15, %r14, 1;", "mov.b32 %r15, %r14;");
  broken("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\nmov",
         "mov");
}
