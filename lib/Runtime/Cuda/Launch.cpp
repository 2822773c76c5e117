// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches: operands are checked against what the tensor memory accelerator (TMA) takes, described
// to it by tensor maps, and handed to the kernel with the plan's argument block.
#include "attn/Runtime/Cuda.h"

#include "Api.h"
#include "Arguments.h"
#include "PlanImpl.h"

#include "attn/Core/IndexSpaces.h"
#include "attn/Runtime/BatchBinding.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <numeric>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

namespace {

constexpr int64_t kElementBytes = 2;
constexpr int64_t kColumns = 64; ///< of a column group
constexpr int64_t kAlignment = 16;
constexpr int64_t kMostCoordinate = std::numeric_limits<int32_t>::max();

std::string hex(CudaPointer address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

Status checkAddress(const char *operand, CudaPointer address, int64_t alignment) {
  if (address != 0 && address % alignment == 0)
    return {};
  return Error{std::string(operand) + ": address " + hex(address) + ", expected a multiple of " +
               std::to_string(alignment) + " bytes" + (address ? "" : " that is not null")};
}

/// A stride between rows of 16-bit elements, each of which starts on a 16-byte boundary.
Status checkStride(const char *operand, const char *stride, int64_t elements) {
  constexpr int64_t kMostBytes = (int64_t(1) << 40) - 1;
  if (elements > 0 && elements <= kMostBytes / kElementBytes &&
      elements * kElementBytes % kAlignment == 0)
    return {};
  return Error{std::string(operand) + ": " + stride + " stride of " + std::to_string(elements) +
               " elements, expected a positive multiple of " +
               std::to_string(kAlignment / kElementBytes) + " below 2^39"};
}

Status checkCount(const char *operand, const char *what, int64_t count,
                  int64_t most = kMostCoordinate) {
  if (count >= 1 && count <= most)
    return {};
  return Error{std::string(operand) + ": " + std::to_string(count) + " " + what +
               ", expected 1 to " + std::to_string(most)};
}

/// A 5-D tensor of rows of 64-column groups, see attn/Core/CudaAbi.h.
struct Tensor {
  const char *name;
  CudaPointer data;
  int64_t rows, heads, pages;
  int64_t dim;
  int64_t rowStride, headStride, pageStride; ///< elements
  const char *rowName;
  int64_t boxRows, tileRows; ///< a box of tileRows has all column groups, any other one
};

Status checkTensor(const Tensor &t) {
  if (Status status = checkAddress(t.name, t.data, kAlignment); !status)
    return status;
  if (Status status = checkCount(t.name, "rows", t.rows); !status)
    return status;
  if (Status status = checkCount(t.name, "pages", t.pages); !status)
    return status;
  // The stride of a dimension of one is never taken.
  if (t.rows > 1)
    if (Status status = checkStride(t.name, t.rowName, t.rowStride); !status)
      return status;
  if (t.heads > 1)
    if (Status status = checkStride(t.name, "head", t.headStride); !status)
      return status;
  if (t.pages > 1)
    return checkStride(t.name, "page", t.pageStride);
  return {};
}

Status encode(const Api &api, const Tensor &t, DType type, TensorMap &map) {
  const int64_t groups = t.dim / kColumns;
  const int64_t whole = t.dim * kElementBytes; // stands in for strides that are never taken
  auto bytes = [&](int64_t count, int64_t stride) {
    return static_cast<uint64_t>(count > 1 ? stride * kElementBytes : whole);
  };
  const uint64_t dims[5] = {kColumns, uint64_t(t.rows), uint64_t(groups), uint64_t(t.heads),
                            uint64_t(t.pages)};
  const uint64_t strides[4] = {bytes(t.rows, t.rowStride), kColumns * kElementBytes,
                               bytes(t.heads, t.headStride), bytes(t.pages, t.pageStride)};
  const uint32_t box[5] = {kColumns, uint32_t(t.boxRows),
                           uint32_t(t.boxRows == t.tileRows ? groups : 1), 1, 1};
  const uint32_t steps[5] = {1, 1, 1, 1, 1};
  const int element = type == DType::F16 ? kTensorMapFloat16 : kTensorMapBFloat16;
  Status status = check(api, "cuTensorMapEncodeTiled",
                        api.tensorMapEncodeTiled(&map, element, 5, reinterpret_cast<void *>(t.data),
                                                 dims, strides, box, steps, kTensorMapNoInterleave,
                                                 kTensorMapSwizzle128B, kTensorMapL2Promotion128B,
                                                 kTensorMapFillZeros));
  if (!status)
    return Error{std::string(t.name) + ": " + status.message()};
  return {};
}

/// Q, K, V and O as a batch of `tokens` has them.
std::array<Tensor, kCudaMaps> describe(const KernelSpec &spec, int64_t keyTile, int64_t tokens,
                                       const CudaOperands &operands) {
  const bool paged = operands.pageTable != 0;
  const int64_t boxRows = paged ? std::gcd(keyTile, operands.pageSize) : keyTile;
  // Without keys nothing is loaded, but a tensor of no rows cannot be described.
  const int64_t kvRows = paged ? operands.pageSize : std::max<int64_t>(operands.kvRows, 1);
  const int64_t pages = paged ? operands.numPages : 1;
  auto cache = [&](const char *name, const CudaCache &c, int64_t dim) {
    return Tensor{name,         c.data,       kvRows,       spec.numKvHeads, pages,   dim,
                  c.slotStride, c.headStride, c.pageStride, "slot",          boxRows, keyTile};
  };
  return {Tensor{"q", operands.q.data, tokens, spec.numHeads, 1, spec.dimQk, operands.q.tokenStride,
                 operands.q.headStride, 0, "token", kGroupRows, kGroupRows},
          cache("k", operands.k, spec.dimQk), cache("v", operands.v, spec.dimV),
          Tensor{"o", operands.o.data, tokens, spec.numHeads, 1, spec.dimV, operands.o.tokenStride,
                 operands.o.headStride, 0, "token", kWarpRows, /*tileRows=*/0}};
}

Status checkOutputs(const CudaOperands &operands, const KernelSpec &spec, int64_t tokens) {
  if (Status status = checkAddress("o", operands.o.data, kAlignment); !status)
    return status;
  if (Status status = checkAddress("lse", operands.lse, sizeof(float)); !status)
    return status;
  if (tokens > 1)
    if (Status status = checkStride("o", "token", operands.o.tokenStride); !status)
      return status;
  if (spec.numHeads > 1) {
    if (Status status = checkStride("o", "head", operands.o.headStride); !status)
      return status;
    if (operands.lseHeadStride < 1)
      return Error{"lse: head stride of " + std::to_string(operands.lseHeadStride) +
                   " elements, expected at least 1"};
  }
  return {};
}

/// The page table against what the batch needs.
Status checkPages(const CudaOperands &operands, int64_t requests, int64_t longest) {
  if (Status status = checkAddress("page table", operands.pageTable, sizeof(int32_t)); !status)
    return status;
  if (Status status =
          checkCount("page table", "slots a page", operands.pageSize, kPositionLimit - 1);
      !status)
    return status;
  const int64_t width = livePages(longest, operands.pageSize);
  if (requests > 1 && operands.pageTableStride < width)
    return Error{"page table: " + std::to_string(operands.pageTableStride) +
                 " entries a request, expected at least " + std::to_string(width) + " for " +
                 std::to_string(longest) + " keys"};
  return {};
}

} // namespace

Status CudaKernel::checkOperands(const CudaPlan &plan, const CudaOperands &operands) const {
  const CudaPlan::Impl &step = *plan.impl;
  if (!step.isBuilt || step.kernel->kernelBinary != kernelBinary)
    return Error{"the plan was not built for kernel '" + kernelSpec->name + "'"};
  if (step.kernel->owner->context() != owner->context())
    return Error{"the plan was built on another GPU than kernel '" + kernelSpec->name +
                 "' was loaded on"};
  if (step.numWork == 0)
    return {};
  if (Result<WorkSlice> slice = step.sliceFor(operands); !slice)
    return Error{slice.message()};
  const CudaPlan::Impl::Needs &needs = step.needs;
  const KernelSpec &spec = *kernelSpec;
  const bool paged = operands.pageTable != 0;
  if (paged != needs.paged)
    return Error{std::string("the plan was built for ") +
                 (needs.paged ? "paged keys, expected a page table"
                              : "contiguous keys, expected no page table")};
  if (paged) {
    if (Status status = checkPages(operands, needs.requests, needs.longest); !status)
      return status;
  } else if (operands.kvRows < needs.kvRows) {
    return Error{"k and v: " + std::to_string(operands.kvRows) + " rows, expected at least " +
                 std::to_string(needs.kvRows)};
  }
  if (needs.seqLens && !operands.seqLens)
    return Error{
        "seq_lens: the step has requests whose length the device alone knows, expected the "
        "address of the lengths"};
  if (operands.seqLens)
    if (Status status = checkAddress("seq_lens", operands.seqLens, sizeof(int32_t)); !status)
      return status;
  const int64_t tokens = step.queryRows();
  if (Status status = checkOutputs(operands, spec, tokens); !status)
    return status;
  if (shape().countsTiles && !operands.counters)
    return Error{"kernel '" + spec.name + "' counts its tiles, expected an address for them"};
  for (const Tensor &tensor : describe(spec, shape().keyTile, tokens, operands))
    if (Status status = checkTensor(tensor); !status)
      return status;
  return {};
}

Status CudaKernel::launch(const CudaPlan &plan, const CudaOperands &operands,
                          CudaStream stream) const {
  if (Status status = checkOperands(plan, operands); !status)
    return status;
  if (Status status = checkCapture(plan, operands, stream); !status)
    return status;
  return launchChecked(plan, operands, stream);
}

Status CudaKernel::checkCapture(const CudaPlan &plan, const CudaOperands &operands,
                                CudaStream stream) const {
  if (!operands.tokens || !plan.impl->options.forGraphs)
    return {};
  Result<bool> isCapturing = owner->isCapturing(stream);
  if (!isCapturing)
    return Error{isCapturing.message()};
  if (*isCapturing)
    return Error{"a launch of some tokens is not captured: replays do the work of all tokens of a "
                 "later step"};
  return {};
}

Status CudaKernel::launchChecked(const CudaPlan &plan, const CudaOperands &operands,
                                 CudaStream stream) const {
  const CudaPlan::Impl &step = *plan.impl;
  const Result<WorkSlice> slice = step.sliceFor(operands);
  if (!slice)
    return Error{slice.message()};
  const int64_t numWork = slice->end - slice->begin;
  if (numWork == 0)
    return {};
  CurrentContext current(*owner);
  if (!current.status())
    return current.status();
  const std::array<Tensor, kCudaMaps> tensors =
      describe(*kernelSpec, shape().keyTile, step.queryRows(), operands);
  TensorMap maps[kCudaMaps];
  for (int i = 0; i < kCudaMaps; ++i)
    if (Status status = encode(owner->api(), tensors[i], kernelSpec->qType, maps[i]); !status)
      return status;

  std::array<int64_t, kMaxCudaWords> words = {};
  std::copy(step.words.begin(), step.words.end(), words.begin());
  words[kCudaO] = static_cast<int64_t>(operands.o.data);
  words[kCudaLse] = static_cast<int64_t>(operands.lse);
  words[kCudaOTokenStride] = operands.o.tokenStride;
  words[kCudaOHeadStride] = operands.o.headStride;
  words[kCudaLseHeadStride] = operands.lseHeadStride;
  words[kCudaPageTable] = static_cast<int64_t>(operands.pageTable);
  words[kCudaPageTableStride] = operands.pageTableStride;
  words[kCudaPageSize] = operands.pageTable ? operands.pageSize : 1;
  const Reciprocal perPage = Reciprocal::of(words[kCudaPageSize]);
  words[kCudaPerPage] = int64_t(perPage.shift) << 32 | perPage.factor;
  words[kCudaBoxRows] = tensors[1].boxRows;
  words[kCudaNumPages] = tensors[1].pages;
  words[kCudaSeqLens] = static_cast<int64_t>(operands.seqLens);
  words[kCudaCounters] = static_cast<int64_t>(operands.counters);
  words[kCudaWork] += slice->begin * static_cast<int64_t>(sizeof(WorkItem));
  words[kCudaNumWork] = numWork;
  words[kCudaClaims] += static_cast<int64_t>(step.nextClaims() * sizeof(uint32_t));
  void *parameters[] = {&maps[0], &maps[1], &maps[2], &maps[3], words.data()};
  // A CTA takes a multiprocessor and works until the list is done.
  const int64_t grid = std::min<int64_t>(numWork, owner->multiprocessors());
  Status status = check(owner->api(), "cuLaunchKernel",
                        owner->api().launchKernel(function, static_cast<unsigned>(grid), 1, 1,
                                                  static_cast<unsigned>(shape().threads), 1, 1,
                                                  static_cast<unsigned>(shape().sharedBytes),
                                                  stream, parameters, nullptr));
  if (!status || !step.options.forGraphs)
    return status;
  int capture = 0;
  status =
      check(owner->api(), "cuStreamIsCapturing", owner->api().streamIsCapturing(stream, &capture));
  if (status && capture)
    step.captured(operands);
  return status;
}
