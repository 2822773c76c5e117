// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the driver. Their names, numbers and sizes are the toolkit's, written once more
// and not taken from lib/: a slip there must not be repeated here.
#include "FakeCuda.h"

#include "FakeQueue.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace fake;

namespace {

bool isInitialized = false;

struct Module {
  attn::core::Artifact artifact;
  int dynamicShared = 49152;
};
struct Stream {
  unsigned flags = 0;
};
int primaryContexts[8]; ///< their addresses are the handles

template <class Map>
int release(Map &map, uintptr_t address, const char *what) {
  drain(); // what is under way may use it
  auto it = map.find(address);
  if (it == map.end())
    return misuse(std::string(what) + " of memory that is not allocated");
  // Whoever still reads it must notice.
  std::memset(reinterpret_cast<void *>(address), 0xDD, it->second);
  std::free(reinterpret_cast<void *>(address));
  map.erase(it);
  return kOk;
}

int allocate(std::map<uintptr_t, size_t> &map, size_t bytes, uintptr_t &address) {
  if (!bytes)
    return kInvalidValue;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory)
    return kOutOfMemory;
  std::memset(memory, 0xA5, bytes);
  address = reinterpret_cast<uintptr_t>(memory);
  map[address] = bytes;
  return kOk;
}

} // namespace

bool fake::isDeviceMemory(const State &state, uint64_t address, size_t bytes) {
  auto it = state.memory.upper_bound(address);
  if (it == state.memory.begin())
    return false;
  --it;
  return address + bytes <= it->first + it->second;
}

State &fake::state() {
  static State instance;
  return instance;
}

std::recursive_mutex &fake::mutex() {
  static std::recursive_mutex instance;
  return instance;
}

int fake::enter(const char *symbol, bool needsContext) {
  State &s = state();
  if (auto it = s.calls.find(symbol); it != s.calls.end())
    ++it->second;
  else
    s.calls[symbol] = 1;
  if (auto it = s.failNext.find(symbol); it != s.failNext.end()) {
    const int code = it->second;
    s.failNext.erase(it);
    return code;
  }
  if (!isInitialized && std::strcmp(symbol, "cuInit") != 0)
    return kNotInitialized;
  if (needsContext && s.contextStack.empty())
    return kInvalidContext;
  return kOk;
}

int fake::misuse(const std::string &what, int code) {
  if (state().fault.empty())
    state().fault = what;
  return code;
}

fake::State *attnFakeCuda() { return &state(); }

//===----------------------------------------------------------------------===//
// Process and device
//===----------------------------------------------------------------------===//

FAKE(cuInit)(unsigned flags) {
  ENTER("cuInit", false);
  isInitialized = state().initResult == kOk;
  return flags ? kInvalidValue : state().initResult;
}

