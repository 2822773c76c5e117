// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "attn/Compiler/Compiler.h"

#include "CanonicalOrder.h"
#include "GpuTarget.h"
#include "NativeCode.h"
#include "Recipes.h"
#include "SpecReader.h"

#include "attn/Compiler/Pipelines.h"
#include "attn/Config.h"
#include "attn/Conversion/AttnToLoops/AttnToLoops.h"
#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "attn/Core/KernelSignature.h"
#include "attn/Core/MaskEval.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"
#include "attn/Dialect/Attn/IR/ProgramBuilder.h"
#include "attn/Verify/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Remark/RemarkStreamer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attn;
using attn::compiler::CompileOptions;
using attn::compiler::DiagnosticCollector;

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

namespace {

/// Hands each remark to the caller as one line.
class ExplainStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit ExplainStreamer(const std::function<void(StringRef)> &explain) : explain(explain) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string text;
    for (const auto &argument : remark.getArgs())
      text += argument.val;
    bool done = remark.getRemarkType() == llvm::remarks::Type::Passed;
    explain(compiler::describePlace(remark.getLocation()) + ": " + remark.getRemarkName().str() +
            (done ? ": " : " refused: ") + text);
  }

private:
  const std::function<void(StringRef)> &explain;
};

} // namespace

/// Sends the context's remarks of category "attn" to `explain`.
static LogicalResult enableExplain(MLIRContext *context,
                                   const std::function<void(StringRef)> &explain) {
  std::string attn = "attn";
  remark::RemarkCategories categories{attn, attn, attn, attn, attn};
  return remark::enableOptimizationRemarks(*context, std::make_unique<ExplainStreamer>(explain),
                                           std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                           categories);
}

//===----------------------------------------------------------------------===//
// Specs
//===----------------------------------------------------------------------===//

llvm::Expected<std::vector<core::KernelSpec>> compiler::readSpecs(StringRef spec, StringRef name) {
  std::unique_ptr<MLIRContext> context = compiler::makeContext();
  DiagnosticCollector diagnostics(context.get());
  OwningOpRef<ModuleOp> module = compiler::parseSpec(spec, name, context.get());
  if (!module)
    return diagnostics.takeError(name + ": the spec does not parse");
  FailureOr<std::vector<core::KernelSpec>> specs = compiler::readModule(*module);
  if (failed(specs))
    return diagnostics.takeError(name + ": the spec is not valid");
  return std::move(*specs);
}

llvm::Expected<std::string> compiler::specHash(ModuleOp module, StringRef symbol) {
  DiagnosticCollector diagnostics(module.getContext());
  auto kernel = module.lookupSymbol<KernelOp>(symbol);
  if (!kernel)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "the module holds no attn.kernel @" + symbol);
  FailureOr<core::KernelSpec> spec = compiler::readKernel(kernel);
  if (failed(spec))
    return diagnostics.takeError("the kernel is not valid");
  return spec->specHash;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

const std::vector<std::string> &compiler::targets() {
  static const std::vector<std::string> names = {"cpu", "sm_90a"};
  return names;
}

/// Targets that are planned; they are refused like others, but not as unknown.
static bool isPlanned(StringRef name) { return name == "sm_100a"; }

llvm::Error compiler::checkTargets(const std::vector<std::string> &names) {
  auto refuse = [](const Twine &text) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
  };
  const std::string available = llvm::join(compiler::targets(), ", ");
  if (names.empty())
    return refuse("no target is given, available: " + available);
  for (auto [i, name] : llvm::enumerate(names)) {
    if (!llvm::is_contained(compiler::targets(), name))
      return refuse("target '" + name + "' is not available" + (isPlanned(name) ? " yet" : "") +
                    ", expected one of: " + available);
    if (llvm::is_contained(ArrayRef(names).take_front(i), name))
      return refuse("target '" + name + "' is given twice");
  }
  return llvm::Error::success();
}

bool compiler::isGpuTarget(StringRef target) { return findTarget(target) != nullptr; }

/// What the manifest says of each kernel's code before there is any.
static std::vector<core::KernelBinary> describe(ModuleOp module, const core::Artifact &artifact,
                                                const std::string &target) {
  std::vector<core::KernelBinary> binaries;
  for (auto [kernelOp, kernel] : llvm::zip(module.getOps<KernelOp>(), artifact.kernels)) {
    core::KernelBinary binary;
    binary.target = target;
    binary.tilePlan = core::hasExactRows(kernel.spec.program) ? core::TilePlan::Intervals
                                                              : core::TilePlan::Abstract;
    binary.tables = getTableDecls(kernelOp);
    binaries.push_back(std::move(binary));
  }
  return binaries;
}

