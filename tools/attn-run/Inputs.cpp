// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>

using namespace attn;
using namespace attn::core;
using namespace attn::run;

run::Buffer::Buffer(size_t bytes)
    : memory(static_cast<uint8_t *>(std::calloc(std::max<size_t>(bytes, 1), 1))), bytes(bytes) {
  if (!memory)
    throw std::bad_alloc();
}

//===----------------------------------------------------------------------===//
// From a file
//===----------------------------------------------------------------------===//

static rt::FileDType fileDType(DType type) {
  switch (type) {
  case DType::F32:
    return rt::FileDType::F32;
  case DType::F16:
    return rt::FileDType::F16;
  case DType::BF16:
    break;
  }
  return rt::FileDType::BF16;
}

static std::optional<ScalarType> scalarType(rt::FileDType type) {
  switch (type) {
  case rt::FileDType::F32:
    return ScalarType::F32;
  case rt::FileDType::I64:
    return ScalarType::I64;
  case rt::FileDType::I32:
    return ScalarType::I32;
  case rt::FileDType::I8:
    return ScalarType::I8;
  default:
    return std::nullopt;
  }
}

static bool isOperand(const std::string &name) { return name == "q" || name == "k" || name == "v"; }

/// What a tensor of a table may be named besides the table's own name.
static std::string prefixedName(const std::string &table) { return "tables." + table; }

/// Tables whose names q, k and v take must come under their other names.
static Status checkShadowedTables(const KernelSpec &spec, const rt::BatchInput &input) {
  for (const TableDecl &decl : spec.program.tables) {
    if (decl.kind != TableKind::Plain || !isOperand(decl.name))
      continue;
    if (std::none_of(input.tables.begin(), input.tables.end(),
                     [&](const rt::TableInput &given) { return given.name == decl.name; }))
      return Error{"tensor '" + prefixedName(decl.name) + "': missing, expected table '" +
                   decl.name + "' of kernel '" + spec.name + "' here or in the batch (tensor '" +
                   decl.name + "' is the operand)"};
  }
  return {};
}

Status run::takeTables(const rt::SafetensorsFile &file, const KernelSpec &spec,
                       rt::BatchInput &input) {
  for (const rt::FileTensor &tensor : file.tensors()) {
    if (isOperand(tensor.name))
      continue;
    const std::vector<TableDecl> &decls = spec.program.tables;
    auto decl = std::find_if(decls.begin(), decls.end(),
                             [&](const TableDecl &d) { return d.name == tensor.name; });
    if (decl == decls.end())
      decl = std::find_if(decls.begin(), decls.end(),
                          [&](const TableDecl &d) { return prefixedName(d.name) == tensor.name; });
    const std::string who = "tensor '" + tensor.name + "': ";
    if (decl == decls.end())
      return Error{who + "is neither q, k, v nor a table of kernel '" + spec.name + "'"};
    if (decl->kind != TableKind::Plain)
      return Error{who + "only dense tables can come from a tensor file"};
    std::optional<ScalarType> element = scalarType(tensor.dtype);
    if (element != decl->element)
      return Error{who + "expected elements of type " + std::string(toString(decl->element)) +
                   ", got " + std::string(toString(tensor.dtype))};
    rt::TableInput table;
    table.name = decl->name;
    table.dense.emplace();
    table.dense->element = *element;
    table.dense->extents = tensor.shape;
    table.dense->owned.assign(tensor.data, tensor.data + tensor.size);
    input.tables.push_back(std::move(table));
  }
  return checkShadowedTables(spec, input);
}

static Result<Buffer> readTensor(const rt::SafetensorsFile &file, const char *name, DType dtype,
                                 const std::vector<int64_t> &shape) {
  const rt::FileTensor *tensor = file.find(name);
  const std::string who = std::string("tensor '") + name + "': ";
  const std::string expected =
      std::string(rt::toString(fileDType(dtype))) + " " + rt::shapeText(shape);
  if (!tensor)
    return Error{who + "missing, expected " + expected};
  if (tensor->dtype != fileDType(dtype) || tensor->shape != shape)
    return Error{who + "expected " + expected + ", got " +
                 std::string(rt::toString(tensor->dtype)) + " " + rt::shapeText(tensor->shape)};
  Buffer buffer(tensor->size);
  if (tensor->size)
    std::memcpy(buffer.data(), tensor->data, tensor->size);
  return buffer;
}

