// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pair that checks a pass, and the question about two specs.
//
// The first of the pair leaves a text behind, the second parses it: nothing is shared but the IR,
// so kernels can be checked side by side. A proof needs that the printed kernel is the kernel,
// which the round-trip tests hold.
#include "attn/Verify/Passes.h"

#include "attn/Dialect/Attn/IR/ProgramBuilder.h"
#include "attn/Verify/Prove.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SMT/IR/SMTOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"

namespace attn {
#define GEN_PASS_DEF_TVSNAPSHOTPASS
#define GEN_PASS_DEF_TVCHECKPASS
#define GEN_PASS_DEF_TVPROVEEQUALPASS
#include "verify/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;
using proofs::Outcome;
using proofs::Verdict;

static constexpr StringLiteral kSnapshot = "attn.tv_snapshot";
static constexpr StringLiteral kMinimums = "attn.tv_minimums";

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A kernel whose mask is "k lies in the bounds".
static OwningOpRef<KernelOp> getBoundsAsMask(KernelOp kernel) {
  OwningOpRef<KernelOp> copy = kernel.clone();
  MaskOp mask = copy->getMask();
  BoundsOp bounds = copy->getBounds();
  // The bounds may use what stands between the two.
  mask->moveAfter(bounds);
  Block &block = mask.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    op.erase();
  OpBuilder builder = OpBuilder::atBlockEnd(&block);
  IRMapping mapping;
  Block &source = bounds.getBody().front();
  for (auto [from, to] : llvm::zip(source.getArguments(), block.getArguments()))
    mapping.map(from, to);
  for (Operation &op : source.without_terminator())
    builder.clone(op, mapping);
  Operation *yield = source.getTerminator();
  Value keep = InRowsOp::create(builder, bounds.getLoc(), block.getArgument(3),
                                mapping.lookupOrDefault(yield->getOperand(0)),
                                mapping.lookupOrDefault(yield->getOperand(1)));
  YieldOp::create(builder, bounds.getLoc(), keep);
  bounds.erase();
  return copy;
}

static FailureOr<core::MaskProgram> getProgram(KernelOp kernel, ArrayAttr minimums) {
  FailureOr<core::MaskProgram> program = ProgramBuilder(kernel).build();
  if (failed(program) || !minimums)
    return program;
  for (auto [param, minimum] : llvm::zip(program->params, minimums)) {
    param.minValue = std::nullopt;
    if (auto value = dyn_cast<IntegerAttr>(minimum))
      param.minValue = value.getValue().getSExtValue();
  }
  return program;
}

/// The smallest values of the parameters, a unit where there is none.
static ArrayAttr getMinimums(KernelOp kernel) {
  Builder builder(kernel.getContext());
  SmallVector<Attribute> minimums;
  for (const core::ParamDecl &param : getParamDecls(kernel))
    minimums.push_back(param.minValue ? Attribute(builder.getI64IntegerAttr(*param.minValue))
                                      : Attribute(builder.getUnitAttr()));
  return builder.getArrayAttr(minimums);
}

static proofs::ProveOptions getProveOptions(const std::string &solver, unsigned timeout,
                                            const std::string &dumpDir, KernelOp kernel) {
  proofs::ProveOptions options;
  options.solver = solver;
  options.timeoutSeconds = timeout;
  options.dumpDir = dumpDir;
  options.heads = static_cast<int64_t>(kernel.getHeads());
  options.kvHeads = static_cast<int64_t>(kernel.getKvHeads());
  if (auto views = kernel->getAttrOfType<DictionaryAttr>(proofs::kDocumentViews))
    for (NamedAttribute view : views)
      if (auto source = dyn_cast<StringAttr>(view.getValue()))
        options.documentViews[view.getName().str()] = source.str();
  return options;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

namespace {
/// How a pass says what came out.
struct Reporter {
  bool strict, report;

  /// `what` was proved, or was to be. `difference`: what a counterexample shows, with "at b = ..."
  /// after it.
  LogicalResult say(Location loc, const Verdict &verdict, const Twine &what,
                    const Twine &difference) const {
    switch (verdict.outcome) {
    case Outcome::Proved:
      if (report)
        emitRemark(loc) << "proved: " << what;
      return success();
    case Outcome::Refuted: {
      const proofs::Counterexample &at = *verdict.counterexample;
      InFlightDiagnostic error = emitError(loc) << difference << ": " << proofs::toString(at);
      for (const auto &[note, isSecond] : proofs::batchNotes(at))
        error.attachNote() << note;
      return error;
    }
    case Outcome::Unknown:
      if (strict)
        return emitError(loc) << "not proved: " << what << ": " << verdict.reason;
      emitWarning(loc) << "not proved: " << what << ": " << verdict.reason;
      return success();
    case Outcome::NotChecked:
      if (strict)
        return emitError(loc) << "not checked: " << what << ": " << verdict.reason;
      emitRemark(loc) << "not checked: " << what << ": " << verdict.reason;
      return success();
    }
    return failure();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

namespace {

class TvSnapshot : public attn::impl::TvSnapshotPassBase<TvSnapshot> {
public:
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (!kernel->hasAttr(kMinimums))
      kernel->setAttr(kMinimums, getMinimums(kernel));
    std::string text;
    llvm::raw_string_ostream stream(text);
    kernel->print(stream, OpPrintingFlags().useLocalScope());
    kernel->setAttr(kSnapshot, StringAttr::get(&getContext(), text));
    markAllAnalysesPreserved();
  }
};

class TvCheck : public attn::impl::TvCheckPassBase<TvCheck> {
public:
  using TvCheckPassBase::TvCheckPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    KernelOp kernel = getOperation();
    auto text = kernel->getAttrOfType<StringAttr>(kSnapshot);
    if (!text) {
      kernel.emitOpError("has no snapshot to be checked against");
      return signalPassFailure();
    }
    kernel->removeAttr(kSnapshot);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text.getValue(), &getContext());
    if (!module || module->getOps<KernelOp>().empty()) {
      kernel.emitOpError("has a snapshot that does not parse");
      return signalPassFailure();
    }
    KernelOp before = *module->getOps<KernelOp>().begin();
    auto minimums = kernel->getAttrOfType<ArrayAttr>(kMinimums);
    if (failed(checkClauses(before, kernel, minimums)))
      return signalPassFailure();
    FailureOr<core::MaskProgram> x = getProgram(before, minimums);
    FailureOr<core::MaskProgram> y = getProgram(kernel, minimums);
    if (failed(x) || failed(y) || failed(checkMask(kernel, *x, *y)) ||
        failed(checkScore(kernel, *x, *y)) || failed(checkBounds(before, kernel, *x, minimums)))
      signalPassFailure();
  }

private:
  /// What a mask is read with, and what no pass has a reason to touch.
  static LogicalResult checkClauses(KernelOp before, KernelOp after, ArrayAttr minimums) {
    for (StringRef name : KernelOp::getAttributeNames()) {
      // Passes add tables.
      if (name == after.getArgNamesAttrName() || name == after.getTableSourcesAttrName())
        continue;
      Attribute was = before->getAttr(name), is = after->getAttr(name);
      if (was != is)
        return after.emitOpError("has another '")
               << name << "' than its snapshot: expected " << was << ", got " << is;
    }
    uint64_t params = before.getNumParams();
    bool fits =
        minimums && minimums.size() == params && llvm::all_of(minimums, [](Attribute minimum) {
          auto value = dyn_cast<IntegerAttr>(minimum);
          return !value || value.getType().isSignlessInteger(64);
        });
    if (!fits)
      return after.emitOpError("has a snapshot without the smallest values of its parameters");
    for (unsigned i = 0; i < params; ++i)
      if (before.getArgName(i) != after.getArgName(i))
        return after.emitOpError("has another parameter than its snapshot: expected '")
               << before.getArgName(i) << "', got '" << after.getArgName(i) << "'";
    return success();
  }

  LogicalResult checkMask(KernelOp kernel, const core::MaskProgram &before,
                          const core::MaskProgram &after) {
    Operation *place = kernel.getMask();
    Verdict verdict = proofs::proveMasks(&getContext(), before, after, proofs::Relation::Equal,
                                         getOptions(kernel));
    return reporter().say((place ? place : kernel)->getLoc(), verdict, "the rewrite keeps the mask",
                          "rewrite changes the mask");
  }

  LogicalResult checkScore(KernelOp kernel, const core::MaskProgram &before,
                           const core::MaskProgram &after) {
    if (before.score < 0 && after.score < 0)
      return success();
    Operation *place = kernel.getScore();
    Verdict verdict = proofs::proveScores(&getContext(), before, after, getOptions(kernel));
    return reporter().say((place ? place : kernel)->getLoc(), verdict,
                          "the rewrite keeps the score", "rewrite changes the score");
  }

  /// Bounds that the pass added or changed.
  LogicalResult checkBounds(KernelOp before, KernelOp after, const core::MaskProgram &mask,
                            ArrayAttr minimums) {
    BoundsOp bounds = after.getBounds();
    if (!bounds || !after.getMask())
      return success();
    FailureOr<core::MaskProgram> inside = getProgram(*getBoundsAsMask(after), minimums);
    if (failed(inside))
      return failure();
    proofs::ProveOptions options = getOptions(after);
    if (before.getBounds() && before.getMask()) {
      FailureOr<core::MaskProgram> old = getProgram(*getBoundsAsMask(before), minimums);
      if (failed(old))
        return failure();
      bool sameKind = before.getBounds().getExact() == bounds.getExact();
      Verdict verdict =
          proofs::proveMasks(&getContext(), *old, *inside, proofs::Relation::Equal, options);
      if (sameKind && verdict.outcome == Outcome::Proved)
        return success();
    }
    auto relation = bounds.getExact() ? proofs::Relation::Equal : proofs::Relation::Implies;
    Verdict verdict = proofs::proveMasks(&getContext(), mask, *inside, relation, options);
    return reporter().say(bounds.getLoc(), verdict,
                          bounds.getExact() ? "the bounds hold exactly the kept keys"
                                            : "the bounds hold every kept key",
                          "bounds do not fit the mask, which is the first");
  }

  proofs::ProveOptions getOptions(KernelOp kernel) const {
    return getProveOptions(solver, timeout, dumpSmt, kernel);
  }
  Reporter reporter() const { return {strict, report}; }
};

class TvProveEqual : public attn::impl::TvProveEqualPassBase<TvProveEqual> {
public:
  using TvProveEqualPassBase::TvProveEqualPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    SmallVector<KernelOp> list;
    for (const std::string &name : kernels) {
      StringRef symbol = name;
      symbol.consume_front("@");
      auto kernel = module.lookupSymbol<KernelOp>(symbol);
      if (!kernel) {
        module.emitError() << "the module holds no attn.kernel @" << symbol;
        return signalPassFailure();
      }
      if (llvm::is_contained(list, kernel)) {
        module.emitError() << "kernel @" << symbol << " is to be compared with itself";
        return signalPassFailure();
      }
      list.push_back(kernel);
    }
    if (list.size() < 2) {
      module.emitError() << "expected two kernels or more to compare, got " << list.size();
      return signalPassFailure();
    }
    for (KernelOp kernel : ArrayRef(list).drop_front())
      if (failed(compare(list.front(), kernel)))
        signalPassFailure();
  }

private:
  LogicalResult compare(KernelOp a, KernelOp b) {
    FailureOr<core::MaskProgram> x = getProgram(a, nullptr), y = getProgram(b, nullptr);
    if (failed(x) || failed(y))
      return failure();
    auto mask = [](KernelOp kernel, const core::MaskProgram &program) {
      return proofs::KernelMask{program, static_cast<int64_t>(kernel.getHeads()),
                                static_cast<int64_t>(kernel.getKvHeads())};
    };
    Verdict verdict = proofs::proveKernels(&getContext(), mask(a, *x), mask(b, *y), getOptions(a));
    Reporter reporter{/*strict=*/true, /*report=*/true};
    std::string names = ("@" + a.getSymName() + " and @" + b.getSymName()).str();
    return reporter.say(b.getLoc(), verdict, names + " are the same mask for every batch",
                        names + " are different masks");
  }

  proofs::ProveOptions getOptions(KernelOp kernel) const {
    return getProveOptions(solver, timeout, dumpSmt, kernel);
  }
};

} // namespace
