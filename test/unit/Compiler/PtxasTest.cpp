// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading ptxas's output, and running it where there is one.

#include "Ptxas.h"

#include "llvm/Support/Program.h"

#include <gtest/gtest.h>

using namespace attn;

namespace {

constexpr const char *kClean =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'attn_forward' for 'sm_90a'\n"
    "ptxas info    : Function properties for attn_forward\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 16 barriers, 1024 bytes smem\n"
    "ptxas info    : Compile time = 829.637 ms\n";

constexpr const char *kSpilling =
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
    "register count at entry.\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'attn_forward' for 'sm_90a'\n"
    "ptxas info    : Function properties for attn_forward\n"
    "    48 bytes stack frame, 44 bytes spill stores, 40 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 16 barriers, 48 bytes cumulative stack size\n"
    "ptxas info    : Compiling entry function 'attn_forward_1' for 'sm_90a'\n"
    "ptxas info    : Function properties for attn_forward_1\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 32 registers\n"
    "ptxas warning : Registers are spilled to local memory in function 'attn_forward', 44 bytes "
    "spill stores, 40 bytes spill loads\n";

std::string ptxOf(const std::string &body) {
  return ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry attn_forward() {\n" +
         body + "ret;\n}\n";
}

std::string findPtxas() {
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : "";
}

std::string errorOf(llvm::StringRef program, const std::string &ptx,
                    llvm::StringRef chip = "sm_90a") {
  auto result = compiler::runPtxas(program, ptx, chip);
  return result ? "" : llvm::toString(result.takeError());
}

} // namespace

TEST(PtxasLog, OfACleanKernel) {
  compiler::PtxasReport report = compiler::parsePtxasLog(kClean);
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels[0].entry, "attn_forward");
  EXPECT_EQ(report.kernels[0].registers, 168u);
  EXPECT_EQ(report.kernels[0].sharedBytes, 1024u);
  EXPECT_EQ(report.kernels[0].spillStores, 0u);
  EXPECT_EQ(report.kernels[0].stackBytes, 0u);
  EXPECT_TRUE(report.complaints.empty());
  EXPECT_EQ(report.faults(), "");
}

TEST(PtxasLog, OfSpillsAndComplaints) {
  compiler::PtxasReport report = compiler::parsePtxasLog(kSpilling);
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].registers, 255u);
  EXPECT_EQ(report.kernels[0].stackBytes, 48u);
  EXPECT_EQ(report.kernels[0].spillStores, 44u);
  EXPECT_EQ(report.kernels[0].spillLoads, 40u);
  EXPECT_EQ(report.kernels[1].entry, "attn_forward_1");
  EXPECT_EQ(report.kernels[1].registers, 32u);
  EXPECT_EQ(report.kernels[1].spillStores, 0u);
  EXPECT_EQ(report.faults(),
            "attn_forward: 44 bytes of spill stores, 40 bytes of spill loads\n"
            "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
            "register count at entry.\n"
            "Registers are spilled to local memory in function 'attn_forward', 44 bytes spill "
            "stores, 40 bytes spill loads");
}

TEST(PtxasLog, OfNothing) {
  EXPECT_TRUE(compiler::parsePtxasLog("").kernels.empty());
  EXPECT_EQ(compiler::parsePtxasLog("ptxas info    : 0 bytes gmem\n").faults(), "");
}

TEST(Ptxas, ThatIsNotThereIsNamed) {
  EXPECT_NE(errorOf("/nowhere/ptxas", ptxOf("")).find("cannot run '/nowhere/ptxas': "),
            std::string::npos);
  EXPECT_EQ(errorOf("/bin/true", ptxOf("")), "'/bin/true' wrote no code");
  EXPECT_EQ(errorOf("/bin/false", ptxOf("")), "'/bin/false' fails with status 1:\n");
}

TEST(Ptxas, MakesTheSameCodeEachTime) {
  std::string program = findPtxas();
  if (program.empty())
    GTEST_SKIP() << "no ptxas";
  auto a = compiler::runPtxas(program, ptxOf(""), "sm_90a");
  ASSERT_TRUE(static_cast<bool>(a)) << llvm::toString(a.takeError());
  ASSERT_GT(a->cubin.size(), 4u);
  EXPECT_EQ(a->cubin[1], 'E');
  ASSERT_EQ(a->report.kernels.size(), 1u);
  EXPECT_GT(a->report.kernels[0].registers, 0u);
  EXPECT_EQ(a->report.faults(), "");
  auto b = compiler::runPtxas(program, ptxOf(""), "sm_90a");
  ASSERT_TRUE(static_cast<bool>(b)) << llvm::toString(b.takeError());
  EXPECT_EQ(a->cubin, b->cubin);
}

TEST(Ptxas, ErrorsArriveWhole) {
  std::string program = findPtxas();
  if (program.empty())
    GTEST_SKIP() << "no ptxas";
  std::string error = errorOf(program, ptxOf("no.such.instruction;\n"));
  EXPECT_NE(error.find("' fails with status "), std::string::npos) << error;
  EXPECT_NE(error.find("line 5"), std::string::npos) << error;
  EXPECT_NE(errorOf(program, ptxOf(""), "sm_1").find("sm_1"), std::string::npos);
}
