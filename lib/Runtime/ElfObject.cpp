// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ElfObject.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

namespace {

constexpr size_t kFileHeaderSize = 64;
constexpr size_t kSectionHeaderSize = 64;
constexpr size_t kSymbolSize = 24;
constexpr size_t kRelaSize = 24;
/// Alignment that one mapping can give; larger ones do not occur in kernels.
constexpr uint64_t kMaxAlign = 4096;

/// Little-endian integer at an address that need not be aligned.
template <class T>
T get(const uint8_t *p) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(p[i]) << (8 * i)));
  return value;
}

/// True if [offset, offset + size) lies in a buffer of `total` bytes.
bool within(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

/// The string at `offset` of a string table, or nothing if it does not end inside.
std::optional<std::string> stringAt(const ElfSection &table, uint64_t offset) {
  if (!table.bytes || offset >= table.size)
    return std::nullopt;
  const uint8_t *begin = table.bytes + offset;
  const void *end = std::memchr(begin, 0, table.size - offset);
  if (!end)
    return std::nullopt;
  return std::string(reinterpret_cast<const char *>(begin), static_cast<const char *>(end));
}

Status checkFileHeader(const uint8_t *data, size_t size) {
  if (size < kFileHeaderSize || std::memcmp(data, "\177ELF", 4) != 0)
    return Error{"native code: not an ELF object"};
  if (data[4] != 2 || data[5] != 1)
    return Error{"native code: expected a 64-bit little-endian ELF object"};
  const unsigned machine = get<uint16_t>(data + 18);
  if (machine != 62)
    return Error{"native code: expected machine x86-64 (62), got machine " +
                 std::to_string(machine)};
  const unsigned type = get<uint16_t>(data + 16);
  if (type != 1)
    return Error{"native code: expected a relocatable object (type 1), got type " +
                 std::to_string(type)};
  if (data[6] != 1 || get<uint32_t>(data + 20) != 1)
    return Error{"native code: expected ELF version 1"};
  return {};
}

} // namespace

Status ElfObject::readSections(const uint8_t *data, size_t size) {
  const uint64_t tableOffset = get<uint64_t>(data + 40);
  const unsigned entrySize = get<uint16_t>(data + 58);
  const unsigned count = get<uint16_t>(data + 60);
  const unsigned names = get<uint16_t>(data + 62);
  if (entrySize != kSectionHeaderSize)
    return Error{"native code: expected section headers of 64 bytes, got " +
                 std::to_string(entrySize)};
  if (!within(tableOffset, uint64_t(count) * kSectionHeaderSize, size))
    return Error{"native code: section headers lie outside the object"};
  if (count >= kIndexReserved)
    return Error{"native code: " + std::to_string(count) + " sections, expected fewer than " +
                 std::to_string(kIndexReserved)};
  if (names >= count)
    return Error{"native code: no section of section names"};

  std::vector<uint32_t> nameOffsets;
  for (unsigned i = 0; i < count; ++i) {
    const uint8_t *header = data + tableOffset + i * kSectionHeaderSize;
    ElfSection section;
    nameOffsets.push_back(get<uint32_t>(header));
    section.type = get<uint32_t>(header + 4);
    section.flags = get<uint64_t>(header + 8);
    const uint64_t offset = get<uint64_t>(header + 24);
    section.size = get<uint64_t>(header + 32);
    section.link = get<uint32_t>(header + 40);
    section.info = get<uint32_t>(header + 44);
    section.align = std::max<uint64_t>(1, get<uint64_t>(header + 48));
    if (section.type != kSectionNobits && section.type != 0) {
      if (!within(offset, section.size, size))
        return Error{"native code: section " + std::to_string(i) + " lies outside the object"};
      section.bytes = data + offset;
    }
    sections.push_back(std::move(section));
  }
  for (unsigned i = 0; i < count; ++i) {
    std::optional<std::string> name = stringAt(sections[names], nameOffsets[i]);
    if (!name)
      return Error{"native code: name of section " + std::to_string(i) + " lies outside its table"};
    sections[i].name = std::move(*name);
  }
  for (const ElfSection &section : sections) {
    if (!(section.flags & kFlagAlloc))
      continue;
    const bool known = section.type == kSectionProgbits || section.type == kSectionNobits ||
                       section.type == kSectionNote || section.type == kSectionUnwind;
    if (!known || (section.flags & (kFlagTls | kFlagCompressed)))
      return Error{"native code: section '" + section.name + "' of type " +
                   std::to_string(section.type) + ", flags " + std::to_string(section.flags) +
                   " cannot be loaded"};
    if ((section.flags & kFlagWrite) && (section.flags & kFlagExec))
      return Error{"native code: section '" + section.name + "' is writable and executable"};
    if ((section.align & (section.align - 1)) || section.align > kMaxAlign)
      return Error{"native code: section '" + section.name + "' has alignment " +
                   std::to_string(section.align) + ", expected a power of two up to 4096"};
  }
  return {};
}

