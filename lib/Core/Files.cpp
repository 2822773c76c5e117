// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole files: reading, and writing that leaves either the whole new file or nothing new.
#include "attn/Core/Manifest.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attn::core {

static Error fileError(const std::string &what, const std::string &path, int code) {
  return Error{"cannot " + what + " '" + path + "': " + std::strerror(code)};
}

namespace {
/// A file descriptor that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};
} // namespace

Result<std::vector<uint8_t>> readFile(const std::string &path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0)
    return fileError("read", path, errno);
  struct stat info;
  if (::fstat(file.fd, &info) != 0)
    return fileError("read", path, errno);
  if (S_ISDIR(info.st_mode))
    return fileError("read", path, EISDIR);
  std::vector<uint8_t> data;
  // The size is a hint only: pipes have none, and a file may grow.
  size_t chunk = info.st_size > 0 ? static_cast<size_t>(info.st_size) + 1 : size_t(1) << 16;
  while (true) {
    size_t used = data.size();
    data.resize(used + chunk);
    ssize_t got = ::read(file.fd, data.data() + used, chunk);
    if (got < 0 && errno == EINTR)
      got = 0;
    else if (got <= 0) {
      data.resize(used);
      if (got < 0)
        return fileError("read", path, errno);
      return data;
    }
    data.resize(used + static_cast<size_t>(got));
    chunk = size_t(1) << 16;
  }
}

static bool writeAll(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t done = ::write(fd, data, size);
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return false;
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

/// Writes through a temporary file beside `path`, which is no link. Returns 0 or the error.
static int writeAndRename(const std::string &path, const void *data, size_t size) {
  std::string temporary;
  int fd = -1;
  // The name is taken with O_EXCL, so that two writers never share one.
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    temporary = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(attempt);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST)
      break;
  }
  if (fd < 0)
    return errno;
  bool ok = writeAll(fd, static_cast<const char *>(data), size);
  int code = errno;
  // Some file systems report a full disk only when the file is closed.
  if (::close(fd) != 0 && ok) {
    ok = false;
    code = errno;
  }
  if (ok && ::rename(temporary.c_str(), path.c_str()) == 0)
    return 0;
  if (ok)
    code = errno;
  ::unlink(temporary.c_str());
  return code;
}

/// The file that `path` names once symbolic links are followed; it need not exist. A rename onto a
/// link would replace the link. Sets errno and returns nothing on links that never end.
static std::optional<std::string> followLinks(std::string path) {
  constexpr int kMostLinks = 40;
  for (int links = 0; links <= kMostLinks; ++links) {
    char target[PATH_MAX];
    const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
    if (length < 0 && (errno == EINVAL || errno == ENOENT))
      return path;
    if (length < 0)
      return std::nullopt;
    const std::string text(target, static_cast<size_t>(length));
    // A relative target starts at the folder of the link; npos + 1 is 0, no folder.
    path = text[0] == '/' ? text : path.substr(0, path.rfind('/') + 1) + text;
  }
  errno = ELOOP;
  return std::nullopt;
}

Status writeFileAtomically(const std::string &path, const void *data, size_t size) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode))
      return fileError("write", path, EISDIR);
    // A device or a pipe (/dev/stdout) is written in place: a rename would replace it.
    if (!S_ISREG(info.st_mode)) {
      Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (file.fd < 0 || !writeAll(file.fd, static_cast<const char *>(data), size))
        return fileError("write", path, errno);
      return {};
    }
  }
  const std::optional<std::string> file = followLinks(path);
  if (!file)
    return fileError("write", path, errno);
  const int code = writeAndRename(*file, data, size);
  return code ? Status(fileError("write", path, code)) : Status();
}

} // namespace attn::core
