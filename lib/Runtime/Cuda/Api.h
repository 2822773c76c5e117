// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the CUDA driver API that is used, declared here because the runtime is built without
// the toolkit. Handles are plain pointers, enums are ints; both have the driver's sizes.
#ifndef ATTN_LIB_RUNTIME_CUDA_API_H
#define ATTN_LIB_RUNTIME_CUDA_API_H

#include "attn/Runtime/CudaDriver.h"

namespace attn::rt::cuda {

enum ErrorCode : int { kSuccess = 0, kNotReady = 600 };

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
};

enum FunctionAttribute : int {
  kFuncMaxThreadsPerBlock = 0,
  kFuncSharedBytes = 1,
  kFuncLocalBytes = 3,
  kFuncNumRegisters = 4,
  kFuncMaxDynamicSharedBytes = 8,
};

enum JitOption : int {
  kJitErrorLogBuffer = 5,
  kJitErrorLogBufferSizeBytes = 6,
};

enum StreamFlags : unsigned { kStreamNonBlocking = 1 };
enum EventFlags : unsigned { kEventDefault = 0, kEventNoTiming = 2 };

enum TensorMapDataType : int { kTensorMapFloat16 = 6, kTensorMapBFloat16 = 9 };
enum TensorMapInterleave : int { kTensorMapNoInterleave = 0 };
enum TensorMapSwizzle : int { kTensorMapSwizzle128B = 3 };
enum TensorMapL2Promotion : int { kTensorMapL2Promotion128B = 2 };
enum TensorMapFill : int { kTensorMapFillZeros = 0 };

/// CUtensorMap.
struct alignas(128) TensorMap {
  uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128, "the driver's size");

/// X(member, symbol, parameters): every function returns a CUresult.
#define ATTN_CUDA_FUNCTIONS(X)                                                                     \
  X(init, "cuInit", (unsigned))                                                                    \
  X(getErrorName, "cuGetErrorName", (int, const char **))                                          \
  X(getErrorString, "cuGetErrorString", (int, const char **))                                      \
  X(deviceGetCount, "cuDeviceGetCount", (int *))                                                   \
  X(deviceGet, "cuDeviceGet", (int *, int))                                                        \
  X(deviceGetName, "cuDeviceGetName", (char *, int, int))                                          \
  X(deviceGetAttribute, "cuDeviceGetAttribute", (int *, int, int))                                 \
  X(primaryContextRetain, "cuDevicePrimaryCtxRetain", (void **, int))                              \
  X(primaryContextRelease, "cuDevicePrimaryCtxRelease_v2", (int))                                  \
  X(contextPush, "cuCtxPushCurrent_v2", (void *))                                                  \
  X(contextPop, "cuCtxPopCurrent_v2", (void **))                                                   \
  X(moduleLoad, "cuModuleLoadDataEx", (void **, const void *, unsigned, int *, void **))           \
  X(moduleUnload, "cuModuleUnload", (void *))                                                      \
  X(moduleGetFunction, "cuModuleGetFunction", (void **, void *, const char *))                     \
  X(functionSetAttribute, "cuFuncSetAttribute", (void *, int, int))                                \
  X(functionGetAttribute, "cuFuncGetAttribute", (int *, int, void *))                              \
  X(launchKernel, "cuLaunchKernel",                                                                \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,         \
     void **, void **))                                                                            \
  X(tensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                \
    (TensorMap *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,     \
     const uint32_t *, int, int, int, int))                                                        \
  X(memAlloc, "cuMemAlloc_v2", (CudaPointer *, size_t))                                            \
  X(memFree, "cuMemFree_v2", (CudaPointer))                                                        \
  X(memHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                   \
  X(memFreeHost, "cuMemFreeHost", (void *))                                                        \
  X(memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CudaPointer, const void *, size_t, void *))          \
  X(memcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void *, CudaPointer, size_t, void *))                \
  X(memsetD8Async, "cuMemsetD8Async", (CudaPointer, unsigned char, size_t, void *))                \
  X(streamCreate, "cuStreamCreate", (void **, unsigned))                                           \
  X(streamDestroy, "cuStreamDestroy_v2", (void *))                                                 \
  X(streamIsCapturing, "cuStreamIsCapturing", (void *, int *))                                     \
  X(streamSynchronize, "cuStreamSynchronize", (void *))                                            \
  X(eventCreate, "cuEventCreate", (void **, unsigned))                                             \
  X(eventDestroy, "cuEventDestroy_v2", (void *))                                                   \
  X(eventRecord, "cuEventRecord", (void *, void *))                                                \
  X(eventQuery, "cuEventQuery", (void *))                                                          \
  X(eventSynchronize, "cuEventSynchronize", (void *))                                              \
  X(eventElapsedTime, "cuEventElapsedTime", (float *, void *, void *))

struct Api {
#define ATTN_CUDA_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  ATTN_CUDA_FUNCTIONS(ATTN_CUDA_MEMBER)
#undef ATTN_CUDA_MEMBER
};

/// Success, or "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
core::Status check(const Api &api, const char *function, int code);

/// Makes a device's context current while it lives.
class CurrentContext {
public:
  explicit CurrentContext(const CudaDevice &device);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

  const core::Status &status() const { return pushed; }

private:
  const Api &api;
  core::Status pushed;
};

} // namespace attn::rt::cuda

#endif // ATTN_LIB_RUNTIME_CUDA_API_H
