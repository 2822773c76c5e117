// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Conversion/AttnToTile/AttnToTile.h"

#include "HopperSchedule.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOTILEPASS
#include "conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

std::string attn::getTileKernelName(llvm::StringRef name) { return ("attn.forward." + name).str(); }

/// The shape of a kernel on `target`; an error at the kernel if the target has none.
static const TileShapeInfo *checkKernel(KernelOp kernel, const MaskForm &form,
                                        const TargetInfo &target) {
  auto refuse = [&]() { return kernel.emitError() << "target '" << target.name << "' "; };
  Type q = kernel.getQType(), kv = kernel.getKvType();
  if (!q.isF16() && !q.isBF16()) {
    refuse() << "takes q of type f16 or bf16, got " << q;
    return nullptr;
  }
  if (q != kv) {
    refuse() << "takes q and kv of one type, got " << q << " and " << kv;
    return nullptr;
  }
  if (kernel.getDim() != kernel.getDimV()) {
    refuse() << "takes dim_v equal to dim, got " << kernel.getDimV() << " and " << kernel.getDim();
    return nullptr;
  }
  ElementWork work = ElementWork::Bits;
  if (kernel.getScore()) {
    const ScoreForm score = ScoreForm::get(kernel);
    work = score.shift && score.takesProduct ? ElementWork::Capped : ElementWork::Score;
  }
  if (!form.isRuns)
    work = ElementWork::Predicate;
  const TileShapeInfo *shape = target.findShape(kernel.getDim(), work, form.getShape());
  if (!shape)
    refuse() << "has no kernel for dim " << kernel.getDim() << ", expected one of "
             << target.dims();
  return shape;
}

std::vector<std::string> attn::getTileShapes(KernelOp kernel, llvm::StringRef target) {
  const TargetInfo *info = findTarget(target);
  assert(info && "the caller knows its targets");
  std::vector<std::string> names;
  if (const TileShapeInfo *base = checkKernel(kernel, MaskForm::get(kernel), *info))
    for (const TileShapeInfo &shape : info->candidates(*base))
      names.push_back(toString(shape));
  return names;
}

/// The shape called `name`, or the table's if there is no name.
static FailureOr<TileShapeInfo> findShape(KernelOp kernel, const TargetInfo &target,
                                          const TileShapeInfo &base, llvm::StringRef name) {
  if (name.empty())
    return base;
  std::string known;
  for (const TileShapeInfo &shape : target.candidates(base)) {
    if (toString(shape) == name)
      return shape;
    known += (known.empty() ? "" : ", ") + toString(shape);
  }
  return kernel.emitError() << "target '" << target.name << "' has no shape '" << name
                            << "' for it, expected one of: " << known;
}

static LogicalResult checkParameters(KernelOp kernel) {
  constexpr int64_t kMaxWords = core::kMaxCudaWords;
  int64_t words = core::kNumCudaArgs + static_cast<int64_t>(kernel.getNumParams()) +
                  core::kNativeTableWords * kernel.getNumTables();
  if (words <= kMaxWords)
    return success();
  return kernel.emitError() << "parameters and tables take " << words
                            << " words of kernel arguments, expected at most " << kMaxWords;
}

namespace {

class ConvertAttnToTile : public attn::impl::ConvertAttnToTilePassBase<ConvertAttnToTile> {
public:
  using Base = attn::impl::ConvertAttnToTilePassBase<ConvertAttnToTile>;
  using Base::Base;

  void runOnOperation() override {
    const TargetInfo *info = findTarget(target);
    if (!info) {
      emitError(getOperation().getLoc()) << "target '" << target << "' is not known";
      return signalPassFailure();
    }
    SmallVector<KernelOp> kernels(getOperation().getOps<KernelOp>());
    for (KernelOp kernel : kernels) {
      MaskForm form = MaskForm::get(kernel);
      const TileShapeInfo *base = checkKernel(kernel, form, *info);
      if (!base || failed(checkParameters(kernel)))
        return signalPassFailure();
      FailureOr<TileShapeInfo> chosen = findShape(kernel, *info, *base, shape);
      if (failed(chosen))
        return signalPassFailure();
      constexpr int64_t kNotGiven = -1;
      const int64_t slack = rescaleSlack;
      if (slack < kNotGiven || slack > kMostRescaleSlack) {
        kernel.emitError() << "rescale-slack: expected 0 to " << kMostRescaleSlack << ", got "
                           << slack;
        return signalPassFailure();
      }
      if (slack != kNotGiven)
        chosen->rescaleSlack = slack;
      OpBuilder builder(kernel);
      HopperSchedule(kernel, std::move(form), *chosen, countTiles).emit(builder);
      kernel.erase();
    }
  }
};

} // namespace
