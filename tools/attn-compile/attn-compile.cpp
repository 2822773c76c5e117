// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One step from a spec to an artifact.

#include "attn/Compiler/Compiler.h"
#include "attn/Config.h"
#include "attn/Support/LlvmTool.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

namespace cl = llvm::cl;
using namespace attn;

static cl::OptionCategory category("attn-compile options");
static cl::opt<std::string> input(cl::Positional, cl::desc("SPEC.mlir ('-' reads standard input)"),
                                  cl::init(""), cl::cat(category));
static cl::list<std::string> targetNames(
    "target", cl::CommaSeparated, cl::value_desc("name,..."),
    cl::desc("Targets to compile for (default: cpu); 'list' prints those this build has"),
    cl::cat(category));
static cl::opt<std::string> output("o", cl::value_desc("file"),
                                   cl::desc("Where to write the artifact, or the text of --emit "
                                            "('-': standard output)"),
                                   cl::cat(category));
static cl::opt<std::string>
    emit("emit", cl::value_desc("level"),
         cl::desc("Stop at a level and print it: attn, llvm, and for GPU targets also tile, nvvm, "
                  "ptx and cubin. Of several targets, the first GPU one is shown"),
         cl::cat(category));
static cl::opt<bool> explain("explain",
                             cl::desc("Say on standard error what each pass did or refused to do, "
                                      "and why"),
                             cl::cat(category));
static cl::opt<unsigned> optLevel("O", cl::Prefix, cl::init(3), cl::value_desc("0-3"),
                                  cl::desc("Code generation effort for the CPU (default 3)"),
                                  cl::cat(category));
static cl::opt<bool> noMaskPasses("no-mask-passes",
                                  cl::desc("Leave out the mask passes: same result, slower kernel"),
                                  cl::cat(category));

static cl::opt<std::string>
    instrument("instrument", cl::value_desc("what"),
               cl::desc("Build counters into GPU kernels: tiles (the key blocks that are visited)"),
               cl::cat(category));
static cl::opt<unsigned> rescaleSlack(
    "rescale-slack", cl::value_desc("0-8"),
    cl::desc("GPU kernels multiply the running output only where a row's maximum rose by more than "
             "2^slack: 0 gives the bits of multiplying always, more is less work and less exact "
             "(default: what was measured to be fastest)"),
    cl::cat(category));
static cl::opt<std::string> shapes(
    "shapes", cl::value_desc("which"),
    cl::desc("Compile the spec's kernel for the GPU once for each shape of its tiles that the "
             "target could have, for attn-run --tune: all"),
    cl::cat(category));
static cl::list<std::string> recipes(
    "recipe", cl::value_desc("kind,key=value,..."),
    cl::desc("What else the runtime builds every step of a GPU kernel, for kernels of your own "
             "(docs/embedding.md); may be repeated:\n"
             "  range_tensor,per_request=N[,table=T]\n"
             "  page_runs,page_size=N\n"
             "  split_plan,policy=count,pieces=N\n"
             "  split_plan,policy=measured,pieces=N[,ctas_per_sm=N]\n"
             "  split_plan,policy=sm100_relbias,pieces=N[,local=yes]\n"
             "and name=NAME, by default its kind"),
    cl::cat(category));
static cl::opt<std::string>
    ptxas("ptxas", cl::value_desc("program"),
          cl::desc("Assembles GPU code (default: ptxas of PATH, CUDA_HOME or CUDA_PATH if there is "
                   "one). 'none': the artifact holds PTX only, which the driver compiles"),
          cl::cat(category));
static cl::opt<bool> strictPtxas("strict-ptxas",
                                 cl::desc("What ptxas complains about, and registers that it "
                                          "spills, are errors"),
                                 cl::cat(category));

static cl::opt<std::string> verifyMasks(
    "verify", cl::ValueOptional, cl::value_desc("strict"),
    cl::desc("Prove with a solver that each mask pass keeps the masks; a pass that does "
             "not is an error. 'strict': what is not proved is one too"),
    cl::cat(category));
