// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to loops on the CPU.
//
// Loop nest: request, head, token, key; each attn.per is emitted where its indices become known.
// One pass over the keys of a row with a running maximum m and sum l (Milakov and Gimelshein,
// online softmax, 2018): when a score exceeds m, O and l are scaled by exp(m - s). Dropped keys, by
// mask or by a score of -inf, are left before K or V is used for the sum, so what such a slot holds
// cannot reach a result. l is kept in f64: it is a sum of up to seq_len positive terms.
//
// The dense-mask entry walks the same loops, bounds included, and stores the test's result.

#include "attn/Conversion/AttnToLoops/AttnToLoops.h"
#include "attn/Conversion/Regions/RegionEmitter.h"

#include "LoopContext.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <limits>

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOLOOPSPASS
#include "conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

namespace {

/// Emits one entry of one kernel.
class EntryEmitter {
public:
  EntryEmitter(KernelOp kernel, OpBuilder &builder, Value args, bool maskOnly)
      : kernel(kernel), maskOnly(maskOnly), context(kernel, builder, kernel.getLoc(), args),
        regions(context) {}

  void emit(OpBuilder &builder);

private:
  using Body = llvm::function_ref<void(OpBuilder &, Value)>;

  Location getLoc() { return kernel.getLoc(); }
  void loop(OpBuilder &builder, Value lb, Value ub, Body body);
  void emitRequest(OpBuilder &builder);
  void emitHead(OpBuilder &builder, Value tokenLo, Value tokenHi, Value toQuery);
  /// Keys of the row: [lo, hi) within the launch's.
  std::pair<Value, Value> emitBounds(OpBuilder &builder);
  void emitMaskRow(OpBuilder &builder);
  void emitForwardRow(OpBuilder &builder);
  /// keep of the current key.
  Value emitKeep(OpBuilder &builder);
  Value emitScore(OpBuilder &builder);
  SmallVector<Value> emitUpdate(LoopEmitter &e, Value score, Value m, Value l);
  /// Byte offset of the row of the current key in K or V.
  Value keyRow(LoopEmitter &e, core::NativeArg pageStride, core::NativeArg slotStride,
               core::NativeArg headStride);
  Value rowOffset(LoopEmitter &e, core::NativeArg tokenStride, core::NativeArg headStride);
  /// Element `d` of a row, widened to f32.
  Value loadElement(LoopEmitter &e, Type type, Value base, Value rowBytes, Value d);

  KernelOp kernel;
  bool maskOnly;
  LoopContext context;
  RegionEmitter regions;
  Value scale, keyBegin, keyEnd, qRow, oRow;
};

} // namespace

void EntryEmitter::loop(OpBuilder &builder, Value lb, Value ub, Body body) {
  LoopEmitter e(builder, getLoc());
  scf::ForOp::create(builder, getLoc(), lb, ub, e.constant(1), ValueRange{},
                     [&](OpBuilder &b, Location loc, Value iv, ValueRange) {
                       body(b, iv);
                       scf::YieldOp::create(b, loc);
                     });
}

void EntryEmitter::emit(OpBuilder &builder) {
  LoopEmitter e(builder, getLoc());
  regions.emitKernelValues(builder, kernel);
  scale = regions.emitScale(builder, kernel);
  loop(builder, context.arg(core::kArgRequestBegin), context.arg(core::kArgRequestEnd),
       [&](OpBuilder &b, Value request) {
         context.b = request;
         emitRequest(b);
       });
}

void EntryEmitter::emitRequest(OpBuilder &builder) {
  LoopEmitter e(builder, getLoc());
  Value at = e.mul(context.b, e.constant(8));
  Value queryStart = e.loadIndex(context.arg(core::kArgQueryStartLoc), at);
  Value queryEnd = e.loadIndex(context.arg(core::kArgQueryStartLoc), e.add(at, e.constant(8)));
  Value contextLen = e.loadIndex(context.arg(core::kArgContextLen), at);
  keyBegin = e.loadIndex(context.arg(core::kArgKeyBegin), at);
  keyEnd = e.loadIndex(context.arg(core::kArgKeyEnd), at);
  regions.emitPer(builder, kernel, Level::Request);
  Value tokenLo = e.max(queryStart, context.arg(core::kArgTokenBegin));
  Value tokenHi = e.min(queryEnd, context.arg(core::kArgTokenEnd));
  Value toQuery = e.sub(contextLen, queryStart);
  loop(builder, e.constant(0), e.constant(kernel.getHeads()), [&](OpBuilder &b, Value head) {
    context.h = head;
    emitHead(b, tokenLo, tokenHi, toQuery);
  });
}

