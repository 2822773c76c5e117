// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX modules for tests.
#ifndef ATTN_TEST_UNIT_SIM_PTXTEXT_H
#define ATTN_TEST_UNIT_SIM_PTXTEXT_H

#include "attn/Sim/Ptx.h"

#include <gtest/gtest.h>

namespace attn::sim::test {

/// The first three lines of a module.
inline std::string header() { return ".version 8.6\n.target sm_90a\n.address_size 64\n"; }

/// A module of one kernel "k"; the body begins on line 5.
inline std::string inKernel(const std::string &body) {
  return header() + ".visible .entry k() {\n" + body + "\n}\n";
}

inline PtxModule parse(const std::string &text) {
  core::Result<PtxModule> module = parsePtx(text);
  if (!module.ok()) {
    ADD_FAILURE() << module.message();
    return {};
  }
  return std::move(*module);
}

} // namespace attn::sim::test

#endif // ATTN_TEST_UNIT_SIM_PTXTEXT_H
