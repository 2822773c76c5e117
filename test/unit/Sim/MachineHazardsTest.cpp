// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each kind of hazard: a kernel that has it, and the same kernel with what was missing.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

using RK = Report::Kind;

static const std::string kRead = "ld.shared.b32 %r0, [%a];\nst.global.b32 [%o], %r0;\n";

TEST(MachineHazards, ReadBeforeCopyIsComplete) {
  Kernel kernel;
  kernel.body = kInit + kLoad + wait(0) + kRead;
  for (size_t i = 0; i < kernel.in.size(); ++i)
    kernel.in[i] = static_cast<uint32_t>(i);
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], i);
  kernel.body = kInit + kLoad + "bar.sync 0;\n" + kRead;
  expectReport(kernel, RK::ReadBeforeComplete, "ld.shared");
  // Only the first warp waits.
  kernel.body =
      kInit + kLoad + "setp.ne.u32 %p1, %w, 0;\n@%p1 bra PAST;\n" + wait(0) + "PAST:\n" + kRead;
  expectAny(kernel, {RK::ReadBeforeComplete, RK::OverwriteWhileRead});
  kernel.body = replaced(kernel.body, "PAST:\n", "PAST:\nbar.sync 0;\n");
  expectClean(kernel);
  // A wait that a barrier of another phase lets through.
  kernel.body = kInit + kLoad + wait(1) + kRead;
  expectAny(kernel, {RK::ReadBeforeComplete, RK::OverwriteWhileRead, RK::Deadlock});
  // One attempt, and on without its answer.
  kernel.body =
      kInit + kLoad + "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%bar], 0;\n" + kRead;
  const Result result = run(kernel, {Policy::Kind::Latest, 0});
  EXPECT_TRUE(result.has(RK::ReadBeforeComplete)) << result.text();
}

TEST(MachineHazards, ReportNamesTheWholeStory) {
  Kernel kernel;
  kernel.threads = 32;
  kernel.body = kInit + kLoad + kRead;
  const Result result = run(kernel, {Policy::Kind::Latest, 0});
  ASSERT_FALSE(result.reports.empty());
  const Report &report = result.reports[0];
  EXPECT_EQ(report.line, lineOf(kernel, "ld.shared"));
  EXPECT_EQ(report.otherLine, lineOf(kernel, "cp.async.bulk"));
  EXPECT_EQ(report.text, "line " + std::to_string(report.line) +
                             ": warp 0 of CTA 0 reads shared+0x0, which the copy of line " +
                             std::to_string(report.otherLine) +
                             " (warp 0) may still be writing: no wait for its mbarrier is between");
  EXPECT_EQ(result.reports.size(), 2u) << result.text(); // and nobody waits for the copy
}

TEST(MachineHazards, OverwriteOfWhatABulkStoreReads) {
  Kernel kernel;
  const std::string store = R"(
st.shared.b32 [%a], %t;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 512;
@%p0 cp.async.bulk.commit_group;
)";
  const std::string done = "@%p0 cp.async.bulk.wait_group.read 0;\n";
  const std::string again = "bar.sync 0;\nst.shared.b32 [%a], 5;\n";
  kernel.body = store + done + again;
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], i);
  kernel.body = store + again + done;
  expectReport(kernel, RK::OverwriteWhileRead, "st.shared.b32 [%a], 5");
  // Groups belong to the thread that issued the copies.
  kernel.body =
      store + "setp.eq.u32 %p1, %t, 1;\n@%p1 cp.async.bulk.wait_group.read 0;\n" + again + done;
  expectReport(kernel, RK::OverwriteWhileRead, "st.shared.b32 [%a], 5");
  // Not committed: the wait does not cover it.
  kernel.body = replaced(store, "@%p0 cp.async.bulk.commit_group;\n", "") + done + again;
  expectReport(kernel, RK::OverwriteWhileRead, "st.shared.b32 [%a], 5");
}

