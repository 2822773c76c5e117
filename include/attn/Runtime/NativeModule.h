// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads the native code of a `cpu` kernel, an x86-64 ELF relocatable object, into this process
// without a linker. Code is self-contained: the only symbols it may take from outside are
// core::kNativeImports.
#ifndef ATTN_RUNTIME_NATIVEMODULE_H
#define ATTN_RUNTIME_NATIVEMODULE_H

#include "attn/Core/NativeAbi.h"
#include "attn/Core/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace attn::rt {

/// Loaded code. Owns its memory: entries are valid while the module lives. Immutable after load(),
/// so several threads may run its entries at once.
class NativeModule {
public:
  /// Lays out, relocates and protects the object: code read + execute, constants read only, data
  /// read + write; nothing is ever writable and executable. Anything the loader does not know
  /// (another machine, a relocation, a symbol from outside) is an error by name. Nothing of the
  /// object is executed here.
  static core::Result<NativeModule> load(const uint8_t *data, size_t size);

  NativeModule(NativeModule &&other) noexcept;
  NativeModule &operator=(NativeModule &&other) noexcept;
  NativeModule(const NativeModule &) = delete;
  NativeModule &operator=(const NativeModule &) = delete;
  ~NativeModule();

  /// The entry called `symbol`; an error if the object has no such function.
  core::Result<core::NativeKernel> find(std::string_view symbol) const;
  /// Bytes of the read-only data called `symbol`, valid while the module lives.
  core::Result<std::string_view> findConstant(std::string_view symbol) const;

private:
  NativeModule() = default;

  void *base = nullptr;
  size_t mappedSize = 0;
  std::map<std::string, const void *, std::less<>> functions;
  std::map<std::string, std::string_view, std::less<>> constants;
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_NATIVEMODULE_H
