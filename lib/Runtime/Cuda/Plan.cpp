// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One step after the other: the builders write into the host slot, and the words of the argument
// block point at the same places of the device slot.
#include "Api.h"
#include "Arguments.h"
#include "PlanImpl.h"
#include "TableWriter.h"

#include "../BinaryTables.h"

#include "attn/Runtime/BatchBinding.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

CudaPlan::CudaPlan(const CudaKernel &kernel)
    : impl(std::make_unique<Impl>(kernel, CudaPlanOptions(), /*grows=*/true)) {}
CudaPlan::CudaPlan(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
CudaPlan::CudaPlan(CudaPlan &&) noexcept = default;
CudaPlan &CudaPlan::operator=(CudaPlan &&) noexcept = default;
CudaPlan::~CudaPlan() = default;

Result<CudaPlan> CudaPlan::create(const CudaKernel &kernel, const CudaPlanOptions &options) {
  auto impl = std::make_unique<Impl>(kernel, options, /*grows=*/false);
  if (Status status = impl->takeMemory(); !status)
    return Error{status.message()};
  return CudaPlan(std::move(impl));
}

Result<CudaStageSizes> CudaPlan::querySizes(const KernelSpec &spec, const KernelBinary &binary,
                                            const CudaPlanOptions &options) {
  Result<StageLayout> layout = layOutStage(spec, binary, options.limits);
  if (!layout)
    return layout.takeError();
  return stageSizes(*layout, options);
}

std::vector<CudaField> CudaPlan::fields() const {
  const StageLayout &layout = impl->layout;
  std::vector<CudaField> fields = {{"work", FieldHome::Step, layout.work.bytes},
                                   {"tiles", FieldHome::Step, layout.tiles.bytes},
                                   {"entries", FieldHome::Step, layout.entries.bytes},
                                   {"visible", FieldHome::Step, layout.visible.bytes}};
  for (size_t i = 0; i < layout.tables.size(); ++i) {
    const TablePlace &place = layout.tables[i];
    const bool isHost = place.home == FieldHome::Host;
    fields.push_back({"table '" + impl->kernel->binary().tables[i].name + "'", place.home,
                      isHost ? 0 : place.data.bytes + place.offsets.bytes});
  }
  for (size_t i = 0; i < layout.recipes.size(); ++i) {
    size_t bytes = 0;
    for (const Section &section : layout.recipes[i])
      bytes += section.bytes;
    fields.push_back(
        {"recipe '" + impl->kernel->binary().recipes[i].name + "'", FieldHome::Step, bytes});
  }
  return fields;
}

Status CudaPlan::build(const Batch &batch, const int64_t *kvStart, CudaStream stream,
                       Span<const int64_t> cuts, const PageTable &pages) {
  const auto counter = impl->options.isStrict ? impl->options.heapAllocations : nullptr;
  const int64_t before = counter ? counter() : 0;
  impl->isBuilt = false;
  const int last = impl->slot;
  Status status = impl->build(batch, kvStart, stream, cuts, pages);
  impl->isBuilt = status.ok();
  // The slot of the last step stays the one that is not written.
  if (!status)
    impl->slot = last;
  if (!status || !counter)
    return status;
  const int64_t allocations = counter() - before;
  if (allocations == 0)
    return status;
  impl->isBuilt = false;
  impl->fault = CudaStepFault::Failed;
  return Error{"strict: the step made " + std::to_string(allocations) + " heap allocations"};
}

CudaStepFault CudaPlan::fault() const { return impl->fault; }

void CudaPlan::forgetGraphs() {
  std::lock_guard<std::mutex> lock(impl->captureMutex);
  impl->capture = {};
}

const WorkListView &CudaPlan::workList() const { return impl->list; }
const CudaStepCounts &CudaPlan::counts() const { return impl->counts; }

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

template <class T>
static Span<T> spanOf(uint8_t *slot, const Section &section) {
  return {reinterpret_cast<T *>(slot + section.offset),
          static_cast<int64_t>(section.bytes / sizeof(T))};
}

Status CudaPlan::Impl::build(const Batch &batch, const int64_t *kvStart, CudaStream stream,
                             Span<const int64_t> cuts, const PageTable &pages) {
  if (Status status = checkRecipes(kernel->binary().recipes, batch, pages, fault); !status)
    return status;
  fault = grows ? CudaStepFault::Failed : CudaStepFault::TooLarge;
  if (Status status = grows ? makeRoom(batch, cuts.size) : checkLimits(batch, cuts.size); !status)
    return status;
  fault = CudaStepFault::Failed;
  const BatchShape &shape = batch.shape;
  needs = Needs();
  needs.paged = !kvStart;
  needs.tokens = shape.numTokens();
  needs.requests = shape.numReqs();
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    needs.longest = std::max(needs.longest, shape.longest(b));
    needs.seqLens |= shape.isBound(b);
    // Of a length that is not known the launch is told what there is at least.
    const int64_t keys = shape.isBound(b) ? shape.leastSeqLen[b] : shape.seqLen[b];
    if (kvStart)
      needs.kvRows = std::max(needs.kvRows, kvStart[b] + keys);
  }
  if (Status status = awaitSlot(stream); !status)
    return status;
  used.clear();
  if (Status status = buildList(batch, kvStart, cuts); !status)
    return status;
  words.clear();
  words.resize(kNumCudaArgs, 0);
  const CudaPointer base = deviceSlot();
  words[kCudaWork] = static_cast<int64_t>(base + layout.work.offset);
  words[kCudaTiles] = static_cast<int64_t>(base + layout.tiles.offset);
  words[kCudaEntries] = static_cast<int64_t>(base + layout.entries.offset);
  words[kCudaVisible] = static_cast<int64_t>(base + layout.visible.offset);
  words[kCudaClaims] = static_cast<int64_t>(base + layout.claims.offset);
  words[kCudaListSize] = static_cast<int64_t>(base + layout.listSize.offset);
  for (size_t i = 0; i < batch.params.size(); ++i)
    words.push_back(paramWord(kernel->spec().program.params[i], batch.params[i]));
  if (Status status = writeTables(batch); !status)
    return status;
  if (Status status = writeRecipes(batch, pages); !status)
    return status;
  if (Status status = checkCaptured(); !status) {
    fault = CudaStepFault::Captured;
    return status;
  }
  if (Status status = copySlot(stream); !status)
    return status;
  constants = nextConstants;
  hasConstants = true;
  ++counts.steps;
  fault = CudaStepFault::None;
  return {};
}

