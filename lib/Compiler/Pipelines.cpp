// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Compiler/Pipelines.h"

#include "ConvertBlocks.h"

#include "attn/Conversion/AttnToLoops/AttnToLoops.h"
#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Verify/Passes.h"

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::compiler::buildMaskPipeline(OpPassManager &pm, const TvCheckPassOptions *proofs) {
  OpPassManager &kernel = pm.nest<KernelOp>();
  auto add = [&](std::unique_ptr<Pass> pass) {
    if (proofs)
      kernel.addPass(createTvSnapshotPass());
    kernel.addPass(std::move(pass));
    if (proofs)
      kernel.addPass(createTvCheckPass(*proofs));
  };
  // No general canonicalizer here: its folds assume what a region's scalar operations do not
  // promise (overflow and fast-math flags, divisors other than 0, loops whose span fits 63 bits).
  add(createRaiseMasksPass());
  add(createSimplifyMaskPass());
  add(createRangeScanToTablePass());
  add(createFuseIntervalsPass());
  add(createCSEPass());
  add(createHoistInvariantsPass());
  add(createInferTileBoundsPass());
}

void attn::compiler::buildNativePipeline(OpPassManager &pm) {
  pm.addPass(createConvertAttnToLoopsPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  // On blocks, not on loops: after each change of a loop's body the canonicalizer asks again
  // whether the loop is dead, which is quadratic in the size of a mask. Without it, the conversion
  // below folds what it can, one after the other, which is quadratic in the length of a chain.
  GreedyRewriteConfig blocks;
  blocks.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  pm.addPass(createCanonicalizerPass(blocks));
  pm.addPass(createConvertBlocksPass());
}

void attn::compiler::buildTilePipeline(OpPassManager &pm, llvm::StringRef target,
                                       const CompileOptions &options, llvm::StringRef shape) {
  ConvertAttnToTilePassOptions pass;
  pass.target = target.str();
  pass.countTiles = options.countTiles;
  pass.shape = shape.str();
  if (options.rescaleSlack)
    pass.rescaleSlack = *options.rescaleSlack;
  pm.addPass(createConvertAttnToTilePass(pass));
}

void attn::compiler::registerPipelines() {
  PassPipelineRegistration<> mask("attn-mask-passes",
                                  "every mask pass, in the order the compiler runs them",
                                  [](OpPassManager &pm) { buildMaskPipeline(pm); });
  PassPipelineRegistration<> native("attn-to-native",
                                    "kernels to LLVM dialect functions for the CPU",
                                    [](OpPassManager &pm) { buildNativePipeline(pm); });
}
