// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of a plan: taken once, written in turn, copied in as few pieces as their parts allow.
#include "PlanImpl.h"

#include "Api.h"
#include "Arguments.h"

#include <algorithm>
#include <cstring>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

/// What a batch takes.
static StepLimits limitsOf(const CudaKernel &kernel, const Batch &batch, int64_t cuts) {
  const KernelSpec &spec = kernel.spec();
  StepLimits limits;
  limits.pages = recipePages(kernel.binary().recipes, batch.shape);
  limits.cuts = cuts;
  limits.requests = batch.shape.numReqs();
  limits.tokens = batch.shape.numTokens();
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
    limits.keys = std::max(limits.keys, batch.shape.longest(b));
    if (batch.shape.isBound(b))
      limits.slack = std::max(limits.slack, batch.shape.mostSeqLen[b] - batch.shape.leastSeqLen[b]);
  }
  for (size_t i = 0; i < batch.tables.size(); ++i) {
    const TableData &table = batch.tables[i];
    const TableDecl &decl = spec.program.tables[i];
    limits.ranges = std::max(limits.ranges, static_cast<int64_t>(table.ranges.size()));
    limits.documentKeys =
        std::max(limits.documentKeys, static_cast<int64_t>(table.documents.size()));
    for (size_t dim = 0; dim < decl.dims.size(); ++dim) {
      const auto grow = [&](int64_t &limit) { limit = std::max(limit, table.extents[dim]); };
      if (decl.dims[dim] == TableDim::K)
        grow(limits.keys);
      else if (decl.dims[dim] == TableDim::Slot)
        grow(limits.slots);
      else if (decl.dims[dim] == TableDim::Bucket)
        grow(limits.buckets);
    }
  }
  return limits;
}

//===----------------------------------------------------------------------===//
// Taking memory
//===----------------------------------------------------------------------===//

static Status checkWorkspace(const CudaWorkspace &given, const CudaStageSizes &sizes) {
  if (!given.host || !given.device)
    return Error{std::string("workspace: no memory on the ") + (given.host ? "device" : "host")};
  if (reinterpret_cast<uintptr_t>(given.host) % kCudaStageAlignment ||
      given.device % kCudaStageAlignment)
    return Error{"workspace: memory that is not aligned to " + std::to_string(kCudaStageAlignment) +
                 " bytes"};
  if (given.hostBytes < sizes.hostBytes)
    return Error{"workspace: " + std::to_string(given.hostBytes) + " bytes on the host, expected " +
                 std::to_string(sizes.hostBytes)};
  if (given.deviceBytes < sizes.deviceBytes)
    return Error{"workspace: " + std::to_string(given.deviceBytes) +
                 " bytes on the device, expected " + std::to_string(sizes.deviceBytes)};
  return {};
}

Status CudaPlan::Impl::takeMemory() {
  const KernelSpec &spec = kernel->spec();
  Result<StageLayout> places = layOutStage(spec, kernel->binary(), options.limits);
  if (!places)
    return places.takeError();
  layout = std::move(*places);
  const CudaStageSizes sizes = stageSizes(layout, options);
  const CudaWorkspace &given = options.workspace;
  if (given.host || given.device) {
    if (Status status = checkWorkspace(given, sizes); !status)
      return status;
    host = static_cast<uint8_t *>(given.host);
    device = given.device;
  } else {
    Result<CudaPinned> pinned = CudaPinned::create(kernel->device(), sizes.hostBytes);
    if (!pinned)
      return pinned.takeError();
    Result<CudaMemory> memory = CudaMemory::create(kernel->device(), sizes.deviceBytes);
    if (!memory)
      return memory.takeError();
    ownHost = std::move(*pinned);
    ownDevice = std::move(*memory);
    host = ownHost.data();
    device = ownDevice.address();
  }
  // Gaps between parts are copied too.
  std::memset(host, 0, sizes.hostBytes);
  for (CudaEvent &event : copied)
    if (!event.exists()) {
      Result<CudaEvent> created = CudaEvent::create(kernel->device(), /*isTimed=*/false);
      if (!created)
        return created.takeError();
      event = std::move(*created);
    }
  const WorkListLimits list = {
      options.limits.requests, options.limits.tokens, options.limits.ranges, options.limits.keys,
      spec.numHeads,           options.limits.cuts,   options.limits.slack};
  WorkListLimits few = list, many = list;
  few.keys = 0;
  many.keys = std::max<int64_t>(list.keys, 4096);
  looksAtKeys = builder.mostSizes(few).entries != builder.mostSizes(many).entries;
  builder.reserve(list);
  scratch.resize(static_cast<size_t>(options.limits.ranges));
  words.reserve(static_cast<size_t>(numArgumentWords(spec, kernel->binary())));
  used.reserve(6 + 2 * layout.tables.size() + kNumRecipeParts * layout.recipes.size());
  recipeSplits.resize(layout.recipes.size());
  hasConstants = false;
  return {};
}