Result<Tensors> run::readTensors(const rt::SafetensorsFile &file, const KernelSpec &spec,
                                 const rt::BoundBatch &bound) {
  const int64_t tokens = bound.batch.shape.numTokens();
  const int64_t keys = bound.kvStart.back();
  Result<Buffer> q = readTensor(file, "q", spec.qType, {tokens, spec.numHeads, spec.dimQk});
  if (!q)
    return q.takeError();
  Result<Buffer> k = readTensor(file, "k", spec.kvType, {keys, spec.numKvHeads, spec.dimQk});
  if (!k)
    return k.takeError();
  Result<Buffer> v = readTensor(file, "v", spec.kvType, {keys, spec.numKvHeads, spec.dimV});
  if (!v)
    return v.takeError();
  return Tensors{std::move(*q), std::move(*k), std::move(*v)};
}

//===----------------------------------------------------------------------===//
// Random
//===----------------------------------------------------------------------===//

namespace {

/// splitmix64: small, and the same everywhere (the standard's distributions are not).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, n).
  uint64_t below(uint64_t n) { return next() % n; }
  /// Uniform in (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11) + 1) * 0x1p-53; }

private:
  uint64_t state;
};

} // namespace

static Buffer randomTensor(Random &random, DType dtype, int64_t elements) {
  Buffer buffer(elements * byteSize(dtype));
  for (int64_t i = 0; i < elements; i += 2) {
    const double radius = std::sqrt(-2 * std::log(random.uniform()));
    const double angle = 2 * 3.14159265358979323846 * random.uniform();
    storeElement(buffer.data(), dtype, i, static_cast<float>(radius * std::cos(angle)));
    if (i + 1 < elements)
      storeElement(buffer.data(), dtype, i + 1, static_cast<float>(radius * std::sin(angle)));
  }
  return buffer;
}

