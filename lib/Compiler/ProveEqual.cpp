// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The question about masks of one spec or of two, each pair answered by itself.
#include "SpecReader.h"

#include "attn/Compiler/Compiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;
using compiler::DiagnosticCollector;
using compiler::MaskComparison;
using compiler::ProveEqualOptions;
using compiler::SpecText;

namespace {

/// A kernel with what it says.
struct Kernel {
  KernelOp op;
  core::KernelSpec spec;
};

/// The kernels of a spec. Symbols belong to their module, so two of these may share them.
struct Kernels {
  std::string file;
  OwningOpRef<ModuleOp> module;
  std::vector<Kernel> list;

  const Kernel *find(StringRef symbol) const {
    for (const Kernel &kernel : list)
      if (kernel.spec.name == symbol)
        return &kernel;
    return nullptr;
  }
  /// "@a, @b".
  std::string names() const {
    std::string text;
    for (const Kernel &kernel : list)
      text += (text.empty() ? "@" : ", @") + kernel.spec.name;
    return text;
  }
};

/// Two kernels to compare.
struct Pair {
  const Kernel *first, *second;
};

} // namespace

static FailureOr<Kernels> readKernels(SpecText spec, MLIRContext *context) {
  Kernels kernels;
  kernels.file = spec.name.str();
  kernels.module = compiler::parseSpec(spec.text, spec.name, context);
  if (!kernels.module)
    return failure();
  FailureOr<std::vector<core::KernelSpec>> specs = compiler::readModule(*kernels.module);
  if (failed(specs))
    return failure();
  for (auto [op, read] : llvm::zip_equal(kernels.module->getOps<KernelOp>(), *specs))
    kernels.list.push_back({op, std::move(read)});
  return kernels;
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// The first of `symbols` with each of the others.
static FailureOr<std::vector<Pair>> pairSymbols(const Kernels &kernels,
                                                ArrayRef<std::string> symbols) {
  Location loc = compiler::getModuleLoc(*kernels.module);
  if (symbols.size() < 2)
    return emitError(loc) << "expected two kernels or more to compare, got " << symbols.size();
  std::vector<const Kernel *> found;
  for (auto [i, symbol] : llvm::enumerate(symbols)) {
    if (llvm::is_contained(symbols.take_front(i), symbol))
      return emitError(loc) << "kernel @" << symbol << " is to be compared with itself";
    found.push_back(kernels.find(symbol));
    if (!found.back())
      return emitError(loc) << "the spec holds no attn.kernel @" << symbol << ", expected one of "
                            << kernels.names();
  }
  std::vector<Pair> pairs;
  for (const Kernel *kernel : ArrayRef(found).drop_front())
    pairs.push_back({found.front(), kernel});
  return pairs;
}

/// The only kernels, or each of `first` with the one of its name.
static FailureOr<std::vector<Pair>> pairSpecs(const Kernels &first, const Kernels &second) {
  if (first.list.size() == 1 && second.list.size() == 1)
    return std::vector<Pair>{{&first.list.front(), &second.list.front()}};
  std::vector<Pair> pairs;
  bool all = true;
  for (const Kernel &kernel : first.list) {
    pairs.push_back({&kernel, second.find(kernel.spec.name)});
    if (pairs.back().second)
      continue;
    emitError(kernel.op->getLoc()) << second.file << " holds no attn.kernel @" << kernel.spec.name
                                   << " to compare with, it has " << second.names();
    all = false;
  }
  if (!all)
    return failure();
  return pairs;
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

/// Parameter or number that scales q.k.
static std::pair<std::string, double> getScale(const core::KernelSpec &spec) {
  if (spec.scaleParam >= 0)
    return {spec.program.params[static_cast<size_t>(spec.scaleParam)].name, 0};
  return {"", spec.scale};
}

static std::vector<std::string> findNotCompared(const Kernel &a, const Kernel &b) {
  const core::KernelSpec &x = a.spec, &y = b.spec;
  KernelOp first = a.op, second = b.op;
  std::vector<std::string> names;
  for (auto [name, isThere] :
       {std::pair("dim", x.dimQk != y.dimQk), std::pair("dim_v", x.dimV != y.dimV),
        std::pair("q", x.qType != y.qType), std::pair("kv", x.kvType != y.kvType),
        std::pair("scale", getScale(x) != getScale(y)),
        std::pair("score", first.getScore() || second.getScore()),
        std::pair("bounds", first.getBounds() || second.getBounds())})
    if (isThere)
      names.push_back(name);
  return names;
}

static MaskComparison compare(const Kernel &a, const Kernel &b, SpecText first, SpecText second,
                              const ProveEqualOptions &options) {
  MaskComparison result;
  auto describe = [](const Kernel &kernel, SpecText spec) {
    return MaskComparison::Kernel{kernel.spec.name, spec.name.str(),
                                  compiler::describePlace(kernel.op->getLoc())};
  };
  result.first = describe(a, first);
  result.second = describe(b, second);
  result.notCompared = findNotCompared(a, b);
  auto mask = [](const Kernel &kernel) {
    return proofs::KernelMask{kernel.spec.program, kernel.spec.numHeads, kernel.spec.numKvHeads};
  };
  proofs::ProveOptions proveOptions;
  proveOptions.solver = options.solver;
  proveOptions.timeoutSeconds = options.solverTimeout;
  result.verdict = proofs::proveKernels(a.op->getContext(), mask(a), mask(b), proveOptions);
  return result;
}

std::string compiler::toString(const MaskComparison &comparison) {
  const MaskComparison::Kernel &first = comparison.first, &second = comparison.second;
  auto name = [&](const MaskComparison::Kernel &kernel) {
    return "@" + kernel.symbol + (first.file == second.file ? "" : " of " + kernel.file);
  };
  const std::string names = name(first) + " and " + name(second);
  std::string claim = names + " are the same mask for every batch";
  if (!comparison.notCompared.empty())
    claim += " (not compared: " + llvm::join(comparison.notCompared, ", ") + ")";
  const std::string error = second.place + ": error: ";
  const proofs::Verdict &verdict = comparison.verdict;
  switch (verdict.outcome) {
  case proofs::Outcome::Proved:
    return "proved: " + claim;
  case proofs::Outcome::Refuted: {
    const proofs::Counterexample &example = *verdict.counterexample;
    std::string text = error + names + " are different masks: " + proofs::toString(example) + "\n" +
                       first.place + ": note: the first is here";
    for (const auto &[note, isSecond] : proofs::batchNotes(example))
      text += "\n" + (isSecond ? second : first).place + ": note: " + note;
    return text;
  }
  case proofs::Outcome::Unknown:
    return error + "not proved: " + claim + ": " + verdict.reason;
  case proofs::Outcome::NotChecked:
    return error + "not checked: " + claim + ": " + verdict.reason;
  }
  return "";
}

/// Reads the specs, which may be one, and compares what `pair` makes of their kernels.
static llvm::Expected<std::vector<MaskComparison>> proveSpecs(
    SpecText first, std::optional<SpecText> second, const ProveEqualOptions &options,
    llvm::function_ref<FailureOr<std::vector<Pair>>(const Kernels &, const Kernels &)> pair) {
  if (!options.solverTimeout)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "the solver is expected to have at least 1 second, got 0");
  std::unique_ptr<MLIRContext> context = compiler::makeContext();
  DiagnosticCollector diagnostics(context.get());
  FailureOr<Kernels> x = readKernels(first, context.get());
  if (failed(x))
    return diagnostics.takeError(first.name + ": the spec is not valid");
  FailureOr<Kernels> y = failure();
  if (second && failed(y = readKernels(*second, context.get())))
    return diagnostics.takeError(second->name + ": the spec is not valid");
  FailureOr<std::vector<Pair>> pairs = pair(*x, second ? *y : *x);
  if (failed(pairs))
    return diagnostics.takeError(first.name + ": there is nothing to compare");
  std::vector<MaskComparison> results;
  for (const Pair &two : *pairs)
    results.push_back(compare(*two.first, *two.second, first, second.value_or(first), options));
  return results;
}

llvm::Expected<std::vector<MaskComparison>> compiler::proveEqual(StringRef spec, StringRef name,
                                                                 ArrayRef<std::string> symbols,
                                                                 const ProveEqualOptions &options) {
  auto pair = [&](const Kernels &kernels, const Kernels &) {
    return pairSymbols(kernels, symbols);
  };
  return proveSpecs({spec, name}, std::nullopt, options, pair);
}

llvm::Expected<std::vector<MaskComparison>> compiler::proveEqual(SpecText first, SpecText second,
                                                                 const ProveEqualOptions &options) {
  return proveSpecs(first, second, options, pairSpecs);
}