static cl::opt<std::string>
    solver("solver", cl::value_desc("program"),
           cl::desc("The solver of --verify and --prove-equal: reads SMT-LIB (default: z3 of PATH, "
                    "else attn-smt)"),
           cl::cat(category));
static cl::opt<unsigned> solverTimeout("solver-timeout", cl::value_desc("seconds"), cl::init(10),
                                       cl::desc("Limit of each run of the solver (default 10)"),
                                       cl::cat(category));
static cl::opt<std::string> proveEqual(
    "prove-equal", cl::value_desc("@a,@b | file"),
    cl::desc(
        "Compile nothing; prove with a solver that kernels have the same mask for every batch: "
        "these of the spec, or those of the spec and of another file (the only ones, or each "
        "and the one of its name). Only masks are compared"),
    cl::cat(category));

static int fail(const llvm::Twine &text) {
  llvm::errs() << text << "\n";
  return tool::kBadInput;
}

/// Status of a run whose result is on its way to standard output.
static int finish() {
  if (std::string why = tool::flushOutput(); !why.empty())
    return fail("attn-compile: " + why);
  return tool::kDone;
}

/// --target=list, which nothing can be combined with.
static int listTargets() {
  if (input.getNumOccurrences() || output.getNumOccurrences() || emit.getNumOccurrences() ||
      explain.getNumOccurrences() || optLevel.getNumOccurrences() ||
      noMaskPasses.getNumOccurrences() || instrument.getNumOccurrences() ||
      recipes.getNumOccurrences() || shapes.getNumOccurrences() || ptxas.getNumOccurrences() ||
      strictPtxas.getNumOccurrences() || verifyMasks.getNumOccurrences() ||
      solver.getNumOccurrences() || solverTimeout.getNumOccurrences() ||
      proveEqual.getNumOccurrences())
    return fail("attn-compile: --target=list only prints the targets, expected no other argument");
  for (const std::string &name : compiler::targets())
    llvm::outs() << name << "\n";
  return finish();
}

/// What --explain says goes to standard error; where that cannot be written, no artifact is made.
static bool explanationLost() { return explain && llvm::errs().has_error(); }

namespace {

/// A value of --emit.
struct Level {
  const char *name;
  compiler::Stage stage;
  bool onCpu;
};

constexpr Level kLevels[] = {
    {"attn", compiler::Stage::Attn, true},  {"tile", compiler::Stage::Tile, false},
    {"nvvm", compiler::Stage::Nvvm, false}, {"llvm", compiler::Stage::Llvm, true},
    {"ptx", compiler::Stage::Ptx, false},   {"cubin", compiler::Stage::Cubin, false},
};

} // namespace

static const Level *findLevel(llvm::StringRef name) {
  for (const Level &level : kLevels)
    if (name == level.name)
      return &level;
  return nullptr;
}

static bool hasGpuTarget(const compiler::CompileOptions &options) {
  return llvm::any_of(options.targets, compiler::isGpuTarget);
}

/// Options that say how code is made are given only where that code is made.
static std::string uselessOption(const compiler::CompileOptions &options) {
  bool gpu = hasGpuTarget(options), cpu = !llvm::all_of(options.targets, compiler::isGpuTarget);
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &instrument, &rescaleSlack, &shapes, &ptxas, &strictPtxas})
    if (option->getNumOccurrences() && !gpu)
      return "--" + option->ArgStr.str() + " has no meaning without a GPU target";
  if (optLevel.getNumOccurrences() && !cpu)
    return "-O has no meaning without target 'cpu', GPU code is always made with all effort";
  if (emit.empty())
    return "";
  if (optLevel.getNumOccurrences() && (gpu || emit != "llvm"))
    return "-O has no meaning with --emit=" + emit + ", no code is generated for the CPU";
  if (shapes.getNumOccurrences())
    return "--shapes has no meaning with --emit=" + emit + ", no artifact is made";
  if (recipes.getNumOccurrences())
    return "--recipe has no meaning with --emit=" + emit + ", no artifact is made";
  for (const cl::Option *option :
       std::initializer_list<const cl::Option *>{&instrument, &rescaleSlack})
    if (emit == "attn" && option->getNumOccurrences())
      return "--" + option->ArgStr.str() + " has no meaning with --emit=attn, no code is generated";
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{&ptxas, &strictPtxas})
    if (option->getNumOccurrences() && emit != "cubin")
      return "--" + option->ArgStr.str() + " has no meaning with --emit=" + emit +
             ", no cubin is made";
  return "";
}

