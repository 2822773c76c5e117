// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StageLayout.h"

#include "attn/Core/IntMath.h"
#include "attn/Runtime/Cuda.h"

#include <algorithm>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

std::string_view rt::toString(FieldHome home) {
  switch (home) {
  case FieldHome::Host:
    return "host";
  case FieldHome::Step:
    return "step";
  case FieldHome::Constant:
    break;
  }
  return "constant";
}

/// Whether kernels read the ranges of a table one by one, and not the rows built from it alone. The
/// compiler turns all tests of a table's ranges or documents into lookups of rows, or none.
static bool isRead(const KernelSpec &spec, const KernelBinary &binary, size_t table) {
  const auto isSource = [&](const TableDecl &decl) {
    return decl.kind == TableKind::QueryRanges && decl.source == static_cast<int32_t>(table);
  };
  if (std::none_of(binary.tables.begin(), binary.tables.end(), isSource))
    return true;
  return std::any_of(spec.program.nodes.begin(), spec.program.nodes.end(), [&](const Node &node) {
    const bool scans =
        node.op == Op::NumRanges || node.op == Op::RangeStart || node.op == Op::RangeEnd;
    return scans && node.ref == static_cast<int32_t>(table);
  });
}

FieldHome cuda::homeOf(const KernelSpec &spec, const KernelBinary &binary, size_t table) {
  const TableDecl &decl = binary.tables[table];
  switch (decl.kind) {
  case TableKind::Plain:
    return std::any_of(decl.dims.begin(), decl.dims.end(),
                       [](TableDim dim) { return dim == TableDim::B || dim == TableDim::Token; })
               ? FieldHome::Step
               : FieldHome::Constant;
  case TableKind::Ranges:
  case TableKind::Documents:
    return isRead(spec, binary, table) ? FieldHome::Step : FieldHome::Host;
  case TableKind::QueryRanges:
    break;
  }
  return FieldHome::Step;
}

int64_t cuda::mostExtent(const KernelSpec &spec, TableDim dim, const StepLimits &limits) {
  switch (dim) {
  case TableDim::B:
    return limits.requests;
  case TableDim::Token:
    return limits.tokens;
  case TableDim::K:
    return limits.keys;
  case TableDim::Slot:
    return limits.slots;
  case TableDim::Bucket:
    return limits.buckets;
  case TableDim::H:
    return spec.numHeads;
  case TableDim::HKv:
    break;
  }
  return spec.numKvHeads;
}

namespace {

/// Gives out places, one after the other. Every section can be read past its end for an element:
/// kernels load before they know whether an index is inside.
class Places {
public:
  Section take(int64_t count, int64_t width) {
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, width, &bytes) || bytes > kMost - end - kMargin)
      isTooLarge = true;
    if (isTooLarge)
      return {};
    const Section section{static_cast<uint64_t>(end), static_cast<uint64_t>(bytes)};
    end = roundUp(end + bytes + kMargin, static_cast<int64_t>(kCudaStageAlignment));
    return section;
  }
  /// Bytes of everything, or nothing if 64 bits do not count them.
  bool fits() const { return !isTooLarge; }
  uint64_t size() const { return static_cast<uint64_t>(end); }

private:
  static constexpr int64_t kMargin = 64;
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 8;
  int64_t end = 0;
  bool isTooLarge = false;
};

Status checkLimits(const StepLimits &limits) {
  constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();
  const std::pair<const char *, std::pair<int64_t, int64_t>> checks[] = {
      {"requests", {limits.requests, kPositionLimit}},
      {"tokens", {limits.tokens, kMostTokens}},
      {"ranges", {limits.ranges, kMostTokens}},
      {"keys", {limits.keys, kPositionLimit}},
      {"document keys", {limits.documentKeys, int64_t(1) << 40}},
      {"slots", {limits.slots, int64_t(1) << 40}},
      {"buckets", {limits.buckets, int64_t(1) << 40}},
      {"cuts", {limits.cuts, kMostTokens}},
      {"slack", {limits.slack, kPositionLimit}},
      {"pages", {limits.pages, kMostTokens}},
  };
  for (const auto &[name, check] : checks)
    if (check.first < 0 || check.first > check.second)
      return Error{std::string("step limits: ") + std::to_string(check.first) + " " + name +
                   ", expected 0 to " + std::to_string(check.second)};
  return {};
}

} // namespace

