// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_PTXAS_H
#define ATTN_LIB_COMPILER_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn::compiler {

/// What ptxas says about one kernel.
struct PtxasKernel {
  std::string entry;
  unsigned registers = 0;   ///< a thread, at launch
  unsigned stackBytes = 0;  ///< a thread
  unsigned spillStores = 0; ///< bytes
  unsigned spillLoads = 0;  ///< bytes
  unsigned sharedBytes = 0; ///< static shared memory; what is given at launch does not count
};

struct PtxasReport {
  std::vector<PtxasKernel> kernels;
  /// Warnings and lost performance ("(C7510) Potential Performance Loss: ..."), without the prefix.
  std::vector<std::string> complaints;

  /// Everything a clean kernel has nothing of: complaints and spills, one a line, or nothing.
  std::string faults() const;
};

/// Reads what `ptxas -v` prints.
PtxasReport parsePtxasLog(llvm::StringRef log);

struct PtxasResult {
  std::vector<uint8_t> cubin;
  PtxasReport report;
};

/// Runs the program `ptxas` on PTX text. No file is written: both sides are memory files.
llvm::Expected<PtxasResult> runPtxas(llvm::StringRef ptxas, llvm::StringRef ptx,
                                     llvm::StringRef chip);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_PTXAS_H