Status CudaPlan::Impl::buildList(const Batch &batch, const int64_t *kvStart,
                                 Span<const int64_t> cuts) {
  const KernelSpec &spec = kernel->spec();
  const int64_t keyBytes = (spec.dimQk + spec.dimV) * byteSize(spec.kvType);
  uint8_t *slotMemory = hostSlot();
  const WorkListMemory memory = {
      spanOf<WorkItem>(slotMemory, layout.work), spanOf<TileHeader>(slotMemory, layout.tiles),
      spanOf<TileEntry>(slotMemory, layout.entries), spanOf<uint32_t>(slotMemory, layout.visible)};
  Result<WorkListView> built = builder.build(batch, {kvStart, keyBytes}, memory, cuts);
  if (!built)
    return built.takeError();
  list = *built;
  Span<int32_t> listSize = spanOf<int32_t>(slotMemory, layout.listSize);
  listSize[0] = static_cast<int32_t>(list.work.size);
  const auto use = [&](const Section &section, int64_t bytes) {
    if (bytes)
      used.push_back({section.offset, static_cast<uint64_t>(bytes)});
  };
  // Launches that were captured may do as much work as any step has.
  numWork = options.forGraphs ? layout.work.bytes / sizeof(WorkItem)
                              : static_cast<size_t>(list.work.size);
  use(layout.work, list.work.size * static_cast<int64_t>(sizeof(WorkItem)));
  use(layout.tiles, list.tiles.size * static_cast<int64_t>(sizeof(TileHeader)));
  use(layout.entries, list.entries.size * static_cast<int64_t>(sizeof(TileEntry)));
  use(layout.visible, list.visible.size * static_cast<int64_t>(sizeof(uint32_t)));
  use(layout.claims, static_cast<int64_t>(layout.claims.bytes));
  use(layout.listSize, static_cast<int64_t>(layout.listSize.bytes));
  return {};
}

Result<WorkSlice> CudaPlan::Impl::sliceFor(const CudaOperands &operands) const {
  if (operands.tokens)
    return sliceOf(list, *operands.tokens);
  return WorkSlice{0, static_cast<int64_t>(numWork)};
}

