// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How long it takes from a spec to PTX, with all phases of a kernel: skipped, full and partial
// blocks. Best of five, in time of this thread, so that a busy machine does not enter. A processor
// whose speed is shared may be slow for a while: what takes longer than its limit is tried further.

#include "attn/Compiler/Compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

using namespace attn;

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

/// Seconds from the spec's text to PTX, best of five, and of up to a hundred until they are at most
/// `limit`.
double measure(const std::string &spec, double limit) {
  compiler::CompileOptions options;
  options.targets = {"sm_90a"};
  double best = 1e9;
  for (int i = 0; i < 5 || (i < 100 && best > limit); ++i) {
    double begin = now();
    auto ptx = compiler::emitText(spec, "test.mlir", compiler::Stage::Ptx, options);
    best = std::min(best, now() - begin);
    if (!ptx) {
      ADD_FAILURE() << llvm::toString(ptx.takeError());
      return 0;
    }
  }
  return best;
}

/// (causal and window) or ranges, with a cap on the scores where `cap` is set.
std::string spec(int dim, bool cap) {
  std::string score = "  attn.score (%s, %b, %h, %q, %k) {\n"
                      "    %c = attn.soft_cap %s, 50.0\n    attn.yield %c : f32\n  }\n";
  return "attn.kernel @gemma heads(8) kv_heads(4) dim(" + std::to_string(dim) +
         ") q(bf16) kv(bf16) params(%left: i32) tables(%mm: !attn.ranges) {\n"
         "  attn.mask (%b, %h, %q, %k) {\n"
         "    %c = attn.causal %q, %k\n"
         "    %w = attn.window %q, %k left(%left)\n"
         "    %cw = attn.and %c, %w\n"
         "    %r = attn.mm_prefix %mm, %b, %q, %k clamp(%left)\n"
         "    %m = attn.or %cw, %r\n"
         "    attn.yield %m : i1\n  }\n" +
         (cap ? score : "") + "}\n";
}

} // namespace

TEST(CompileTime, FromSpecToPtx) {
  struct Case {
    int dim;
    double limit;
  };
  for (Case c : {Case{64, 0.3}, Case{128, 0.3}, Case{256, 0.5}})
    for (bool cap : {false, true}) {
      double seconds = measure(spec(c.dim, cap), c.limit);
      std::cout << "dim " << c.dim << (cap ? ", capped" : "") << ": " << seconds << " s\n";
      EXPECT_LE(seconds, c.limit) << "dim " << c.dim << (cap ? ", capped" : "");
    }
}