// PTX ISA, "cp.async.bulk.tensor" to global memory, "cp.async.bulk.wait_group": what an epilogue
// does.
TEST(MachineHazards, TensorStores) {
  Kernel kernel;
  TensorMap map;
  map.rank = 2;
  map.elementBytes = 4;
  map.dims = {8, 16, 1, 1, 1};
  map.strides = {0, 32, 0, 0, 0};
  map.box = {8, 16, 1, 1, 1};
  kernel.maps = {map};
  kernel.mapsToOut = true;
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  const std::string done = "@%p0 cp.async.bulk.wait_group.read 0;\n";
  const std::string body = R"(
mov.b64 %d10, m0;
cvta.param.u64 %d10, %d10;
setp.ne.u32 %p1, %w, 0;
@%p1 bra STORED;
shl.b32 %r1, %t, 4;
add.s32 %r1, %s, %r1;
add.s32 %r2, %t, 1;
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r1], {%r2, %r2, %r2, %r2};
)" + fence + R"(STORED:
bar.sync 0;
@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d10, {0, 0}], [%s];
@%p0 cp.async.bulk.commit_group;
)";
  const std::string again = "bar.sync 0;\nst.shared.b32 [%a], 5;\n";
  kernel.body = body + done + again;
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], i % 32 + 1) << i;
  kernel.body = replaced(body, fence, "") + done + again;
  expectReport(kernel, RK::MissingProxyFence, "cp.async.bulk.tensor");
  kernel.body = body + again + done;
  expectReport(kernel, RK::OverwriteWhileRead, "st.shared.b32 [%a], 5");
  // The group before the last is over, not this one.
  kernel.body = body + replaced(done, "read 0", "read 1") + again + done;
  expectReport(kernel, RK::OverwriteWhileRead, "st.shared.b32 [%a], 5");
  kernel.body = body;
  expectReport(kernel, RK::UnfinishedAtExit, "cp.async.bulk.tensor");
}

TEST(MachineHazards, CopyOverWhatAWarpReads) {
  Kernel kernel;
  kernel.body = kInit + kLoad + wait(0) + kRead + "bar.sync 0;\n" + kLoad + wait(1);
  expectClean(kernel);
  // Whoever comes first: the load of another warp is seen before or after the copy is issued.
  kernel.body = kInit + kLoad + wait(0) + kRead + kLoad + wait(1);
  expectAny(kernel, {RK::OverwriteWhileRead, RK::ReadBeforeComplete});
}

TEST(MachineHazards, ProxyFenceBeforeABulkStore) {
  Kernel kernel;
  kernel.body = R"(
st.shared.b32 [%a], %t;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 512;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
)";
  expectClean(kernel);
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  Kernel without = kernel;
  without.body = replaced(kernel.body, fence, "");
  expectReport(without, RK::MissingProxyFence, "cp.async.bulk.global");
  // After the release it orders nothing of the other warps; before the store neither.
  without.body = replaced(replaced(kernel.body, fence, ""), "st.shared", fence + "st.shared");
  expectReport(without, RK::MissingProxyFence, "cp.async.bulk.global");
  // By the reader, on the path from the store: the model of the ISA takes that.
  without.body =
      replaced(replaced(kernel.body, fence, ""), "bar.sync 0;\n", "bar.sync 0;\n" + fence);
  expectClean(without);
  // An ordinary fence is none of these.
  without.body = replaced(kernel.body, fence, "fence.acq_rel.cta;\n");
  expectReport(without, RK::MissingProxyFence, "cp.async.bulk.global");
}

