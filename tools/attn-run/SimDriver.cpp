// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimDriver.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>

using namespace attn;

namespace {

/// CUresult.
enum : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidImage = 200,
  kInvalidPtx = 218,
  kNotFound = 500,
  kLaunchFailed = 719
};

struct Module {
  sim::PtxModule ptx;
  std::string entry;
};

std::map<uint64_t, size_t> &memory() {
  static std::map<uint64_t, size_t> instance;
  return instance;
}

int fail(int code, std::string message) {
  simdriver::state().error = std::move(message);
  return code;
}

int lookUp(const std::map<int, int> &values, int *value, int key) {
  auto found = values.find(key);
  if (found == values.end())
    return fail(kInvalidValue, "no attribute " + std::to_string(key));
  *value = found->second;
  return kOk;
}

int allocate(void **address, size_t bytes) {
  constexpr size_t kAlignment = 256;
  void *memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!memory)
    return fail(kOutOfMemory, "no memory for " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0xA5, bytes);
  *address = memory;
  return kOk;
}

} // namespace

simdriver::State &simdriver::state() {
  static State instance;
  return instance;
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

extern "C" {

static int cuInit(unsigned) { return kOk; }
static int cuGetErrorName(int, const char **text) {
  *text = "SIMULATOR";
  return kOk;
}
static int cuGetErrorString(int, const char **text) {
  *text = simdriver::state().error.c_str();
  return kOk;
}
static int cuDeviceGetCount(int *count) {
  *count = 1;
  return kOk;
}
static int cuDeviceGet(int *device, int) {
  *device = 0;
  return kOk;
}
static int cuDeviceGetName(char *name, int length, int) {
  std::strncpy(name, "simulator", length);
  return kOk;
}
static int cuDeviceGetAttribute(int *value, int attribute, int) {
  // Two multiprocessors, so that a grid of their number works on several tiles a CTA even in small
  // batches. Capability 9.0, 227 KiB.
  return lookUp({{16, 2}, {75, 9}, {76, 0}, {97, 232448}}, value, attribute);
}
static int cuDevicePrimaryCtxRetain(void **context, int) {
  *context = &simdriver::state();
  return kOk;
}
static int cuDevicePrimaryCtxRelease_v2(int) { return kOk; }
static int cuCtxPushCurrent_v2(void *) { return kOk; }
static int cuCtxPopCurrent_v2(void **context) {
  *context = &simdriver::state();
  return kOk;
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

/// What the driver's log says: options 5 and 6 are a buffer for errors and its size.
static void writeLog(const std::string &text, unsigned numOptions, const int *options,
                     void *const *values) {
  char *buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == 5)
      buffer = static_cast<char *>(values[i]);
    else if (options[i] == 6)
      size = reinterpret_cast<uintptr_t>(values[i]) & 0xFFFFFFFF;
  }
  if (!buffer || !size)
    return;
  std::strncpy(buffer, text.c_str(), size - 1);
  buffer[size - 1] = 0;
}

static int cuModuleLoadDataEx(void **module, const void *image, unsigned numOptions, int *options,
                              void **values) {
  const std::string &replacement = simdriver::state().replacement;
  const std::string text = replacement.empty() ? static_cast<const char *>(image) : replacement;
  if (text.compare(0, 4, "\177ELF") == 0)
    return fail(kInvalidImage, "the simulator runs PTX, no cubin");
  core::Result<sim::PtxModule> parsed = sim::parsePtx(text);
  if (!parsed) {
    writeLog(parsed.message(), numOptions, options, values);
    return fail(kInvalidPtx, parsed.message());
  }
  *module = std::make_unique<Module>(Module{std::move(*parsed), ""}).release();
  return kOk;
}
static int cuModuleUnload(void *module) {
  delete static_cast<Module *>(module);
  return kOk;
}
static int cuModuleGetFunction(void **function, void *module, const char *name) {
  Module *loaded = static_cast<Module *>(module);
  if (!loaded->ptx.find(name))
    return fail(kNotFound, std::string("no kernel '") + name + "'");
  loaded->entry = name;
  *function = module;
  return kOk;
}
static int cuFuncGetAttribute(int *value, int attribute, void *) {
  return lookUp({{0, 1024}, {1, 1024}, {3, 0}, {4, 168}}, value, attribute);
}
static int cuFuncSetAttribute(void *, int, int) { return kOk; }

static int cuTensorMapEncodeTiled(void *map, int, uint32_t rank, void *address,
                                  const uint64_t *dims, const uint64_t *strides,
                                  const uint32_t *box, const uint32_t *steps, int, int swizzle, int,
                                  int) {
  constexpr int kSpans[] = {0, 32, 64, 128};
  if (rank < 1 || rank > 5 || swizzle < 0 || swizzle > 3)
    return fail(kInvalidValue, "a tensor map of this rank or swizzle");
  sim::TensorMap made;
  made.rank = static_cast<int>(rank);
  made.data = address;
  made.swizzleBytes = kSpans[swizzle];
  for (uint32_t i = 0; i < rank; ++i) {
    made.dims[i] = dims[i];
    made.box[i] = box[i];
    made.elementStrides[i] = steps[i];
    made.strides[i] = i ? strides[i - 1] : 0;
  }
  const auto bytes = sim::encode(made);
  if (!bytes)
    return fail(kInvalidValue, bytes.message());
  std::memcpy(map, bytes->data(), bytes->size());
  return kOk;
}

static int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                          unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                          void *, void **parameters, void **) {
  simdriver::State &state = simdriver::state();
  const Module &module = *static_cast<Module *>(function);
  sim::Launch launch;
  launch.module = &module.ptx;
  launch.kernel = module.entry;
  launch.grid = {gridX, gridY, gridZ};
  launch.block = {blockX, blockY, blockZ};
  launch.dynamicShared = sharedBytes;
  const sim::PtxKernel *kernel = module.ptx.find(module.entry);
  for (size_t i = 0; i < kernel->params.size(); ++i) {
    const uint8_t *from = static_cast<const uint8_t *>(parameters[i]);
    launch.params.emplace_back(from, from + kernel->params[i].bytes());
  }
  for (const auto &[address, bytes] : memory())
    launch.buffers.push_back({"buffer " + std::to_string(launch.buffers.size()),
                              reinterpret_cast<void *>(address), bytes, true});
  launch.policy = state.policy;
  launch.policy.seed += 1000003 * state.launches++;
  launch.threads = state.threads;
  if (state.maxSteps)
    launch.maxSteps = state.maxSteps;
  core::Result<sim::Outcome> outcome = sim::run(launch);
  if (!outcome)
    return fail(kInvalidValue, outcome.message());
  if (state.launched)
    state.launched(*outcome);
  return outcome->finished && outcome->reports.empty()
             ? kOk
             : fail(kLaunchFailed, "see the simulator's reports");
}

