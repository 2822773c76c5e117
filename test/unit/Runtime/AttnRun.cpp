// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attn-run tool on artifacts that hold the hand-written kernel: what it computes, what it
// refuses, with which exit status and which file left behind.
#include "attn/Core/Tensor.h"
#include "attn/Runtime/Safetensors.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

class AttnRun : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/attn-run-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    artifact = path("tiny.attn");
    Status written = writeArtifact(tinyArtifact(), artifact);
    ASSERT_TRUE(written) << written.message();
    write("batch.json", batch(""));
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -r '" + folder + "'").c_str()), 0); }

  std::string path(const std::string &name) const { return folder + "/" + name; }
  void write(const std::string &name, const std::string &text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  bool exists(const std::string &name) const { return access(path(name).c_str(), F_OK) == 0; }

  static std::string batch(const std::string &more) {
    return R"({"requests": [{"query_len": 8, "seq_len": 8, "mm_ranges": [[1, 3], [5, 7]]},
                            {"query_len": 0, "seq_len": 0},
                            {"query_len": 6, "seq_len": 13, "mm_ranges": [[2, 4], [9, 12]]},
                            {"query_len": 4, "seq_len": 2}],
               "params": {"left": 3, "scale": 0.3},
               "tables": {"slopes": {"recipe": "alibi", "total_heads": 8, "first_head": 4}})" +
           more + "}";
  }

  /// Runs the tool; `arguments` may say @ for this test's folder. Sets text and status.
  void run(const std::string &arguments) { runShell(ATTN_RUN " " + arguments); }
  /// The same for a command of the shell.
  void runShell(const std::string &text) {
    std::string command = text + " 2>&1";
    for (size_t at; (at = command.find('@')) != std::string::npos;)
      command.replace(at, 1, folder);
    FILE *pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    output.clear();
    char buffer[512];
    while (size_t n = fread(buffer, 1, sizeof(buffer), pipe))
      output.append(buffer, n);
    const int raw = pclose(pipe);
    status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  }

  void expectRefusal(const std::string &arguments, std::string message) {
    run(arguments + " --output=@/out.safetensors");
    for (size_t at; (at = message.find('@')) != std::string::npos;)
      message.replace(at, 1, folder);
    EXPECT_EQ(output, "attn-run: error: " + message + "\n");
    EXPECT_EQ(status, 2);
    EXPECT_FALSE(exists("out.safetensors"));
  }

  std::string folder, artifact, output;
  int status = -1;
};

TEST_F(AttnRun, HelpAndVersion) {
  run("--help");
  EXPECT_EQ(status, 0);
  EXPECT_EQ(output.substr(0, 45), "usage: attn-run ARTIFACT --batch BATCH.json [");
  run("--version");
  EXPECT_EQ(status, 0);
  EXPECT_EQ(output.substr(0, 11), "attn-run 0.");
}

TEST_F(AttnRun, ChecksDenseAndPaged) {
  run("@/tiny.attn --batch @/batch.json --check --seed=5");
  EXPECT_EQ(status, 0) << output;
  EXPECT_NE(output.find("check: 72 rows against the reference\n"), std::string::npos) << output;
  EXPECT_NE(output.find("\n  ok\n"), std::string::npos) << output;
  EXPECT_NE(output.find("inputs: random normal, seed 5\n"), std::string::npos) << output;
  write("paged.json", batch(", \"page_size\": 4"));
  run("@/tiny.attn --batch @/paged.json --device=cpu --check --threads 3");
  EXPECT_EQ(status, 0) << output;
  EXPECT_NE(output.find("23 keys in pages of 4, in scrambled order\n"), std::string::npos)
      << output;
}

TEST_F(AttnRun, BlockTableWithJunkAndSharedPages) {
  // Request 2 shares page 5 with request 0; entries past the live pages are junk.
  std::string text = batch(", \"page_size\": 8");
  text.replace(text.find("\"seq_len\": 8,"), 13,
               "\"seq_len\": 8, \"block_table\": [5, -1, 1073741824],");
  text.replace(text.find("\"seq_len\": 13,"), 14, "\"seq_len\": 13, \"block_table\": [70000, 5],");
  text.replace(text.find("\"seq_len\": 2}"), 13, "\"seq_len\": 2, \"block_table\": [0]}");
  write("pages.json", text);
  run("@/tiny.attn --batch @/pages.json --check");
  EXPECT_EQ(status, 0) << output;
  EXPECT_NE(output.find("in pages of 8, as the batch places them\n"), std::string::npos) << output;
}

