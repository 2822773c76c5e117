// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters of kernels that are counted by hand.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

/// What `body` adds to a kernel without a body: the start of every kernel here counts as well.
static Counters of(Kernel kernel, const std::string &body) {
  kernel.body = "";
  const Result none = run(kernel, {});
  kernel.body = body;
  expectClean(kernel);
  const Result result = run(kernel, {});
  Counters c = result.counters;
  for (uint64_t Counters::*field :
       {&Counters::instructions, &Counters::alu, &Counters::fp, &Counters::sfu, &Counters::loads,
        &Counters::stores, &Counters::branches, &Counters::barriers, &Counters::other,
        &Counters::paramLoadBytes})
    c.*field -= none.counters.*field;
  return c;
}

TEST(MachineCounters, InstructionsByClass) {
  Kernel kernel;
  kernel.threads = 64;
  const Counters c = of(kernel, R"(
add.s32 %r0, %t, 1;
mul.lo.u32 %r1, %r0, 3;
cvt.rn.f32.u32 %f0, %r0;
add.f32 %f1, %f0, %f0;
fma.rn.f32 %f1, %f1, %f0, %f0;
ex2.approx.f32 %f2, %f1;
st.shared.b32 [%a], %r0;
bar.sync 0;
ld.shared.b32 %r2, [%a];
setp.gt.u32 %p1, %t, 99;
@%p1 bra END;
atom.global.add.u32 %r3, [%out], 1;
cp.async.bulk.commit_group;
END:
)");
  // Two warps, one of which waits at the barrier.
  EXPECT_EQ(c.instructions, 2u * 13);
  EXPECT_EQ(c.sfu, 2u);
  EXPECT_EQ(c.fp, 2u * 2);
  EXPECT_EQ(c.alu, 2u * 4); // with the conversion and the comparison
  EXPECT_EQ(c.loads, 2u);
  EXPECT_EQ(c.stores, 2u * 2);
  EXPECT_EQ(c.branches, 2u);
  EXPECT_EQ(c.barriers, 2u);
  EXPECT_EQ(c.other, 2u);
  EXPECT_EQ(c.alu + c.fp + c.sfu + c.loads + c.stores + c.branches + c.barriers + c.other,
            c.instructions);
}

// A warp instruction counts once, however many lanes run it; both sides of a split warp count.
TEST(MachineCounters, SplitWarps) {
  Kernel kernel;
  kernel.threads = 32;
  EXPECT_EQ(of(kernel, "setp.lt.u32 %p1, %t, 7;\n@%p1 bra LOW;\nadd.s32 %r0, %t, 1;\nbra END;\n"
                       "LOW:\nadd.s32 %r0, %t, 2;\nEND:\n")
                .instructions,
            2u + 2 + 1);
  // A loop of 1 to 4 rounds, in all 4.
  EXPECT_EQ(of(kernel,
               "and.b32 %r0, %t, 3;\nLOOP:\nsub.s32 %r0, %r0, 1;\nsetp.ge.s32 %p1, %r0, 0;\n"
               "@%p1 bra LOOP;\n")
                .instructions,
            1u + 3 * 4);
}

TEST(MachineCounters, BytesBySpace) {
  Kernel kernel;
  kernel.threads = 64;
  kernel.outWords = 1024;
  const Counters c = of(kernel, R"(
.local .align 8 .b8 depot[16];
setp.lt.u32 %p1, %t, 5;
mul.wide.u32 %d0, %t, 16;
add.s64 %d1, %in, %d0;
add.s64 %d2, %out, %d0;
ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d1];
st.global.v2.b32 [%d2], {%r0, %r1};
@%p1 ld.global.b32 %r4, [%in];
shl.b32 %r5, %t, 4;
add.s32 %r5, %s, %r5;
st.shared.v2.b64 [%r5], {%d1, %d2};
@%p1 ld.shared.b64 %d3, [%r5];
st.local.b64 [depot], %d1;
@%p1 ld.local.b16 %r6, [depot+2];
ld.param.b64 %d4, [in];
)");
  EXPECT_EQ(c.globalLoadBytes, 64u * 16 + 5 * 4);
  EXPECT_EQ(c.globalStoreBytes, 64u * 8);
  EXPECT_EQ(c.sharedStoreBytes, 64u * 16);
  EXPECT_EQ(c.sharedLoadBytes, 5u * 8);
  EXPECT_EQ(c.localStoreBytes, 64u * 8);
  EXPECT_EQ(c.localLoadBytes, 5u * 2);
  EXPECT_EQ(c.paramLoadBytes, 64u * 8);
  EXPECT_EQ(c.clusterLoadBytes + c.clusterStoreBytes, 0u);
}

