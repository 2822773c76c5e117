// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a kernel reads about one batch, gathered in one page-locked buffer and copied at once. Every
// section starts on a 256-byte boundary and has zeros around it: kernels clamp an index and load
// without a branch, so a table without elements must still have an address that can be read.
#include "attn/Runtime/Cuda.h"

#include "Api.h"
#include "Arguments.h"

#include "attn/Runtime/Launch.h"

#include <algorithm>
#include <cstring>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

namespace {

/// Sections of the buffer; offsets are known before anything is copied.
class Layout {
public:
  /// Adds `bytes` bytes from `data` and returns their offset.
  uint64_t add(const void *data, size_t bytes) {
    const uint64_t offset = (end + kMargin + kAlignment - 1) / kAlignment * kAlignment;
    sections.push_back({data, bytes, offset});
    end = offset + bytes;
    return offset;
  }
  template <class T>
  uint64_t add(const std::vector<T> &values) {
    return add(values.data(), values.size() * sizeof(T));
  }
  size_t size() const { return end + kMargin; }
  void copyTo(uint8_t *buffer) const {
    std::memset(buffer, 0, size());
    for (const Section &section : sections)
      if (section.bytes)
        std::memcpy(buffer + section.offset, section.data, section.bytes);
  }

private:
  static constexpr uint64_t kAlignment = 256, kMargin = 64;
  struct Section {
    const void *data;
    size_t bytes;
    uint64_t offset;
  };
  std::vector<Section> sections;
  uint64_t end = 0;
};

/// A plain table row by row, without gaps.
struct DenseTable {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> strides;
};

Result<DenseTable> gather(const TableDecl &decl, const TableData &data) {
  DenseTable dense;
  const size_t rank = data.extents.size();
  const int64_t width = bitWidth(decl.element) / 8;
  dense.strides.assign(rank, 1);
  int64_t elements = 1;
  for (size_t dim = rank; dim-- > 0;) {
    dense.strides[dim] = elements;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(data.extents[dim], 0), &elements))
      return Error{"table '" + decl.name + "': has more elements than 64 bits count"};
  }
  int64_t size = 0;
  if (__builtin_mul_overflow(elements, width, &size))
    return Error{"table '" + decl.name + "': has more bytes than 64 bits count"};
  if (elements == 0)
    return dense;
  const uint8_t *from = static_cast<const uint8_t *>(data.data);
  dense.bytes.resize(size);
  if (data.strides == dense.strides) {
    std::memcpy(dense.bytes.data(), from, size);
    return dense;
  }
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t element = 0;
    for (size_t dim = 0; dim < rank; ++dim)
      element += at[dim] * data.strides[dim];
    std::memcpy(dense.bytes.data() + i * width, from + element * width, width);
    for (size_t dim = rank; dim-- > 0 && ++at[dim] == data.extents[dim];)
      at[dim] = 0;
  }
  return dense;
}

/// A table as the kernel reads it, with offsets for addresses.
struct StagedTable {
  uint64_t data = 0;
  uint64_t offsets = 0;
  NativeTable shape{};
};

class TableStager {
public:
  TableStager(const KernelBinary &binary, const Batch &batch, const NativeTables &native,
              Layout &layout)
      : binary(binary), batch(batch), native(native), layout(layout) {}

  /// Adds all tables to the layout.
  Status run() {
    dense.reserve(binary.tables.size()); // sections point into it
    for (size_t i = 0; i < binary.tables.size(); ++i)
      if (Status status = stage(i); !status)
        return status;
    return {};
  }
  const std::vector<StagedTable> &tables() const { return staged; }

private:
  Status stage(size_t i) {
    const TableDecl &decl = binary.tables[i];
    StagedTable table;
    switch (decl.kind) {
    case TableKind::Plain: {
      Result<DenseTable> gathered = gather(decl, batch.tables[i]);
      if (!gathered)
        return gathered.takeError();
      dense.push_back(std::move(*gathered));
      const std::vector<int64_t> &extents = batch.tables[i].extents;
      std::copy(extents.begin(), extents.end(), table.shape.extents);
      std::copy(dense.back().strides.begin(), dense.back().strides.end(), table.shape.strides);
      table.data = layout.add(dense.back().bytes);
      table.offsets = table.data;
      break;
    }
    case TableKind::Ranges:
      table.data = layout.add(batch.tables[i].ranges);
      table.offsets = layout.add(batch.tables[i].rangeOffsets);
      table.shape.extents[0] = static_cast<int64_t>(batch.tables[i].ranges.size());
      break;
    case TableKind::Documents:
      table.data = layout.add(batch.tables[i].documents);
      table.offsets = layout.add(batch.tables[i].documentOffsets);
      table.shape.extents[0] = static_cast<int64_t>(batch.tables[i].documents.size());
      break;
    case TableKind::QueryRanges:
      // No row covered: nothing was built.
      if (native.tables()[i].data)
        table.shape.extents[0] = batch.shape.numTokens();
      table.data = layout.add(native.tables()[i].data,
                              table.shape.extents[0] * static_cast<int64_t>(sizeof(Range)));
      table.offsets = table.data;
      break;
    }
    staged.push_back(table);
    return {};
  }

