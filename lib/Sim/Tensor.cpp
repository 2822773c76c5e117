// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps and the copies of boxes (TMA). Swizzles exchange 16-byte chunks by bits of the shared
// memory address itself, so pieces of a tile that are copied one by one give the image of the
// whole.
#include "Handlers.h"
#include "Machine.h"

#include <cstddef>
#include <cstring>

using namespace attn::sim;

namespace {

/// The 128 bytes, see encode() in Sim.h; then zeros.
struct Encoded {
  uint64_t tag;
  uint64_t data;
  uint64_t strides[4];
  uint32_t lastIndex[5];
  uint16_t box[5];
  uint8_t steps[5];
  uint8_t rank, elementBytes, swizzleBytes;
};
static_assert(offsetof(Encoded, strides) == 16 && offsetof(Encoded, lastIndex) == 48 &&
                  offsetof(Encoded, box) == 68 && offsetof(Encoded, steps) == 78 &&
                  offsetof(Encoded, rank) == 83 && sizeof(Encoded) <= 128,
              "the layout of a tensor map");
constexpr uint64_t kTag = 0x3150414D5F415454; // "TTA_MAP1"

} // namespace

/// What has no place in the fields, or ""; the kind of map is checked when it is used.
static std::string whyNotEncoded(const TensorMap &map) {
  if (map.rank < 1 || map.rank > 5)
    return "rank " + std::to_string(map.rank) + ", expected 1 to 5";
  const int size = map.elementBytes, swizzle = map.swizzleBytes;
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return "elements of " + std::to_string(size) + " bytes, expected 1, 2, 4 or 8";
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return "a swizzle of " + std::to_string(swizzle) + " bytes, expected 0, 32, 64 or 128";
  for (int i = 0; i < map.rank; ++i) {
    const std::string where = "dimension " + std::to_string(i) + ": ";
    if (map.dims[i] < 1 || map.dims[i] > uint64_t(1) << 32)
      return where + "extent " + std::to_string(map.dims[i]) + ", expected 1 to 2^32";
    if (map.box[i] < 1 || map.box[i] > UINT16_MAX)
      return where + "a box of " + std::to_string(map.box[i]) + ", expected 1 to 65535";
    if (map.elementStrides[i] < 1 || map.elementStrides[i] > UINT8_MAX)
      return where + "an element stride of " + std::to_string(map.elementStrides[i]) +
             ", expected 1 to 255";
  }
  return "";
}

attn::core::Result<std::array<uint8_t, 128>> attn::sim::encode(const TensorMap &map) {
  if (const std::string why = whyNotEncoded(map); !why.empty())
    return core::Error{"tensor map: " + why};
  Encoded encoded{};
  encoded.tag = kTag;
  encoded.data = reinterpret_cast<uint64_t>(map.data);
  for (int i = 0; i < map.rank; ++i) {
    encoded.lastIndex[i] = static_cast<uint32_t>(map.dims[i] - 1);
    encoded.box[i] = static_cast<uint16_t>(map.box[i]);
    encoded.steps[i] = static_cast<uint8_t>(map.elementStrides[i]);
    if (i > 0)
      encoded.strides[i - 1] = map.strides[i];
  }
  encoded.rank = static_cast<uint8_t>(map.rank);
  encoded.elementBytes = static_cast<uint8_t>(map.elementBytes);
  encoded.swizzleBytes = static_cast<uint8_t>(map.swizzleBytes);
  std::array<uint8_t, 128> bytes{};
  std::memcpy(bytes.data(), &encoded, sizeof(encoded));
  return bytes;
}

bool attn::sim::decodeTensorMap(const uint8_t *bytes, TensorMap &map) {
  Encoded encoded;
  std::memcpy(&encoded, bytes, sizeof(encoded));
  if (encoded.tag != kTag)
    return false;
  map.rank = encoded.rank;
  map.elementBytes = encoded.elementBytes;
  map.swizzleBytes = encoded.swizzleBytes;
  map.data = reinterpret_cast<const void *>(encoded.data);
  for (int i = 0; i < 5; ++i) {
    const bool used = i < map.rank;
    map.dims[i] = used ? uint64_t(encoded.lastIndex[i]) + 1 : 1;
    map.box[i] = used ? encoded.box[i] : 1;
    map.elementStrides[i] = used ? encoded.steps[i] : 1;
    map.strides[i] = i > 0 ? encoded.strides[i - 1] : 0;
  }
  return whyNotEncoded(map).empty();
}

uint32_t attn::sim::boxBytes(const TensorMap &map) {
  uint64_t bytes = map.elementBytes;
  for (int i = 0; i < map.rank; ++i)
    bytes *= map.box[i];
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
}

/// What cuTensorMapEncodeTiled refuses, as far as a copy relies on it.
static std::string whyUnusable(const TensorMap &map) {
  const uint32_t inner = map.box[0] * static_cast<uint32_t>(map.elementBytes);
  if (reinterpret_cast<uint64_t>(map.data) % 16)
    return "data that is not 16-byte aligned";
  for (int i = 0; i < map.rank; ++i) {
    if (map.elementStrides[i] != 1)
      return "element strides";
    if (map.box[i] < 1 || map.box[i] > 256)
      return "a box of " + std::to_string(map.box[i]) + " elements";
    if (i > 0 && map.strides[i] % 16)
      return "a stride of " + std::to_string(map.strides[i]) + " bytes";
  }
  if (inner % 16 || (map.swizzleBytes && inner != uint32_t(map.swizzleBytes)))
    return "rows of " + std::to_string(inner) + " bytes with a swizzle of " +
           std::to_string(map.swizzleBytes);
  return "";
}