static const std::pair<int, std::pair<const char *, const char *>> kErrors[] = {
    {kInvalidValue, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {kOutOfMemory, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {kNoDevice, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {kInvalidImage, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
    {kInvalidContext, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {kInvalidPtx, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
    {kNotFound, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
    {kIllegalAddress, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
};

FAKE(cuGetErrorName)(int code, const char **text) {
  for (const auto &[number, words] : kErrors)
    if (number == code) {
      *text = words.first;
      return kOk;
    }
  *text = nullptr;
  return kInvalidValue;
}

FAKE(cuGetErrorString)(int code, const char **text) {
  for (const auto &[number, words] : kErrors)
    if (number == code) {
      *text = words.second;
      return kOk;
    }
  *text = nullptr;
  return kInvalidValue;
}

FAKE(cuDeviceGetCount)(int *count) {
  ENTER("cuDeviceGetCount", false);
  *count = state().devices;
  return kOk;
}

FAKE(cuDeviceGet)(int *device, int ordinal) {
  ENTER("cuDeviceGet", false);
  *device = 40 + ordinal;
  return ordinal < state().devices ? kOk : kInvalidDevice;
}

FAKE(cuDeviceGetName)(char *name, int length, int device) {
  ENTER("cuDeviceGetName", false);
  if (device < 40)
    return misuse("cuDeviceGetName of no device", kInvalidDevice);
  std::strncpy(name, "Fake GPU", length);
  return kOk;
}

FAKE(cuDeviceGetAttribute)(int *value, int attribute, int device) {
  ENTER("cuDeviceGetAttribute", false);
  if (device < 40)
    return misuse("cuDeviceGetAttribute of no device", kInvalidDevice);
  switch (attribute) {
  case 16:
    *value = 132;
    return kOk;
  case 75:
    *value = state().computeMajor;
    return kOk;
  case 76:
    *value = state().computeMinor;
    return kOk;
  case 97:
    *value = state().sharedPerBlock;
    return kOk;
  default:
    return misuse("unknown device attribute " + std::to_string(attribute));
  }
}

FAKE(cuDevicePrimaryCtxRetain)(void **context, int device) {
  ENTER("cuDevicePrimaryCtxRetain", false);
  if (device < 40)
    return misuse("cuDevicePrimaryCtxRetain of no device", kInvalidDevice);
  ++state().contexts;
  *context = &primaryContexts[device - 40];
  return kOk;
}

FAKE(cuDevicePrimaryCtxRelease_v2)(int device) {
  ENTER("cuDevicePrimaryCtxRelease_v2", false);
  if (device < 40)
    return misuse("cuDevicePrimaryCtxRelease of no device", kInvalidDevice);
  --state().contexts;
  return kOk;
}

FAKE(cuCtxPushCurrent_v2)(void *context) {
  ENTER("cuCtxPushCurrent_v2", false);
  const auto *primary = static_cast<const int *>(context);
  if (primary < std::begin(primaryContexts) || primary >= std::end(primaryContexts) ||
      state().contexts == 0)
    return misuse("a context that is not retained", kInvalidContext);
  state().contextStack.push_back(context);
  return kOk;
}

FAKE(cuCtxPopCurrent_v2)(void **context) {
  ENTER("cuCtxPopCurrent_v2");
  *context = state().contextStack.back();
  state().contextStack.pop_back();
  return kOk;
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

FAKE(cuModuleLoadDataEx)
(void **module, const void *image, unsigned numOptions, int *options, void **values) {
  ENTER("cuModuleLoadDataEx");
  NOT_CAPTURED();
  state().moduleOptions = numOptions;
  char *log = nullptr;
  size_t logSize = 0;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == 5)
      log = static_cast<char *>(values[i]);
    else if (options[i] == 6)
      logSize = reinterpret_cast<size_t>(values[i]);
    else
      return misuse("unknown option " + std::to_string(options[i]));
  }
  const char *text = static_cast<const char *>(image);
  if (std::strncmp(text, kBrokenMark, std::strlen(kBrokenMark)) == 0) {
    if (log)
      std::strncpy(log, text + std::strlen(kBrokenMark), logSize);
    return kInvalidPtx;
  }
  if (std::strncmp(text, kImageMark, std::strlen(kImageMark)) != 0)
    return kInvalidImage;
  char *end = nullptr;
  const size_t size = std::strtoull(text + std::strlen(kImageMark), &end, 10);
  attn::core::Result<attn::core::Artifact> artifact =
      attn::core::parseArtifact(reinterpret_cast<const uint8_t *>(end + 1), size);
  if (!artifact)
    return misuse(artifact.message(), kInvalidImage);
  auto *loaded = new Module{std::move(*artifact)};
  ++state().modules;
  *module = loaded;
  return kOk;
}

FAKE(cuModuleUnload)(void *module) {
  ENTER("cuModuleUnload");
  delete static_cast<Module *>(module);
  --state().modules;
  return kOk;
}

FAKE(cuModuleGetFunction)(void **function, void *module, const char *name) {
  ENTER("cuModuleGetFunction");
  if (std::strcmp(name, "missing") == 0)
    return kNotFound;
  *function = module;
  return kOk;
}

FAKE(cuFuncGetAttribute)(int *value, int attribute, void *) {
  ENTER("cuFuncGetAttribute");
  switch (attribute) {
  case 0:
    *value = state().maxThreads;
    return kOk;
  case 1:
    *value = 1024;
    return kOk;
  case 3:
    *value = 0;
    return kOk;
  case 4:
    *value = 168;
    return kOk;
  default:
    return misuse("unknown function attribute " + std::to_string(attribute));
  }
}

FAKE(cuFuncSetAttribute)(void *function, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  if (attribute != 8 || value + 1024 > state().sharedPerBlock)
    return misuse("shared memory past the limit");
  static_cast<Module *>(function)->dynamicShared = value;
  return kOk;
}

//===----------------------------------------------------------------------===//
// Tensor maps and launches
//===----------------------------------------------------------------------===//

FAKE(cuTensorMapEncodeTiled)
(void *map, int type, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
 const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  ENTER("cuTensorMapEncodeTiled");
  if (reinterpret_cast<uintptr_t>(map) % 64)
    return misuse("a tensor map that is not aligned to 64 bytes");
  if (type != 6 && type != 9)
    return misuse("tensor map of another type");
  if (rank != 5 || interleave != 0 || swizzle != 3 || promotion != 2 || fill != 0)
    return misuse("tensor map of another kind");
  if (!address || reinterpret_cast<uintptr_t>(address) % 16)
    return misuse("tensor map of an address that is not aligned to 16 bytes");
  TensorMap made = {};
  made.mark = kTensorMapMark;
  made.address = reinterpret_cast<uint64_t>(address);
  for (int i = 0; i < 5; ++i) {
    if (dims[i] == 0 || dims[i] > uint64_t(1) << 32 || box[i] == 0 || box[i] > 256 || steps[i] != 1)
      return misuse("tensor map with a dimension, box or step out of range");
    made.dims[i] = dims[i];
  }
  for (int i = 0; i < 4; ++i) {
    if (strides[i] % 16 || strides[i] >= uint64_t(1) << 40)
      return misuse("tensor map with a stride out of range");
    made.strides[i] = strides[i];
  }
  if (dims[0] != 64 || box[0] != 64 || box[3] != 1 || box[4] != 1)
    return misuse("tensor map with another box");
  made.isBf16 = type == 9;
  made.boxRows = static_cast<uint16_t>(box[1]);
  made.boxGroups = static_cast<uint8_t>(box[2]);
  std::memcpy(map, &made, sizeof(made));
  return kOk;
}

FAKE(cuLaunchKernel)
(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
 unsigned blockZ, unsigned sharedBytes, void *stream, void **parameters, void **extra) {
  ENTER("cuLaunchKernel");
  const Module &module = *static_cast<Module *>(function);
  if (!gridX || gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || extra)
    return misuse("a launch of another shape");
  if (blockX > static_cast<unsigned>(state().maxThreads) ||
      sharedBytes > static_cast<unsigned>(module.dynamicShared))
    return misuse("a launch past the function's limits");
  if (state().records) {
    Launch launch = {{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, sharedBytes, stream, {}};
    const int64_t *words = static_cast<const int64_t *>(parameters[attn::core::kCudaMaps]);
    launch.words.assign(words, words + attn::core::kNumCudaArgs);
    state().launches.push_back(std::move(launch));
  }
  if (!state().emulates)
    return kOk;
  // The kernel gets its parameters as they are now.
  return enqueue(
      stream, [&module, gridX, held = Parameters(module.artifact, parameters)]() mutable {
        const std::string fault = emulate(state(), module.artifact, gridX, held.pointers());
        return fault.empty() ? int(kOk) : misuse(fault, kIllegalAddress);
      });
}

//===----------------------------------------------------------------------===//
// Memory, streams, events
//===----------------------------------------------------------------------===//

FAKE(cuMemAlloc_v2)(unsigned long long *address, size_t bytes) {
  ENTER("cuMemAlloc_v2");
  NOT_CAPTURED();
  uintptr_t memory = 0;
  const int code = allocate(state().memory, bytes, memory);
  *address = memory;
  return code;
}

FAKE(cuMemFree_v2)(unsigned long long address) {
  ENTER("cuMemFree_v2");
  NOT_CAPTURED();
  return release(state().memory, address, "cuMemFree");
}

FAKE(cuMemHostAlloc)(void **memory, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc");
  NOT_CAPTURED();
  uintptr_t address = 0;
  const int code = allocate(state().pinned, bytes, address);
  *memory = reinterpret_cast<void *>(address);
  return code;
}

FAKE(cuMemFreeHost)(void *memory) {
  ENTER("cuMemFreeHost");
  NOT_CAPTURED();
  return release(state().pinned, reinterpret_cast<uintptr_t>(memory), "cuMemFreeHost");
}

FAKE(cuMemcpyHtoDAsync_v2)
(unsigned long long to, const void *from, size_t bytes, void *stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  if (!isDeviceMemory(state(), to, bytes))
    return misuse("a copy past device memory");
  return enqueue(stream, [to, from, bytes] {
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return int(kOk);
  });
}

FAKE(cuMemcpyDtoHAsync_v2)
(void *to, unsigned long long from, size_t bytes, void *) {
  ENTER("cuMemcpyDtoHAsync_v2");
  if (!isDeviceMemory(state(), from, bytes))
    return misuse("a copy from past device memory");
  drain();
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return kOk;
}

FAKE(cuMemsetD8Async)(unsigned long long to, unsigned char byte, size_t bytes, void *stream) {
  ENTER("cuMemsetD8Async");
  if (!isDeviceMemory(state(), to, bytes))
    return misuse("a fill past device memory");
  return enqueue(stream, [to, byte, bytes] {
    std::memset(reinterpret_cast<void *>(to), byte, bytes);
    return int(kOk);
  });
}

FAKE(cuStreamCreate)(void **stream, unsigned flags) {
  ENTER("cuStreamCreate");
  *stream = new Stream{flags};
  ++state().streams;
  return flags == 1 ? kOk : misuse("a stream that waits for the default stream");
}

FAKE(cuStreamDestroy_v2)(void *stream) {
  ENTER("cuStreamDestroy_v2");
  delete static_cast<Stream *>(stream);
  --state().streams;
  return kOk;
}