TEST(MachineCounters, Copies) {
  Kernel kernel;
  const Counters c = of(kernel, kInit + kLoad + wait(0) + R"(
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 256;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%out+256], [%s+256], 256;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
shl.b32 %r1, %t, 4;
add.s32 %r2, %s, %r1;
mul.wide.u32 %d0, %t, 16;
add.s64 %d0, %in, %d0;
cp.async.cg.shared.global [%r2+2048], [%d0], 16, 4;
cp.async.wait_all;
)");
  EXPECT_EQ(c.tmaLoads, 1u);
  EXPECT_EQ(c.tmaLoadBytes, 1024u);
  EXPECT_EQ(c.tmaStores, 2u);
  EXPECT_EQ(c.tmaStoreBytes, 512u);
  EXPECT_EQ(c.globalLoadBytes, 128u * 4); // 4 bytes of 16 are read, the rest is zeros
  EXPECT_EQ(c.sharedStoreBytes, 128u * 16);
  EXPECT_EQ(c.globalStoreBytes, 0u);
}

// 32 banks of 4 bytes; accesses of 8 and 16 bytes go half and quarter warps at a time.
TEST(MachineCounters, BankConflicts) {
  Kernel kernel;
  kernel.threads = 32;
  auto conflicts = [&](int stride, const std::string &type) {
    const std::string value = type == "v2.b64" ? "{%d0, %d0}" : type == "b64" ? "%d0" : "%t";
    return of(kernel, "mov.b64 %d0, 1;\nmad.lo.u32 %r1, %t, " + std::to_string(stride) +
                          ", %s;\nst.shared." + type + " [%r1], " + value + ";\n")
        .bankConflicts;
  };
  EXPECT_EQ(conflicts(4, "b32"), 0u);
  EXPECT_EQ(conflicts(8, "b32"), 1u);     // 16 banks, two words each
  EXPECT_EQ(conflicts(128, "b32"), 31u);  // one bank
  EXPECT_EQ(conflicts(132, "b32"), 0u);   // a row longer by a word
  EXPECT_EQ(conflicts(8, "b64"), 0u);     // two halves of 32 words
  EXPECT_EQ(conflicts(16, "b64"), 2u);    // each half: 16 banks, two words each
  EXPECT_EQ(conflicts(16, "v2.b64"), 0u); // four quarters of 32 words
  EXPECT_EQ(conflicts(128, "v2.b64"), 4u * 7);
  // One word for all is none.
  EXPECT_EQ(of(kernel, "st.shared.b32 [%s], 1;\nld.shared.b32 %r0, [%s];\n").bankConflicts, 0u);
}

// 2 m n k for a product of a warpgroup.
TEST(MachineCounters, Products) {
  Kernel kernel;
  std::string accumulators;
  for (int i = 0; i < 4; ++i)
    accumulators += (i ? ", %f" : "%f") + std::to_string(i);
  const std::string product = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {" +
                              accumulators + "}, %d1, %d2, 0, 1, 1, 0, 0;\n";
  std::string clear;
  for (int i = 0; i < 16; ++i)
    clear += "st.shared.b32 [%a+" + std::to_string(512 * i) + "], 0;\n";
  const std::string body = clear + R"(fence.proxy.async.shared::cta;
bar.sync 0;
and.b32 %r1, %s, 0x3ffff;
shr.u32 %r1, %r1, 4;
cvt.u64.u32 %d1, %r1;
or.b64 %d1, %d1, 0x800080000;
or.b64 %d1, %d1, 0x80000;
mov.b64 %d2, %d1;
wgmma.fence.sync.aligned;
)";
  const std::string end = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  Counters c = of(kernel, body + product + end);
  EXPECT_EQ(c.wgmmas, 1u);
  EXPECT_EQ(c.mmaFlops, 2.0 * 64 * 8 * 16);
  kernel.threads = 256;
  kernel.shared = 32 * 1024;
  c = of(kernel, body + product + product + product + end);
  EXPECT_EQ(c.wgmmas, 6u);
  EXPECT_EQ(c.mmaFlops, 6 * 2.0 * 64 * 8 * 16);
}