TEST_F(AttnRun, OutputsOfBothDevicesAgree) {
  run("@/tiny.attn --batch @/batch.json --output @/cpu.safetensors");
  ASSERT_EQ(status, 0) << output;
  run("@/tiny.attn --batch @/batch.json --device reference --output @/ref.safetensors");
  ASSERT_EQ(status, 0) << output;
  Result<rt::SafetensorsFile> cpu = rt::SafetensorsFile::read(path("cpu.safetensors"));
  Result<rt::SafetensorsFile> reference = rt::SafetensorsFile::read(path("ref.safetensors"));
  ASSERT_TRUE(cpu && reference);
  EXPECT_EQ(cpu->find("o")->shape, (std::vector<int64_t>{18, 4, 6}));
  EXPECT_EQ(cpu->find("lse")->shape, (std::vector<int64_t>{4, 18}));
  EXPECT_EQ(cpu->find("o")->dtype, rt::FileDType::F32);
  EXPECT_EQ(reference->find("o")->dtype, rt::FileDType::F64);
  for (const char *name : {"o", "lse"}) {
    const rt::FileTensor &a = *cpu->find(name), &b = *reference->find(name);
    ASSERT_EQ(a.size * 2, b.size);
    for (size_t i = 0; i < a.size / 4; ++i) {
      float x;
      double y;
      std::memcpy(&x, a.data + 4 * i, 4);
      std::memcpy(&y, b.data + 8 * i, 8);
      if (std::isinf(y))
        EXPECT_EQ(x, y);
      else
        EXPECT_NEAR(x, y, 1e-5);
    }
  }
}

TEST_F(AttnRun, InputsAndTablesFromAFile) {
  // K = 0 and V = 1: o is 1, lse is log of the visible keys once the slopes are 0.
  std::vector<float> q(18 * 32, 0.5f), k(23 * 16, 0), v(23 * 12, 1), slopes(4, 0);
  auto tensor = [](const char *name, std::vector<int64_t> shape, const std::vector<float> &data) {
    return rt::FileTensor{name, rt::FileDType::F32, std::move(shape),
                          reinterpret_cast<const uint8_t *>(data.data()), data.size() * 4};
  };
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"),
                                   {tensor("q", {18, 4, 8}, q), tensor("k", {23, 2, 8}, k),
                                    tensor("v", {23, 2, 6}, v), tensor("slopes", {4}, slopes)}));
  std::string text = batch("");
  text.replace(text.find("\"tables\""), 8, "\"tables\": {}, \"page_size\": 4}");
  text.resize(text.find("\"page_size\": 4}") + 15);
  write("plain.json", text);
  run("@/tiny.attn --batch @/plain.json --inputs @/in.safetensors --check --output "
      "@/out.safetensors");
  ASSERT_EQ(status, 0) << output;
  Result<rt::SafetensorsFile> out = rt::SafetensorsFile::read(path("out.safetensors"));
  ASSERT_TRUE(out);
  std::vector<float> lse(4 * 18);
  std::memcpy(lse.data(), out->find("lse")->data, lse.size() * 4);
  // Tokens 0..7: causal with 3 older keys, or the same range; then 7..12 of the second request;
  // then 4 queries on 2 keys, the first two of which see none.
  const int expected[18] = {1, 4, 4, 4, 4, 6, 5, 4, 4, 4, 7, 6, 5, 4, 0, 0, 1, 2};
  for (int t = 0; t < 18; ++t)
    EXPECT_EQ(std::lround(std::exp(lse[18 + t])), expected[t]) << "token " << t;
}

TEST_F(AttnRun, AWrongKernelFailsTheCheck) {
  // The same code with a spec whose mask has no ranges: the check must see the difference.
  Artifact wrong = tinyArtifact();
  KernelSpec &spec = wrong.kernels[0].spec;
  spec.program.mask = 3;
  ASSERT_TRUE(writeArtifact(wrong, path("wrong.attn")));
  run("@/wrong.attn --batch @/batch.json --check --output @/out.safetensors");
  EXPECT_EQ(status, 1) << output;
  EXPECT_NE(output.find("\n  FAILED\n"), std::string::npos) << output;
  EXPECT_FALSE(exists("out.safetensors"));
}

