// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-run: runs a kernel of an artifact on a batch. See Options.cpp for what it offers.
#include "Options.h"
#include "Session.h"

#include "attn/Config.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

using namespace attn;
using namespace attn::run;

namespace {

enum ExitCode { kDone = 0, kCheckFailed = 1, kBadInput = 2 };

int fail(const std::string &message) {
  std::fprintf(stderr, "attn-run: error: %s\n", message.c_str());
  return kBadInput;
}

/// Status after a text on standard output that is all the user asked for.
int finish() {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return kDone;
  return fail(std::string("cannot write standard output: ") + std::strerror(errno));
}

int runTool(int argc, char **argv) {
  core::Result<Options> options = parseOptions(argc, argv);
  if (!options)
    return fail(options.message());
  if (options->help) {
    std::fputs(helpText().c_str(), stdout);
    return finish();
  }
  if (options->version) {
    std::puts("attn-run " ATTN_VERSION);
    return finish();
  }
  core::Result<bool> passed = runSession(*options);
  if (!passed)
    return fail(passed.message());
  return *passed ? kDone : kCheckFailed;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return runTool(argc, argv);
  } catch (const std::bad_alloc &) {
    return fail("not enough memory for this batch");
  } catch (const std::length_error &) {
    return fail("not enough memory for this batch");
  }
}
