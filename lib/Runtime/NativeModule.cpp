// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One mapping holds three regions, each a whole number of pages: code with a stub for every import,
// constants with the global offset table, and data. Being one mapping well below 2 GiB, every
// PC-relative reference inside it reaches; references to imports go through stubs and table slots,
// because libm may lie anywhere.
#include "attn/Runtime/NativeModule.h"

#include "ElfObject.h"

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

enum : uint32_t {
  kRelocNone = 0,
  kReloc64 = 1,
  kRelocPc32 = 2,
  kRelocPlt32 = 4,
  kRelocGotPcRel = 9,
  kReloc32 = 10,
  kReloc32S = 11,
  kRelocPc64 = 24,
  kRelocGotPcRelX = 41,
  kRelocRexGotPcRelX = 42,
};

bool usesGot(uint32_t type) {
  return type == kRelocGotPcRel || type == kRelocGotPcRelX || type == kRelocRexGotPcRelX;
}

bool isKnown(uint32_t type) {
  switch (type) {
  case kReloc64:
  case kRelocPc32:
  case kRelocPlt32:
  case kReloc32:
  case kReloc32S:
  case kRelocPc64:
    return true;
  default:
    return usesGot(type);
  }
}

/// Address of an import, or null for any other name.
const void *resolveImport(std::string_view name) {
  struct Import {
    std::string_view name;
    const void *address;
  };
#define ATTN_IMPORT(f)                                                                             \
  { #f, reinterpret_cast < const void *>(&::f) }
  static const Import imports[] = {
      ATTN_IMPORT(expf),   ATTN_IMPORT(exp2f),   ATTN_IMPORT(expm1f), ATTN_IMPORT(logf),
      ATTN_IMPORT(log2f),  ATTN_IMPORT(log1pf),  ATTN_IMPORT(tanhf),  ATTN_IMPORT(powf),
      ATTN_IMPORT(sinf),   ATTN_IMPORT(cosf),    ATTN_IMPORT(erff),   ATTN_IMPORT(floorf),
      ATTN_IMPORT(ceilf),  ATTN_IMPORT(fmaf),    ATTN_IMPORT(sqrtf),  ATTN_IMPORT(memcpy),
      ATTN_IMPORT(memset), ATTN_IMPORT(memmove),
  };
#undef ATTN_IMPORT
  static_assert(std::size(imports) == std::size(kNativeImports), "one address per import");
  for (const Import &import : imports)
    if (import.name == name)
      return import.address;
  return nullptr;
}

enum Region { kCode, kConstants, kData, kNumRegions };
constexpr uint64_t kMaxImageSize = uint64_t(256) << 20;
constexpr uint64_t kStubSize = 16;
constexpr uint64_t kSlotSize = 8;

uint64_t alignUp(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

Region regionOf(const ElfSection &section) {
  if (section.flags & kFlagExec)
    return kCode;
  return section.flags & kFlagWrite ? kData : kConstants;
}

/// The relocations of one loaded section.
struct SectionRelocations {
  uint32_t section;
  std::vector<ElfRelocation> entries;
};

/// Places an object in one mapping and relocates it there.
class ImageBuilder {
public:
  explicit ImageBuilder(const ElfObject &object) : object(object) {}

  Status collect();
  Status layOut(uint64_t pageSize);
  uint64_t size() const { return imageSize; }
  void copyTo(uint8_t *image);
  Status relocate(uint8_t *image);
  Status protect(uint8_t *image) const;
  uint64_t offsetOf(uint32_t section) const { return sectionOffset[section]; }

private:
  Status check(const ElfSection &section, const ElfRelocation &relocation);
  Status apply(uint8_t *image, uint32_t section, const ElfRelocation &relocation) const;
  uint64_t addressOf(const uint8_t *image, uint32_t symbol) const;
  Error error(const ElfSection &section, const ElfRelocation &relocation,
              const std::string &what) const;

  const ElfObject &object;
  std::vector<SectionRelocations> relocations;
  std::map<uint32_t, uint64_t> slots; ///< symbol -> number in the global offset table
  std::map<uint32_t, uint64_t> stubs; ///< import -> number of its stub
  std::vector<uint64_t> sectionOffset;
  std::array<uint64_t, kNumRegions + 1> regionOffset{};
  uint64_t stubOffset = 0;
  uint64_t slotOffset = 0;
  uint64_t imageSize = 0;
};

Error ImageBuilder::error(const ElfSection &section, const ElfRelocation &relocation,
                          const std::string &what) const {
  return Error{"native code: relocation of type " + std::to_string(relocation.type) + " at " +
               section.name + " + " + std::to_string(relocation.offset) + " " + what};
}

/// Gathers the relocations of loaded sections and decides which symbols need slots and stubs.
Status ImageBuilder::collect() {
  for (const ElfSection &section : object.sections) {
    const bool isRel = section.type == kSectionRel;
    if ((!isRel && section.type != kSectionRela) || !object.isLoaded(section.info))
      continue;
    if (isRel)
      return Error{"native code: section '" + section.name + "' holds relocations without addends"};
    Result<std::vector<ElfRelocation>> entries = object.relocations(section);
    if (!entries)
      return entries.takeError();
    const ElfSection &target = object.sections[section.info];
    SectionRelocations list{section.info, {}};
    for (const ElfRelocation &relocation : *entries) {
      if (relocation.type == kRelocNone)
        continue;
      if (Status status = check(target, relocation); !status)
        return status;
      const bool isImport = object.symbols[relocation.symbol].section == kIndexUndefined;
      if (isImport || usesGot(relocation.type))
        slots.emplace(relocation.symbol, slots.size());
      if (isImport)
        stubs.emplace(relocation.symbol, stubs.size());
      list.entries.push_back(relocation);
    }
    relocations.push_back(std::move(list));
  }
  return {};
}

/// Everything about a relocation that does not depend on addresses.
Status ImageBuilder::check(const ElfSection &section, const ElfRelocation &relocation) {
  if (!isKnown(relocation.type))
    return error(section, relocation, "is not supported");
  const bool isWide = relocation.type == kReloc64 || relocation.type == kRelocPc64;
  const uint64_t width = isWide ? 8 : 4;
  if (!section.bytes || relocation.offset > section.size ||
      width > section.size - relocation.offset)
    return error(section, relocation, "lies outside its section");
  const ElfSymbol &symbol = object.symbols[relocation.symbol];
  if (symbol.type == kSymbolTls || symbol.type == kSymbolIndirect)
    return error(section, relocation,
                 "refers to '" + symbol.name + "' of unsupported symbol type " +
                     std::to_string(symbol.type));
  if (symbol.section == kIndexUndefined) {
    if (!resolveImport(symbol.name))
      return Error{"native code: undefined symbol '" + symbol.name +
                   "' is not one that native code may use"};
    return {};
  }
  if (!object.isLoaded(symbol.section))
    return error(section, relocation, "refers to '" + symbol.name + "', which is not loaded");
  if (relocation.type == kRelocPlt32 && !(object.sections[symbol.section].flags & kFlagExec))
    return error(section, relocation, "calls '" + symbol.name + "', which is no code");
  return {};
}

/// Gives every loaded section, the stubs and the slots a place.
Status ImageBuilder::layOut(uint64_t pageSize) {
  sectionOffset.assign(object.sections.size(), 0);
  uint64_t at = 0;
  for (int region = 0; region < kNumRegions; ++region) {
    regionOffset[region] = at;
    for (size_t i = 0; i < object.sections.size(); ++i) {
      const ElfSection &section = object.sections[i];
      if (!object.isLoaded(i) || regionOf(section) != region)
        continue;
      at = alignUp(at, section.align);
      sectionOffset[i] = at;
      if (section.size > kMaxImageSize || at + section.size > kMaxImageSize)
        return Error{"native code: larger than " + std::to_string(kMaxImageSize) + " bytes"};
      at += section.size;
    }
    if (region == kCode) {
      stubOffset = at = alignUp(at, kStubSize);
      at += stubs.size() * kStubSize;
    } else if (region == kConstants) {
      slotOffset = at = alignUp(at, kSlotSize);
      at += slots.size() * kSlotSize;
    }
    at = alignUp(at, pageSize);
  }
  regionOffset[kNumRegions] = imageSize = at;
  if (regionOffset[kConstants] == 0)
    return Error{"native code: no code in the object"};
  return {};
}

void ImageBuilder::copyTo(uint8_t *image) {
  for (size_t i = 0; i < object.sections.size(); ++i) {
    const ElfSection &section = object.sections[i];
    if (object.isLoaded(i) && section.bytes && section.size)
      std::memcpy(image + sectionOffset[i], section.bytes, section.size);
  }
  for (const auto &[symbol, slot] : slots) {
    const bool isImport = object.symbols[symbol].section == kIndexUndefined;
    const uint64_t address =
        isImport ? reinterpret_cast<uint64_t>(resolveImport(object.symbols[symbol].name))
                 : addressOf(image, symbol);
    std::memcpy(image + slotOffset + slot * kSlotSize, &address, sizeof(address));
  }
  for (const auto &[symbol, stub] : stubs) {
    // jmp *[rip + displacement]; the displacement counts from the end of the instruction.
    uint8_t *code = image + stubOffset + stub * kStubSize;
    const uint64_t slot = slotOffset + slots.at(symbol) * kSlotSize;
    const int32_t displacement = static_cast<int32_t>(slot - (stubOffset + stub * kStubSize + 6));
    std::memset(code, 0xcc, kStubSize);
    code[0] = 0xff;
    code[1] = 0x25;
    std::memcpy(code + 2, &displacement, sizeof(displacement));
  }
}

/// Address that a reference to `symbol` means; imports stand for their stubs.
uint64_t ImageBuilder::addressOf(const uint8_t *image, uint32_t symbol) const {
  const ElfSymbol &s = object.symbols[symbol];
  const uint64_t offset = s.section == kIndexUndefined ? stubOffset + stubs.at(symbol) * kStubSize
                                                       : sectionOffset[s.section] + s.value;
  return reinterpret_cast<uint64_t>(image) + offset;
}

Status ImageBuilder::apply(uint8_t *image, uint32_t section,
                           const ElfRelocation &relocation) const {
  uint8_t *place = image + sectionOffset[section] + relocation.offset;
  const uint64_t target =
      usesGot(relocation.type)
          ? reinterpret_cast<uint64_t>(image) + slotOffset + slots.at(relocation.symbol) * kSlotSize
          : addressOf(image, relocation.symbol);
  uint64_t value = target + static_cast<uint64_t>(relocation.addend);
  // A PC-relative addend counts from the end of an instruction, up to 8 bytes further on.
  constexpr uint64_t kSlack = 8;
  if (value + kSlack - reinterpret_cast<uint64_t>(image) > imageSize + kSlack)
    return error(object.sections[section], relocation, "points outside the object");
  const bool isAbsolute =
      relocation.type == kReloc64 || relocation.type == kReloc32 || relocation.type == kReloc32S;
  if (!isAbsolute)
    value -= reinterpret_cast<uint64_t>(place);
  if (relocation.type == kReloc64 || relocation.type == kRelocPc64) {
    std::memcpy(place, &value, sizeof(value));
    return {};
  }
  const bool isUnsigned = relocation.type == kReloc32;
  const bool fits =
      isUnsigned ? value <= UINT32_MAX : static_cast<int64_t>(value) == static_cast<int32_t>(value);
  if (!fits)
    return error(object.sections[section], relocation, "does not reach its target");
  const uint32_t narrow = static_cast<uint32_t>(value);
  std::memcpy(place, &narrow, sizeof(narrow));
  return {};
}

Status ImageBuilder::relocate(uint8_t *image) {
  for (const SectionRelocations &list : relocations)
    for (const ElfRelocation &relocation : list.entries)
      if (Status status = apply(image, list.section, relocation); !status)
        return status;
  return {};
}

Status ImageBuilder::protect(uint8_t *image) const {
  const int access[kNumRegions] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  for (int region = 0; region < kNumRegions; ++region) {
    const uint64_t begin = regionOffset[region];
    const uint64_t end = regionOffset[region + 1];
    if (begin != end && mprotect(image + begin, end - begin, access[region]) != 0)
      return Error{std::string("native code: cannot protect memory: ") + std::strerror(errno)};
  }
  return {};
}

} // namespace

Result<NativeModule> NativeModule::load(const uint8_t *data, size_t size) {
#if !defined(__x86_64__)
  return Error{"native code: this machine cannot run elf-x86-64 code"};
#endif
  Result<ElfObject> object = ElfObject::parse(data, size);
  if (!object)
    return object.takeError();
  ImageBuilder builder(*object);
  if (Status status = builder.collect(); !status)
    return Error{status.message()};
  if (Status status = builder.layOut(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))); !status)
    return Error{status.message()};

  void *memory =
      mmap(nullptr, builder.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Error{std::string("native code: cannot map memory: ") + std::strerror(errno)};
  NativeModule module;
  module.base = memory;
  module.mappedSize = builder.size();
  uint8_t *image = static_cast<uint8_t *>(memory);
  builder.copyTo(image);
  if (Status status = builder.relocate(image); !status)
    return Error{status.message()};
  if (Status status = builder.protect(image); !status)
    return Error{status.message()};

  for (const ElfSymbol &symbol : object->symbols) {
    if (symbol.binding == kBindingLocal || symbol.size == 0 || !object->isLoaded(symbol.section))
      continue;
    const uint8_t *place = image + builder.offsetOf(symbol.section) + symbol.value;
    const Region region = regionOf(object->sections[symbol.section]);
    if (region == kCode && symbol.type == kSymbolFunction)
      module.functions.emplace(symbol.name, place);
    if (region == kConstants && symbol.type == kSymbolObject)
      module.constants.emplace(
          symbol.name, std::string_view(reinterpret_cast<const char *>(place), symbol.size));
  }
  return module;
}

NativeModule::NativeModule(NativeModule &&other) noexcept { *this = std::move(other); }

NativeModule &NativeModule::operator=(NativeModule &&other) noexcept {
  std::swap(base, other.base);
  std::swap(mappedSize, other.mappedSize);
  std::swap(functions, other.functions);
  std::swap(constants, other.constants);
  return *this;
}

NativeModule::~NativeModule() {
  if (base)
    munmap(base, mappedSize);
}

Result<NativeKernel> NativeModule::find(std::string_view symbol) const {
  auto it = functions.find(symbol);
  if (it == functions.end())
    return Error{"native code: no function '" + std::string(symbol) + "'"};
  return reinterpret_cast<NativeKernel>(const_cast<void *>(it->second));
}

Result<std::string_view> NativeModule::findConstant(std::string_view symbol) const {
  auto it = constants.find(symbol);
  if (it == constants.end())
    return Error{"native code: no constant '" + std::string(symbol) + "'"};
  return it->second;
}