/// Operands of the batch: Q and K are 0, so the weights of a row are equal.
std::vector<rt::FileTensor> operands(const std::vector<float> &v) {
  static const std::vector<float> zero(18 * 32, 0);
  auto tensor = [](const char *name, std::vector<int64_t> shape, const std::vector<float> &data) {
    const int64_t elements = shape[0] * shape[1] * shape[2];
    return rt::FileTensor{name, rt::FileDType::F32, std::move(shape),
                          reinterpret_cast<const uint8_t *>(data.data()),
                          static_cast<size_t>(elements) * sizeof(float)};
  };
  return {tensor("q", {18, 4, 8}, zero), tensor("k", {23, 2, 8}, zero), tensor("v", {23, 2, 6}, v)};
}

TEST_F(AttnRun, ARowWhoseTermsCancelIsMeasuredAgainstThem) {
  // Neighbouring keys nearly cancel: rows of an even number of keys are a millionth of their terms,
  // so that f32 cannot give five digits of them.
  std::vector<float> v(23 * 12);
  for (int64_t key = 0; key < 23; ++key)
    for (int64_t i = 0; i < 12; ++i)
      v[key * 12 + i] = (key % 2 ? -1.0f : 1.0f) * (1.0f + 1e-6f * static_cast<float>(i + key % 5));
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"), operands(v)));
  run("@/tiny.attn --batch @/batch.json --inputs @/in.safetensors --check");
  EXPECT_EQ(status, 0) << output;
  EXPECT_NE(output.find(" rows, whose terms cancel, measured against the size of the terms\n"),
            std::string::npos)
      << output;

  // The floor does not hide a wrong mask on the same values.
  Artifact wrong = tinyArtifact();
  wrong.kernels[0].spec.program.mask = 3;
  ASSERT_TRUE(writeArtifact(wrong, path("wrong.attn")));
  run("@/wrong.attn --batch @/batch.json --inputs @/in.safetensors --check");
  EXPECT_EQ(status, 1) << output;
}

TEST_F(AttnRun, Bench) {
  run("@/tiny.attn --batch @/batch.json --bench");
  EXPECT_EQ(status, 0) << output;
  EXPECT_NE(output.find("cpu: median "), std::string::npos) << output;
  run("@/tiny.attn --batch @/batch.json --bench --device=reference");
  EXPECT_NE(output.find("reference: median "), std::string::npos) << output;
}

TEST_F(AttnRun, EmptyBatch) {
  write("empty.json", R"({"requests": [], "params": {"left": 3, "scale": 1},
                          "tables": {"slopes": [0, 0, 0, 0]}, "page_size": 16})");
  run("@/tiny.attn --batch @/empty.json --check --output @/out.safetensors");
  EXPECT_EQ(status, 0) << output;
  EXPECT_TRUE(exists("out.safetensors"));
}

TEST_F(AttnRun, SeveralKernels) {
  Artifact two = tinyArtifact("first");
  two.kernels.push_back(tinyArtifact("second").kernels[0]);
  ASSERT_TRUE(writeArtifact(two, path("two.attn")));
  expectRefusal("@/two.attn --batch @/batch.json",
                "@/two.attn: holds several kernels, choose one with --kernel (first, second)");
  expectRefusal("@/two.attn --batch @/batch.json --kernel=third",
                "@/two.attn: no kernel 'third' (it has: first, second)");
  run("@/two.attn --batch @/batch.json --kernel=second --check");
  EXPECT_EQ(status, 0) << output;
  EXPECT_EQ(output.substr(0, 14), "kernel second:");
}

