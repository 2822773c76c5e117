// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/CudaDriver.h"

#include "Api.h"

#include <algorithm>
#include <dlfcn.h>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

//===----------------------------------------------------------------------===//
// Errors and contexts
//===----------------------------------------------------------------------===//

Status cuda::check(const Api &api, const char *function, int code) {
  if (code == kSuccess)
    return {};
  const char *name = nullptr;
  const char *text = nullptr;
  if (api.getErrorName(code, &name) != kSuccess || !name)
    return Error{std::string(function) + ": CUDA error " + std::to_string(code)};
  std::string message = std::string(function) + ": " + name;
  if (api.getErrorString(code, &text) == kSuccess && text)
    message += std::string(" (") + text + ")";
  return Error{message};
}

cuda::CurrentContext::CurrentContext(const CudaDevice &device)
    : api(device.api()), pushed(check(api, "cuCtxPushCurrent", api.contextPush(device.context()))) {
}

cuda::CurrentContext::~CurrentContext() {
  void *popped = nullptr;
  if (pushed)
    api.contextPop(&popped);
}

/// Calls `call` with the device's context current.
template <class Call>
static Status inContext(const CudaDevice &device, const char *function, Call call) {
  CurrentContext current(device);
  if (!current.status())
    return current.status();
  return check(device.api(), function, call(device.api()));
}

//===----------------------------------------------------------------------===//
// Driver
//===----------------------------------------------------------------------===//

CudaDriver::CudaDriver() : functions(std::make_unique<Api>()) {}
CudaDriver::~CudaDriver() = default;

Result<std::shared_ptr<const CudaDriver>> CudaDriver::load(const std::string &library) {
  // Never closed: the driver has threads and exit handlers of its own.
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    return Error{"no CUDA driver: " + std::string(reason ? reason : library.c_str())};
  }
  return create([handle](const char *symbol) { return dlsym(handle, symbol); }, library);
}

