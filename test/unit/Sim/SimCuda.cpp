// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA driver whose device is the simulator: device memory is the host's, modules are PTX, a
// launch runs before it returns. What ATTN_SIM_POLICY says is the policy: earliest, latest or
// random:SEED. Reports go to standard error and fail the launch. ATTN_SIM_PTX names a file that is
// taken instead of what a module holds; ATTN_SIM_COUNTERS prints the counters of launches.
#include "attn/Sim/Sim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

using namespace attn;

namespace {

enum : int {
  kOk = 0,
  kInvalidValue = 1,
  kInvalidPtx = 218,
  kNotFound = 500,
  kIllegalAddress = 700
};

struct Module {
  sim::PtxModule ptx;
  std::string entry;
};

struct State {
  std::map<uint64_t, size_t> memory;
  uint64_t launches = 0;
};
State &state() {
  static State instance;
  return instance;
}

/// Of a launch: random ones differ from each other. False after a message.
bool policy(sim::Policy &result) {
  const char *text = std::getenv("ATTN_SIM_POLICY");
  core::Result<sim::Policy> parsed = sim::parsePolicy(text ? text : "earliest");
  if (!parsed) {
    std::fprintf(stderr, "ATTN_SIM_POLICY: %s\n", parsed.message().c_str());
    return false;
  }
  result = *parsed;
  if (result.kind == sim::Policy::Kind::Random)
    result.seed += 1000003 * state().launches;
  return true;
}

} // namespace

#define DRIVER(name) extern "C" __attribute__((visibility("default"))) int name

DRIVER(cuInit)(unsigned) { return kOk; }
DRIVER(cuGetErrorName)(int, const char **text) {
  *text = "CUDA_ERROR";
  return kOk;
}
DRIVER(cuGetErrorString)(int, const char **text) {
  *text = "see the reports of the simulator";
  return kOk;
}
DRIVER(cuDeviceGetCount)(int *count) {
  *count = 1;
  return kOk;
}
DRIVER(cuDeviceGet)(int *device, int) {
  *device = 0;
  return kOk;
}
DRIVER(cuDeviceGetName)(char *name, int length, int) {
  std::strncpy(name, "Simulator", length);
  return kOk;
}
DRIVER(cuDeviceGetAttribute)(int *value, int attribute, int) {
  const std::map<int, int> values = {{16, 5}, {75, 9}, {76, 0}, {97, 232448}};
  auto found = values.find(attribute);
  if (found == values.end())
    return kInvalidValue;
  *value = found->second;
  return kOk;
}
DRIVER(cuDevicePrimaryCtxRetain)(void **context, int) {
  *context = &state();
  return kOk;
}
DRIVER(cuDevicePrimaryCtxRelease_v2)(int) { return kOk; }
DRIVER(cuCtxPushCurrent_v2)(void *) { return kOk; }
DRIVER(cuCtxPopCurrent_v2)(void **context) {
  *context = &state();
  return kOk;
}

