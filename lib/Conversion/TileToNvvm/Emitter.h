// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions of a kernel, one call each. Facts about the hardware carry the section of the PTX
// ISA that states them.
#ifndef ATTN_LIB_CONVERSION_TILETONVVM_EMITTER_H
#define ATTN_LIB_CONVERSION_TILETONVVM_EMITTER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

#include <string>

namespace attn::tile {

using IntPredicate = mlir::LLVM::ICmpPredicate;
using FloatPredicate = mlir::LLVM::FCmpPredicate;

/// A place in shared memory. What is known when the kernel is compiled stays in the instruction: it
/// takes no register.
struct SharedAddress {
  mlir::Value base; ///< i32
  int64_t offset = 0;

  /// "[$operand+offset]"
  std::string text(int64_t operand) const {
    return "[$" + std::to_string(operand) + "+" + std::to_string(offset) + "]";
  }
};

class Emitter {
public:
  /// Constants go before `first`, which must dominate everything emitted.
  Emitter(mlir::Operation *first);

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }
  void setLoc(mlir::Location l) { loc = l; }
  mlir::MLIRContext *getContext() const { return builder.getContext(); }

  template <class Op, class... Args>
  mlir::Value emit(Args &&...args) {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }

  // Constants, each emitted once.
  mlir::Value constant(mlir::TypedAttr attribute);
  mlir::Value i1(bool value);
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(double value);
  mlir::Value f64(double value);
  mlir::Value intOf(mlir::Type type, int64_t value);

  // Integers.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value bitAnd(mlir::Value a, mlir::Value b);
  mlir::Value bitOr(mlir::Value a, mlir::Value b);
  mlir::Value bitXor(mlir::Value a, mlir::Value b);
  mlir::Value shl(mlir::Value a, mlir::Value b);
  mlir::Value lshr(mlir::Value a, mlir::Value b);
  mlir::Value smin(mlir::Value a, mlir::Value b);
  mlir::Value smax(mlir::Value a, mlir::Value b);
  mlir::Value cmp(IntPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value zext64(mlir::Value a);
  mlir::Value sext64(mlir::Value a);
  mlir::Value zext32(mlir::Value a);

  // f32, IEEE: nothing here may be contracted.
  mlir::Value fadd(mlir::Value a, mlir::Value b);
  mlir::Value fsub(mlir::Value a, mlir::Value b);
  mlir::Value fmul(mlir::Value a, mlir::Value b);
  mlir::Value fdiv(mlir::Value a, mlir::Value b);
  mlir::Value fneg(mlir::Value a);
  mlir::Value fabs(mlir::Value a);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value maxnum(mlir::Value a, mlir::Value b);
  mlir::Value fcmp(FloatPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value bitcast(mlir::Type type, mlir::Value a);
  /// An f32 intrinsic of one operand.
  mlir::Value intrinsic(llvm::StringRef name, mlir::Value a);

  /// Inline PTX. `pure`: no effects, may be moved. Otherwise it also counts as touching memory.
  llvm::SmallVector<mlir::Value> assembly(llvm::StringRef text, llvm::StringRef constraints,
                                          mlir::ValueRange operands, mlir::TypeRange results,
                                          bool pure = false);

  /// The value of lane (own xor `mask`), f32 or i32. All lanes of the warp.
  mlir::Value shuffleXor(mlir::Value a, int64_t mask);
  /// That of `lane`, the same in all lanes.
  mlir::Value shuffleFrom(mlir::Value a, mlir::Value lane);
  /// A pointer to global memory in its address space.
  mlir::Value toGlobal(mlir::Value pointer);
  /// bar.sync: named barrier `id` of `threads` threads.
  void barrier(mlir::Value id, mlir::Value threads);
  /// bar.arrive: does not wait.
  void barrierArrive(mlir::Value id, mlir::Value threads);
  /// mbarrier.try_wait in a loop, until the phase of that parity is over.
  void waitParity(const SharedAddress &barrier, mlir::Value parity);

  // Blocks.
  mlir::Block *newBlock(mlir::TypeRange arguments = {});
  /// Goes on in `block`, which becomes the last: blocks stand in the order they are filled.
  void enter(mlir::Block *block);
  void branch(mlir::Block *block, mlir::ValueRange operands = {});
  void branchIf(mlir::Value condition, mlir::Block *yes, mlir::Block *no);

private:
  mlir::Value shuffle(mlir::Value a, mlir::Value lane, bool isXor);

  mlir::OpBuilder builder, constants;
  mlir::Location loc;
  llvm::DenseMap<mlir::Attribute, mlir::Value> known;
};

/// Combines `values` in four chains, then pairwise: short dependences, one order.
mlir::Value emitTree(llvm::ArrayRef<mlir::Value> values,
                     llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_EMITTER_H
