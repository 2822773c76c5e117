// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Record.h"

#include "attn/Core/Manifest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace device;
using namespace attn::core;

static const char kMagic[] = "ATTNRUNS";

namespace {

class Writer {
public:
  template <class T>
  void one(const T &value) {
    put(&value, sizeof(T));
  }
  template <class T>
  void all(const T &values) {
    one(static_cast<int64_t>(values.size()));
    put(values.data(), values.size() * sizeof(values[0]));
  }
  std::vector<uint8_t> bytes;

private:
  void put(const void *data, size_t size) {
    const uint8_t *from = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
};

/// Once the bytes end early, everything read is zero or empty and `failed` is set.
class Reader {
public:
  explicit Reader(const std::vector<uint8_t> &bytes) : bytes(bytes) {}
  template <class T>
  void one(T &value) {
    get(&value, sizeof(T));
  }
  template <class T>
  void all(T &values) {
    int64_t size = 0;
    one(size);
    if (size < 0 || static_cast<uint64_t>(size) > (bytes.size() - at) / sizeof(values[0])) {
      failed = true;
      return;
    }
    values.resize(size);
    get(values.data(), values.size() * sizeof(values[0]));
  }
  bool failed = false;
  bool atEnd() const { return at == bytes.size(); }

private:
  void get(void *data, size_t size) {
    failed = failed || size > bytes.size() - at;
    if (failed || size == 0)
      return;
    std::memcpy(data, bytes.data() + at, size);
    at += size;
  }
  const std::vector<uint8_t> &bytes;
  size_t at = 0;
};

/// The members of a record in the order of the file.
template <class File, class Record>
void eachMember(File &file, Record &record) {
  file.all(record.what);
  file.one(record.type);
  file.one(record.tokens);
  file.one(record.heads);
  file.one(record.dim);
  file.all(record.o);
  file.all(record.lse);
  file.one(record.isCounted);
  file.one(record.counts);
}

} // namespace

Status device::writeRecords(const std::string &path, const std::vector<RunRecord> &records) {
  Writer writer;
  writer.all(std::string(kMagic));
  writer.one(static_cast<int64_t>(records.size()));
  for (const RunRecord &record : records)
    eachMember(writer, record);
  return writeFileAtomically(path, writer.bytes.data(), writer.bytes.size());
}

Result<std::vector<RunRecord>> device::readRecords(const std::string &path) {
  Result<std::vector<uint8_t>> bytes = readFile(path);
  if (!bytes)
    return bytes.takeError();
  Reader reader(*bytes);
  std::string magic;
  int64_t count = 0;
  reader.all(magic);
  if (magic != kMagic)
    return Error{path + ": no records of runs, expected '" + kMagic + "' first"};
  reader.one(count);
  std::vector<RunRecord> records;
  for (int64_t i = 0; i < count && !reader.failed; ++i) {
    RunRecord &record = records.emplace_back();
    eachMember(reader, record);
    if (record.isCounted > 1)
      return Error{path + ": record " + std::to_string(i) + " is damaged"};
  }
  if (reader.failed || !reader.atEnd())
    return Error{path + ": expected " + std::to_string(count) + " records and nothing after them"};
  return records;
}

static constexpr double kRowBar = 1e-3;

/// An ulp of bf16 at the larger of two values.
static double ulpAt(double a, double b) {
  int exponent = 0;
  std::frexp(std::max(std::abs(a), std::abs(b)), &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 8);
}

void Agreement::add(const RunRecord &a, const RunRecord &b, std::string &fault) {
  if (a.what != b.what || a.type != b.type || a.tokens != b.tokens || a.heads != b.heads ||
      a.dim != b.dim || a.o.size() != b.o.size() || a.lse.size() != b.lse.size() ||
      a.isCounted != b.isCounted) {
    fault = "the record is of " + b.what + ", expected " + a.what;
    return;
  }
  ++runs;
  for (int64_t i = 0; i < a.tokens * a.heads; ++i) {
    double distance = 0, norm = 0;
    for (int64_t at = i * a.dim; at < (i + 1) * a.dim; ++at) {
      const double x = loadElement(a.o.data(), a.type, at), y = loadElement(b.o.data(), b.type, at);
      const bool same = x == y || (std::isnan(x) && std::isnan(y));
      ++elements;
      equal += same;
      far += !same && !(std::abs(x - y) <= ulpAt(x, y));
      distance += same ? 0 : (x - y) * (x - y);
      norm += same && !std::isfinite(x) ? 0 : y * y;
    }
    ++rows;
    double off = distance == 0 ? 0 : std::sqrt(distance / norm);
    off = std::isfinite(off) ? off : std::numeric_limits<double>::infinity();
    double &row = a.type == DType::F16 ? rowF16 : rowBf16;
    row = std::max(row, off);
    offRows += off > kRowBar;
  }
  for (size_t i = 0; i < a.lse.size(); ++i) {
    const float x = a.lse[i], y = b.lse[i];
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    const double off = std::abs(x - y);
    lse = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(lse, off);
  }
  counted += a.isCounted;
  otherTiles += a.isCounted && std::memcmp(&a.counts, &b.counts, sizeof(a.counts)) != 0;
}

bool Agreement::holds() const {
  return runs > 0 && far * 100 <= elements && offRows == 0 && lse <= 1e-3 && otherTiles == 0;
}

std::string Agreement::text() const {
  auto percent = [this](int64_t count) {
    return 100.0 * static_cast<double>(count) / static_cast<double>(elements);
  };
  char text[400];
  std::snprintf(text, sizeof(text),
                "agreement: %lld runs, %lld elements, %.4f %% equal, %.4f %% more than an ulp of "
                "bf16 apart; %lld rows, apart by at most %.3g (f16) and %.3g (bf16) of their norm, "
                "%lld by more than 1e-3; lse %.3g; tiles of %lld runs, %lld with others: %s",
                static_cast<long long>(runs), static_cast<long long>(elements), percent(equal),
                percent(far), static_cast<long long>(rows), rowF16, rowBf16,
                static_cast<long long>(offRows), lse, static_cast<long long>(counted),
                static_cast<long long>(otherTiles), holds() ? "ok" : "FAILED");
  return text;
}
