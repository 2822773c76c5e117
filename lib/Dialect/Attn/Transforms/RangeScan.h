// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recognition of loops that scan the live ranges of a request.
#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RANGESCAN_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RANGESCAN_H

#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace attn {

/// A loop that equals "some live range of `ranges` holds q and k, and every condition holds".
struct RangeScan {
  mlir::Value ranges;
  /// i1 values that do not change in the loop, and what they have to be.
  llvm::SmallVector<std::pair<mlir::Value, bool>, 2> conditions;
};

/// Decides without changing IR; if the loop is no such scan, `reason` says what does not fit.
std::optional<RangeScan> matchRangeScan(mlir::scf::ForOp loop, std::string &reason);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_RANGESCAN_H