/// Compiles for "cpu": every kernel into one object.
static LogicalResult compileNative(ModuleOp module, ArrayRef<core::KernelBinary> binaries,
                                   const CompileOptions &options, core::Artifact &artifact) {
  for (auto [binary, kernel] : llvm::zip(binaries, artifact.kernels)) {
    kernel.binaries.push_back(binary);
    kernel.binaries.back().format = compiler::getNativeFormat().str();
    kernel.binaries.back().blob = static_cast<int32_t>(artifact.blobs.size());
    kernel.binaries.back().entry = getForwardEntryName(kernel.spec.name);
    kernel.binaries.back().maskEntry = getMaskEntryName(kernel.spec.name);
  }
  PassManager passes(module.getContext());
  compiler::buildNativePipeline(passes);
  if (failed(passes.run(module)))
    return failure();
  for (const core::Kernel &kernel : artifact.kernels)
    compiler::addConstant(module, core::signatureSymbol(kernel.binaries.back().entry),
                          core::kernelSignature(kernel.spec, kernel.binaries.back()));
  llvm::Expected<std::vector<uint8_t>> object =
      compiler::emitNativeObject(module, options.optLevel);
  if (!object)
    return module.emitError(llvm::toString(object.takeError()));
  artifact.blobs.push_back(std::move(*object));
  return success();
}

static LogicalResult runMaskPasses(ModuleOp module, const CompileOptions &options) {
  compiler::putInCanonicalOrder(module);
  if (!options.maskPasses)
    return success();
  PassManager passes(module.getContext());
  TvCheckPassOptions proofs;
  proofs.solver = options.solver;
  proofs.timeout = options.solverTimeout;
  proofs.strict = options.strictVerify;
  compiler::buildMaskPipeline(passes, options.verify ? &proofs : nullptr);
  return passes.run(module);
}

/// The kernel in every shape, see CompileOptions::allShapes; after the mask passes.
static FailureOr<core::Artifact> compileShapes(ModuleOp module, const CompileOptions &options,
                                               const core::Artifact &artifact) {
  const std::string &target = options.targets.front();
  const TargetInfo *gpu = findTarget(target);
  KernelOp kernel = *module.getOps<KernelOp>().begin();
  if (!gpu || options.targets.size() != 1)
    return kernel.emitError("all shapes are compiled for one GPU target, got ")
           << llvm::join(options.targets, ",");
  if (artifact.kernels.size() != 1)
    return kernel.emitError("all shapes are compiled of one kernel, the spec has ")
           << artifact.kernels.size();
  core::Artifact all;
  all.compilerVersion = artifact.compilerVersion;
  for (const std::string &shape : getTileShapes(kernel, target)) {
    core::Artifact one = artifact;
    OwningOpRef<ModuleOp> copy = module.clone();
    std::vector<core::KernelBinary> binaries = describe(*copy, one, target);
    KernelOp copied = *copy->getOps<KernelOp>().begin();
    if (failed(compiler::addRecipes(copied, options.recipes, binaries.front())))
      return failure();
    if (options.explain)
      options.explain(target + ": shape " + shape);
    if (failed(compiler::compileGpu(*copy, *gpu, binaries, options, one, shape)))
      return failure();
    core::Kernel &compiled = one.kernels.front();
    compiled.spec.name += "@" + shape;
    for (core::KernelBinary &binary : compiled.binaries)
      binary.blob += static_cast<int32_t>(all.blobs.size());
    all.kernels.push_back(std::move(compiled));
    std::move(one.blobs.begin(), one.blobs.end(), std::back_inserter(all.blobs));
  }
  if (all.kernels.empty())
    return failure(); // told at the kernel
  return all;
}

static FailureOr<core::Artifact> compileModule(ModuleOp module, const CompileOptions &options) {
  if (failed(mlir::verify(module)))
    return failure();
  FailureOr<std::vector<core::KernelSpec>> specs = compiler::readModule(module);
  if (failed(specs))
    return failure();
  core::Artifact artifact;
  artifact.compilerVersion = ATTN_VERSION;
  for (core::KernelSpec &spec : *specs) {
    artifact.kernels.emplace_back();
    artifact.kernels.back().spec = std::move(spec);
  }
  if (failed(runMaskPasses(module, options)))
    return failure();
  if (options.allShapes)
    return compileShapes(module, options, artifact);
  for (const std::string &target : options.targets) {
    OwningOpRef<ModuleOp> copy = module.clone();
    std::vector<core::KernelBinary> binaries = describe(*copy, artifact, target);
    const TargetInfo *gpu = findTarget(target);
    if (gpu)
      for (auto [kernel, binary] : llvm::zip(copy->getOps<KernelOp>(), binaries))
        if (failed(compiler::addRecipes(kernel, options.recipes, binary)))
          return failure();
    if (failed(gpu ? compiler::compileGpu(*copy, *gpu, binaries, options, artifact)
                   : compileNative(*copy, binaries, options, artifact)))
      return failure();
  }
  return artifact;
}