TEST_F(AttnRun, RefusedCommandLines) {
  expectRefusal("", "no artifact given; see --help");
  expectRefusal("@/tiny.attn", "no batch given (--batch); see --help");
  expectRefusal("@/tiny.attn extra --batch @/batch.json",
                "unexpected argument 'extra'; see --help");
  expectRefusal("@/tiny.attn --batch @/batch.json --fast", "unknown option '--fast'; see --help");
  expectRefusal("@/tiny.attn --batch @/batch.json --device=reference --check",
                "--check: device 'reference' is the judge and cannot judge itself; choose another "
                "device");
  expectRefusal("@/tiny.attn --batch @/batch.json --device=cuda --threads=2",
                "--threads: device 'cuda' has its own threads, expected device 'cpu' or 'sim'");
  expectRefusal("@/tiny.attn --batch @/batch.json --device=sim --bench",
                "--bench: device 'sim' says nothing about the time a GPU takes, expected another "
                "device");
  expectRefusal("@/tiny.attn --batch @/batch.json --sim-policy=latest",
                "--sim-policy: device 'cpu' has no policy, expected device 'sim'");
  for (const char *policy : {"late", "random", "random:", "random:x", "random:1 "})
    expectRefusal("@/tiny.attn --batch @/batch.json --device=sim --sim-policy='" +
                      std::string(policy) + "'",
                  "--sim-policy: policy '" + std::string(policy) +
                      "', expected earliest, latest or random:SEED");
  expectRefusal("@/tiny.attn --batch @/batch.json --device=tpu",
                "--device: unknown device 'tpu' (available: reference, cpu, sim, cuda)");
  expectRefusal("@/tiny.attn --batch @/batch.json --seed=-1",
                "--seed: expected a number from 0 to 18446744073709551615, got '-1'");
  expectRefusal("@/tiny.attn --batch @/batch.json --threads=0",
                "--threads: expected a number from 1 to 1024, got '0'");
  expectRefusal("@/tiny.attn --batch @/batch.json --device=reference --threads=2",
                "--threads: device 'reference' has one thread, expected device 'cpu' or 'sim'");
  for (const char *option :
       {"--batch", "--kernel", "--inputs", "--device", "--seed", "--threads", "--sim-policy"}) {
    expectRefusal("@/tiny.attn --batch @/batch.json " + std::string(option) + "=",
                  std::string(option) + ": expected a value, got ''");
    expectRefusal("@/tiny.attn --batch @/batch.json " + std::string(option) + " ''",
                  std::string(option) + ": expected a value, got ''");
  }
  run("@/tiny.attn --batch @/batch.json --output ''");
  EXPECT_EQ(output, "attn-run: error: --output: expected a value, got ''\n");
  EXPECT_EQ(status, 2);
  run("@/tiny.attn --batch @/batch.json --output -");
  EXPECT_EQ(output, "attn-run: error: --output: '-' would mix the results with the report on "
                    "standard output, expected a file (./- for one of that name)\n");
  EXPECT_EQ(status, 2);
  run("@/tiny.attn --batch");
  EXPECT_EQ(output, "attn-run: error: option '--batch' needs a value; see --help\n");
  EXPECT_EQ(status, 2);
}

TEST_F(AttnRun, AFullStandardOutputIsReported) {
  if (!std::ifstream("/dev/full"))
    GTEST_SKIP() << "no /dev/full";
  for (const char *arguments :
       {"--help", "--version", "@/tiny.attn --batch @/batch.json --check --output @/out",
        "@/tiny.attn --batch @/batch.json --device=reference --output @/out"}) {
    // The outer redirection of run() keeps standard error apart.
    const std::string text = std::string("( ") + ATTN_RUN + " " + arguments + " >/dev/full )";
    runShell(text);
    EXPECT_EQ(output, "attn-run: error: cannot write standard output: No space left on device\n");
    EXPECT_EQ(status, 2) << arguments;
    EXPECT_FALSE(exists("out"));
  }
}

TEST_F(AttnRun, ASeedWithoutAUseIsRefused) {
  const std::vector<float> v(23 * 12, 1);
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"), operands(v)));
  expectRefusal("@/tiny.attn --batch @/batch.json --inputs @/in.safetensors --seed=1",
                "--seed: nothing is random, the tensors come from --inputs");
  write("paged.json", batch(", \"page_size\": 4"));
  run("@/tiny.attn --batch @/paged.json --inputs @/in.safetensors --seed=1");
  EXPECT_EQ(status, 0) << output;
}