void EntryEmitter::emitHead(OpBuilder &builder, Value tokenLo, Value tokenHi, Value toQuery) {
  LoopEmitter e(builder, getLoc());
  context.kvHead = arith::DivUIOp::create(builder, getLoc(), context.h,
                                          e.constant(kernel.getHeads() / kernel.getKvHeads()));
  regions.emitPer(builder, kernel, Level::Head);
  loop(builder, tokenLo, tokenHi, [&](OpBuilder &b, Value token) {
    LoopEmitter row(b, getLoc());
    context.token = token;
    context.q = row.add(token, toQuery);
    regions.emitPer(b, kernel, Level::Row);
    if (maskOnly)
      emitMaskRow(b);
    else
      emitForwardRow(b);
  });
}

std::pair<Value, Value> EntryEmitter::emitBounds(OpBuilder &builder) {
  BoundsOp bounds = kernel.getBounds();
  if (!bounds)
    return {keyBegin, keyEnd};
  LoopEmitter e(builder, getLoc());
  regions.emitRegion(builder, bounds.getBody());
  return {e.max(regions.yielded(bounds.getBody(), 0), keyBegin),
          e.min(regions.yielded(bounds.getBody(), 1), keyEnd)};
}

Value EntryEmitter::emitKeep(OpBuilder &builder) {
  regions.emitPer(builder, kernel, Level::Column);
  MaskOp mask = kernel.getMask();
  BoundsOp bounds = kernel.getBounds();
  if (!mask || (bounds && bounds.getExact()))
    return LoopEmitter(builder, getLoc()).bit(true);
  regions.emitRegion(builder, mask.getBody());
  return regions.yielded(mask.getBody(), 0);
}

void EntryEmitter::emitMaskRow(OpBuilder &builder) {
  LoopEmitter e(builder, getLoc());
  Value row = e.add(e.mul(context.h, context.arg(core::kArgNumTokens)), context.token);
  Value base = e.mul(row, context.arg(core::kArgKeepStride));
  auto store = [&](OpBuilder &b, Value key, Value byte) {
    LoopEmitter in(b, getLoc());
    LLVM::StoreOp::create(b, getLoc(), byte,
                          in.address(context.arg(core::kArgKeep), in.add(base, key)), 1);
  };
  Value zero = arith::ConstantOp::create(builder, getLoc(), builder.getI8IntegerAttr(0));
  loop(builder, keyBegin, keyEnd, [&](OpBuilder &b, Value key) { store(b, key, zero); });
  auto [lo, hi] = emitBounds(builder);
  loop(builder, lo, hi, [&](OpBuilder &b, Value key) {
    context.k = key;
    Value keep = emitKeep(b);
    store(b, key, arith::ExtUIOp::create(b, getLoc(), b.getI8Type(), keep));
  });
}

Value EntryEmitter::rowOffset(LoopEmitter &e, core::NativeArg tokenStride,
                              core::NativeArg headStride) {
  Value head = e.mul(context.h, context.arg(headStride));
  return e.add(e.mul(context.token, context.arg(tokenStride)), head);
}