  const KernelBinary &binary;
  const Batch &batch;
  const NativeTables &native;
  Layout &layout;
  std::vector<DenseTable> dense;
  std::vector<StagedTable> staged;
};

/// Makes `buffer` hold `size` bytes; grows by half at least, so that growing batches settle.
template <class Buffer>
Status reserve(Buffer &buffer, const std::shared_ptr<const CudaDevice> &device, size_t size) {
  if (buffer.size() >= size)
    return {};
  const size_t wanted = std::max(size, buffer.size() + buffer.size() / 2);
  buffer = Buffer();
  Result<Buffer> grown = Buffer::create(device, wanted);
  if (!grown)
    return grown.takeError();
  buffer = std::move(*grown);
  return {};
}

} // namespace

/// The words of the argument block that a launch does not fill in.
static std::vector<int64_t> argumentWords(const KernelSpec &spec, const KernelBinary &binary,
                                          const NativeTables &native,
                                          const std::vector<StagedTable> &tables,
                                          CudaPointer base) {
  std::vector<int64_t> words;
  words.reserve(numArgumentWords(spec, binary));
  words.resize(kNumCudaArgs, 0);
  words.insert(words.end(), native.params(), native.params() + spec.program.params.size());
  for (const StagedTable &table : tables) {
    int64_t block[kNativeTableWords];
    std::memcpy(block, &table.shape, sizeof(block));
    block[0] = static_cast<int64_t>(base + table.data);
    block[1] = static_cast<int64_t>(base + table.offsets);
    words.insert(words.end(), block, block + kNativeTableWords);
  }
  return words;
}

Status CudaPlan::build(const Batch &batch, const int64_t *kvStart, CudaStream stream) {
  isBuilt = false;
  const KernelSpec &spec = kernel->spec();
  const KernelBinary &binary = kernel->binary();
  const BatchShape &shape = batch.shape;
  const int64_t keyBytes = (spec.dimQk + spec.dimV) * byteSize(spec.kvType);
  Result<WorkList> built =
      buildWorkList(spec.program, batch, kernel->shape(), binary.tilePlan, {kvStart, keyBytes});
  if (!built)
    return Error{built.message()};
  list = std::move(*built);
  needs = Needs();
  needs.paged = !kvStart;
  needs.tokens = shape.numTokens();
  needs.requests = shape.numReqs();
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    needs.longest = std::max(needs.longest, shape.seqLen[b]);
    if (kvStart)
      needs.kvRows = std::max(needs.kvRows, kvStart[b] + shape.seqLen[b]);
  }

  Layout layout;
  const uint64_t work = layout.add(list.work);
  const uint64_t tiles = layout.add(list.tiles);
  const uint64_t entries = layout.add(list.entries);
  const uint64_t visible = layout.add(list.visible);
  const NativeTables native(spec, binary, batch);
  TableStager stager(binary, batch, native, layout);
  if (Status status = stager.run(); !status)
    return status;

  const std::shared_ptr<const CudaDevice> &device = kernel->device();
  if (isCopying)
    if (Status status = copied.synchronize(); !status)
      return status;
  isCopying = false;
  if (Status status = reserve(host, device, layout.size()); !status)
    return status;
  if (Status status = reserve(memory, device, layout.size()); !status)
    return status;
  layout.copyTo(host.data());
  if (Status status = device->copyIn(memory.address(), host.data(), layout.size(), stream); !status)
    return status;
  if (!copied.exists()) {
    Result<CudaEvent> event = CudaEvent::create(device);
    if (!event)
      return event.takeError();
    copied = std::move(*event);
  }
  if (Status status = copied.record(stream); !status)
    return status;
  isCopying = true;

  const CudaPointer base = memory.address();
  words = argumentWords(spec, binary, native, stager.tables(), base);
  words[kCudaWork] = static_cast<int64_t>(base + work);
  words[kCudaTiles] = static_cast<int64_t>(base + tiles);
  words[kCudaEntries] = static_cast<int64_t>(base + entries);
  words[kCudaVisible] = static_cast<int64_t>(base + visible);
  isBuilt = true;
  return {};
}
