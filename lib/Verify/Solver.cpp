// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Solver.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

using namespace attn::proofs;
using llvm::StringRef;

/// Questions with known answers on either side of the real one.
static constexpr int kKnownQuestions = 6;
/// Output past this is not read.
static constexpr off_t kMaxOutput = off_t(1) << 24;

/// The solver that is built with the tools.
static constexpr StringRef kHelper = "attn-smt";

/// Stands for "this program" where its path is asked for.
static void here() {}

Solver::Solver(const std::string &program, unsigned timeoutSeconds)
    : wanted(program.empty() ? "z3" : program), timeoutSeconds(timeoutSeconds) {
  if (auto found = llvm::sys::findProgramByName(wanted)) {
    path = *found;
  } else if (program.empty() || program == kHelper) {
    std::string self = llvm::sys::fs::getMainExecutable(nullptr, reinterpret_cast<void *>(&here));
    StringRef folder = llvm::sys::path::parent_path(self);
    if (auto helper = llvm::sys::findProgramByName(kHelper, {folder}))
      path = *helper;
  }
}

//===----------------------------------------------------------------------===//
// Process
//===----------------------------------------------------------------------===//

static std::vector<std::string> argumentsFor(StringRef path, unsigned timeoutSeconds) {
  StringRef name = llvm::sys::path::filename(path);
  if (name.starts_with("z3") || name == kHelper)
    return {"-in", "-T:" + std::to_string(timeoutSeconds)};
  if (name.starts_with("cvc5"))
    return {"--lang=smt2", "--produce-models", "--incremental"};
  return {};
}

namespace {

/// Open files in the temporary folder without a name, so that nothing is left there however this
/// process ends.
struct TemporaryFiles {
  int input = -1, output = -1;

  bool create(StringRef text) {
    if (!open("attn-query", input) || !open("attn-answer", output))
      return false;
    llvm::raw_fd_ostream stream(input, /*shouldClose=*/false);
    stream << text;
    stream.flush();
    bool written = !stream.has_error();
    stream.clear_error();
    return written && ::lseek(input, 0, SEEK_SET) == 0;
  }
  ~TemporaryFiles() {
    for (int file : {input, output})
      if (file >= 0)
        ::close(file);
  }

private:
  static bool open(StringRef prefix, int &file) {
    llvm::SmallString<128> path;
    return !llvm::sys::fs::createTemporaryFile(prefix, "", file, path) &&
           !llvm::sys::fs::remove(path);
  }
};

struct Run {
  Answer::Kind failure = Answer::Unknown; ///< unless it ended well
  bool ended = false;
  std::string output, detail;
};

} // namespace