Value EntryEmitter::keyRow(LoopEmitter &e, core::NativeArg pageStride, core::NativeArg slotStride,
                           core::NativeArg headStride) {
  Value null =
      LLVM::ZeroOp::create(e.builder, e.loc, LLVM::LLVMPointerType::get(kernel.getContext()));
  Value pageTable = context.arg(core::kArgPageTable);
  Value paged = LLVM::ICmpOp::create(e.builder, e.loc, LLVM::ICmpPredicate::ne, pageTable, null);
  auto branch = scf::IfOp::create(
      e.builder, e.loc, paged,
      [&](OpBuilder &b, Location loc) {
        LoopEmitter in(b, loc);
        Value size = context.arg(core::kArgPageSize);
        Value number = arith::DivUIOp::create(b, loc, context.k, size);
        Value row = in.mul(context.b, context.arg(core::kArgPageTableStride));
        Value entry = in.add(row, number);
        Value page = in.loadI32(pageTable, in.mul(entry, in.constant(4)));
        Value slot = arith::RemUIOp::create(b, loc, context.k, size);
        Value inPage = in.mul(slot, context.arg(slotStride));
        scf::YieldOp::create(b, loc, in.add(in.mul(page, context.arg(pageStride)), inPage));
      },
      [&](OpBuilder &b, Location loc) {
        LoopEmitter in(b, loc);
        Value start =
            in.loadIndex(context.arg(core::kArgKvStart), in.mul(context.b, in.constant(8)));
        scf::YieldOp::create(b, loc, in.mul(in.add(start, context.k), context.arg(slotStride)));
      });
  int64_t bytes = kernel.getKvType().getIntOrFloatBitWidth() / 8;
  Value elements = e.add(branch.getResult(0), e.mul(context.kvHead, context.arg(headStride)));
  return e.mul(elements, e.constant(bytes));
}

/// f16 bits (i16) to f32 without a library call: the bits moved to f32's place are the value times
/// 2^-112, subnormals included; exponent 31 is infinity or NaN.
static Value widenHalf(LoopEmitter &e, Value bits) {
  OpBuilder &b = e.builder;
  Type i32 = b.getI32Type(), f32 = b.getF32Type();
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantOp::create(b, e.loc, b.getI32IntegerAttr(static_cast<int32_t>(v)));
  };
  Value wide = arith::ExtUIOp::create(b, e.loc, i32, bits);
  Value magnitude = arith::AndIOp::create(b, e.loc, wide, constant(0x7fff));
  Value moved = arith::ShLIOp::create(b, e.loc, magnitude, constant(13));
  Value small = arith::BitcastOp::create(b, e.loc, f32, moved);
  Value finite = arith::MulFOp::create(b, e.loc, small, e.f32(std::ldexp(1.0, 112)));
  Value special = arith::BitcastOp::create(
      b, e.loc, f32, arith::OrIOp::create(b, e.loc, moved, constant(0x7f800000)));
  Value isSpecial = arith::CmpIOp::create(b, e.loc, Predicate::uge, magnitude, constant(0x7c00));
  Value unsignedValue = arith::SelectOp::create(b, e.loc, isSpecial, special, finite);
  Value sign = arith::ShLIOp::create(
      b, e.loc, arith::AndIOp::create(b, e.loc, wide, constant(0x8000)), constant(16));
  Value raw = arith::BitcastOp::create(b, e.loc, i32, unsignedValue);
  return arith::BitcastOp::create(b, e.loc, f32, arith::OrIOp::create(b, e.loc, raw, sign));
}

Value EntryEmitter::loadElement(LoopEmitter &e, Type type, Value base, Value rowBytes, Value d) {
  OpBuilder &b = e.builder;
  int64_t bytes = type.getIntOrFloatBitWidth() / 8;
  Value at = e.add(rowBytes, e.mul(d, e.constant(bytes)));
  if (type.isF32())
    return e.load(type, base, at);
  Value bits = e.load(b.getI16Type(), base, at);
  if (type.isF16())
    return widenHalf(e, bits);
  Value wide = arith::ExtUIOp::create(b, e.loc, b.getI32Type(), bits);
  Value sixteen = arith::ConstantOp::create(b, e.loc, b.getI32IntegerAttr(16));
  return arith::BitcastOp::create(b, e.loc, b.getF32Type(),
                                  arith::ShLIOp::create(b, e.loc, wide, sixteen));
}

