// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SpecReader.h"

#include "SpecHash.h"

#include "attn/Compiler/Compiler.h"
#include "attn/Dialect/Attn/IR/ProgramBuilder.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace attn;
using compiler::DiagnosticCollector;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

std::string compiler::describePlace(Location loc) {
  std::string text = "<unknown>";
  loc->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      text = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
              Twine(file.getColumn()))
                 .str();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return text;
}

DiagnosticCollector::DiagnosticCollector(MLIRContext *context,
                                         const std::function<void(StringRef)> &others)
    : others(others), handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error) {
          if (this->others)
            this->others(describePlace(diagnostic.getLocation()) + ": " + diagnostic.str());
          return success();
        }
        add(diagnostic, "error");
        for (Diagnostic &note : diagnostic.getNotes())
          add(note, "note");
        return success();
      }) {}

llvm::Error DiagnosticCollector::takeError(const Twine &fallback) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 Twine(text.empty() ? fallback.str() : text));
}

void DiagnosticCollector::add(Diagnostic &diagnostic, StringRef kind) {
  if (!text.empty())
    text += '\n';
  text += describePlace(diagnostic.getLocation()) + ": " + kind.str() + ": " + diagnostic.str();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static core::DType getDType(mlir::Type type) {
  if (type.isF16())
    return core::DType::F16;
  return type.isBF16() ? core::DType::BF16 : core::DType::F32;
}

FailureOr<core::KernelSpec> compiler::readKernel(KernelOp kernel) {
  core::KernelSpec spec;
  spec.name = kernel.getSymName().str();
  if (spec.name.empty())
    return kernel.emitOpError("symbol is expected not to be empty");
  for (auto [value, clause] :
       {std::pair(kernel.getHeads(), "heads"), std::pair(kernel.getDim(), "dim"),
        std::pair(kernel.getDimV(), "dim_v")})
    if (static_cast<int64_t>(value) > core::kMaxKernelExtent)
      return kernel.emitOpError() << clause << " is expected to be at most "
                                  << core::kMaxKernelExtent << ", got " << value;
  // The name is a symbol of the object and a string of the manifest.
  if (!llvm::all_of(spec.name,
                    [](char c) { return llvm::isAlnum(c) || StringRef("_.-$").contains(c); }))
    return kernel.emitOpError("symbol is expected to be letters, digits, '_', '.', '-' or '$'");
  spec.numHeads = kernel.getHeads();
  spec.numKvHeads = kernel.getKvHeads();
  spec.dimQk = kernel.getDim();
  spec.dimV = kernel.getDimV();
  spec.qType = getDType(kernel.getQType());
  spec.kvType = getDType(kernel.getKvType());
  spec.scale = kernel.getLiteralScale();
  if (auto param = kernel.getScaleParam())
    spec.scaleParam = static_cast<int32_t>(*param);
  FailureOr<core::MaskProgram> program = ProgramBuilder(kernel).build();
  if (failed(program))
    return failure();
  spec.program = std::move(*program);
  if (auto fault = core::verify(spec.program))
    return kernel.emitOpError() << "has no valid mask program: " << *fault;
  spec.specHash = compiler::hashSpec(spec);
  return spec;
}

Location compiler::getModuleLoc(ModuleOp module) {
  // The parser gives an implicit module the place 0:0.
  Location loc = module.getLoc();
  if (auto file = dyn_cast<FileLineColLoc>(loc); file && file.getLine() == 0)
    loc = FileLineColLoc::get(file.getFilename(), 1, 1);
  return loc;
}

FailureOr<std::vector<core::KernelSpec>> compiler::readModule(ModuleOp module) {
  std::vector<core::KernelSpec> specs;
  for (Operation &op : *module.getBody()) {
    auto kernel = dyn_cast<KernelOp>(op);
    if (!kernel) {
      op.emitOpError("is not allowed in a spec, expected attn.kernel");
      return failure();
    }
    FailureOr<core::KernelSpec> spec = readKernel(kernel);
    if (failed(spec))
      return failure();
    specs.push_back(std::move(*spec));
  }
  if (specs.empty()) {
    emitError(getModuleLoc(module), "the spec holds no attn.kernel");
    return failure();
  }
  return specs;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::unique_ptr<MLIRContext> compiler::makeContext() {
  DialectRegistry registry;
  compiler::registerAll(registry);
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  // Messages name the place and the reason; a dump of the operation would bury both.
  context->printOpOnDiagnostic(false);
  return context;
}

/// Line (from 1) of the first bracket that opens more than `limit` levels, or 0. Comments and
/// strings do not count.
static size_t findDeepNesting(StringRef spec, size_t limit) {
  size_t depth = 0, line = 1;
  for (size_t i = 0; i < spec.size(); ++i) {
    char c = spec[i];
    if (c == '\n') {
      ++line;
    } else if (c == '/' && spec.substr(i, 2) == "//") {
      i = std::min(spec.find('\n', i), spec.size()) - 1;
    } else if (c == '"') {
      for (++i; i < spec.size() && spec[i] != '"' && spec[i] != '\n'; ++i)
        if (spec[i] == '\\')
          ++i;
    } else if (c == '{' || c == '(' || c == '[' || c == '<') {
      if (++depth > limit)
        return line;
    } else if ((c == '}' || c == ')' || c == ']' || (c == '>' && spec[i - (i > 0)] != '-')) &&
               depth > 0) {
      --depth;
    }
  }
  return 0;
}

OwningOpRef<ModuleOp> compiler::parseSpec(StringRef spec, StringRef name, MLIRContext *context) {
  // MLIR's parser and printer recurse over nested regions without a limit of their own.
  constexpr size_t kMaxNesting = 200;
  if (size_t line = findDeepNesting(spec, kMaxNesting)) {
    emitError(FileLineColLoc::get(context, name, static_cast<unsigned>(line), 1))
        << "brackets nest deeper than " << kMaxNesting << " levels";
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(spec, name), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, context);
}
