// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small kernels written by hand for tests of the machine: what it reports, and that it reports
// nothing where the missing piece is there. Every kernel runs under several policies.
#ifndef ATTN_TEST_UNIT_SIM_MACHINESUPPORT_H
#define ATTN_TEST_UNIT_SIM_MACHINESUPPORT_H

#include "attn/Sim/Sim.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace attn::sim::machine {

/// A kernel with the arrays `in` and `out` of 32-bit words. The body has, besides %r0-%r99 (b32),
/// %f0-%f255 (f32), %d0-%d19 (b64), %p1-%p9:
///   %t thread, %w warp, %p0 first thread, %in, %out, %o (word %t of out), %s shared memory,
///   %a (word %t of it), %bar, %bar2 mbarriers behind the first 16 KiB.
struct Kernel {
  std::string body;
  uint32_t threads = 128;
  uint32_t shared = 16 * 1024 + 64;
  std::vector<uint32_t> in = std::vector<uint32_t>(4096, 7);
  uint32_t ctas = 1;
  std::string directives; ///< of the kernel: ".maxnreg 32"
  std::array<uint32_t, 3> cluster{0, 0, 0};
  size_t outWords = 0; ///< 0: one a thread
  uint64_t maxSteps = 1 << 20;
  unsigned hostThreads = 1;
  std::vector<TensorMap> maps;      ///< parameters m0, m1, ...
  std::vector<uint64_t> mapOffsets; ///< bytes from the start of `in`; none: 0
  bool mapsToOut = false;           ///< maps are of `out`
};

struct Result {
  std::vector<Report> reports;
  std::vector<uint32_t> out;
  Counters counters;
  bool finished = false;
  std::string error;

  bool has(Report::Kind kind) const;
  std::string text() const;
};

std::vector<Policy> policies();
std::string moduleText(const Kernel &kernel);
Result run(const Kernel &kernel, const Policy &policy);
/// Line of the first line of the body that contains `text`.
int lineOf(const Kernel &kernel, const std::string &text);

/// All policies: nothing is reported and the outputs agree.
std::vector<uint32_t> expectClean(const Kernel &kernel);
/// All policies: `kind` is reported, at a line of the body that contains `at`.
void expectReport(const Kernel &kernel, Report::Kind kind, const std::string &at);
/// The same for any of several kinds: which one comes first depends on who runs first.
void expectAny(const Kernel &kernel, const std::vector<Report::Kind> &kinds);

// Pieces of kernels.
/// One arrival at %bar; visible to everybody.
extern const std::string kInit;
/// 1024 bytes of `in` to the start of shared memory, on %bar.
extern const std::string kLoad;
std::string wait(int parity, const std::string &barrier = "%bar");
/// `text` with `from` replaced by `to`, which must occur.
std::string replaced(std::string text, const std::string &from, const std::string &to);

} // namespace attn::sim::machine

#endif // ATTN_TEST_UNIT_SIM_MACHINESUPPORT_H