/// Starts the program in a process group of its own, so that what it starts ends with it.
static std::optional<pid_t> start(const std::string &path, const std::vector<std::string> &options,
                                  const TemporaryFiles &files, int &error) {
  std::vector<char *> argv = {const_cast<char *>(path.c_str())};
  for (const std::string &option : options)
    argv.push_back(const_cast<char *>(option.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, files.input, 0);
  posix_spawn_file_actions_adddup2(&actions, files.output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = 0;
  error = posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error)
    return std::nullopt;
  return pid;
}

static bool isTooLong(int file) {
  struct stat status;
  return ::fstat(file, &status) == 0 && status.st_size > kMaxOutput;
}

/// What the file holds, from its start.
static std::string readAll(int file) {
  std::string text;
  char piece[4096];
  while (true) {
    ssize_t got = ::pread(file, piece, sizeof(piece), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return text;
    text.append(piece, static_cast<size_t>(got));
  }
}

static Run run(const std::string &path, unsigned timeoutSeconds, StringRef text) {
  Run result;
  TemporaryFiles files;
  if (!files.create(text)) {
    result.failure = Answer::NoSolver;
    result.detail = "a temporary file cannot be written";
    return result;
  }
  int error = 0;
  std::optional<pid_t> pid = start(path, argumentsFor(path, timeoutSeconds), files, error);
  if (!pid) {
    result.failure = Answer::NoSolver;
    result.detail = "'" + path + "' does not start: " + std::strerror(error);
    return result;
  }
  // A solver with a limit of its own gets a little longer to say so.
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(timeoutSeconds) +
             std::chrono::milliseconds(200);
  int status = 0;
  bool done = false, tooLong = false;
  for (int pause = 1; !done; pause = std::min(pause + 1, 10)) {
    pid_t got = ::waitpid(*pid, &status, WNOHANG);
    done = got == *pid || (got < 0 && errno != EINTR);
    tooLong = isTooLong(files.output);
    if (done || tooLong || std::chrono::steady_clock::now() >= end)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
  ::kill(-*pid, SIGKILL);
  if (!done) {
    while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
    }
    result.failure = tooLong ? Answer::Nonsense : Answer::TimeOut;
    result.detail = tooLong ? "its output has no end"
                            : "no answer within " + std::to_string(timeoutSeconds) + " s";
    return result;
  }
  result.output = readAll(files.output);
  if (StringRef(result.output).trim().ends_with("timeout")) {
    result.failure = Answer::TimeOut;
    result.detail = "no answer within " + std::to_string(timeoutSeconds) + " s";
  } else if (WIFSIGNALED(status)) {
    result.failure = Answer::Crashed;
    result.detail = "signal " + std::to_string(WTERMSIG(status));
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    result.failure = Answer::Crashed;
    result.detail = "exit status " + std::to_string(WEXITSTATUS(status));
  } else {
    result.ended = true;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// Answers that sound solvers give to knownQuestions(bits).
static bool knownAnswer(uint64_t bits, int i) { return bits >> (7 * i) & 1; }

static std::string knownQuestions(uint64_t bits) {
  std::string text;
  for (int i = 0; i < kKnownQuestions; ++i) {
    // x > n and x < n + 1 has no integer solution, x < n + 2 has one.
    uint64_t n = bits >> (5 * i) & 0xffff;
    text += "(push 1)\n(declare-fun known () Int)\n(assert (and (< " + std::to_string(n) +
            " known) (< known " + std::to_string(n + (knownAnswer(bits, i) ? 2 : 1)) +
            ")))\n(check-sat)\n(pop 1)\n";
  }
  return text;
}

/// Reads "((name value) ...)".
static bool parseModel(StringRef text, std::map<std::string, Wide> &model) {
  auto skip = [&](StringRef what) {
    text = text.ltrim();
    return text.consume_front(what);
  };
  if (!skip("("))
    return false;
  while (!skip(")")) {
    if (!skip("("))
      return false;
    text = text.ltrim();
    std::string name = text.take_until([](char c) { return llvm::isSpace(c); }).str();
    text = text.drop_front(name.size()).ltrim();
    bool negative = false;
    if (text.consume_front("(")) {
      if (!skip("-"))
        return false;
      text = text.ltrim();
      negative = true;
    }
    StringRef word = text.take_until([](char c) { return c == ')' || llvm::isSpace(c); });
    text = text.drop_front(word.size());
    Wide value = 0;
    if (word == "true" || word == "false") {
      value = word == "true";
    } else {
      if (word.empty() || word.size() > 36 || !llvm::all_of(word, llvm::isDigit))
        return false;
      for (char c : word)
        value = 10 * value + (c - '0');
    }
    if ((negative && !skip(")")) || !skip(")"))
      return false;
    model[name] = negative ? -value : value;
  }
  return true;
}

/// Splits the output at the echoed marks into `count` parts; empty unless the marks are all there.
static std::vector<StringRef> splitOutput(StringRef output, StringRef mark, size_t count) {
  std::vector<StringRef> parts;
  while (parts.size() + 1 < count) {
    // cvc5 echoes without quotes, z3 too; either way the mark is a line.
    size_t at = output.find(mark);
    if (at == StringRef::npos)
      return {};
    parts.push_back(output.take_front(at));
    output = output.drop_front(at + mark.size());
  }
  parts.push_back(output);
  return parts;
}

static bool areKnownAnswers(StringRef text, uint64_t bits) {
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  if (lines.size() != kKnownQuestions)
    return false;
  for (int i = 0; i < kKnownQuestions; ++i)
    if (lines[i].trim() != (knownAnswer(bits, i) ? "sat" : "unsat"))
      return false;
  return true;
}

static Answer failure(Answer::Kind kind, const llvm::Twine &detail) {
  Answer answer;
  answer.kind = kind;
  answer.detail = detail.str();
  return answer;
}

/// The answer to one question: a word, and values if it asked for them and the word is sat.
static Answer readAnswer(StringRef said, bool wantsModel) {
  said = said.trim();
  StringRef word = said.take_until([](char c) { return llvm::isSpace(c); });
  StringRef rest = said.drop_front(word.size());
  Answer answer;
  if (word == "sat")
    answer.kind = Answer::Sat;
  else if (word == "unsat")
    answer.kind = Answer::Unsat;
  else if (word != "unknown")
    return failure(Answer::Nonsense, "it says '" + said.take_front(80) + "'");
  if (!wantsModel && !rest.empty())
    return failure(Answer::Nonsense, "it says more than '" + word + "'");
  if (wantsModel && answer.kind == Answer::Sat && !parseModel(rest, answer.model))
    return failure(Answer::Nonsense, "its model cannot be read");
  return answer;
}

std::vector<Answer> Solver::converse(const std::vector<std::string> &texts,
                                     const std::vector<std::string> &names) const {
  auto all = [&](const Answer &answer) { return std::vector<Answer>(texts.size(), answer); };
  if (path.empty())
    return all(failure(Answer::NoSolver, "no solver '" + wanted + "'"));
  uint64_t hash = 0;
  for (const std::string &text : texts)
    hash = llvm::xxh3_64bits(std::to_string(hash) + text);
  uint64_t before = llvm::xxh3_64bits(std::to_string(hash) + "before");
  uint64_t after = llvm::xxh3_64bits(std::to_string(hash) + "after");
  // Which question comes first is not to be told from outside.
  size_t first = hash % texts.size();
  const std::string mark = "mark-" + std::to_string(before);
  const std::string echo = "(echo \"" + mark + "\")\n";
  std::string script =
      "(set-option :produce-models true)\n(set-logic ALL)\n" + knownQuestions(before) + echo;
  for (size_t i = 0; i < texts.size(); ++i) {
    script += "(push 1)\n" + texts[(first + i) % texts.size()] + "(check-sat)\n";
    if (!names.empty())
      script += "(get-value (" + llvm::join(names, " ") + "))\n";
    script += "(pop 1)\n" + echo;
  }
  script += knownQuestions(after) + "(exit)\n";

  Run result = run(path, timeoutSeconds, script);
  // A solver may call it a failure that it was asked for values after `unsat`.
  bool mayComplain = !names.empty() && result.failure == Answer::Crashed;
  if (!result.ended && !mayComplain)
    return all(failure(result.failure, result.detail));
  std::vector<StringRef> parts = splitOutput(result.output, mark, texts.size() + 2);
  if (parts.empty() || !areKnownAnswers(parts.front(), before) ||
      !areKnownAnswers(parts.back(), after))
    return all(result.ended ? failure(Answer::Nonsense,
                                      "it does not answer questions whose answers are known")
                            : failure(result.failure, result.detail));
  std::vector<Answer> answers(texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    answers[(first + i) % texts.size()] = readAnswer(parts[i + 1], !names.empty());
  return answers;
}

std::vector<Answer> Solver::ask(const std::vector<std::string> &texts) const {
  return converse(texts, {});
}

Answer Solver::askForModel(const std::string &text, const std::vector<std::string> &names) const {
  Answer answer = converse({text}, names).front();
  bool isDone = answer.kind != Answer::Crashed && answer.kind != Answer::Nonsense;
  // One that stops at its first complaint: whether there is an example has to be asked first.
  return isDone ? answer : converse({text}, {}).front();
}