Status CudaPlan::Impl::writeTables(const Batch &batch) {
  const KernelBinary &binary = kernel->binary();
  const TableWriter writer(kernel->spec(), binary, layout, options, batch, scratch);
  constantsChanged = layout.constantBytes && !hasConstants;
  for (size_t i = 0; i < binary.tables.size() && !constantsChanged; ++i)
    constantsChanged = layout.tables[i].home == FieldHome::Constant &&
                       !writer.hasSameContent(i, hostConstants(constants));
  // The version that kernels of the last step read stays as it is.
  nextConstants = constantsChanged ? (constants + 1) % kHostSlots : constants;
  for (size_t i = 0; i < binary.tables.size(); ++i) {
    const bool isConstant = layout.tables[i].home == FieldHome::Constant;
    uint8_t *memory = isConstant ? hostConstants(nextConstants) : hostSlot();
    Result<NativeTable> table =
        writer.write(i, memory, !isConstant || constantsChanged, isConstant ? nullptr : &used);
    if (!table)
      return table.takeError();
    const CudaPointer base = isConstant ? deviceConstants(nextConstants) : deviceSlot();
    int64_t block[kNativeTableWords];
    std::memcpy(block, &*table, sizeof(block));
    block[0] = static_cast<int64_t>(base + layout.tables[i].data.offset);
    block[1] = static_cast<int64_t>(base + (layout.tables[i].offsets.bytes
                                                ? layout.tables[i].offsets.offset
                                                : layout.tables[i].data.offset));
    words.insert(words.end(), block, block + kNativeTableWords);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Captured launches
//===----------------------------------------------------------------------===//

static std::string paramText(const ParamDecl &decl, int64_t word) {
  if (decl.type != ScalarType::F32)
    return std::to_string(word);
  float value = 0;
  std::memcpy(&value, &word, sizeof(value));
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

/// What captured launches hold by value must be what this step has.
Status CudaPlan::Impl::checkCaptured() const {
  std::lock_guard<std::mutex> lock(captureMutex);
  if (!capture.exists)
    return {};
  const MaskProgram &program = kernel->spec().program;
  const auto differs = [](const std::string &what, const std::string &got,
                          const std::string &captured) {
    return Error{what + " " + got + ", captured launches have " + captured};
  };
  size_t at = kNumCudaArgs;
  for (const ParamDecl &param : program.params) {
    if (words[at] != capture.words[at])
      return differs("param '" + param.name + "': the step has", paramText(param, words[at]),
                     paramText(param, capture.words[at]));
    ++at;
  }
  for (const TableDecl &table : kernel->binary().tables) {
    for (size_t dim = 0; dim < table.dims.size(); ++dim)
      if (words[at + 2 + dim] != capture.words[at + 2 + dim])
        return differs(
            "table '" + table.name + "': dimension " + std::to_string(dim) + " of the step has",
            std::to_string(words[at + 2 + dim]), std::to_string(capture.words[at + 2 + dim]));
    at += kNativeTableWords;
  }
  if (needs.paged != capture.paged)
    return differs("keys: the step has", needs.paged ? "paged ones" : "contiguous ones",
                   capture.paged ? "paged ones" : "contiguous ones");
  if (needs.seqLens && !capture.seqLens)
    return Error{"seq_lens: the step has requests whose length the device alone knows, captured "
                 "launches have no lengths on the device"};
  if (!needs.paged && needs.kvRows > capture.kvRows)
    return differs("k and v: the step needs", std::to_string(needs.kvRows) + " rows",
                   std::to_string(capture.kvRows));
  if (needs.paged && livePages(needs.longest, capture.pageSize) > capture.pageTableStride)
    return differs("page table: the step needs",
                   std::to_string(livePages(needs.longest, capture.pageSize)) +
                       " entries a request",
                   std::to_string(capture.pageTableStride));
  return {};
}

void CudaPlan::Impl::captured(const CudaOperands &operands) const {
  std::lock_guard<std::mutex> lock(captureMutex);
  const bool isFirst = !capture.exists;
  const auto fewest = [&](int64_t &least, int64_t value) {
    least = isFirst ? value : std::min(least, value);
  };
  fewest(capture.kvRows, operands.kvRows);
  fewest(capture.pageTableStride, operands.pageTableStride);
  fewest(capture.pageSize, operands.pageSize);
  fewest(capture.numPages, operands.numPages);
  capture.exists = true;
  capture.paged = needs.paged;
  capture.seqLens = operands.seqLens && (isFirst || capture.seqLens);
  if (isFirst)
    capture.words = words;
}

Status CudaPlan::checkPages(int64_t pageSize, int64_t numPages) {
  std::lock_guard<std::mutex> lock(impl->captureMutex);
  const Impl::Captured &capture = impl->capture;
  if (!capture.exists || !capture.paged ||
      (pageSize == capture.pageSize && numPages <= capture.numPages))
    return {};
  impl->isBuilt = false;
  impl->fault = CudaStepFault::Captured;
  return Error{"pages: the step has " + std::to_string(numPages) + " of " +
               std::to_string(pageSize) + " slots, captured launches have " +
               std::to_string(capture.numPages) + " of " + std::to_string(capture.pageSize)};
}
