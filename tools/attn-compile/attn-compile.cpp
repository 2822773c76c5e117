// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One step from a spec to an artifact.

#include "attn/Compiler/Compiler.h"
#include "attn/Config.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

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
static cl::opt<std::string> emit("emit", cl::value_desc("level"),
                                 cl::desc("Stop at a level and print it: attn or llvm"),
                                 cl::cat(category));
static cl::opt<bool> explain("explain",
                             cl::desc("Say on standard error what each pass did or refused to do, "
                                      "and why"),
                             cl::cat(category));
static cl::opt<unsigned> optLevel("O", cl::Prefix, cl::init(3), cl::value_desc("0-3"),
                                  cl::desc("Code generation effort (default 3)"),
                                  cl::cat(category));
static cl::opt<bool> noMaskPasses("no-mask-passes",
                                  cl::desc("Leave out the mask passes: same result, slower kernel"),
                                  cl::cat(category));

static int fail(const llvm::Twine &text) {
  llvm::errs() << text << "\n";
  return 2;
}

/// --emit: text to -o, by default to standard output.
static int emitLevel(llvm::StringRef spec, llvm::StringRef name,
                     const compiler::CompileOptions &options) {
  if (options.targets.size() != 1)
    return fail("attn-compile: --emit takes one target, got " +
                llvm::Twine(options.targets.size()));
  if (emit != "attn" && emit != "llvm")
    return fail("attn-compile: target '" + options.targets[0] + "' has no level '" + emit +
                "', expected attn or llvm");
  auto stage = emit == "attn" ? compiler::Stage::Attn : compiler::Stage::Llvm;
  llvm::Expected<std::string> text = compiler::emitText(spec, name, stage, options);
  if (!text)
    return fail(llvm::toString(text.takeError()));
  if (output.empty() || output == "-") {
    llvm::outs() << *text;
    return 0;
  }
  if (auto status = core::writeFileAtomically(output, text->data(), text->size()); !status)
    return fail("attn-compile: " + status.message());
  return 0;
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::AddExtraVersionPrinter(
      [](llvm::raw_ostream &os) { os << "attn-compile " << ATTN_VERSION << "\n"; });
  cl::ParseCommandLineOptions(
      argc, argv,
      "attn-compile: from an attention spec (attn.kernel) to an artifact\n\n"
      "  attn-compile SPEC.mlir --target=cpu -o OUT.attn\n\n"
      "Run the artifact with attn-run; look at its mask with attn-mask.\n");
  compiler::CompileOptions options;
  if (!targetNames.empty())
    options.targets.assign(targetNames.begin(), targetNames.end());
  if (options.targets.size() == 1 && options.targets[0] == "list") {
    for (const std::string &name : compiler::targets())
      llvm::outs() << name << "\n";
    return 0;
  }
  if (input.empty())
    return fail("attn-compile: no spec is given, see --help");
  if (optLevel > 3)
    return fail("attn-compile: -O is expected to be 0 to 3, got " + llvm::Twine(optLevel));
  if (emit.empty() && output.empty())
    return fail("attn-compile: no output is given, expected -o FILE or --emit=LEVEL");
  options.optLevel = optLevel;
  options.maskPasses = !noMaskPasses;
  if (explain)
    options.explain = [](llvm::StringRef line) { llvm::errs() << line << "\n"; };

  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer)
    return fail("attn-compile: cannot read '" + input + "': " + buffer.getError().message());
  for (const std::string &name : options.targets)
    if (!llvm::is_contained(compiler::targets(), name))
      return fail("attn-compile: target '" + name +
                  "' is not available, expected one of: " + llvm::join(compiler::targets(), ", "));
  if (!emit.empty())
    return emitLevel((*buffer)->getBuffer(), input, options);
  llvm::Expected<core::Artifact> artifact =
      compiler::compile((*buffer)->getBuffer(), input, options);
  if (!artifact)
    return fail(llvm::toString(artifact.takeError()));
  if (output == "-") {
    std::vector<uint8_t> bytes = core::serialize(*artifact);
    llvm::outs().write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return 0;
  }
  if (auto status = core::writeArtifact(*artifact, output); !status)
    return fail("attn-compile: " + status.message());
  return 0;
}
