// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What LLVM 22's NVPTX code generator selects, as far as kernels need it. Tried one by one for each
// type: what is not listed here either ends the process ("cannot select", "no libcall available")
// or becomes a call of a function that no device code defines.

#include "PtxCheck.h"

#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static Error refuse(const Function &function, const Twine &what) {
  return createStringError(inconvertibleErrorCode(), "'" + function.getName() + "' " + what +
                                                         ", which has no code on the GPU");
}

static std::string print(const Type *type) {
  std::string text;
  raw_string_ostream(text) << *type;
  return text;
}

/// Scalars, and vectors and structs of them (as inline assembly gives), in the address spaces of a
/// GPU.
static bool isSelectable(const Type *type) {
  if (type->isVoidTy() || type->isLabelTy() || type->isMetadataTy())
    return true;
  if (const auto *integer = dyn_cast<IntegerType>(type))
    return integer->getBitWidth() <= 64;
  if (const auto *pointer = dyn_cast<PointerType>(type)) {
    // Generic, global, shared, constant, local, shared of the cluster, parameter.
    constexpr unsigned kSpaces[] = {0, 1, 3, 4, 5, 7, 101};
    return is_contained(kSpaces, pointer->getAddressSpace());
  }
  if (const auto *vector = dyn_cast<FixedVectorType>(type))
    return isSelectable(vector->getElementType());
  if (const auto *record = dyn_cast<StructType>(type))
    return all_of(record->elements(), isSelectable);
  if (const auto *array = dyn_cast<ArrayType>(type))
    return isSelectable(array->getElementType());
  return type->isHalfTy() || type->isBFloatTy() || type->isFloatTy() || type->isDoubleTy();
}

/// Whether a floating-point function of LLVM has an approximation in PTX for the type of `call`.
static bool isApproximated(const IntrinsicInst &call) {
  return call.getType()->getScalarType()->isFloatTy() && call.hasApproxFunc();
}

static bool isSelectable(const IntrinsicInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::abs:
  case Intrinsic::assume:
  case Intrinsic::bitreverse:
  case Intrinsic::bswap:
  case Intrinsic::ceil:
  case Intrinsic::copysign:
  case Intrinsic::ctlz:
  case Intrinsic::ctpop:
  case Intrinsic::cttz:
  case Intrinsic::fabs:
  case Intrinsic::floor:
  case Intrinsic::fma:
  case Intrinsic::fmuladd:
  case Intrinsic::fptosi_sat:
  case Intrinsic::fshl:
  case Intrinsic::fshr:
  case Intrinsic::maximum:
  case Intrinsic::maxnum:
  case Intrinsic::minimum:
  case Intrinsic::minnum:
  case Intrinsic::nearbyint:
  case Intrinsic::rint:
  case Intrinsic::round:
  case Intrinsic::roundeven:
  case Intrinsic::sadd_sat:
  case Intrinsic::sadd_with_overflow:
  case Intrinsic::smax:
  case Intrinsic::smin:
  case Intrinsic::smul_with_overflow:
  case Intrinsic::sqrt:
  case Intrinsic::ssub_sat:
  case Intrinsic::ssub_with_overflow:
  case Intrinsic::trunc:
  case Intrinsic::uadd_sat:
  case Intrinsic::uadd_with_overflow:
  case Intrinsic::umax:
  case Intrinsic::umin:
  case Intrinsic::umul_with_overflow:
  case Intrinsic::usub_sat:
  case Intrinsic::usub_with_overflow:
    return true;
  case Intrinsic::cos:
  case Intrinsic::exp2:
  case Intrinsic::sin:
  case Intrinsic::tanh:
    return isApproximated(call);
  default:
    return false;
  }
}

/// Whether an intrinsic of the target has code on every chip since sm_90. The fifth generation of
/// tensor cores and what came with it does not.
static bool isCommonTargetIntrinsic(StringRef name) {
  return name.consume_front("llvm.nvvm.") && !name.starts_with("tcgen05.") &&
         !name.starts_with("clusterlaunchcontrol.");
}

static Error checkCall(const Function &function, const CallBase &call) {
  if (call.isInlineAsm())
    return Error::success();
  const Function *callee = call.getCalledFunction();
  if (!callee)
    return refuse(function, "calls through a pointer");
  if (const auto *intrinsic = dyn_cast<IntrinsicInst>(&call)) {
    if (isSelectable(*intrinsic) || isCommonTargetIntrinsic(callee->getName()))
      return Error::success();
    return refuse(function, "uses '" + callee->getName() + "'");
  }
  if (callee->isDeclaration())
    return refuse(function, "calls '" + callee->getName() + "'");
  return Error::success();
}

/// Instructions beside calls that kernels have a use for.
static bool isSelectable(const Instruction &instruction) {
  if (instruction.isBinaryOp() || instruction.isUnaryOp() || instruction.isCast())
    return true;
  switch (instruction.getOpcode()) {
  case Instruction::Br:
  case Instruction::Ret:
  case Instruction::Switch:
  case Instruction::Unreachable:
  case Instruction::Alloca:
  case Instruction::ExtractElement:
  case Instruction::ExtractValue:
  case Instruction::FCmp:
  case Instruction::Freeze:
  case Instruction::GetElementPtr:
  case Instruction::ICmp:
  case Instruction::InsertElement:
  case Instruction::InsertValue:
  case Instruction::PHI:
  case Instruction::Select:
  case Instruction::ShuffleVector:
    return true;
  case Instruction::Load:
    return !cast<LoadInst>(instruction).isAtomic();
  case Instruction::Store:
    return !cast<StoreInst>(instruction).isAtomic();
  case Instruction::AtomicRMW: {
    const auto &atomic = cast<AtomicRMWInst>(instruction);
    return atomic.getOperation() == AtomicRMWInst::Add && atomic.getType()->isIntegerTy() &&
           atomic.getType()->getIntegerBitWidth() >= 32 &&
           atomic.getOrdering() == AtomicOrdering::Monotonic;
  }
  default:
    return false;
  }
}

static Error checkInstruction(const Function &function, const Instruction &instruction) {
  if (!isSelectable(instruction.getType()))
    return refuse(function, "computes a value of type " + print(instruction.getType()));
  for (const Value *operand : instruction.operands())
    if (!isSelectable(operand->getType()))
      return refuse(function, "uses a value of type " + print(operand->getType()));
  if (const auto *call = dyn_cast<CallInst>(&instruction))
    return checkCall(function, *call);
  if (!isSelectable(instruction))
    return refuse(function, "has instruction '" + Twine(instruction.getOpcodeName()) + "'");
  return Error::success();
}

Error attn::compiler::checkPtxSelectable(const Module &module) {
  for (const Function &function : module)
    for (const BasicBlock &block : function)
      for (const Instruction &instruction : block)
        if (Error error = checkInstruction(function, instruction))
          return error;
  return Error::success();
}