/// The ptxas to use: --ptxas, or the first of PATH, CUDA_HOME and CUDA_PATH, or "".
static std::string choosePtxas() {
  if (ptxas.getNumOccurrences())
    return ptxas == "none" ? "" : ptxas.getValue();
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *toolkit = std::getenv(variable); toolkit && *toolkit)
      if (auto found = llvm::sys::findProgramByName("ptxas", {std::string(toolkit) + "/bin"}))
        return *found;
  return "";
}

/// Sets what is for GPU targets only. Returns why that cannot be, or nothing.
static std::string setGpuOptions(compiler::CompileOptions &options) {
  if (std::string useless = uselessOption(options); !useless.empty())
    return useless;
  if (instrument.getNumOccurrences() && instrument != "tiles")
    return "--instrument: expected tiles, got '" + instrument + "'";
  options.countTiles = instrument.getNumOccurrences();
  if (rescaleSlack.getNumOccurrences())
    options.rescaleSlack = rescaleSlack;
  if (shapes.getNumOccurrences() && shapes != "all")
    return "--shapes: expected all, got '" + shapes + "'";
  options.allShapes = shapes.getNumOccurrences();
  options.strictPtxas = strictPtxas;
  if (!hasGpuTarget(options) || (!emit.empty() && emit != "cubin"))
    return "";
  options.ptxas = choosePtxas();
  bool cubin = emit == "cubin";
  if (!options.ptxas.empty() || (!cubin && !strictPtxas))
    return "";
  return std::string(cubin ? "--emit=cubin" : "--strict-ptxas") +
         (ptxas == "none" ? " does not go with --ptxas=none"
                          : " needs ptxas, which is in none of PATH, CUDA_HOME and CUDA_PATH");
}

/// Sets what --recipe says.
static llvm::Error readRecipes(compiler::CompileOptions &options) {
  for (const std::string &text : recipes) {
    llvm::Expected<compiler::RecipeRequest> request = compiler::parseRecipe(text);
    if (!request)
      return request.takeError();
    options.recipes.push_back(std::move(*request));
  }
  return compiler::checkRecipeTargets(options);
}

/// Sets what --verify says. Returns why that makes no sense, or nothing.
static std::string setVerifyOptions(compiler::CompileOptions &options) {
  options.verify = verifyMasks.getNumOccurrences();
  options.strictVerify = verifyMasks == "strict";
  options.solver = solver;
  options.solverTimeout = solverTimeout;
  options.notProved = [](llvm::StringRef line) { llvm::errs() << line << "\n"; };
  if (!verifyMasks.empty() && !options.strictVerify)
    return "--verify: expected no value or strict, got '" + verifyMasks + "'";
  for (const cl::Option *option :
       std::initializer_list<const cl::Option *>{&solver, &solverTimeout})
    if (option->getNumOccurrences() && !options.verify)
      return "--" + option->ArgStr.str() + " has no meaning without --verify or --prove-equal";
  if (options.verify && !options.maskPasses)
    return "--verify has no meaning with --no-mask-passes, there is nothing to prove";
  return "";
}