/// Bits 4 and up of an address by the bits 7 and up.
static uint32_t swizzled(uint32_t address, int swizzleBytes) {
  const uint32_t mask = swizzleBytes ? static_cast<uint32_t>(swizzleBytes) - 16 : 0;
  return address ^ (address >> 3 & mask);
}

/// The bytes of the tensor map at a generic address, or null after a report.
static const uint8_t *mapAt(Cta &cta, Warp &warp, const Instr &in, uint64_t address) {
  if ((address & kWindowMask) != kParamWindow)
    return cta.globalAt(warp.index, in.line, address, 128, false, "reads a tensor map at");
  address &= ~kWindowMask;
  if (address + 128 <= cta.program.paramBytes && address % 64 == 0)
    return &cta.grid.params[address];
  cta.report(Report::Kind::OutOfBounds, warp.index, in.line, 0, address,
             "reads a tensor map at param+" + hexText(address));
  return nullptr;
}

// PTX ISA "cp.async.bulk.tensor": every lane that is there copies a box.
bool attn::sim::executeTensorCopy(Cta &cta, Warp &warp, const Instr &in, uint32_t mask) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    Copy copy;
    const uint8_t *bytes = mapAt(cta, warp, in, warp.effective(in.global, lane));
    if (!bytes)
      continue;
    if (!decodeTensorMap(bytes, copy.map)) {
      cta.report(Report::Kind::OutOfBounds, warp.index, in.line, 0, 0,
                 "copies by bytes that are no tensor map");
      continue;
    }
    if (const std::string why = whyUnusable(copy.map);
        !why.empty() || copy.map.rank != static_cast<int>(in.listCount)) {
      cta.report(Report::Kind::Unsupported, warp.index, in.line, 0, 0,
                 why.empty()
                     ? "copies by a tensor map of " + std::to_string(copy.map.rank) + " dimensions"
                     : "copies by a tensor map with " + why);
      continue;
    }
    copy.bytes = boxBytes(copy.map);
    const Place place = cta.sharedAt(warp, in, in.space, warp.effective(in.at, lane), copy.bytes,
                                     128, in.kind ? "copies to" : "copies from");
    if (!place)
      continue;
    copy.to = place.cta;
    copy.offset = place.offset;
    copy.steps = copy.bytes / (copy.map.box[0] * static_cast<uint32_t>(copy.map.elementBytes));
    copy.warp = warp.index;
    copy.line = in.line;
    for (uint32_t i = 0; i < in.listCount; ++i)
      copy.at[i] = static_cast<int32_t>(warp.words(cta.program.lists[in.listBegin + i])[lane]);
    cta.start(std::move(copy), warp, in, lane);
  }
  return true;
}

/// One row between shared memory and `row`, the bytes in the order of the tensor.
static void exchange(const Copy &copy, uint32_t offset, uint8_t *row, uint32_t bytes) {
  for (uint32_t chunk = 0; chunk < bytes; chunk += 16) {
    const uint32_t address = swizzled(offset + chunk + kSharedBase, copy.map.swizzleBytes);
    uint8_t *at = &copy.to->shared[address - kSharedBase];
    std::memcpy(copy.load() ? at : row + chunk, copy.load() ? row + chunk : at, 16);
  }
}

void Cta::moveRows(Copy &copy, uint32_t steps) {
  const TensorMap &map = copy.map;
  const uint32_t bytes = map.box[0] * static_cast<uint32_t>(map.elementBytes);
  // Elements of a row that lie in the tensor.
  const int64_t low = std::max<int64_t>(0, -copy.at[0]);
  const int64_t high =
      std::min<int64_t>(map.box[0], static_cast<int64_t>(map.dims[0]) - copy.at[0]);
  for (const uint32_t end = copy.done + steps; copy.done < end; ++copy.done) {
    uint32_t index = copy.done;
    uint64_t address = reinterpret_cast<uint64_t>(map.data);
    bool inside = low < high;
    for (int i = 1; i < map.rank; ++i) {
      const int64_t at = copy.at[i] + index % map.box[i];
      index /= map.box[i];
      inside &= at >= 0 && at < static_cast<int64_t>(map.dims[i]);
      address += static_cast<uint64_t>(at) * map.strides[i];
    }
    address += static_cast<uint64_t>(copy.at[0] + low) * map.elementBytes;
    const uint32_t there = inside ? static_cast<uint32_t>((high - low) * map.elementBytes) : 0;
    uint8_t row[2048] = {};
    uint8_t *part = row + (there ? low * map.elementBytes : 0);
    const uint32_t offset = copy.offset + copy.done * bytes;
    uint8_t *global =
        there ? globalAt(copy.warp, copy.line, address, there, !copy.load(), "copies") : nullptr;
    if (copy.load()) {
      if (global)
        std::memcpy(part, global, there);
      exchange(copy, offset, row, bytes);
      counters.tmaLoadBytes += copy.counts ? there : 0;
    } else {
      exchange(copy, offset, row, bytes);
      if (global)
        std::memcpy(global, part, there);
      counters.tmaStoreBytes += there;
    }
  }
}
