// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tools on LLVM's command line share: every way to fail ends with a message and status 2.
#ifndef ATTN_SUPPORT_LLVMTOOL_H
#define ATTN_SUPPORT_LLVMTOOL_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace attn::tool {

enum ExitCode { kDone = 0, kCheckFailed = 1, kBadInput = 2 };

constexpr const char *kExitStatusHelp =
    "exit status: 0 done, 2 bad input, usage, or output that cannot be written. No file is written "
    "unless the status is 0.\n";

/// LLVM ends the process itself where a stream of its own cannot be written, for example after
/// --help. `name` must outlive the process.
inline void installFatalErrorHandler(const char *name) {
  auto report = [](void *tool, const char *reason, bool) {
    std::string text = std::string(static_cast<const char *>(tool)) + ": error: " + reason + "\n";
    // Nothing more can be done where standard error fails too.
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    llvm::sys::RunInterruptHandlers(); // removes files written in part
    ::_exit(kBadInput);
  };
  llvm::install_fatal_error_handler(report, const_cast<char *>(name));
}

/// Reads the command line. False after a message about what it cannot be.
inline bool parseCommandLine(int argc, char **argv, llvm::StringRef overview) {
  return llvm::cl::ParseCommandLineOptions(argc, argv, overview, &llvm::errs());
}

/// The first of `options` that was given as an empty text, with its dashes, or nothing.
inline std::string emptyOption(std::initializer_list<const llvm::cl::opt<std::string> *> options) {
  for (const llvm::cl::opt<std::string> *option : options)
    if (option->getNumOccurrences() > 0 && option->empty())
      return (option->ArgStr.size() == 1 ? "-" : "--") + option->ArgStr.str();
  return "";
}

/// Writes what is left for standard output. Returns why it could not be written, or nothing.
inline std::string flushOutput() {
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return "";
  std::string why = llvm::outs().error().message();
  llvm::outs().clear_error();
  return "cannot write standard output: " + why;
}

} // namespace attn::tool

#endif // ATTN_SUPPORT_LLVMTOOL_H