/// --emit: text to -o, by default to standard output.
static int emitLevel(llvm::StringRef spec, llvm::StringRef name,
                     const compiler::CompileOptions &options) {
  const Level *level = findLevel(emit);
  if (!level->onCpu && !hasGpuTarget(options))
    return fail("attn-compile: target '" + options.targets[0] + "' has no level '" + emit +
                "', expected attn or llvm");
  compiler::Stage stage = level->stage;
  llvm::Expected<std::string> text = compiler::emitText(spec, name, stage, options);
  if (!text)
    return fail(llvm::toString(text.takeError()));
  if (explanationLost())
    return tool::kBadInput;
  if (output.empty() || output == "-") {
    llvm::outs() << *text;
    return finish();
  }
  if (auto status = core::writeFileAtomically(output, text->data(), text->size()); !status)
    return fail("attn-compile: " + status.message());
  return tool::kDone;
}

static int compileSpec(llvm::StringRef spec, const compiler::CompileOptions &options) {
  llvm::Expected<core::Artifact> artifact = compiler::compile(spec, input, options);
  if (!artifact)
    return fail(llvm::toString(artifact.takeError()));
  if (explanationLost())
    return tool::kBadInput;
  if (output == "-") {
    std::vector<uint8_t> bytes = core::serialize(*artifact);
    llvm::outs().write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return finish();
  }
  if (auto status = core::writeArtifact(*artifact, output); !status)
    return fail("attn-compile: " + status.message());
  return tool::kDone;
}

//===----------------------------------------------------------------------===//
// --prove-equal
//===----------------------------------------------------------------------===//

/// Why the options make no sense with --prove-equal, or nothing.
static std::string checkProveOptions() {
  const cl::Option &targets = targetNames; // Its operator& is not the built-in one.
  const cl::Option &wanted = recipes;
  for (const cl::Option *option : std::initializer_list<const cl::Option *>{
           &targets, &output, &emit, &explain, &optLevel, &noMaskPasses, &instrument, &rescaleSlack,
           &shapes, &wanted, &ptxas, &strictPtxas, &verifyMasks})
    if (option->getNumOccurrences())
      return (option->ArgStr.size() == 1 ? "-" : "--") + option->ArgStr.str() +
             " has no meaning with --prove-equal, nothing is compiled";
  if (proveEqual.getNumOccurrences() > 1)
    return "--prove-equal: expected once, got it " +
           std::to_string(proveEqual.getNumOccurrences()) + " times";
  if (input == "-" && proveEqual == "-")
    return "--prove-equal: only one of two specs can be read from standard input";
  return "";
}

/// Symbols of "@a,@b". Returns why the text is not that, or nothing.
static std::string readSymbols(llvm::StringRef text, std::vector<std::string> &symbols) {
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ',');
  for (llvm::StringRef word : words) {
    if (!word.consume_front("@") || word.empty())
      return "--prove-equal: expected @name,@name,... or a file, got '" + text.str() + "'";
    symbols.push_back(word.str());
  }
  if (symbols.size() < 2)
    return "--prove-equal: expected two kernels or more, got " + std::to_string(symbols.size());
  return "";
}

/// What is proved goes to standard output, the rest to standard error. Returns the exit status.
static int report(llvm::ArrayRef<compiler::MaskComparison> comparisons) {
  int status = tool::kDone;
  for (const compiler::MaskComparison &comparison : comparisons) {
    proofs::Outcome outcome = comparison.verdict.outcome;
    bool proved = outcome == proofs::Outcome::Proved;
    (proved ? llvm::outs() : llvm::errs()) << compiler::toString(comparison) << "\n";
    // A difference is an answer, whatever else is not known.
    if (outcome == proofs::Outcome::Refuted)
      status = tool::kCheckFailed;
    else if (!proved && status == tool::kDone)
      status = tool::kBadInput;
  }
  int written = finish();
  return written == tool::kDone ? status : written;
}