/// Parses `spec` in a context of its own and hands the module to `use`, which gives a
/// FailureOr<Value>; a failure becomes the collected diagnostics.
template <class Value, class Use>
static llvm::Expected<Value> withSpec(StringRef spec, StringRef name, const CompileOptions &options,
                                      Use use) {
  if (llvm::Error error = compiler::checkTargets(options.targets))
    return error;
  if (llvm::Error error = compiler::checkRecipeTargets(options))
    return error;
  std::unique_ptr<MLIRContext> context = compiler::makeContext();
  DiagnosticCollector diagnostics(context.get(), options.notProved);
  if (options.explain && failed(enableExplain(context.get(), options.explain)))
    return diagnostics.takeError("remarks are not available");
  OwningOpRef<ModuleOp> module = compiler::parseSpec(spec, name, context.get());
  if (!module)
    return diagnostics.takeError(name + ": the spec does not parse");
  FailureOr<Value> value = use(*module);
  if (failed(value))
    return diagnostics.takeError(name + ": compilation failed");
  return std::move(*value);
}

llvm::Expected<core::Artifact> compiler::compile(StringRef spec, StringRef name,
                                                 const CompileOptions &options) {
  return withSpec<core::Artifact>(spec, name, options,
                                  [&](ModuleOp module) { return compileModule(module, options); });
}

/// The target whose code --emit shows: the first GPU, else the CPU.
static const std::string &getShownTarget(const CompileOptions &options) {
  for (const std::string &name : options.targets)
    if (findTarget(name))
      return name;
  return options.targets.front();
}

/// The module at `stage` as text; changes the module.
static FailureOr<std::string> printStage(ModuleOp module, compiler::Stage stage,
                                         const CompileOptions &options) {
  if (failed(compiler::readModule(module)) || failed(runMaskPasses(module, options)))
    return failure();
  if (stage == compiler::Stage::Attn) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text + "\n";
  }
  const std::string &target = getShownTarget(options);
  if (const TargetInfo *gpu = findTarget(target))
    return compiler::emitGpuStage(module, *gpu, stage, options);
  PassManager passes(module.getContext());
  compiler::buildNativePipeline(passes);
  if (failed(passes.run(module)))
    return failure();
  llvm::Expected<std::string> text = compiler::emitLlvmText(module, options.optLevel);
  if (!text)
    return module.emitError(llvm::toString(text.takeError()));
  return std::move(*text);
}

/// Whether the targets have `stage`.
static llvm::Error checkStage(compiler::Stage stage, const CompileOptions &options) {
  using compiler::Stage;
  auto refuse = [](const Twine &text) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
  };
  if (options.allShapes)
    return refuse("all shapes make an artifact, expected none of them for text");
  if (!llvm::any_of(options.targets, compiler::isGpuTarget) && stage != Stage::Attn &&
      stage != Stage::Llvm)
    return refuse("target '" + options.targets.front() + "' has only the levels attn and llvm");
  if (stage == Stage::Cubin && options.ptxas.empty())
    return refuse("level cubin needs ptxas, and none is given");
  return llvm::Error::success();
}

llvm::Expected<std::string> compiler::emitText(StringRef spec, StringRef name, Stage stage,
                                               const CompileOptions &options) {
  if (llvm::Error error = checkTargets(options.targets))
    return error;
  if (llvm::Error error = checkStage(stage, options))
    return error;
  return withSpec<std::string>(spec, name, options,
                               [&](ModuleOp module) { return printStage(module, stage, options); });
}

llvm::Expected<core::Artifact> compiler::compile(ModuleOp module, const CompileOptions &options) {
  if (llvm::Error error = compiler::checkTargets(options.targets))
    return error;
  if (llvm::Error error = compiler::checkRecipeTargets(options))
    return error;
  DiagnosticCollector diagnostics(module.getContext());
  if (options.explain && failed(enableExplain(module.getContext(), options.explain)))
    return diagnostics.takeError("remarks are not available");
  OwningOpRef<ModuleOp> copy = module.clone();
  FailureOr<core::Artifact> artifact = compileModule(*copy, options);
  if (failed(artifact))
    return diagnostics.takeError("compilation failed");
  return std::move(*artifact);
}
