// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler as a library: a spec in, an artifact out.
#ifndef ATTN_COMPILER_COMPILER_H
#define ATTN_COMPILER_COMPILER_H

#include "attn/Core/Manifest.h"
#include "attn/Verify/Prove.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class DialectRegistry;
class MLIRContext;
class ModuleOp;
} // namespace mlir

namespace attn::compiler {

/// Registers the dialects, interfaces and translations that compile() needs. One call per context.
void registerAll(mlir::DialectRegistry &registry);
/// Registers every pass and pipeline by name, for attn-opt and other opt tools.
void registerAllPasses();

/// A recipe that code for GPU targets names (attn/Core/Recipe.h), for every kernel of the spec.
struct RecipeRequest {
  core::Recipe recipe; ///< without `source`
  std::string table;   ///< that of a range tensor; empty: the kernel's only table of ranges
};
/// A recipe of the form "KIND,key=value,...", as attn-compile --help lists them. `name` is KIND by
/// default.
llvm::Expected<RecipeRequest> parseRecipe(llvm::StringRef text);

struct CompileOptions {
  /// Names from targets(); each is compiled for.
  std::vector<std::string> targets = {"cpu"};
  /// Run the mask passes (attn-raise-masks ... attn-infer-tile-bounds). Without them the kernel
  /// computes the same, slower.
  bool maskPasses = true;
  /// Code generation effort for the CPU, 0 to 3. GPU code is always made with all.
  unsigned optLevel = 3;
  /// GPU kernels count what they visit, see core::TileCounters.
  bool countTiles = false;
  /// GPU kernels multiply the running O only where a row's maximum rose by more than 2^slack since
  /// they last did, 0 to 8. 0 gives the bits of multiplying always; with more, weights up to
  /// 2^slack are summed and rounded, and the largest is then not exactly 1. Nothing to kernels
  /// whose scores a soft cap bounds: they have no maximum and multiply never. Default: what was
  /// measured to be fastest (docs/performance.md).
  std::optional<unsigned> rescaleSlack;
  /// The only kernel of the spec, for one GPU target, once for each shape of its tiles that the
  /// target could have: kernels "NAME@SHAPE", that of the target's table first. For attn-run
  /// --tune.
  bool allShapes = false;
  /// What the runtime builds every step besides, see docs/embedding.md. Needs a GPU target.
  std::vector<RecipeRequest> recipes;
  /// The ptxas program. Without it the code of GPU targets is PTX only.
  std::string ptxas;
  /// What ptxas complains about, and registers that it spills, are errors.
  bool strictPtxas = false;
  /// Receives one line for each thing a pass did or refused to do, and why.
  std::function<void(llvm::StringRef)> explain;
  /// Prove with a solver that each mask pass keeps the masks (docs/proofs.md). A pass that does not
  /// is an error with a counterexample.
  bool verify = false;
  /// With `verify`: what is not proved, for whatever reason, is an error.
  bool strictVerify = false;
  /// With `verify`: the solver, a program that reads SMT-LIB; empty: z3 of PATH.
  std::string solver;
  /// With `verify`: seconds that each process of the solver may take, at least 1.
  unsigned solverTimeout = 10;
  /// With `verify`: receives one line for each thing that is not proved.
  std::function<void(llvm::StringRef)> notProved;
};

/// Names of the targets this build can compile for.
const std::vector<std::string> &targets();
/// Whether each of `names` is of targets() and is given once, and there is one.
llvm::Error checkTargets(const std::vector<std::string> &names);
/// Whether some target takes the recipes that the options ask for, if they do.
llvm::Error checkRecipeTargets(const CompileOptions &options);
/// Whether the code for a target is PTX.
bool isGpuTarget(llvm::StringRef target);

/// Compiles every attn.kernel of a module. `spec` is MLIR text; `name` is the buffer's name in
/// diagnostics ("file.mlir"). On failure the error holds the diagnostics, one a line, each as
/// "name:line:col: error: text". Thread-safe.
llvm::Expected<core::Artifact> compile(llvm::StringRef spec, llvm::StringRef name,
                                       const CompileOptions &options = {});
/// The same for a module of the caller's context (which needs registerAll); the module is not
/// changed.
llvm::Expected<core::Artifact> compile(mlir::ModuleOp module, const CompileOptions &options = {});

/// Levels at which a compilation can stop and print.
enum class Stage {
  Attn,  ///< attn dialect after the mask passes
  Tile,  ///< tile dialect; GPU targets, as are all but attn and llvm
  Nvvm,  ///< LLVM and NVVM dialects
  Llvm,  ///< LLVM IR after optimisation
  Ptx,   ///< PTX
  Cubin, ///< executable image, not text; needs ptxas
};

/// The module at `stage` as text, for the first GPU among the targets, else for the CPU.
llvm::Expected<std::string> emitText(llvm::StringRef spec, llvm::StringRef name, Stage stage,
                                     const CompileOptions &options = {});

/// Kernel specs (with mask programs) of a module without generating code.
llvm::Expected<std::vector<core::KernelSpec>> readSpecs(llvm::StringRef spec, llvm::StringRef name);

/// MLIR text, and the buffer's name in diagnostics ("file.mlir").
struct SpecText {
  llvm::StringRef text, name;
};

struct ProveEqualOptions {
  std::string solver;          ///< as CompileOptions::solver
  unsigned solverTimeout = 10; ///< seconds that each process of the solver may take, at least 1
};

/// What is known of the masks of two kernels.
struct MaskComparison {
  struct Kernel {
    std::string symbol; ///< without '@'
    std::string file;   ///< the spec's name
    std::string place;  ///< "name:line:col"
  };
  Kernel first, second;
  /// Only Outcome::Proved means that the masks are equal, and it says nothing of `notCompared`.
  proofs::Verdict verdict;
  /// What else the kernels differ in (dim, dim_v, q, kv, scale), and what one of them has that is
  /// never compared (score, bounds).
  std::vector<std::string> notCompared;
};

/// The comparison as tools print it, without a line feed at the end. Proved: one line, "proved: @a
/// and @b are the same mask for every batch". Else a diagnostic at the second kernel: a
/// counterexample has notes with the place of the first and with batch files that attn-mask draws.
std::string toString(const MaskComparison &comparison);

/// Are the masks of some kernels of a spec the same for every batch (docs/proofs.md)? `symbols`:
/// two or more, without '@'; each is compared with the first, in order. An error is a spec that is
/// not valid or a symbol that is not there; whatever the solver does is a verdict. Nothing is
/// compiled, no pass runs. Thread-safe.
llvm::Expected<std::vector<MaskComparison>> proveEqual(llvm::StringRef spec, llvm::StringRef name,
                                                       llvm::ArrayRef<std::string> symbols,
                                                       const ProveEqualOptions &options = {});
/// The same for kernels of two specs: the only kernel of each, or, where one has several, those of
/// the same name, for every kernel of `first`. A kernel of `first` without one of its name in
/// `second` is an error; others of `second` are left out.
llvm::Expected<std::vector<MaskComparison>> proveEqual(SpecText first, SpecText second,
                                                       const ProveEqualOptions &options = {});

/// Hash (64 hex digits) of what decides the code of kernel `symbol`: equal for specs that differ in
/// names, order of independent operations or printing only.
llvm::Expected<std::string> specHash(mlir::ModuleOp module, llvm::StringRef symbol);

} // namespace attn::compiler

#endif // ATTN_COMPILER_COMPILER_H
