// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels to PTX and cubins.

#include "GpuTarget.h"

#include "Ptx.h"
#include "Ptxas.h"

#include "attn/Compiler/Pipelines.h"
#include "attn/Conversion/AttnToTile/AttnToTile.h"
#include "attn/Conversion/TileToNvvm/TileToNvvm.h"
#include "attn/Dialect/Attn/IR/AttnOps.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace attn;
using compiler::CompileOptions;
using compiler::PtxasKernel;
using compiler::PtxasResult;

namespace {

/// A module on its way to PTX.
class GpuCompilation {
public:
  GpuCompilation(ModuleOp module, const TargetInfo &target, const CompileOptions &options)
      : module(module), target(target), options(options), place(module.getLoc()) {
    for (KernelOp kernel : module.getOps<KernelOp>()) {
      names.push_back(kernel.getSymName().str());
      symbols.push_back(getTileKernelName(kernel.getSymName()));
    }
    // A module that the parser makes up has no place of its own.
    if (auto kernels = module.getOps<KernelOp>(); !kernels.empty())
      place = (*kernels.begin()).getLoc();
  }

  LogicalResult lowerToTile(StringRef shape = "") {
    PassManager passes(module.getContext());
    compiler::buildTilePipeline(passes, target.name, options, shape);
    if (failed(passes.run(module)))
      return failure();
    for (const std::string &symbol : symbols)
      launches.push_back(getLaunch(module.lookupSymbol<tile::KernelOp>(symbol)));
    return success();
  }

  LogicalResult lowerToNvvm() {
    PassManager passes(module.getContext());
    buildTileToNvvmPipeline(passes);
    return passes.run(module);
  }

  FailureOr<std::string> emitLlvm() { return get(compiler::emitPtxLlvmText(module, getInput())); }

  FailureOr<std::string> emitPtx() { return get(compiler::emitPtx(module, getInput())); }

  /// Assembles, reports, and refuses what the options do.
  FailureOr<PtxasResult> assemble(StringRef ptx) {
    FailureOr<PtxasResult> result = get(compiler::runPtxas(options.ptxas, ptx, target.name));
    if (failed(result))
      return failure();
    for (auto [i, name] : llvm::enumerate(names))
      for (const PtxasKernel &kernel : result->report.kernels)
        if (kernel.entry == compiler::gpuEntryName(i))
          explain(name, kernel, launches[i].sharedBytes);
    for (const std::string &complaint : result->report.complaints)
      explain("ptxas: " + complaint);
    std::string faults = result->report.faults();
    if (options.strictPtxas && !faults.empty())
      return emitError(place) << "code of target '" << target.name << "' is not clean: " << faults;
    return result;
  }

  void explain(const Twine &text) {
    if (options.explain)
      options.explain((target.name + ": " + text).str());
  }

  ArrayRef<core::CudaLaunch> getLaunches() const { return launches; }

private:
  compiler::PtxInput getInput() { return {target.name, target.features, symbols}; }

  template <class Value>
  FailureOr<Value> get(llvm::Expected<Value> value) {
    if (!value)
      return emitError(place, llvm::toString(value.takeError()));
    return std::move(*value);
  }

  static core::CudaLaunch getLaunch(tile::KernelOp kernel) {
    KernelResources resources = getKernelResources(kernel);
    core::CudaLaunch launch;
    launch.groups = kernel.getConsumers().getGroups();
    launch.keyTile = kernel->getAttrOfType<IntegerAttr>(kKeyTileAttr).getInt();
    launch.threads = resources.threads;
    launch.sharedBytes = resources.sharedBytes;
    launch.testsVisible = kernel->hasAttr(kTestsVisibleAttr);
    launch.countsTiles = kernel->hasAttr(kCountsTilesAttr);
    return launch;
  }

  void explain(StringRef name, const PtxasKernel &kernel, int64_t dynamicBytes) {
    explain("kernel '" + name + "': " + Twine(kernel.registers) + " registers a thread, " +
            Twine(kernel.spillStores) + " bytes of spill stores, " + Twine(kernel.spillLoads) +
            " bytes of spill loads, " + Twine(dynamicBytes + kernel.sharedBytes) +
            " bytes of shared memory");
  }

  ModuleOp module;
  const TargetInfo &target;
  const CompileOptions &options;
  Location place;
  std::vector<std::string> names;   ///< of the kernels
  std::vector<std::string> symbols; ///< of what they become
  std::vector<core::CudaLaunch> launches;
};

} // namespace

LogicalResult compiler::compileGpu(ModuleOp module, const TargetInfo &target,
                                   ArrayRef<core::KernelBinary> binaries,
                                   const CompileOptions &options, core::Artifact &artifact,
                                   StringRef shape) {
  GpuCompilation compilation(module, target, options);
  if (failed(compilation.lowerToTile(shape)) || failed(compilation.lowerToNvvm()))
    return failure();
  FailureOr<std::string> ptx = compilation.emitPtx();
  if (failed(ptx))
    return failure();
  auto add = [&](const char *format, std::vector<uint8_t> code) {
    for (auto [i, kernel] : llvm::enumerate(artifact.kernels)) {
      core::KernelBinary binary = binaries[i];
      binary.format = format;
      binary.blob = static_cast<int32_t>(artifact.blobs.size());
      binary.entry = gpuEntryName(i);
      binary.cuda = compilation.getLaunches()[i];
      kernel.binaries.push_back(std::move(binary));
    }
    artifact.blobs.push_back(std::move(code));
  };
  if (options.ptxas.empty()) {
    compilation.explain("no ptxas: the driver compiles the PTX when it loads the artifact");
  } else {
    FailureOr<PtxasResult> assembled = compilation.assemble(*ptx);
    if (failed(assembled))
      return failure();
    add("cubin", std::move(assembled->cubin));
  }
  // The driver takes a text that ends in NUL.
  add("ptx", std::vector<uint8_t>(ptx->c_str(), ptx->c_str() + ptx->size() + 1));
  return success();
}

FailureOr<std::string> compiler::emitGpuStage(ModuleOp module, const TargetInfo &target,
                                              Stage stage, const CompileOptions &options) {
  auto print = [&] {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    return text + "\n";
  };
  GpuCompilation compilation(module, target, options);
  if (failed(compilation.lowerToTile()))
    return failure();
  if (stage == Stage::Tile)
    return print();
  if (failed(compilation.lowerToNvvm()))
    return failure();
  if (stage == Stage::Nvvm)
    return print();
  if (stage == Stage::Llvm)
    return compilation.emitLlvm();
  FailureOr<std::string> ptx = compilation.emitPtx();
  if (failed(ptx) || stage == Stage::Ptx)
    return ptx;
  assert(!options.ptxas.empty() && "checked by emitText");
  FailureOr<PtxasResult> assembled = compilation.assemble(*ptx);
  if (failed(assembled))
    return failure();
  return std::string(assembled->cubin.begin(), assembled->cubin.end());
}
