// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The assembler of the CUDA toolkit, as a process.

#include "Ptxas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace attn;
using compiler::PtxasKernel;
using compiler::PtxasReport;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Its output
//===----------------------------------------------------------------------===//

/// The number before `unit` in a list such as "Used 168 registers, 80 bytes smem".
static std::optional<unsigned> numberBefore(StringRef line, StringRef unit) {
  size_t end = line.find(unit);
  if (end == StringRef::npos)
    return std::nullopt;
  StringRef before = line.take_front(end).rtrim(' ');
  StringRef digits = before.take_back(before.size() - (before.find_last_not_of("0123456789") + 1));
  unsigned value;
  if (digits.getAsInteger(10, value))
    return std::nullopt;
  return value;
}

/// Name between quotation marks after `lead`, or nothing.
static StringRef quotedAfter(StringRef line, StringRef lead) {
  size_t at = line.find(lead);
  if (at == StringRef::npos)
    return "";
  return line.drop_front(at + lead.size()).take_until([](char c) { return c == '\''; });
}

PtxasReport compiler::parsePtxasLog(StringRef log) {
  PtxasReport report;
  llvm::SmallVector<StringRef> lines;
  log.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    StringRef text = line.trim();
    bool warning = text.consume_front("ptxas warning");
    if (warning || text.consume_front("ptxas info"))
      text = text.ltrim(" :");
    // Where ptxas could not do as the code asks it says so as (C7...), a warning or not.
    if (warning || text.starts_with("(C7")) {
      report.complaints.push_back(text.str());
      continue;
    }
    if (StringRef entry = quotedAfter(text, "Compiling entry function '"); !entry.empty()) {
      report.kernels.emplace_back();
      report.kernels.back().entry = entry.str();
    }
    if (report.kernels.empty())
      continue;
    PtxasKernel &kernel = report.kernels.back();
    if (auto value = numberBefore(text, "bytes stack frame"))
      kernel.stackBytes = *value;
    if (auto value = numberBefore(text, "bytes spill stores"))
      kernel.spillStores = *value;
    if (auto value = numberBefore(text, "bytes spill loads"))
      kernel.spillLoads = *value;
    if (auto value = numberBefore(text, "registers"))
      kernel.registers = *value;
    if (auto value = numberBefore(text, "bytes smem"))
      kernel.sharedBytes = *value;
  }
  return report;
}

std::string PtxasReport::faults() const {
  std::vector<std::string> lines;
  for (const PtxasKernel &kernel : kernels)
    if (kernel.spillStores || kernel.spillLoads)
      lines.push_back(kernel.entry + ": " + std::to_string(kernel.spillStores) +
                      " bytes of spill stores, " + std::to_string(kernel.spillLoads) +
                      " bytes of spill loads");
  llvm::append_range(lines, complaints);
  return llvm::join(lines, "\n");
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

namespace {

/// A file in memory that a child process opens by name. It goes away with the last process that has
/// it, however that ends.
class MemoryFile {
public:
  MemoryFile() : fd(::memfd_create("attn", 0)) {}
  ~MemoryFile() {
    if (fd >= 0)
      ::close(fd);
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;

  explicit operator bool() const { return fd >= 0; }
  /// Only for this process and its children.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd); }

  bool write(StringRef bytes) {
    while (!bytes.empty()) {
      ssize_t done = ::write(fd, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return false;
      bytes = bytes.drop_front(done);
    }
    return true;
  }

  /// All of it, from the start; nothing if it cannot be read.
  std::vector<uint8_t> read() const {
    struct stat status;
    if (::fstat(fd, &status) != 0)
      return {};
    std::vector<uint8_t> bytes(status.st_size);
    for (size_t at = 0; at < bytes.size();) {
      ssize_t done = ::pread(fd, bytes.data() + at, bytes.size() - at, at);
      if (done < 0 && errno == EINTR)
        continue;
      if (done <= 0)
        return {};
      at += done;
    }
    return bytes;
  }

private:
  int fd;
};

} // namespace

/// The lines that say what went wrong, or all of a log that has none.
static std::string errorLines(StringRef log) {
  llvm::SmallVector<StringRef> lines, errors;
  log.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    if (line.contains("error") || line.contains("fatal"))
      errors.push_back(line.trim());
  return llvm::join(errors.empty() ? lines : errors, "\n");
}

llvm::Expected<compiler::PtxasResult> compiler::runPtxas(StringRef ptxas, StringRef ptx,
                                                         StringRef chip) {
  MemoryFile input, output, log;
  if (!input || !output || !log || !input.write(ptx))
    return llvm::createStringError("cannot make a file in memory for ptxas: " +
                                   llvm::sys::StrError());
  std::string inputPath = input.path(), outputPath = output.path(), logPath = log.path();
  std::string arch = ("-arch=" + chip).str();
  StringRef arguments[] = {ptxas, arch, "-O3", "-v", inputPath, "-o", outputPath};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(logPath), StringRef(logPath)};
  std::string why;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, /*Env=*/std::nullopt, redirects,
                                         /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  std::vector<uint8_t> bytes = log.read();
  StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (status < 0)
    return llvm::createStringError("cannot run '" + ptxas + "': " + why);
  if (status > 0)
    return llvm::createStringError("'" + ptxas + "' fails with status " + llvm::Twine(status) +
                                   ":\n" + errorLines(text));
  PtxasResult result;
  result.cubin = output.read();
  if (result.cubin.empty())
    return llvm::createStringError("'" + ptxas + "' wrote no code");
  result.report = parsePtxasLog(text);
  return result;
}
