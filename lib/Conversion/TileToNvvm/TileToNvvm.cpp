// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass: kernels become functions, the module gets its shared memory.

#include "attn/Conversion/TileToNvvm/TileToNvvm.h"

#include "KernelLowering.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTTILETONVVMPASS
#include "conversion/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

KernelResources attn::getKernelResources(tile::KernelOp kernel) {
  return {tile::SharedLayout::get(kernel).bytes, kernel.getThreads()};
}

/// Attributes of an argument that is passed by value, `bytes` long.
static DictionaryAttr byValue(OpBuilder &b, Type type, int64_t alignment, bool isGridConstant) {
  SmallVector<NamedAttribute> attributes = {
      b.getNamedAttr(LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(type)),
      b.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(alignment))};
  if (isGridConstant)
    attributes.push_back(
        b.getNamedAttr(NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr()));
  return b.getDictionaryAttr(attributes);
}

/// The function of a kernel, without a body: its parameters are tensor maps and the words.
static LLVM::LLVMFuncOp createFunction(OpBuilder &b, tile::KernelOp kernel) {
  unsigned maps = kernel.getBody().getNumArguments() - 1;
  MLIRContext *ctx = b.getContext();
  Type pointer = LLVM::LLVMPointerType::get(ctx);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(ctx),
                                          SmallVector<Type>(maps + 1, pointer));
  // The address of a tensor map is taken, so it must stay where it is; the words are only loaded.
  Type map = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  Type words = LLVM::LLVMArrayType::get(b.getI64Type(), kernel.getWords());
  SmallVector<DictionaryAttr> arguments(maps, byValue(b, map, 64, /*isGridConstant=*/true));
  arguments.push_back(byValue(b, words, 8, /*isGridConstant=*/false));

  KernelResources resources = getKernelResources(kernel);
  SmallVector<NamedAttribute> attributes(kernel->getDiscardableAttrs());
  auto add = [&](StringRef name, Attribute value) {
    attributes.push_back(b.getNamedAttr(name, value));
  };
  add(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  // Without a limit of threads ptxas ignores setmaxnreg; one CTA may have all registers.
  add(NVVM::NVVMDialect::getMaxntidAttrName(),
      b.getDenseI32ArrayAttr({static_cast<int32_t>(resources.threads)}));
  add(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  add("tile.shared_bytes", b.getI64IntegerAttr(resources.sharedBytes));
  add("tile.threads", b.getI64IntegerAttr(resources.threads));
  return LLVM::LLVMFuncOp::create(b, kernel.getLoc(), kernel.getSymName(), type,
                                  LLVM::Linkage::External, /*dsoLocal=*/false, LLVM::CConv::C,
                                  /*comdat=*/{}, attributes, arguments);
}

/// External and without a size: as large as the launch says.
static LLVM::GlobalOp createSharedMemory(OpBuilder &b, ModuleOp module) {
  std::string name = "tile_shared_memory";
  while (module.lookupSymbol(name))
    name += "_";
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  return LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/false,
                                LLVM::Linkage::External, name, Attribute(), /*alignment=*/1024,
                                /*addrSpace=*/3);
}

namespace {
struct ConvertTileToNvvmPass : attn::impl::ConvertTileToNvvmPassBase<ConvertTileToNvvmPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
    if (kernels.empty())
      return;
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    LLVM::GlobalOp shared = createSharedMemory(b, module);
    for (tile::KernelOp kernel : kernels) {
      int64_t bytes = getKernelResources(kernel).sharedBytes;
      if (bytes > kMaxSharedBytes) {
        kernel.emitError("needs ")
            << bytes << " bytes of shared memory, a CTA can have " << kMaxSharedBytes;
        return signalPassFailure();
      }
      b.setInsertionPoint(kernel);
      LLVM::LLVMFuncOp function = createFunction(b, kernel);
      b.setInsertionPointToStart(function.addEntryBlock(b));
      auto address = LLVM::AddressOfOp::create(b, kernel.getLoc(), shared);
      if (failed(tile::KernelLowering(kernel, function, address).run()))
        return signalPassFailure();
      kernel.erase();
    }
    if (!module->hasAttr(LLVM::LLVMDialect::getTargetTripleAttrName()))
      module->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                      b.getStringAttr("nvptx64-nvidia-cuda"));
  }
};
} // namespace

void attn::buildTileToNvvmPipeline(OpPassManager &pm) { pm.addPass(createConvertTileToNvvmPass()); }