//===----------------------------------------------------------------------===//
// Memory, streams, events
//===----------------------------------------------------------------------===//

static int cuMemAlloc_v2(unsigned long long *address, size_t bytes) {
  void *allocated = nullptr;
  if (const int code = allocate(&allocated, bytes))
    return code;
  *address = reinterpret_cast<uint64_t>(allocated);
  memory()[*address] = bytes;
  return kOk;
}
static int cuMemFree_v2(unsigned long long address) {
  memory().erase(address);
  std::free(reinterpret_cast<void *>(address));
  return kOk;
}
static int cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  return allocate(address, bytes);
}
static int cuMemFreeHost(void *address) {
  std::free(address);
  return kOk;
}
static int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return kOk;
}
static int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *) {
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return kOk;
}
static int cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t bytes, void *) {
  std::memset(reinterpret_cast<void *>(to), byte, bytes);
  return kOk;
}
static int cuStreamCreate(void **stream, unsigned) {
  *stream = &simdriver::state();
  return kOk;
}
static int cuStreamDestroy_v2(void *) { return kOk; }
static int cuStreamIsCapturing(void *, int *capture) {
  *capture = 0;
  return kOk;
}
static int cuStreamSynchronize(void *) { return kOk; }
static int cuEventCreate(void **event, unsigned) {
  *event = &simdriver::state();
  return kOk;
}
static int cuEventDestroy_v2(void *) { return kOk; }
static int cuEventRecord(void *, void *) { return kOk; }
static int cuEventQuery(void *) { return kOk; }
static int cuEventSynchronize(void *) { return kOk; }
static int cuEventElapsedTime(float *milliseconds, void *, void *) {
  *milliseconds = 0;
  return kOk;
}

} // extern "C"

void *simdriver::find(const char *name) {
#define ATTN_SIM_FUNCTION(symbol)                                                                  \
  { #symbol, reinterpret_cast < void *>(symbol) }
  static const std::map<std::string, void *> functions = {
      ATTN_SIM_FUNCTION(cuInit),
      ATTN_SIM_FUNCTION(cuGetErrorName),
      ATTN_SIM_FUNCTION(cuGetErrorString),
      ATTN_SIM_FUNCTION(cuDeviceGetCount),
      ATTN_SIM_FUNCTION(cuDeviceGet),
      ATTN_SIM_FUNCTION(cuDeviceGetName),
      ATTN_SIM_FUNCTION(cuDeviceGetAttribute),
      ATTN_SIM_FUNCTION(cuDevicePrimaryCtxRetain),
      ATTN_SIM_FUNCTION(cuDevicePrimaryCtxRelease_v2),
      ATTN_SIM_FUNCTION(cuCtxPushCurrent_v2),
      ATTN_SIM_FUNCTION(cuCtxPopCurrent_v2),
      ATTN_SIM_FUNCTION(cuModuleLoadDataEx),
      ATTN_SIM_FUNCTION(cuModuleUnload),
      ATTN_SIM_FUNCTION(cuModuleGetFunction),
      ATTN_SIM_FUNCTION(cuFuncGetAttribute),
      ATTN_SIM_FUNCTION(cuFuncSetAttribute),
      ATTN_SIM_FUNCTION(cuTensorMapEncodeTiled),
      ATTN_SIM_FUNCTION(cuLaunchKernel),
      ATTN_SIM_FUNCTION(cuMemAlloc_v2),
      ATTN_SIM_FUNCTION(cuMemFree_v2),
      ATTN_SIM_FUNCTION(cuMemHostAlloc),
      ATTN_SIM_FUNCTION(cuMemFreeHost),
      ATTN_SIM_FUNCTION(cuMemcpyHtoDAsync_v2),
      ATTN_SIM_FUNCTION(cuMemcpyDtoHAsync_v2),
      ATTN_SIM_FUNCTION(cuMemsetD8Async),
      ATTN_SIM_FUNCTION(cuStreamCreate),
      ATTN_SIM_FUNCTION(cuStreamDestroy_v2),
      ATTN_SIM_FUNCTION(cuStreamIsCapturing),
      ATTN_SIM_FUNCTION(cuStreamSynchronize),
      ATTN_SIM_FUNCTION(cuEventCreate),
      ATTN_SIM_FUNCTION(cuEventDestroy_v2),
      ATTN_SIM_FUNCTION(cuEventRecord),
      ATTN_SIM_FUNCTION(cuEventQuery),
      ATTN_SIM_FUNCTION(cuEventSynchronize),
      ATTN_SIM_FUNCTION(cuEventElapsedTime),
  };
#undef ATTN_SIM_FUNCTION
  auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}