/// Elements of a plain table at most; -1 if 64 bits do not count them.
static int64_t mostElements(const KernelSpec &spec, const TableDecl &decl,
                            const StepLimits &limits) {
  int64_t elements = 1;
  for (TableDim dim : decl.dims)
    if (__builtin_mul_overflow(elements, mostExtent(spec, dim, limits), &elements))
      return -1;
  return elements;
}

Result<StageLayout> cuda::layOutStage(const KernelSpec &spec, const KernelBinary &binary,
                                      const StepLimits &limits) {
  if (Status status = checkLimits(limits); !status)
    return Error{status.message()};
  if (std::optional<std::string> fault = verifyRecipes(binary.recipes, binary.tables))
    return Error{"kernel '" + spec.name + "': " + *fault};
  StageLayout layout;
  layout.most = WorkListBuilder(spec.program, *binary.cuda, binary.tilePlan)
                    .mostSizes({limits.requests, limits.tokens, limits.ranges, limits.keys,
                                spec.numHeads, limits.cuts, limits.slack});
  Places slot, constants;
  layout.work = slot.take(layout.most.work, sizeof(WorkItem));
  layout.tiles = slot.take(layout.most.tiles, sizeof(TileHeader));
  layout.entries = slot.take(layout.most.entries, sizeof(TileEntry));
  layout.visible = slot.take(layout.most.bitmaps, kVisibleWords * sizeof(uint32_t));
  layout.claims = slot.take(CudaPlan::kMostLaunches, sizeof(uint32_t));
  layout.listSize = slot.take(1, sizeof(int32_t));
  layout.nothing = slot.take(1, kCudaStageAlignment);
  for (size_t i = 0; i < binary.tables.size(); ++i) {
    const TableDecl &decl = binary.tables[i];
    TablePlace place;
    place.home = homeOf(spec, binary, i);
    Places &places = place.home == FieldHome::Constant ? constants : slot;
    if (place.home == FieldHome::Host) {
      place.data = place.offsets = layout.nothing;
    } else if (decl.kind == TableKind::Plain) {
      const int64_t elements = mostElements(spec, decl, limits);
      if (elements < 0)
        return Error{"table '" + decl.name + "': has more elements than 64 bits count"};
      place.data = places.take(elements, bitWidth(decl.element) / 8);
    } else if (decl.kind == TableKind::QueryRanges) {
      place.data = places.take(limits.tokens, sizeof(Range));
    } else {
      place.data = decl.kind == TableKind::Ranges
                       ? places.take(limits.ranges, sizeof(Range))
                       : places.take(limits.documentKeys, sizeof(int32_t));
      place.offsets = places.take(limits.requests + 1, sizeof(int64_t));
    }
    layout.tables.push_back(place);
  }
  for (const Recipe &recipe : binary.recipes) {
    const RecipeArrays arrays = mostArrays(recipe, limits, layout.most);
    RecipePlace &place = layout.recipes.emplace_back();
    for (size_t part = 0; part < arrays.size(); ++part)
      if (arrays[part].width)
        place[part] = slot.take(arrays[part].count, arrays[part].width);
  }
  if (!slot.fits() || !constants.fits())
    return Error{"kernel '" + spec.name + "': the memory of the largest step has more bytes than " +
                 "64 bits count"};
  layout.slotBytes = slot.size();
  layout.constantBytes = constants.size();
  return layout;
}

CudaStageSizes cuda::stageSizes(const StageLayout &layout, const CudaPlanOptions &options) {
  const uint64_t bytes = layout.slotBytes + layout.constantBytes;
  return {static_cast<size_t>(kHostSlots * bytes),
          static_cast<size_t>(static_cast<uint64_t>(deviceSlots(options)) * bytes)};
}
