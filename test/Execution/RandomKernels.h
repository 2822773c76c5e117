// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random configurations as specs: what each asks for is written down by hand beside the text, and
// so are a batch for it and what its mask keeps.
#ifndef ATTN_TEST_EXECUTION_RANDOMKERNELS_H
#define ATTN_TEST_EXECUTION_RANDOMKERNELS_H

#include "Predicates.h"

#include "attn/Core/Manifest.h"
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Capability.h"

#include <random>
#include <string>
#include <vector>

namespace exec {

/// One kernel and one launch of it.
struct RandomKernel {
  attn::rt::Configuration configuration;
  bool hasWindow = false;    ///< of parameter 0
  bool hasDocuments = false; ///< two tables: as given, and one that is built from it
  bool hasBias = false;      ///< table 0, added to the score
  bool hasDistance = false;  ///< integer arithmetic in the score
  int64_t plainTables = 0;

  std::string spec() const;
  bool keeps(const truth::Request &request, truth::Int left, truth::Int q, truth::Int k) const;
};

/// Something `target` takes, of a few heads, with up to two changes at random that it may not take.
/// `target`: of the table of targets, or any other name.
RandomKernel randomKernel(const std::string &target, std::mt19937 &rng);

/// 1 to 3 requests: decode rows, chunks, more queries than keys, nothing scheduled; a query at
/// least. Tiny ones where a row of the kernel is long.
struct RandomBatch {
  std::vector<truth::Request> requests;
  truth::Int left = 0;
};
RandomBatch randomBatch(const RandomKernel &kernel, std::mt19937 &rng);

/// The batch for the kernel's spec; the values of its tables and parameters are random.
attn::rt::BatchInput batchInput(const RandomKernel &kernel, const attn::core::KernelSpec &spec,
                                const RandomBatch &batch, std::mt19937 &rng);

} // namespace exec

#endif // ATTN_TEST_EXECUTION_RANDOMKERNELS_H