Result<std::shared_ptr<const CudaDriver>>
CudaDriver::create(const std::function<void *(const char *)> &find, const std::string &name) {
  std::shared_ptr<CudaDriver> driver(new CudaDriver());
  Api &api = *driver->functions;
  const char *missing = nullptr;
  auto take = [&](const char *symbol) {
    void *address = find(symbol);
    if (!address && !missing)
      missing = symbol;
    return address;
  };
#define ATTN_CUDA_FIND(member, symbol, parameters)                                                 \
  api.member = reinterpret_cast<int(*) parameters>(take(symbol));
  ATTN_CUDA_FUNCTIONS(ATTN_CUDA_FIND)
#undef ATTN_CUDA_FIND
  if (missing)
    return Error{"the CUDA driver '" + name + "' has no function " + missing +
                 ", expected a driver of CUDA 12.0 or newer"};
  if (Status status = check(api, "cuInit", api.init(0)); !status)
    return Error{"no usable GPU: " + status.message()};
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

//===----------------------------------------------------------------------===//
// Device
//===----------------------------------------------------------------------===//

Result<std::shared_ptr<const CudaDevice>> CudaDevice::open(std::shared_ptr<const CudaDriver> driver,
                                                           int ordinal) {
  const Api &api = driver->api();
  int count = 0;
  if (Status status = check(api, "cuDeviceGetCount", api.deviceGetCount(&count)); !status)
    return Error{status.message()};
  if (ordinal < 0 || ordinal >= count)
    return Error{"no GPU " + std::to_string(ordinal) + ", the driver has " + std::to_string(count)};
  std::shared_ptr<CudaDevice> result(new CudaDevice());
  if (Status status = check(api, "cuDeviceGet", api.deviceGet(&result->device, ordinal)); !status)
    return Error{status.message()};
  char name[256] = {};
  if (Status status =
          check(api, "cuDeviceGetName", api.deviceGetName(name, sizeof(name) - 1, result->device));
      !status)
    return Error{status.message()};
  result->deviceName = name;
  int shared = 0;
  const std::pair<int, int *> attributes[] = {
      {kComputeCapabilityMajor, &result->major},
      {kComputeCapabilityMinor, &result->minor},
      {kMaxSharedMemoryPerBlockOptin, &shared},
      {kMultiprocessorCount, &result->numMultiprocessors},
  };
  for (const auto &[attribute, value] : attributes)
    if (Status status = check(api, "cuDeviceGetAttribute",
                              api.deviceGetAttribute(value, attribute, result->device));
        !status)
      return Error{status.message()};
  result->maxSharedBytes = shared;
  if (Status status = check(api, "cuDevicePrimaryCtxRetain",
                            api.primaryContextRetain(&result->primaryContext, result->device));
      !status)
    return Error{status.message()};
  result->driver = std::move(driver); // from here on the context is released again
  return std::shared_ptr<const CudaDevice>(std::move(result));
}

CudaDevice::~CudaDevice() {
  if (driver)
    driver->api().primaryContextRelease(device);
}

Status CudaDevice::copyIn(CudaPointer to, const void *from, size_t bytes, CudaStream stream) const {
  if (!bytes)
    return {};
  return inContext(*this, "cuMemcpyHtoDAsync",
                   [&](const Api &api) { return api.memcpyHtoDAsync(to, from, bytes, stream); });
}

Status CudaDevice::copyOut(void *to, CudaPointer from, size_t bytes, CudaStream stream) const {
  if (!bytes)
    return {};
  return inContext(*this, "cuMemcpyDtoHAsync",
                   [&](const Api &api) { return api.memcpyDtoHAsync(to, from, bytes, stream); });
}

Status CudaDevice::fill(CudaPointer to, uint8_t byte, size_t bytes, CudaStream stream) const {
  if (!bytes)
    return {};
  return inContext(*this, "cuMemsetD8Async",
                   [&](const Api &api) { return api.memsetD8Async(to, byte, bytes, stream); });
}

Result<bool> CudaDevice::isCapturing(CudaStream stream) const {
  int capture = 0;
  Status status = inContext(*this, "cuStreamIsCapturing", [&](const Api &api) {
    return api.streamIsCapturing(stream, &capture);
  });
  if (!status)
    return Error{status.message()};
  return capture != 0;
}

Status CudaDevice::synchronize(CudaStream stream) const {
  return inContext(*this, "cuStreamSynchronize",
                   [&](const Api &api) { return api.streamSynchronize(stream); });
}

//===----------------------------------------------------------------------===//
// What a device owns for us
//===----------------------------------------------------------------------===//

/// The driver refuses allocations of nothing.
static size_t atLeastSome(size_t bytes) { return std::max<size_t>(bytes, 16); }

Result<CudaMemory> CudaMemory::create(std::shared_ptr<const CudaDevice> device, size_t bytes) {
  CudaPointer address = 0;
  Status status = inContext(*device, "cuMemAlloc", [&](const Api &api) {
    return api.memAlloc(&address, atLeastSome(bytes));
  });
  if (!status)
    return Error{std::to_string(bytes) + " bytes of device memory: " + status.message()};
  CudaMemory memory;
  memory.owner = std::move(device);
  memory.handle = reinterpret_cast<void *>(address);
  memory.bytes = bytes;
  return memory;
}

CudaMemory::~CudaMemory() {
  if (owner)
    (void)inContext(*owner, "cuMemFree", [&](const Api &api) { return api.memFree(address()); });
}

Result<CudaPinned> CudaPinned::create(std::shared_ptr<const CudaDevice> device, size_t bytes) {
  CudaPinned memory;
  Status status = inContext(*device, "cuMemHostAlloc", [&](const Api &api) {
    return api.memHostAlloc(&memory.handle, atLeastSome(bytes), 0);
  });
  if (!status)
    return Error{std::to_string(bytes) + " bytes of page-locked memory: " + status.message()};
  memory.owner = std::move(device);
  memory.bytes = bytes;
  return memory;
}

CudaPinned::~CudaPinned() {
  if (owner)
    (void)inContext(*owner, "cuMemFreeHost",
                    [&](const Api &api) { return api.memFreeHost(handle); });
}

Result<CudaOwnStream> CudaOwnStream::create(std::shared_ptr<const CudaDevice> device) {
  CudaOwnStream stream;
  Status status = inContext(*device, "cuStreamCreate", [&](const Api &api) {
    return api.streamCreate(&stream.handle, kStreamNonBlocking);
  });
  if (!status)
    return Error{status.message()};
  stream.owner = std::move(device);
  return stream;
}

CudaOwnStream::~CudaOwnStream() {
  if (owner)
    (void)inContext(*owner, "cuStreamDestroy",
                    [&](const Api &api) { return api.streamDestroy(handle); });
}

Result<CudaEvent> CudaEvent::create(std::shared_ptr<const CudaDevice> device, bool isTimed) {
  CudaEvent event;
  Status status = inContext(*device, "cuEventCreate", [&](const Api &api) {
    return api.eventCreate(&event.handle, isTimed ? kEventDefault : kEventNoTiming);
  });
  if (!status)
    return Error{status.message()};
  event.owner = std::move(device);
  return event;
}

CudaEvent::~CudaEvent() {
  if (owner)
    (void)inContext(*owner, "cuEventDestroy",
                    [&](const Api &api) { return api.eventDestroy(handle); });
}

Result<bool> CudaEvent::isReached() const {
  bool isReached = true;
  Status status = inContext(*owner, "cuEventQuery", [&](const Api &api) {
    const int code = api.eventQuery(handle);
    isReached = code != kNotReady;
    return isReached ? code : kSuccess;
  });
  if (!status)
    return Error{status.message()};
  return isReached;
}

Status CudaEvent::record(CudaStream stream) const {
  return inContext(*owner, "cuEventRecord",
                   [&](const Api &api) { return api.eventRecord(handle, stream); });
}

Status CudaEvent::synchronize() const {
  return inContext(*owner, "cuEventSynchronize",
                   [&](const Api &api) { return api.eventSynchronize(handle); });
}

Result<double> CudaEvent::since(const CudaEvent &start) const {
  float milliseconds = 0;
  Status status = inContext(*owner, "cuEventElapsedTime", [&](const Api &api) {
    return api.eventElapsedTime(&milliseconds, start.handle, handle);
  });
  if (!status)
    return Error{status.message()};
  return static_cast<double>(milliseconds);
}