TEST(MachineHazards, DataRaces) {
  Kernel kernel;
  // The word of the neighbour in another warp.
  const std::string other = "xor.b32 %r1, %t, 32;\nshl.b32 %r1, %r1, 2;\nadd.s32 %r1, %s, %r1;\n";
  const std::string store = "st.shared.b32 [%a], %t;\n";
  const std::string load = "ld.shared.b32 %r0, [%r1];\nst.global.b32 [%o], %r0;\n";
  kernel.body = other + store + "bar.sync 0;\n" + load;
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[i], i ^ 32);
  kernel.body = other + store + load;
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_TRUE(result.has(RK::DataRace) || result.has(RK::Uninitialised)) << result.text();
  }
  // Write after read.
  kernel.body = other + store + "bar.sync 0;\n" + load + "st.shared.b32 [%a], 3;\n";
  expectReport(kernel, RK::DataRace, "st.shared.b32 [%a], 3");
  // Two writes of different values; of the same value they are none.
  kernel.body = "st.shared.b32 [%s], %w;\n";
  expectReport(kernel, RK::DataRace, "st.shared");
  kernel.body = "st.shared.b32 [%s], 4;\n";
  expectClean(kernel);
  kernel.body = "st.shared.b32 [%s], 4;\nld.shared.b32 %r0, [%s];\nst.global.b32 [%o], %r0;\n";
  expectClean(kernel);
  // A store that changes nothing does not come between another store and its reader.
  kernel.body = "setp.eq.u32 %p1, %w, 1;\nsetp.eq.u32 %p2, %w, 2;\n@%p0 st.shared.b32 [%s], 9;\n"
                "bar.sync 0;\n@%p1 st.shared.b32 [%s], 9;\n@%p2 ld.shared.b32 %r0, [%s];\n";
  expectClean(kernel);
  kernel.body = replaced(kernel.body, "@%p1 st.shared.b32 [%s], 9", "@%p1 st.shared.b32 [%s], 8");
  expectAny(kernel, {RK::DataRace});
  // Atomics do not race with each other.
  kernel.body = "@%p0 st.shared.b32 [%s], 0;\nbar.sync 0;\natom.shared.add.u32 %r0, [%s], 1;\n"
                "bar.sync 0;\nld.shared.b32 %r0, [%s];\nst.global.b32 [%o], %r0;\n";
  EXPECT_EQ(expectClean(kernel)[5], 128u);
}

TEST(MachineHazards, BytesOfAWordAreApart) {
  Kernel kernel;
  kernel.threads = 64;
  // Warp 0 writes the even halves, warp 1 the odd ones.
  kernel.body = R"(
.reg .b16 %h;
cvt.u16.u32 %h, %t;
and.b32 %r1, %t, 31;
shl.b32 %r1, %r1, 2;
mad.lo.u32 %r1, %w, 2, %r1;
add.s32 %r1, %s, %r1;
st.shared.b16 [%r1], %h;
bar.sync 0;
ld.shared.u16 %h, [%r1];
cvt.u32.u16 %r2, %h;
st.global.b32 [%o], %r2;
)";
  const std::vector<uint32_t> out = expectClean(kernel);
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i);
}

TEST(MachineHazards, FlagsInSharedMemory) {
  Kernel kernel;
  kernel.threads = 64;
  // Warp 0 hands a value to warp 1 by a flag.
  const std::string flag = R"(
@%p0 st.shared.b32 [%bar], 0;
bar.sync 0;
setp.ne.u32 %p1, %w, 0;
@%p1 bra TAKE;
st.shared.b32 [%a], %t;
bar.warp.sync -1;
@%p0 st.release.cta.shared.b32 [%bar], 1;
bra END;
TAKE:
ld.acquire.cta.shared.b32 %r1, [%bar];
setp.eq.u32 %p2, %r1, 0;
@%p2 bra TAKE;
ld.shared.b32 %r0, [%a+-128];
st.global.b32 [%o], %r0;
END:
)";
  kernel.body = flag;
  EXPECT_EQ(expectClean(kernel)[40], 8u);
  kernel.body = replaced(replaced(flag, "st.release.cta", "st.relaxed.cta"), "ld.acquire.cta",
                         "ld.relaxed.cta");
  expectReport(kernel, RK::DataRace, "ld.shared.b32 %r0");
  kernel.body =
      replaced(replaced(flag, "@%p0 st.release.cta", "fence.acq_rel.cta;\n@%p0 st.relaxed.cta"),
               "ld.acquire.cta", "ld.relaxed.cta");
  kernel.body = replaced(kernel.body, "ld.shared.b32 %r0", "fence.acq_rel.cta;\nld.shared.b32 %r0");
  expectClean(kernel);
}

TEST(MachineHazards, Uninitialised) {
  Kernel kernel;
  kernel.body = kRead;
  expectReport(kernel, RK::Uninitialised, "ld.shared");
  kernel.body = "st.shared.b32 [%a], %t;\n" + kRead;
  expectClean(kernel);
  // Half of a word pair.
  kernel.body = "st.shared.b32 [%s], 1;\nld.shared.b64 %d0, [%s];\n";
  expectReport(kernel, RK::Uninitialised, "ld.shared");
}