TEST_F(AttnRun, ABatchPastTheMemoryIsRefused) {
  // 64 requests of 2^30 - 1 tokens, in 4 heads: q and o take 8 + 6 floats, lse one, in each; k and
  // v of 2 heads, 16 bytes for the ranges of a token.
  std::string requests;
  for (int i = 0; i < 64; ++i)
    requests += std::string(i ? "," : "") + R"({"query_len": 1073741823, "seq_len": 3})";
  write("huge.json",
        R"({"requests": [)" + requests +
            R"(], "params": {"left": 3, "scale": 1}, "tables": {"slopes": [0,0,0,0]}})");
  run("@/tiny.attn --batch @/huge.json --output @/out");
  EXPECT_EQ(status, 2);
  EXPECT_EQ(output.find("attn-run: error: " + path("huge.json") + ": needs "), 0u) << output;
  double needed = 0, present = 0;
  ASSERT_EQ(std::sscanf(output.c_str() + output.find(": needs "),
                        ": needs %lf GiB of memory for its tensors, this machine has %lf GiB",
                        &needed, &present),
            2)
      << output;
  EXPECT_GE(needed, 64 * 4 * 15 * 4);
  EXPECT_LT(needed, 64 * 4 * 15 * 4 * 1.1);
  EXPECT_GT(present, 0);
  EXPECT_FALSE(exists("out"));
}

TEST_F(AttnRun, TablesNamedLikeOperands) {
  Artifact artifact = tinyArtifact();
  // On the reference alone: the hand-written code says how its tables are named.
  for (TableDecl &decl : artifact.kernels[0].spec.program.tables)
    if (decl.name == "slopes")
      decl.name = "q";
  artifact.kernels[0].binaries.clear();
  artifact.blobs.clear();
  ASSERT_TRUE(writeArtifact(artifact, path("shadow.attn")));
  std::string text = batch("");
  text.replace(text.find("\"tables\""), text.size(), "\"tables\": {}}");
  write("plain.json", text);
  const std::vector<float> v(23 * 12, 1), slopes(4, 0.5f);
  std::vector<rt::FileTensor> tensors = operands(v);
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"), tensors));
  expectRefusal("@/shadow.attn --batch @/plain.json --inputs=@/in.safetensors --device=reference",
                "@/in.safetensors: tensor 'tables.q': missing, expected table 'q' of kernel 'tiny' "
                "here or in the batch (tensor 'q' is the operand)");
  tensors.push_back(
      {"tables.q", rt::FileDType::F32, {4}, reinterpret_cast<const uint8_t *>(slopes.data()), 16});
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"), tensors));
  run("@/shadow.attn --batch @/plain.json --inputs=@/in.safetensors --device=reference --output "
      "@/a");
  EXPECT_EQ(status, 0) << output;
  // The same values from the batch give the same result; the other name serves every table.
  text.replace(text.find("{}}"), 3, "{\"q\": [0.5, 0.5, 0.5, 0.5]}}");
  write("given.json", text);
  tensors.pop_back();
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"), tensors));
  run("@/shadow.attn --batch @/given.json --inputs=@/in.safetensors --device=reference --output "
      "@/b");
  EXPECT_EQ(status, 0) << output;
  tensors.push_back({"tables.slopes",
                     rt::FileDType::F32,
                     {4},
                     reinterpret_cast<const uint8_t *>(slopes.data()),
                     16});
  ASSERT_TRUE(rt::writeSafetensors(path("in.safetensors"), tensors));
  run("@/tiny.attn --batch @/plain.json --inputs=@/in.safetensors --device=reference --output @/c");
  EXPECT_EQ(status, 0) << output;
  Result<std::vector<uint8_t>> a = readFile(path("a")), b = readFile(path("b")),
                               c = readFile(path("c"));
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(*a, *c);
}

TEST_F(AttnRun, AFloatMayBeALongInteger) {
  std::string text = batch("");
  const size_t at = text.find("\"scale\": 0.3");
  text.replace(at, 12, "\"scale\": 100000000000000000000");
  write("long.json", text);
  run("@/tiny.attn --batch @/long.json");
  EXPECT_EQ(status, 0) << output;
  text.replace(text.find("10000"), 5, "1" + std::string(30, '0'));
  write("long.json", text);
  expectRefusal("@/tiny.attn --batch @/long.json",
                "@/long.json: param 'scale': 1e+46 does not fit f32");
}