static int proveEqualMasks() {
  std::vector<std::string> symbols;
  bool isFile = !llvm::StringRef(proveEqual).starts_with("@");
  std::string why = checkProveOptions();
  if (why.empty() && !isFile)
    why = readSymbols(proveEqual, symbols);
  if (!why.empty())
    return fail("attn-compile: " + why);
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> buffers;
  for (const std::string &path :
       isFile ? std::vector<std::string>{input, proveEqual} : std::vector<std::string>{input}) {
    auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
    if (!buffer)
      return fail("attn-compile: cannot read '" + path + "': " + buffer.getError().message());
    buffers.push_back(std::move(*buffer));
  }
  compiler::ProveEqualOptions options;
  options.solver = solver;
  options.solverTimeout = solverTimeout;
  auto comparisons = isFile
                         ? compiler::proveEqual({buffers[0]->getBuffer(), input},
                                                {buffers[1]->getBuffer(), proveEqual}, options)
                         : compiler::proveEqual(buffers[0]->getBuffer(), input, symbols, options);
  if (!comparisons)
    return fail(llvm::toString(comparisons.takeError()));
  return report(*comparisons);
}

int main(int argc, char **argv) {
  tool::installFatalErrorHandler("attn-compile");
  cl::HideUnrelatedOptions(category);
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "attn-compile " << ATTN_VERSION << "\n"; });
  std::string overview = "attn-compile: from an attention spec (attn.kernel) to an artifact\n\n"
                         "  attn-compile SPEC.mlir --target=cpu,sm_90a -o OUT.attn\n\n"
                         "Run the artifact with attn-run; look at its mask with attn-mask.\n\n"
                         "  attn-compile SPECS.mlir --prove-equal=@mine,@theirs\n"
                         "  attn-compile MINE.mlir --prove-equal=THEIRS.mlir\n\n"
                         "Are two masks the same for every batch? Exit status 0: all are proved "
                         "equal, 1: some differ, by a counterexample, 2: else.\n\n";
  if (!tool::parseCommandLine(argc, argv, overview + tool::kExitStatusHelp))
    return tool::kBadInput;
  if (std::string empty =
          tool::emptyOption({&output, &emit, &instrument, &shapes, &ptxas, &solver, &proveEqual});
      !empty.empty())
    return fail("attn-compile: " + empty + ": expected a value, got ''");
  compiler::CompileOptions options;
  if (!targetNames.empty())
    options.targets.assign(targetNames.begin(), targetNames.end());
  if (options.targets.size() == 1 && options.targets[0] == "list")
    return listTargets();
  if (input.empty())
    return fail("attn-compile: no spec is given, see --help");
  if (!solverTimeout)
    return fail("attn-compile: --solver-timeout: expected at least 1 second, got 0");
  if (proveEqual.getNumOccurrences())
    return proveEqualMasks();
  if (optLevel > 3)
    return fail("attn-compile: -O is expected to be 0 to 3, got " + llvm::Twine(optLevel));
  if (emit.empty() && output.empty())
    return fail("attn-compile: no output is given, expected -o FILE or --emit=LEVEL");
  if (!emit.empty() && !findLevel(emit))
    return fail("attn-compile: there is no level '" + emit +
                "', expected one of: attn, tile, nvvm, llvm, ptx, cubin");
  options.optLevel = optLevel;
  options.maskPasses = !noMaskPasses;
  if (explain)
    options.explain = [](llvm::StringRef line) { llvm::errs() << line << "\n"; };

  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer)
    return fail("attn-compile: cannot read '" + input + "': " + buffer.getError().message());
  if (llvm::Error error = compiler::checkTargets(options.targets))
    return fail("attn-compile: " + llvm::toString(std::move(error)));
  if (llvm::Error error = readRecipes(options))
    return fail("attn-compile: " + llvm::toString(std::move(error)));
  for (std::string why : {setGpuOptions(options), setVerifyOptions(options)})
    if (!why.empty())
      return fail("attn-compile: " + why);
  if (!emit.empty())
    return emitLevel((*buffer)->getBuffer(), input, options);
  return compileSpec((*buffer)->getBuffer(), options);
}
