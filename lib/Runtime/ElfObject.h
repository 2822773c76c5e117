// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An x86-64 ELF relocatable object, read with every offset checked against the bytes given. Holds
// what the loader needs: sections, symbols and relocations as plain values.
#ifndef ATTN_LIB_RUNTIME_ELFOBJECT_H
#define ATTN_LIB_RUNTIME_ELFOBJECT_H

#include "attn/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attn::rt {

struct ElfSection {
  std::string name;
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t size = 0;
  uint64_t align = 1;
  uint32_t link = 0;
  uint32_t info = 0;
  const uint8_t *bytes = nullptr; ///< null where the file holds none (zero-filled)
};

struct ElfSymbol {
  std::string name;
  uint8_t type = 0;
  uint8_t binding = 0;
  uint32_t section = 0; ///< 0: undefined
  uint64_t value = 0;
  uint64_t size = 0;
};

struct ElfRelocation {
  uint64_t offset = 0;
  uint32_t type = 0;
  uint32_t symbol = 0;
  int64_t addend = 0;
};

class ElfObject {
public:
  /// Checks the file header and reads sections and symbols. `data` must outlive the object.
  static core::Result<ElfObject> parse(const uint8_t *data, size_t size);

  std::vector<ElfSection> sections;
  std::vector<ElfSymbol> symbols;

  bool isLoaded(uint32_t section) const;
  /// Relocations of a SHT_RELA section whose target is loaded.
  core::Result<std::vector<ElfRelocation>> relocations(const ElfSection &rela) const;

private:
  core::Status readSections(const uint8_t *data, size_t size);
  core::Status readSymbols();
};

/// Constants of the format that the loader uses.
enum : uint32_t {
  kSectionProgbits = 1,
  kSectionSymtab = 2,
  kSectionStrtab = 3,
  kSectionRela = 4,
  kSectionNote = 7,
  kSectionNobits = 8,
  kSectionRel = 9,
  kSectionUnwind = 0x70000001,
};
enum : uint64_t {
  kFlagWrite = 1,
  kFlagAlloc = 2,
  kFlagExec = 4,
  kFlagTls = 0x400,
  kFlagCompressed = 0x800,
};
enum : uint8_t {
  kSymbolObject = 1,
  kSymbolFunction = 2,
  kSymbolTls = 6,
  kSymbolIndirect = 10,
  kBindingLocal = 0,
};
enum : uint32_t {
  kIndexUndefined = 0,
  kIndexReserved = 0xff00,
};

} // namespace attn::rt

#endif // ATTN_LIB_RUNTIME_ELFOBJECT_H
