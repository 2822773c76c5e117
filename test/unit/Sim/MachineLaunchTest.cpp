// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch refuses before anything runs: sizes, clusters, instructions; and policies by name.
#include "MachineSupport.h"

using namespace attn::sim;
using namespace attn::sim::machine;

using RK = Report::Kind;

static void expectError(const Kernel &kernel, const std::string &error) {
  EXPECT_EQ(run(kernel, {}).error, "launch: " + error);
}

TEST(MachineLaunch, Policies) {
  ASSERT_TRUE(parsePolicy("earliest").ok());
  EXPECT_EQ(parsePolicy("earliest")->kind, Policy::Kind::Earliest);
  EXPECT_EQ(parsePolicy("latest")->kind, Policy::Kind::Latest);
  EXPECT_EQ(parsePolicy("random:18446744073709551615")->kind, Policy::Kind::Random);
  EXPECT_EQ(parsePolicy("random:18446744073709551615")->seed, ~uint64_t(0));
  for (const char *text : {"", "Earliest", "lates", "latest ", "random", "random:", "random:x",
                           "random:1x", "random:-1", "random:18446744073709551616"}) {
    const auto policy = parsePolicy(text);
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_EQ(policy.message(),
              "policy '" + std::string(text) + "', expected earliest, latest or random:SEED");
  }
}

TEST(MachineLaunch, Blocks) {
  Kernel kernel;
  kernel.threads = 256;
  kernel.directives = ".maxntid 16, 16\n";
  expectClean(kernel);
  kernel.directives = ".maxntid 128\n";
  expectError(kernel, "a block of 256 threads, expected at most 128");
  kernel.directives = ".maxntid 2147483647, 2147483647, 2147483647\n";
  expectClean(kernel);
  kernel.directives = ".reqntid 128\n";
  expectError(kernel, "the kernel requires another block size");
}

// "Performance-Tuning Directives: .maxnreg, .minnctapersm": what setmaxnreg starts from.
TEST(MachineLaunch, Registers) {
  Kernel kernel;
  kernel.directives = ".maxnreg 40\n";
  kernel.body = "setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.inc.sync.aligned.u32 48;\n";
  expectClean(kernel);
  kernel.body = "setmaxnreg.dec.sync.aligned.u32 48;\n";
  expectReport(kernel, RK::Registers, "setmaxnreg");
  // Two CTAs of an SM have 32768 registers each: 256 threads, 128 each.
  kernel.threads = 256;
  kernel.directives = ".minnctapersm 2\n";
  kernel.body = "setmaxnreg.dec.sync.aligned.u32 128;\n";
  expectClean(kernel);
  kernel.body = "setmaxnreg.dec.sync.aligned.u32 136;\n";
  expectReport(kernel, RK::Registers, "setmaxnreg");
  kernel.threads = 1024;
  kernel.directives = ".maxnreg 72\n";
  expectError(kernel, "72 registers for each of 1024 threads, an SM has 65536");
  kernel.threads = 32;
  kernel.directives = ".maxnreg 300\n";
  expectError(kernel, "300 registers for each of 32 threads, an SM has 65536");
}

TEST(MachineLaunch, Clusters) {
  Kernel kernel;
  kernel.ctas = 6;
  kernel.cluster = {4, 1, 1};
  expectError(kernel, "a grid of 6x1x1 CTAs is no multiple of clusters of 4x1x1");
  kernel.cluster = {9, 1, 1};
  expectError(kernel, "a cluster of 9x1x1 CTAs, expected at most 8");
  kernel.cluster = {3, 2, 2};
  expectError(kernel, "a cluster of 3x2x2 CTAs, expected at most 8");
  kernel.cluster = {3, 0, 1};
  expectError(kernel, "a cluster of 3x0x1 CTAs, expected at most 8");
  kernel.cluster = {3, 1, 1};
  expectClean(kernel);
  kernel.directives = ".reqnctapercluster 2\n";
  expectError(kernel, "a cluster of 3x1x1 CTAs, but the kernel requires another");
  kernel.cluster = {0, 0, 0};
  expectClean(kernel);
  kernel.directives = ".explicitcluster\n";
  expectError(kernel, "the kernel has .explicitcluster, expected a cluster");
  kernel.directives = ".reqntid 128 .reqnctapercluster 2 .blocksareclusters\n";
  expectError(kernel, ".blocksareclusters is not supported");
}

