// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pass did or refused to do, and why, as MLIR remarks of category "attn".
#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_REMARKS_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_REMARKS_H

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/Twine.h"

namespace attn {

/// The pass (by its stem, "FuseIntervals") changed the IR.
inline void remarkPassed(mlir::Location loc, llvm::StringRef pass, const llvm::Twine &text) {
  mlir::remark::passed(loc, mlir::remark::RemarkOpts::name(pass).category("attn")) << text.str();
}

/// It left the IR alone; `text` says why.
inline void remarkMissed(mlir::Location loc, llvm::StringRef pass, const llvm::Twine &text) {
  mlir::remark::missed(loc, mlir::remark::RemarkOpts::name(pass).category("attn")) << text.str();
}

} // namespace attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_REMARKS_H