TEST(MachineHazards, Bounds) {
  Kernel kernel;
  kernel.body = "ld.shared.b32 %r0, [%s+16448];\n";
  expectReport(kernel, RK::OutOfBounds, "ld.shared");
  kernel.body = "ld.shared.b32 %r0, [16];\n";
  expectReport(kernel, RK::OutOfBounds, "ld.shared");
  kernel.body = "ld.global.b32 %r0, [%in+16384];\n";
  expectReport(kernel, RK::OutOfBounds, "ld.global");
  kernel.body = "ld.global.b32 %r0, [%in+16380];\n";
  expectClean(kernel);
  kernel.body = "st.global.b32 [%in], 1;\n";
  expectReport(kernel, RK::OutOfBounds, "st.global");
  kernel.body = "ld.global.v2.b32 {%r0, %r1}, [%in+4];\n";
  expectReport(kernel, RK::Misaligned, "ld.global");
  kernel.body = "ld.param.u64 %d0, [in+16];\n";
  expectReport(kernel, RK::OutOfBounds, "ld.param.u64 %d0");
  // A name with an offset reaches no other variable, even where one follows.
  for (const char *line :
       {"ld.param.u64 %d0, [in+8];", "ld.param.u32 %r0, [in+6];", "ld.param.u32 %r0, [out+-4];",
        ".shared .b32 one, two;\nst.shared.b32 [one+4], 1;",
        ".local .b8 four[4], more[4];\nld.local.v2.b16 {%r0, %r1}, [four+2];"}) {
    kernel.body = std::string(line) + "\n";
    const Result result = run(kernel, {});
    EXPECT_TRUE(result.has(RK::OutOfBounds)) << line << result.text();
    EXPECT_FALSE(result.finished) << line;
  }
  kernel.body = "ld.param.u32 %r0, [in+4];\nld.param.v2.u32 {%r0, %r1}, [out];\n";
  expectClean(kernel);
  kernel.body = kInit + replaced(replaced(kLoad, "[%s]", "[%bar]"), "1024;", "1024;");
  expectReport(kernel, RK::OutOfBounds, "cp.async.bulk");
}

TEST(MachineHazards, UnfinishedAtExit) {
  Kernel kernel;
  kernel.body = kInit + kLoad;
  expectReport(kernel, RK::UnfinishedAtExit, "cp.async.bulk");
  kernel.body = R"(
st.shared.b32 [%a], %t;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 512;
@%p0 cp.async.bulk.commit_group;
)";
  expectReport(kernel, RK::UnfinishedAtExit, "cp.async.bulk.global");
}

TEST(MachineHazards, CpAsync) {
  Kernel kernel;
  const std::string copy = R"(
mul.wide.u32 %d0, %t, 16;
add.s64 %d0, %in, %d0;
shl.b32 %r1, %t, 4;
add.s32 %r1, %s, %r1;
cp.async.cg.shared.global [%r1], [%d0], 16;
cp.async.commit_group;
)";
  const std::string use = "bar.sync 0;\n" + kRead;
  kernel.body = copy + "cp.async.wait_group 0;\n" + use;
  expectClean(kernel);
  kernel.body = copy + "cp.async.wait_all;\n" + use;
  expectClean(kernel);
  kernel.body = copy + use + "cp.async.wait_group 0;\n";
  expectReport(kernel, RK::ReadBeforeComplete, "ld.shared");
  kernel.body = copy + "cp.async.wait_group 1;\n" + use + "cp.async.wait_group 0;\n";
  expectReport(kernel, RK::ReadBeforeComplete, "ld.shared");
  // Completion by an mbarrier that expects every thread.
  const std::string init = replaced(kInit, "[%bar], 1", "[%bar], 128");
  const std::string arrive = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%bar];\n";
  kernel.body = init + copy + arrive + wait(0) + kRead;
  expectClean(kernel);
  kernel.body = init + copy + arrive + kRead + wait(0);
  expectReport(kernel, RK::ReadBeforeComplete, "ld.shared");
}