Tensors run::randomTensors(const KernelSpec &spec, const rt::BoundBatch &bound, uint64_t seed) {
  Random random(seed);
  const int64_t tokens = bound.batch.shape.numTokens();
  const int64_t keys = bound.kvStart.back();
  Tensors tensors;
  tensors.q = randomTensor(random, spec.qType, tokens * spec.numHeads * spec.dimQk);
  tensors.k = randomTensor(random, spec.kvType, keys * spec.numKvHeads * spec.dimQk);
  tensors.v = randomTensor(random, spec.kvType, keys * spec.numKvHeads * spec.dimV);
  return tensors;
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

/// All pages in random order, one of them free.
static void scramblePages(PagedCache &cache, const rt::BoundBatch &bound, int64_t pageSize,
                          uint64_t seed) {
  const std::vector<int64_t> &seqLen = bound.batch.shape.seqLen;
  cache.numPages = 1;
  for (int64_t b = 0; b < bound.batch.shape.numReqs(); ++b)
    cache.stride = std::max(cache.stride, rt::livePages(bound.batch.shape.longest(b), pageSize));
  for (int64_t length : seqLen)
    cache.numPages += rt::livePages(length, pageSize);
  std::vector<int32_t> order(cache.numPages);
  std::iota(order.begin(), order.end(), 0);
  Random random(~seed);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  cache.blockTable.assign(seqLen.size() * cache.stride, -1);
  auto next = order.begin();
  for (size_t b = 0; b < seqLen.size(); ++b) {
    const int64_t live = rt::livePages(seqLen[b], pageSize);
    std::copy(next, next + live, cache.blockTable.begin() + b * cache.stride);
    next += live;
  }
}

/// The batch's own pages; entries past the live ones stay as they are, junk included.
static void takePages(PagedCache &cache, const rt::BoundBatch &bound, int64_t pageSize,
                      const rt::BlockTableInput &given) {
  const std::vector<int64_t> &seqLen = bound.batch.shape.seqLen;
  cache.stride = given.stride;
  cache.blockTable.assign(given.entries, given.entries + seqLen.size() * given.stride);
  for (size_t b = 0; b < seqLen.size(); ++b)
    for (int64_t i = 0; i < rt::livePages(seqLen[b], pageSize); ++i)
      cache.numPages =
          std::max<int64_t>(cache.numPages, int64_t(cache.blockTable[b * cache.stride + i]) + 1);
}

/// Scatters one tensor [keys, row bytes] into pages and reads it back, so that keys that share a
/// slot agree.
static void scatter(Buffer &dense, Buffer &pages, const PagedCache &cache,
                    const rt::BoundBatch &bound, int64_t pageSize, size_t rowBytes,
                    const std::vector<uint8_t> &poison) {
  constexpr size_t kPoisonAll = size_t(1) << 28;
  auto poisonPage = [&](int64_t page) {
    for (int64_t slot = 0; slot < pageSize; ++slot)
      std::memcpy(pages.data() + (page * pageSize + slot) * rowBytes, poison.data(), rowBytes);
  };
  if (pages.size() <= kPoisonAll)
    for (int64_t page = 0; page < cache.numPages; ++page)
      poisonPage(page);
  else
    for (size_t b = 0; b < bound.batch.shape.seqLen.size(); ++b)
      for (int64_t i = 0; i < rt::livePages(bound.batch.shape.seqLen[b], pageSize); ++i)
        poisonPage(cache.blockTable[b * cache.stride + i]);
  auto forEachKey = [&](auto &&copy) {
    for (size_t b = 0; b < bound.batch.shape.seqLen.size(); ++b)
      for (int64_t k = 0; k < bound.batch.shape.seqLen[b]; ++k) {
        const int64_t page = cache.blockTable[b * cache.stride + k / pageSize];
        copy(dense.data() + (bound.kvStart[b] + k) * rowBytes,
             pages.data() + (page * pageSize + k % pageSize) * rowBytes);
      }
  };
  forEachKey([&](uint8_t *row, uint8_t *slot) { std::memcpy(slot, row, rowBytes); });
  forEachKey([&](uint8_t *row, uint8_t *slot) { std::memcpy(row, slot, rowBytes); });
}

Result<PagedCache> run::pageTensors(Tensors &tensors, const KernelSpec &spec,
                                    const rt::BoundBatch &bound, int64_t pageSize,
                                    const rt::BlockTableInput *given, uint64_t seed) {
  PagedCache cache;
  if (given)
    takePages(cache, bound, pageSize, *given);
  else
    scramblePages(cache, bound, pageSize, seed);
  auto makePages = [&](Buffer &dense, int64_t dim) -> Result<Buffer> {
    const int64_t elements = spec.numKvHeads * dim;
    const int64_t rowBytes = elements * byteSize(spec.kvType);
    int64_t bytes = 0;
    if (__builtin_mul_overflow(cache.numPages * pageSize, rowBytes, &bytes))
      return Error{"a cache of " + std::to_string(cache.numPages) + " pages does not fit memory"};
    std::vector<uint8_t> poison(rowBytes);
    for (int64_t i = 0; i < elements; ++i)
      storeElement(poison.data(), spec.kvType, i, std::numeric_limits<float>::quiet_NaN());
    Buffer pages(bytes);
    scatter(dense, pages, cache, bound, pageSize, rowBytes, poison);
    return pages;
  };
  Result<Buffer> k = makePages(tensors.k, spec.dimQk);
  if (!k)
    return k.takeError();
  Result<Buffer> v = makePages(tensors.v, spec.dimV);
  if (!v)
    return v.takeError();
  cache.k = std::move(*k);
  cache.v = std::move(*v);
  return cache;
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

static KvView kvView(Buffer &buffer, const KernelSpec &spec, int64_t dim, int64_t pageSize) {
  KvView view;
  view.data = buffer.data();
  view.dtype = spec.kvType;
  view.headStride = dim;
  view.slotStride = spec.numKvHeads * dim;
  view.pageStride = pageSize * view.slotStride;
  return view;
}

Problem run::denseProblem(Tensors &tensors, const KernelSpec &spec, const rt::BoundBatch &bound) {
  Problem problem;
  problem.spec = &spec;
  problem.batch = &bound.batch;
  problem.q = {tensors.q.data(), spec.qType, spec.numHeads * spec.dimQk, spec.dimQk};
  problem.k = kvView(tensors.k, spec, spec.dimQk, 0);
  problem.v = kvView(tensors.v, spec, spec.dimV, 0);
  problem.kv.kvStart = bound.kvStart.data();
  return problem;
}

Problem run::pagedProblem(Tensors &tensors, PagedCache &cache, const KernelSpec &spec,
                          const rt::BoundBatch &bound, int64_t pageSize) {
  Problem problem = denseProblem(tensors, spec, bound);
  problem.k = kvView(cache.k, spec, spec.dimQk, pageSize);
  problem.v = kvView(cache.v, spec, spec.dimV, pageSize);
  problem.kv.pageTable = cache.blockTable.data();
  problem.kv.requestStride = cache.stride;
  problem.kv.pageSize = pageSize;
  return problem;
}