Status ElfObject::readSymbols() {
  for (const ElfSection &section : sections) {
    if (section.type != kSectionSymtab)
      continue;
    if (!symbols.empty())
      return Error{"native code: more than one symbol table"};
    if (section.link >= sections.size() || sections[section.link].type != kSectionStrtab)
      return Error{"native code: symbol table without string table"};
    const ElfSection &strings = sections[section.link];
    if (section.size % kSymbolSize)
      return Error{"native code: symbol table of " + std::to_string(section.size) +
                   " bytes, expected a multiple of 24"};
    for (uint64_t at = 0; at < section.size; at += kSymbolSize) {
      const uint8_t *p = section.bytes + at;
      std::optional<std::string> name = stringAt(strings, get<uint32_t>(p));
      if (!name)
        return Error{"native code: name of symbol " + std::to_string(at / kSymbolSize) +
                     " lies outside its table"};
      ElfSymbol symbol;
      symbol.name = std::move(*name);
      symbol.type = p[4] & 15;
      symbol.binding = p[4] >> 4;
      symbol.section = get<uint16_t>(p + 6);
      symbol.value = get<uint64_t>(p + 8);
      symbol.size = get<uint64_t>(p + 16);
      if (isLoaded(symbol.section) &&
          !within(symbol.value, symbol.size, sections[symbol.section].size))
        return Error{"native code: symbol '" + symbol.name + "' lies outside section '" +
                     sections[symbol.section].name + "'"};
      symbols.push_back(std::move(symbol));
    }
  }
  return {};
}

Result<ElfObject> ElfObject::parse(const uint8_t *data, size_t size) {
  if (Status status = checkFileHeader(data, size); !status)
    return Error{status.message()};
  ElfObject object;
  if (Status status = object.readSections(data, size); !status)
    return Error{status.message()};
  if (Status status = object.readSymbols(); !status)
    return Error{status.message()};
  return object;
}

bool ElfObject::isLoaded(uint32_t section) const {
  return section < sections.size() && (sections[section].flags & kFlagAlloc);
}

Result<std::vector<ElfRelocation>> ElfObject::relocations(const ElfSection &rela) const {
  if (rela.size % kRelaSize)
    return Error{"native code: section '" + rela.name + "' of " + std::to_string(rela.size) +
                 " bytes, expected a multiple of 24"};
  if (rela.link >= sections.size() || sections[rela.link].type != kSectionSymtab)
    return Error{"native code: section '" + rela.name + "' names no symbol table"};
  std::vector<ElfRelocation> result;
  for (uint64_t at = 0; at < rela.size; at += kRelaSize) {
    const uint8_t *p = rela.bytes + at;
    ElfRelocation relocation;
    relocation.offset = get<uint64_t>(p);
    relocation.type = get<uint32_t>(p + 8);
    relocation.symbol = get<uint32_t>(p + 12);
    relocation.addend = static_cast<int64_t>(get<uint64_t>(p + 16));
    if (relocation.symbol >= symbols.size())
      return Error{"native code: section '" + rela.name + "' names symbol " +
                   std::to_string(relocation.symbol) + " of " + std::to_string(symbols.size())};
    result.push_back(relocation);
  }
  return result;
}
