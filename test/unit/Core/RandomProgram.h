// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random mask programs over a fixed set of parameters and tables, and random small batches for
// them.
#ifndef ATTN_TEST_UNIT_CORE_RANDOMPROGRAM_H
#define ATTN_TEST_UNIT_CORE_RANDOMPROGRAM_H

#include "ProgramBuilder.h"

#include <random>

namespace attn::test {

/// How wild the programs are.
enum class Wildness {
  Named,       ///< named masks and and / or / not: rows are always interval sets
  Comparisons, ///< also comparisons of k +- something with values that do not depend on k, scans
  Anything,    ///< every operation on integers, tables addressed by k, nested loops
};

core::MaskProgram randomProgram(std::mt19937 &random, Wildness wildness);

/// A batch with 1 to 3 requests that binds the tables of every randomProgram().
core::Batch randomBatch(std::mt19937 &random, const core::MaskProgram &program);

} // namespace attn::test

#endif // ATTN_TEST_UNIT_CORE_RANDOMPROGRAM_H
