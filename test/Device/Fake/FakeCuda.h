// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for the CUDA driver, as a shared library: "device" memory is the host's, every call is
// checked against what the real driver asks for, and kernels are emulated by FakeKernel.cpp. Tests
// load it by its path and reach its state through attnFakeCuda().
#ifndef ATTN_TEST_DEVICE_FAKE_FAKECUDA_H
#define ATTN_TEST_DEVICE_FAKE_FAKECUDA_H

#include "attn/Core/Manifest.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fake {

/// The image of a fake kernel: kImageMark, the decimal size of an artifact, a line end, the
/// artifact. Its only kernel is emulated.
constexpr const char *kImageMark = "attn-fake ";
/// Images that start with this do not load; the rest is the driver's log.
constexpr const char *kBrokenMark = "attn-broken ";

/// A launch as it arrived.
struct Launch {
  unsigned grid[3], block[3];
  unsigned sharedBytes = 0;
  void *stream = nullptr;
  std::vector<int64_t> words; ///< the argument block
};

struct State {
  // What the machine is; set by tests.
  int devices = 1;
  int initResult = 0;
  int computeMajor = 9, computeMinor = 0;
  int sharedPerBlock = 232448;
  int maxThreads = 1024;
  /// Result of the next call of a function, by its symbol.
  std::map<std::string, int, std::less<>> failNext;
  /// 0: what is enqueued is done at once. Else that many copies, launches and records wait, on all
  /// streams together, until more come after them or somebody waits for them.
  size_t lazyWork = 0;
  bool emulates = true; ///< kernels compute; else a launch is only checked
  bool records = true;  ///< launches are noted

  // What happened. Steps that repeat themselves allocate nothing here.
  std::map<std::string, int, std::less<>> calls;
  std::vector<Launch> launches;
  unsigned moduleOptions = 0; ///< number of the last module's
  std::string fault;          ///< first misuse, or empty
  // What is alive.
  std::map<uintptr_t, size_t> memory;
  std::map<uintptr_t, size_t> pinned;
  int contexts = 0, modules = 0, streams = 0, events = 0, graphs = 0;
  std::vector<void *> contextStack; ///< of all threads together, which so have one context
};

/// A tensor map as the fake driver writes it; fits the 128 bytes.
struct TensorMap {
  uint64_t mark;
  uint64_t address;
  uint64_t dims[5];
  uint64_t strides[4];
  uint8_t boxGroups, isBf16;
  uint16_t boxRows;
  uint32_t unused;
};
static_assert(sizeof(TensorMap) <= 128, "fits a CUtensorMap");
constexpr uint64_t kTensorMapMark = 0x70616d20726f736e;

/// True if [address, address + bytes) lies in one live allocation of device memory.
bool isDeviceMemory(const State &state, uint64_t address, size_t bytes);

/// Runs the fake kernel whose artifact was its image; returns what is wrong, or nothing.
std::string emulate(const State &state, const attn::core::Artifact &artifact, unsigned grid,
                    void **parameters);

/// Calls so far of functions that wait for the device, or may: memory of all kinds is taken and
/// given back, modules are loaded, streams and events waited for.
inline int slowCalls(const State &state) {
  int calls = 0;
  for (const char *symbol :
       {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuModuleLoadDataEx",
        "cuModuleUnload", "cuStreamSynchronize", "cuEventSynchronize", "cuEventCreate",
        "cuStreamCreate", "cuMemcpyDtoHAsync_v2"})
    if (auto it = state.calls.find(symbol); it != state.calls.end())
      calls += it->second;
  return calls;
}

} // namespace fake

extern "C" __attribute__((visibility("default"))) fake::State *attnFakeCuda();

#endif // ATTN_TEST_DEVICE_FAKE_FAKECUDA_H
