// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ATTN_LIB_COMPILER_CANONICALORDER_H
#define ATTN_LIB_COMPILER_CANONICALORDER_H

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace attn::compiler {

/// Puts the operations of each kernel in the order of a walk from the results, and drops those that
/// no result needs. Specs that differ in the order of independent operations or in dead ones become
/// equal but for names and locations, and so does their code.
void putInCanonicalOrder(mlir::ModuleOp module);

} // namespace attn::compiler

#endif // ATTN_LIB_COMPILER_CANONICALORDER_H
