// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads the artifact of causal_f32.mlir and runs one batch through the C++ runtime. All scores
// are equal (K is 0), so a row that sees n keys has lse = ln(n) and the mean of their values as O.
#include "attn/Runtime/BatchIO.h"
#include "attn/Runtime/Launch.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

using namespace attn;

/// Prints an error and gives the exit status.
static int fail(const std::string &message) {
  std::fprintf(stderr, "run-causal: %s\n", message.c_str());
  return 1;
}

/// Value of V: differs by key, key/value head and column.
static float valueOf(int64_t k, int64_t kvHead, int64_t d) {
  return static_cast<float>(k + 100 * kvHead + d);
}

/// Number of wrong rows.
static int countWrong(const core::KernelSpec &spec, const core::BatchShape &shape,
                      const std::vector<float> &o, const std::vector<float> &lse) {
  int wrong = 0;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t row = shape.queryStartLoc[b]; row < shape.queryStartLoc[b + 1]; ++row)
      for (int64_t h = 0; h < spec.numHeads; ++h) {
        const int64_t q = shape.seqLen[b] - shape.queryStartLoc[b + 1] + row;
        const int64_t seen = q < 0 ? 0 : q + 1;
        const int64_t kvHead = h / (spec.numHeads / spec.numKvHeads);
        const float gotLse = lse[h * shape.numTokens() + row];
        bool good = seen == 0 ? gotLse == -INFINITY
                              : std::fabs(gotLse - std::log(static_cast<double>(seen))) < 1e-5;
        for (int64_t d = 0; d < spec.dimV; ++d) {
          const float mean = static_cast<float>(q) / 2 + valueOf(0, kvHead, d);
          const float expected = seen == 0 ? 0 : mean;
          good &= std::fabs(o[(row * spec.numHeads + h) * spec.dimV + d] - expected) < 1e-3f;
        }
        wrong += !good;
      }
  return wrong;
}

int main(int argc, char **argv) {
  if (argc != 2)
    return fail("usage: run-causal ARTIFACT");
  core::Result<core::Artifact> artifact = core::readArtifact(argv[1]);
  if (!artifact)
    return fail(artifact.message());
  const core::Kernel &kernel = artifact->kernels.front();
  core::Result<rt::NativeRunner> runner = rt::NativeRunner::create(*artifact, kernel);
  if (!runner)
    return fail(runner.message());
  const core::KernelSpec &spec = runner->spec();

  core::Result<rt::BatchFile> file = rt::readBatch(R"({"requests": [
      {"query_len": 3, "seq_len": 3}, {"query_len": 2, "seq_len": 6}, {"query_len": 4, "seq_len": 2}
    ]})",
                                                   spec);
  if (!file)
    return fail(file.message());
  core::Result<rt::BoundBatch> bound = rt::bindBatch(spec, file->input);
  if (!bound)
    return fail(bound.message());
  const core::BatchShape &shape = bound->batch.shape;

  const int64_t tokens = shape.numTokens(), keys = bound->kvStart.back();
  std::vector<float> q(tokens * spec.numHeads * spec.dimQk, 1.0f);
  std::vector<float> k(keys * spec.numKvHeads * spec.dimQk, 0.0f);
  std::vector<float> v(keys * spec.numKvHeads * spec.dimV);
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t key = 0; key < shape.seqLen[b]; ++key)
      for (int64_t h = 0; h < spec.numKvHeads; ++h)
        for (int64_t d = 0; d < spec.dimV; ++d)
          v[((bound->kvStart[b] + key) * spec.numKvHeads + h) * spec.dimV + d] = valueOf(key, h, d);

  core::Problem problem;
  problem.spec = &spec;
  problem.batch = &bound->batch;
  problem.q = {q.data(), core::DType::F32, spec.numHeads * spec.dimQk, spec.dimQk};
  problem.k = {k.data(), core::DType::F32, 0, spec.numKvHeads * spec.dimQk, spec.dimQk};
  problem.v = {v.data(), core::DType::F32, 0, spec.numKvHeads * spec.dimV, spec.dimV};
  problem.kv.kvStart = bound->kvStart.data();

  std::vector<float> o(tokens * spec.numHeads * spec.dimV), lse(tokens * spec.numHeads);
  const rt::NativeTables tables(spec, runner->binary(), bound->batch);
  const rt::NativeOutput output = {o.data(), spec.numHeads * spec.dimV, spec.dimV, lse.data(),
                                   tokens};
  runner->run(problem, tables, output, rt::SubRange::all(shape));

  const int wrong = countWrong(spec, shape, o, lse);
  std::printf("C++ program: %lld rows, %d wrong\n", static_cast<long long>(tokens * spec.numHeads),
              wrong);
  return wrong != 0;
}
