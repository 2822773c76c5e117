// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SMT-LIB in, answers out: libz3 as a process of its own, for machines without the z3 program.
#include <z3.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

static const char kHelp[] = R"(OVERVIEW: attn-smt: answers SMT-LIB questions, with libz3

USAGE: attn-smt [-in] [-T:SECONDS] < questions

The whole of standard input is read first. -T: ends the program after so many seconds; it says
"timeout" then. Exit status: 0 done, 1 an input with errors, 2 an option that is none.
)";

/// What z3 prints at its limit. Only calls that a signal handler may make.
static void onAlarm(int) {
  static const char text[] = "timeout\n";
  ssize_t ignored = ::write(STDOUT_FILENO, text, sizeof(text) - 1);
  static_cast<void>(ignored);
  ::_exit(0);
}

/// Sets what the options say. Returns an exit status, or -1 to go on.
static int readOptions(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    const char *option = argv[i];
    if (!std::strcmp(option, "--help")) {
      std::fputs(kHelp, stdout);
      return 0;
    }
    char *end = nullptr;
    unsigned long seconds = std::strncmp(option, "-T:", 3) ? 0 : std::strtoul(option + 3, &end, 10);
    bool isLimit = seconds > 0 && seconds < 1000000 && *end == '\0';
    if (!isLimit && std::strcmp(option, "-in")) {
      std::fprintf(stderr, "attn-smt: error: '%s': expected -in or -T:SECONDS\n", option);
      return 2;
    }
    if (isLimit) {
      std::signal(SIGALRM, onAlarm);
      ::alarm(static_cast<unsigned>(seconds));
    }
  }
  return -1;
}

int main(int argc, char **argv) {
  int status = readOptions(argc, argv);
  if (status >= 0)
    return status;
  std::string text;
  char buffer[1 << 16];
  for (size_t got; (got = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0;)
    text.append(buffer, got);
  Z3_config config = Z3_mk_config();
  Z3_context context = Z3_mk_context(config);
  Z3_del_config(config);
  // Errors stand in the answers, as "(error ...)".
  Z3_set_error_handler(context, nullptr);
  const char *answers = Z3_eval_smtlib2_string(context, text.c_str());
  if (!answers) {
    std::fputs("attn-smt: error: libz3 gives no answer\n", stderr);
    Z3_del_context(context);
    return 1;
  }
  std::string said = answers;
  std::fwrite(said.data(), 1, said.size(), stdout);
  bool hasErrors = said.find("(error ") != std::string::npos;
  bool isWritten = std::fflush(stdout) == 0;
  Z3_del_context(context);
  return hasErrors || !isWritten;
}