// Whatever is asked for: an error, not an exception and not all memory of the host.
TEST(MachineLaunch, HugeSizes) {
  Kernel kernel;
  kernel.outWords = 1;
  kernel.shared = 0xFFFFFFFF;
  expectError(kernel, "4294967295 bytes of shared memory, expected at most 232448");
  kernel.shared = 0;
  kernel.ctas = 0x7FFFFFFF;
  kernel.body = "ld.shared.b32 %r0, [16];\n";
  Result result = run(kernel, {});
  EXPECT_TRUE(result.has(RK::OutOfBounds)) << result.text();
  kernel.hostThreads = 2;
  kernel.body = "";
  kernel.maxSteps = 100;
  result = run(kernel, {});
  EXPECT_TRUE(result.has(RK::StepLimit)) << result.text();
  kernel.ctas = 8;
  kernel.threads = 1024;
  kernel.body = ".local .b8 depot[500000];\nst.local.b8 [depot], 1;\n";
  result = run(kernel, {});
  EXPECT_NE(result.error.find("registers and local variables for a CTA, of which 2 run at once"),
            std::string::npos)
      << result.error;
  kernel.threads = 32;
  kernel.body = ".local .b8 depot[2147483647];\nst.local.b8 [depot], 1;\n";
  EXPECT_NE(run(kernel, {}).error, "");
}

// PTX ISA, "atom": CTAs that stay take tiles from a counter in global memory; "griddepcontrol":
// there is no grid before.
TEST(MachineLaunch, TilesFromACounter) {
  Kernel kernel;
  kernel.ctas = 3;
  kernel.outWords = 20;
  kernel.hostThreads = 2;
  kernel.body = R"(
griddepcontrol.wait;
NEXT:
@%p0 atom.global.add.u32 %r1, [%out], 1;
@%p0 st.shared.b32 [%s], %r1;
bar.sync 0;
ld.shared.b32 %r1, [%s];
bar.sync 0;
setp.ge.u32 %p1, %r1, 12;
@%p1 bra END;
mul.wide.u32 %d0, %r1, 4;
add.s64 %d0, %out, %d0;
@%p0 red.global.add.u32 [%d0+4], 1;
bra NEXT;
END:
griddepcontrol.launch_dependents;
)";
  const std::vector<uint32_t> out = expectClean(kernel);
  EXPECT_EQ(out[0], 15u);
  for (uint32_t i = 1; i < 20; ++i)
    EXPECT_EQ(out[i], i <= 12 ? 1u : 0u) << i;
}

// Every instruction is understood whole or refused.
TEST(MachineLaunch, RefusedInstructions) {
  const std::pair<const char *, const char *> cases[] = {
      {"and.pred %p1, !%p2, %p3;", "negated operand"},
      {"and.pred %p1, %p2, !%p3;", "negated operand"},
      {"ld.global.shared.b32 %r0, [%in];", "unknown modifier 'shared'"},
      {"ld.shared.shared::cta.b32 %r0, [%s];", "unknown modifier 'shared::cta'"},
      {"st.shared::cluster.local.b32 [%s], %r0;", "unknown modifier 'local'"},
      {"atom.global.shared.add.u32 %r0, [%in], 1;", "unknown modifier 'shared'"},
      {"ld.global.f16x2 %r0, [%in];", "unknown modifier 'f16x2'"},
      {"mov.u32 %r0, %clock;", "special register '%clock'"},
      {"mov.u32 %r0, %is_explicit_cluster;", "is no operand of 32 bits"},
      {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 64, %bar;",
       "expected an address in brackets"},
      {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], %in, 64, [%bar];",
       "expected an address in brackets"},
      {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%r1], 64, [%bar];",
       "address of 32 bits, expected 64"},
      {"cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in, "
       "{%r0}], "
       "%bar;",
       "expected an address in brackets"},
      {"cp.async.bulk.tensor.1d.global.shared::cluster.bulk_group [%in, {%r0}], [%s];",
       "unknown form"},
      {"cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster "
       "[%s], [%in, {%r0}], [%bar], %r1;",
       "unknown modifier 'multicast::cluster'"},
      {"mbarrier.try_wait.parity.shared::cluster.b64 %p1, [%bar], 0;", "expected .shared::cta"},
      {"mbarrier.arrive.release.cluster.shared::cluster.b64 %d0, [%bar];", "expected '_'"},
      {"barrier.cluster.wait.relaxed;", "unknown modifier 'relaxed'"},
      {"cp.async.ca.shared.global [%s], %in, 16;", "expected an address in brackets"},
      {"prefetch.tensormap %in;", "expected an address in brackets"},
      {"prefetch.global [%in];", "unknown form"},
      {"prefetch.tensormap.L2 [%in];", "unknown modifier 'L2'"}};
  for (const auto &[body, why] : cases) {
    Kernel kernel;
    kernel.body = std::string(body) + "\n";
    const Result result = run(kernel, {});
    ASSERT_EQ(result.error, "") << body;
    ASSERT_EQ(result.reports.size(), 1u) << body << "\n" << result.text();
    EXPECT_EQ(result.reports[0].kind, RK::Unsupported) << body;
    EXPECT_NE(result.reports[0].text.find(why), std::string::npos) << result.text();
  }
}