Value EntryEmitter::emitScore(OpBuilder &builder) {
  LoopEmitter e(builder, getLoc());
  Value kRow = keyRow(e, core::kArgKPageStride, core::kArgKSlotStride, core::kArgKHeadStride);
  // A dot product may be summed in any order; this lets LLVM vectorise it.
  auto reorder = arith::FastMathFlagsAttr::get(
      builder.getContext(), arith::FastMathFlags::reassoc | arith::FastMathFlags::contract);
  auto dot = scf::ForOp::create(
      builder, getLoc(), e.constant(0), e.constant(kernel.getDim()), e.constant(1), e.f32(0),
      [&](OpBuilder &b, Location loc, Value d, ValueRange sum) {
        LoopEmitter in(b, loc);
        Value q = loadElement(in, kernel.getQType(), context.arg(core::kArgQ), qRow, d);
        Value k = loadElement(in, kernel.getKvType(), context.arg(core::kArgK), kRow, d);
        Value product = arith::MulFOp::create(b, loc, q, k, reorder);
        scf::YieldOp::create(b, loc,
                             arith::AddFOp::create(b, loc, sum[0], product, reorder).getResult());
      });
  Value score = arith::MulFOp::create(builder, getLoc(), dot.getResult(0), scale);
  if (ScoreOp region = kernel.getScore()) {
    regions.emitRegion(builder, region.getBody(), score);
    score = regions.yielded(region.getBody(), 0);
  }
  return score;
}

/// Adds one kept key with a score other than -inf; gives the new m and l.
SmallVector<Value> EntryEmitter::emitUpdate(LoopEmitter &e, Value score, Value m, Value l) {
  OpBuilder &b = e.builder;
  Value vRow = keyRow(e, core::kArgVPageStride, core::kArgVSlotStride, core::kArgVHeadStride);
  auto oAddress = [&](LoopEmitter &in, Value d) {
    return in.address(context.arg(core::kArgO), in.add(oRow, in.mul(d, in.constant(4))));
  };
  Value rises = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, score, m);
  SmallVector<Value> scaled = e.guarded(rises, ValueRange{m, l}, [&](LoopEmitter &in) {
    Value factor = math::ExpOp::create(in.builder, in.loc,
                                       arith::SubFOp::create(in.builder, in.loc, m, score));
    loop(in.builder, in.constant(0), in.constant(kernel.getDimV()), [&](OpBuilder &lb, Value d) {
      LoopEmitter body(lb, getLoc());
      Value address = oAddress(body, d);
      Value old = LLVM::LoadOp::create(lb, getLoc(), lb.getF32Type(), address, 4);
      LLVM::StoreOp::create(lb, getLoc(), arith::MulFOp::create(lb, getLoc(), old, factor), address,
                            4);
    });
    Value wide = arith::ExtFOp::create(in.builder, in.loc, in.builder.getF64Type(), factor);
    Value sum = arith::MulFOp::create(in.builder, in.loc, l, wide);
    return SmallVector<Value>{score, sum};
  });
  Value weight = math::ExpOp::create(b, e.loc, arith::SubFOp::create(b, e.loc, score, scaled[0]));
  loop(b, e.constant(0), e.constant(kernel.getDimV()), [&](OpBuilder &lb, Value d) {
    LoopEmitter body(lb, getLoc());
    Value v = loadElement(body, kernel.getKvType(), context.arg(core::kArgV), vRow, d);
    Value address = oAddress(body, d);
    Value old = LLVM::LoadOp::create(lb, getLoc(), lb.getF32Type(), address, 4);
    Value term = arith::MulFOp::create(lb, getLoc(), weight, v);
    LLVM::StoreOp::create(lb, getLoc(), arith::AddFOp::create(lb, getLoc(), old, term), address, 4);
  });
  Value wide = arith::ExtFOp::create(b, e.loc, b.getF64Type(), weight);
  return {scaled[0], arith::AddFOp::create(b, e.loc, scaled[1], wide)};
}