/// Memory of a growing plan: half as much again at least, so that growing batches settle.
Status CudaPlan::Impl::makeRoom(const Batch &batch, int64_t cuts) {
  const StepLimits needed = limitsOf(*kernel, batch, cuts);
  StepLimits wanted = options.limits;
  bool fits = host != nullptr;
  for (int64_t StepLimits::*limit :
       {&StepLimits::requests, &StepLimits::tokens, &StepLimits::ranges, &StepLimits::keys,
        &StepLimits::documentKeys, &StepLimits::slots, &StepLimits::buckets, &StepLimits::cuts,
        &StepLimits::slack, &StepLimits::pages}) {
    if (needed.*limit <= wanted.*limit)
      continue;
    fits = false;
    wanted.*limit = std::max(needed.*limit, wanted.*limit + wanted.*limit / 2);
  }
  if (fits)
    return {};
  for (int i = 0; i < kHostSlots; ++i) {
    if (isCopying[i])
      if (Status status = copied[i].synchronize(); !status)
        return status;
    isCopying[i] = false;
  }
  host = nullptr;
  ownHost = CudaPinned();
  ownDevice = CudaMemory();
  wanted.keys = std::min(wanted.keys, kPositionLimit);
  const StepLimits before = options.limits;
  options.limits = wanted;
  Status status = takeMemory();
  if (!status) {
    host = nullptr;
    options.limits = before; // a smaller step may fit
  }
  return status;
}

/// A step within the limits; names both numbers where it is not.
Status CudaPlan::Impl::checkLimits(const Batch &batch, int64_t cuts) const {
  const StepLimits &most = options.limits;
  const StepLimits needed = limitsOf(*kernel, batch, cuts);
  const bool readsDocuments = [&] {
    const std::vector<TableDecl> &tables = kernel->binary().tables;
    for (size_t i = 0; i < tables.size(); ++i)
      if (tables[i].kind == TableKind::Documents && layout.tables[i].home != FieldHome::Host)
        return true;
    return false;
  }();
  int64_t longestTable = 0;
  for (size_t i = 0; i < batch.tables.size(); ++i) {
    const std::vector<TableDim> &dims = kernel->spec().program.tables[i].dims;
    for (size_t dim = 0; dim < dims.size(); ++dim)
      if (dims[dim] == TableDim::K)
        longestTable = std::max(longestTable, batch.tables[i].extents[dim]);
  }
  const struct {
    const char *what;
    int64_t got, most;
  } checks[] = {
      {"requests", needed.requests, most.requests},
      {"tokens", needed.tokens, most.tokens},
      {"ranges in a table", needed.ranges, most.ranges},
      {"keys in a request or table", looksAtKeys ? needed.keys : longestTable, most.keys},
      {"keys with a document", readsDocuments ? needed.documentKeys : 0, most.documentKeys},
      {"slots in a table", needed.slots, most.slots},
      {"buckets in a table", needed.buckets, most.buckets},
      {"cuts", needed.cuts, most.cuts},
      {"keys between the lengths a request may have", needed.slack, most.slack},
      {"pages with keys", needed.pages, most.pages},
  };
  for (const auto &check : checks)
    if (check.got > check.most)
      return Error{"the step has " + std::to_string(check.got) + " " + check.what +
                   ", the plan was made for " + std::to_string(check.most)};
  return {};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Goes to the next slot, whose last copy must be over before it is written.
Status CudaPlan::Impl::awaitSlot(CudaStream stream) {
  Result<bool> isCapturing = kernel->device()->isCapturing(stream);
  if (!isCapturing)
    return isCapturing.takeError();
  if (*isCapturing)
    return Error{"the stream is being captured; a step is built before, and launched in a graph"};
  const int next = (slot + 1) % kHostSlots;
  if (isCopying[next]) {
    Result<bool> isOver = copied[next].isReached();
    if (!isOver)
      return isOver.takeError();
    if (!*isOver) {
      if (options.isStrict)
        return Error{"strict: the copy of the step before the last is not over, so this step would "
                     "wait for it"};
      ++counts.waits;
      if (Status status = copied[next].synchronize(); !status)
        return status;
    }
    isCopying[next] = false;
  }
  slot = next;
  return {};
}

/// Enqueues the copies of what the step used, and remembers when they are over.
Status CudaPlan::Impl::copySlot(CudaStream stream) {
  // A copy costs about as much as this many bytes more in the one before.
  constexpr uint64_t kSmallGap = 16384;
  const Api &api = kernel->device()->api();
  CurrentContext current(*kernel->device());
  if (!current.status())
    return current.status();
  // From here on a part may be under way, whatever fails after it.
  const auto drain = [&](Status failed) {
    api.streamSynchronize(stream);
    if (constantsChanged)
      hasConstants = false; // the device may have either version
    return failed;
  };
  const auto copy = [&](CudaPointer to, const uint8_t *from, uint64_t bytes) {
    ++counts.copies;
    counts.copiedBytes += bytes;
    return check(api, "cuMemcpyHtoDAsync", api.memcpyHtoDAsync(to, from, bytes, stream));
  };
  if (constantsChanged) {
    ++counts.constantCopies;
    if (Status status = copy(deviceConstants(nextConstants), hostConstants(nextConstants),
                             layout.constantBytes);
        !status)
      return drain(status);
  }
  for (size_t i = 0; i < used.size();) {
    const uint64_t begin = used[i].offset;
    uint64_t end = begin + used[i].bytes;
    for (++i; i < used.size() && used[i].offset <= end + kSmallGap; ++i)
      end = std::max(end, used[i].offset + used[i].bytes);
    if (begin == end)
      continue;
    if (Status status = copy(deviceSlot() + begin, hostSlot() + begin, end - begin); !status)
      return drain(status);
  }
  if (Status status = check(api, "cuEventRecord", api.eventRecord(copied[slot].get(), stream));
      !status)
    return drain(status);
  isCopying[slot] = true;
  return {};
}