DRIVER(cuModuleLoadDataEx)
(void **module, const void *image, unsigned numOptions, int *options, void **values) {
  std::string text = static_cast<const char *>(image);
  if (const char *path = std::getenv("ATTN_SIM_PTX")) {
    std::ifstream file(path);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  core::Result<sim::PtxModule> parsed = sim::parsePtx(text);
  if (parsed) {
    *module = new Module{std::move(*parsed), ""};
    return kOk;
  }
  std::fprintf(stderr, "%s\n", parsed.message().c_str());
  return kInvalidPtx;
}
DRIVER(cuModuleUnload)(void *module) {
  delete static_cast<Module *>(module);
  return kOk;
}
DRIVER(cuModuleGetFunction)(void **function, void *module, const char *name) {
  Module *loaded = static_cast<Module *>(module);
  loaded->entry = name;
  *function = module;
  return loaded->ptx.find(name) ? kOk : kNotFound;
}
DRIVER(cuFuncGetAttribute)(int *value, int attribute, void *) {
  const std::map<int, int> values = {{0, 1024}, {1, 1024}, {3, 0}, {4, 168}};
  auto found = values.find(attribute);
  if (found == values.end())
    return kInvalidValue;
  *value = found->second;
  return kOk;
}
DRIVER(cuFuncSetAttribute)(void *, int, int) { return kOk; }

DRIVER(cuTensorMapEncodeTiled)
(void *map, int, uint32_t rank, void *address, const uint64_t *dims, const uint64_t *strides,
 const uint32_t *box, const uint32_t *steps, int, int swizzle, int, int) {
  if (rank < 1 || rank > 5 || swizzle < 0 || swizzle > 3)
    return kInvalidValue;
  sim::TensorMap made;
  made.rank = static_cast<int>(rank);
  made.data = address;
  const int spans[] = {0, 32, 64, 128};
  made.swizzleBytes = spans[swizzle];
  for (uint32_t i = 0; i < rank; ++i) {
    made.dims[i] = dims[i];
    made.box[i] = box[i];
    made.elementStrides[i] = steps[i];
    made.strides[i] = i ? strides[i - 1] : 0;
  }
  const auto bytes = sim::encode(made);
  if (!bytes) {
    std::fprintf(stderr, "%s\n", bytes.message().c_str());
    return kInvalidValue;
  }
  std::memcpy(map, bytes->data(), bytes->size());
  return kOk;
}

DRIVER(cuLaunchKernel)
(void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
 unsigned blockZ, unsigned sharedBytes, void *, void **parameters, void **) {
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
  for (const auto &[address, bytes] : state().memory)
    launch.buffers.push_back({"buffer " + std::to_string(launch.buffers.size()),
                              reinterpret_cast<void *>(address), bytes, true});
  if (!policy(launch.policy))
    return kInvalidValue;
  launch.threads = 2;
  ++state().launches;
  core::Result<sim::Outcome> outcome = sim::run(launch);
  if (!outcome) {
    std::fprintf(stderr, "%s\n", outcome.message().c_str());
    return kInvalidValue;
  }
  for (const sim::Report &report : outcome->reports)
    std::fprintf(stderr, "%s: %s\n", sim::toString(report.kind), report.text.c_str());
  if (std::getenv("ATTN_SIM_COUNTERS")) {
    const sim::Counters &c = outcome->counters;
    std::fprintf(stderr,
                 "%u CTAs, %llu instructions, %llu products, %.3g FLOPs, %llu bank conflicts\n",
                 gridX, (unsigned long long)c.instructions, (unsigned long long)c.wgmmas,
                 c.mmaFlops, (unsigned long long)c.bankConflicts);
  }
  return outcome->finished && outcome->reports.empty() ? kOk : kIllegalAddress;
}

static int allocate(uint64_t &address, size_t bytes) {
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory)
    return kInvalidValue;
  std::memset(memory, 0xA5, bytes);
  address = reinterpret_cast<uint64_t>(memory);
  return kOk;
}
DRIVER(cuMemAlloc_v2)(unsigned long long *address, size_t bytes) {
  uint64_t memory = 0;
  const int code = allocate(memory, bytes);
  *address = memory;
  state().memory[memory] = bytes;
  return code;
}
DRIVER(cuMemFree_v2)(unsigned long long address) {
  state().memory.erase(address);
  std::free(reinterpret_cast<void *>(address));
  return kOk;
}
DRIVER(cuMemHostAlloc)(void **memory, size_t bytes, unsigned) {
  uint64_t address = 0;
  const int code = allocate(address, bytes);
  *memory = reinterpret_cast<void *>(address);
  return code;
}
DRIVER(cuMemFreeHost)(void *memory) {
  std::free(memory);
  return kOk;
}
DRIVER(cuMemcpyHtoDAsync_v2)(unsigned long long to, const void *from, size_t bytes, void *) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return kOk;
}
DRIVER(cuMemcpyDtoHAsync_v2)(void *to, unsigned long long from, size_t bytes, void *) {
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return kOk;
}
DRIVER(cuMemsetD8Async)(unsigned long long to, unsigned char byte, size_t bytes, void *) {
  std::memset(reinterpret_cast<void *>(to), byte, bytes);
  return kOk;
}
DRIVER(cuStreamCreate)(void **stream, unsigned) {
  *stream = &state();
  return kOk;
}
DRIVER(cuStreamDestroy_v2)(void *) { return kOk; }
DRIVER(cuStreamIsCapturing)(void *, int *status) {
  *status = 0;
  return kOk;
}
DRIVER(cuStreamSynchronize)(void *) { return kOk; }
DRIVER(cuEventCreate)(void **event, unsigned) {
  *event = &state();
  return kOk;
}
DRIVER(cuEventDestroy_v2)(void *) { return kOk; }
DRIVER(cuEventRecord)(void *, void *) { return kOk; }
DRIVER(cuEventQuery)(void *) { return kOk; }
DRIVER(cuEventSynchronize)(void *) { return kOk; }
DRIVER(cuEventElapsedTime)(float *milliseconds, void *, void *) {
  *milliseconds = 0;
  return kOk;
}