TEST_F(AttnRun, RefusedFiles) {
  run("@/none.attn --batch @/batch.json");
  EXPECT_EQ(status, 2);
  EXPECT_NE(output.find("none.attn"), std::string::npos) << output;
  run("@/tiny.attn --batch @/none.json");
  EXPECT_EQ(status, 2);
  EXPECT_NE(output.find("none.json"), std::string::npos) << output;
  run("@/batch.json --batch @/batch.json");
  EXPECT_EQ(status, 2);
  EXPECT_NE(output.find("not an attn artifact"), std::string::npos) << output;
  write("bad.json", R"({"requests": [{"query_len": 3, "seq_len": 8, "mm_ranges": [[6, 8]]}],
                        "params": {"left": 3, "scale": 1}, "tables": {"slopes": [0, 0, 0, 0]}})");
  expectRefusal("@/tiny.attn --batch @/bad.json",
                "@/bad.json: request 0: range 0 [6, 8] holds a scheduled query and ends at or past "
                "seq_len 8; its keys are not all there (partial_ranges: \"allow\" accepts that)");
  write("bound.json", R"({"requests": [{"query_len": 1, "seq_len": 8, "seq_len_bound": 9}],
                        "params": {"left": 3, "scale": 1}, "tables": {"slopes": [0, 0, 0, 0]}})");
  expectRefusal("@/tiny.attn --batch @/bound.json --device=reference",
                "@/bound.json: request 0: seq_len_bound: device 'reference' needs exact lengths "
                "(seq_len alone)");
  Artifact codeless = tinyArtifact();
  codeless.kernels[0].binaries.clear();
  codeless.blobs.clear();
  ASSERT_TRUE(writeArtifact(codeless, path("codeless.attn")));
  expectRefusal(
      "@/codeless.attn --batch @/batch.json",
      "@/codeless.attn: kernel 'tiny': no code for target 'cpu' (the artifact has: none)");
  run("@/codeless.attn --batch @/batch.json --device=reference");
  EXPECT_EQ(status, 0) << output;
  run("@/tiny.attn --batch @/batch.json --output=@/no/such/folder/out");
  EXPECT_EQ(status, 2);
  EXPECT_NE(output.find("/no/such/folder/out"), std::string::npos) << output;
}

TEST_F(AttnRun, RefusedInputs) {
  const std::vector<float> data(1000, 0);
  auto inputs = [&](std::vector<rt::FileTensor> tensors) {
    for (rt::FileTensor &tensor : tensors) {
      tensor.data = reinterpret_cast<const uint8_t *>(data.data());
      int64_t bytes = rt::byteSize(tensor.dtype);
      for (int64_t extent : tensor.shape)
        bytes *= extent;
      tensor.size = static_cast<size_t>(bytes);
    }
    EXPECT_TRUE(rt::writeSafetensors(path("in.safetensors"), tensors));
  };
  const rt::FileDType f32 = rt::FileDType::F32;
  const rt::FileTensor q{"q", f32, {18, 4, 8}, nullptr, 0}, k{"k", f32, {23, 2, 8}, nullptr, 0},
      v{"v", f32, {23, 2, 6}, nullptr, 0};
  const std::string command = "@/tiny.attn --batch @/batch.json --inputs=@/in.safetensors";
  auto refused = [&](std::vector<rt::FileTensor> tensors, const std::string &message) {
    inputs(std::move(tensors));
    expectRefusal(command, message);
  };
  refused({q, k}, "@/in.safetensors: tensor 'v': missing, expected F32 [23, 2, 6]");
  refused({q, k, {"v", f32, {23, 2, 8}, nullptr, 0}},
          "@/in.safetensors: tensor 'v': expected F32 [23, 2, 6], got F32 [23, 2, 8]");
  refused({{"q", rt::FileDType::BF16, {18, 4, 8}, nullptr, 0}, k, v},
          "@/in.safetensors: tensor 'q': expected F32 [18, 4, 8], got BF16 [18, 4, 8]");
  refused({q, k, v, {"sinks", f32, {4}, nullptr, 0}},
          "@/in.safetensors: tensor 'sinks': is neither q, k, v nor a table of kernel 'tiny'");
  refused({q, k, v, {"slopes", f32, {4}, nullptr, 0}}, "@/batch.json: table 'slopes': given twice");
  refused({q, k, v, {"slopes", rt::FileDType::F16, {4}, nullptr, 0}},
          "@/in.safetensors: tensor 'slopes': expected elements of type f32, got F16");
  refused({q, k, v, {"mm", rt::FileDType::I32, {4}, nullptr, 0}},
          "@/in.safetensors: tensor 'mm': only dense tables can come from a tensor file");
  write("in.safetensors", "short");
  expectRefusal(command,
                "@/in.safetensors: not a safetensors file: expected at least 8 bytes, got 5");
}

} // namespace