void EntryEmitter::emitForwardRow(OpBuilder &builder) {
  LoopEmitter e(builder, getLoc());
  Location loc = getLoc();
  Type f64 = builder.getF64Type();
  int64_t qBytes = kernel.getQType().getIntOrFloatBitWidth() / 8;
  qRow = e.mul(rowOffset(e, core::kArgQTokenStride, core::kArgQHeadStride), e.constant(qBytes));
  oRow = e.mul(rowOffset(e, core::kArgOTokenStride, core::kArgOHeadStride), e.constant(4));
  auto storeO = [&](LoopEmitter &in, Value d, Value value) {
    Value address = in.address(context.arg(core::kArgO), in.add(oRow, in.mul(d, in.constant(4))));
    LLVM::StoreOp::create(in.builder, loc, value, address, 4);
  };
  loop(builder, e.constant(0), e.constant(kernel.getDimV()), [&](OpBuilder &b, Value d) {
    LoopEmitter in(b, loc);
    storeO(in, d, in.f32(0));
  });

  Value negInf = e.f32(-std::numeric_limits<double>::infinity());
  Value zero = arith::ConstantOp::create(builder, loc, builder.getFloatAttr(f64, 0));
  auto [lo, hi] = emitBounds(builder);
  auto keys = scf::ForOp::create(
      builder, loc, lo, hi, e.constant(1), ValueRange{negInf, zero},
      [&](OpBuilder &b, Location, Value key, ValueRange carried) {
        LoopEmitter in(b, loc);
        context.k = key;
        Value keep = emitKeep(b);
        SmallVector<Value> next = in.guarded(keep, carried, [&](LoopEmitter &kept) {
          Value score = emitScore(kept.builder);
          Value live =
              arith::CmpFOp::create(kept.builder, loc, arith::CmpFPredicate::UNE, score, negInf);
          return kept.guarded(live, carried, [&](LoopEmitter &alive) {
            return emitUpdate(alive, score, carried[0], carried[1]);
          });
        });
        scf::YieldOp::create(b, loc, next);
      });

  // An empty row has l = 0: O stays exactly 0 and LSE is -inf. NaN is not equal to 0.
  Value m = keys.getResult(0), l = keys.getResult(1);
  Value nonEmpty = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, l, zero);
  Value lse = e.guarded(nonEmpty, negInf, [&](LoopEmitter &in) {
    OpBuilder &b = in.builder;
    Value narrow = arith::TruncFOp::create(b, loc, b.getF32Type(), l);
    loop(b, in.constant(0), in.constant(kernel.getDimV()), [&](OpBuilder &lb, Value d) {
      LoopEmitter body(lb, loc);
      Value old = body.load(lb.getF32Type(), context.arg(core::kArgO),
                            body.add(oRow, body.mul(d, body.constant(4))));
      storeO(body, d, arith::DivFOp::create(lb, loc, old, narrow));
    });
    Value log = math::LogOp::create(b, loc, narrow);
    // A score of +inf makes l NaN; the log-sum-exp is +inf all the same.
    Value posInf = in.f32(std::numeric_limits<double>::infinity());
    Value infinite = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, m, posInf);
    Value finite = arith::AddFOp::create(b, loc, m, log);
    return SmallVector<Value>{arith::SelectOp::create(b, loc, infinite, posInf, finite)};
  })[0];
  Value lseRow = e.add(e.mul(context.h, context.arg(core::kArgLseHeadStride)), context.token);
  LLVM::StoreOp::create(builder, loc, lse,
                        e.address(context.arg(core::kArgLse), e.mul(lseRow, e.constant(4))), 4);
}

namespace {

class ConvertAttnToLoops : public attn::impl::ConvertAttnToLoopsPassBase<ConvertAttnToLoops> {
public:
  void runOnOperation() override {
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels) {
      OpBuilder builder(kernel);
      StringRef name = kernel.getSymName();
      emitEntry(kernel, builder, getForwardEntryName(name), /*maskOnly=*/false);
      emitEntry(kernel, builder, getMaskEntryName(name), /*maskOnly=*/true);
      kernel.erase();
    }
    if (!kernels.empty())
      addZeros(getOperation());
  }

private:
  static void addZeros(ModuleOp module) {
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    LLVM::GlobalOp::create(builder, module.getLoc(), builder.getI64Type(), /*isConstant=*/true,
                           LLVM::Linkage::Internal, kZeros, builder.getI64IntegerAttr(0),
                           /*alignment=*/8);
  }

  void emitEntry(KernelOp kernel, OpBuilder &builder, StringRef name, bool maskOnly) {
    OpBuilder::InsertionGuard guard(builder);
    MLIRContext *context = builder.getContext();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                            LLVM::LLVMPointerType::get(context));
    auto function = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), name, type);
    builder.setInsertionPointToStart(function.addEntryBlock(builder));
    EntryEmitter emitter(kernel, builder, function.getArgument(0), maskOnly);
    emitter.emit(builder);
    LLVM::ReturnOp::create(builder, kernel.getLoc(), ValueRange{});
  }
};

} // namespace
