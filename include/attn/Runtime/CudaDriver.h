// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver, loaded at run time, and what the GPU path needs of it: a device with its primary
// context, memory, streams and events. Every call makes the device's context current for its own
// duration only, so the caller's stays as it is. Errors carry the driver's name and text.
#ifndef ATTN_RUNTIME_CUDADRIVER_H
#define ATTN_RUNTIME_CUDADRIVER_H

#include "attn/Core/Status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace attn::rt {

namespace cuda {
struct Api;
}

/// An address in device memory.
using CudaPointer = uint64_t;
/// A CUstream of the caller's; null is the default stream.
using CudaStream = void *;

/// The driver's functions. Stays loaded until the process ends.
class CudaDriver {
public:
  /// Loads and initializes the driver; an error if this machine has no driver, no GPU, or a driver
  /// that is too old. `library` is another driver's file, for tests.
  static core::Result<std::shared_ptr<const CudaDriver>>
  load(const std::string &library = "libcuda.so.1");
  /// A driver that is part of the program: `find` gives its functions by their names in the driver
  /// API, or null. `name` is for errors.
  static core::Result<std::shared_ptr<const CudaDriver>>
  create(const std::function<void *(const char *symbol)> &find, const std::string &name);
  ~CudaDriver();

  const cuda::Api &api() const { return *functions; }

private:
  CudaDriver();

  std::unique_ptr<cuda::Api> functions;
};

/// One GPU and its primary context, held while the object lives.
class CudaDevice {
public:
  static core::Result<std::shared_ptr<const CudaDevice>>
  open(std::shared_ptr<const CudaDriver> driver, int ordinal = 0);
  ~CudaDevice();
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  const std::string &name() const { return deviceName; }
  int computeMajor() const { return major; }
  int computeMinor() const { return minor; }
  /// Largest shared memory of a CTA.
  int64_t sharedBytes() const { return maxSharedBytes; }
  int multiprocessors() const { return numMultiprocessors; }

  // Enqueued on `stream`. Host memory must be valid until the stream got there.
  core::Status copyIn(CudaPointer to, const void *from, size_t bytes, CudaStream stream) const;
  core::Status copyOut(void *to, CudaPointer from, size_t bytes, CudaStream stream) const;
  core::Status fill(CudaPointer to, uint8_t byte, size_t bytes, CudaStream stream) const;
  /// Whether what is enqueued on `stream` now goes into a graph.
  core::Result<bool> isCapturing(CudaStream stream) const;
  /// Waits until the work of `stream` is done; faults of kernels show here.
  core::Status synchronize(CudaStream stream) const;

  const cuda::Api &api() const { return driver->api(); }
  /// CUcontext.
  void *context() const { return primaryContext; }

private:
  CudaDevice() = default;

  std::shared_ptr<const CudaDriver> driver;
  int device = 0;
  void *primaryContext = nullptr;
  std::string deviceName;
  int major = 0, minor = 0;
  int64_t maxSharedBytes = 0;
  int numMultiprocessors = 0;
};

/// Base of what a device owns for us: freed when the object dies, movable.
class CudaResource {
public:
  CudaResource() = default;
  CudaResource(CudaResource &&other) noexcept { swap(other); }
  CudaResource &operator=(CudaResource &&other) noexcept {
    swap(other);
    return *this;
  }
  bool exists() const { return owner != nullptr; }

protected:
  ~CudaResource() = default;
  void swap(CudaResource &other) {
    std::swap(owner, other.owner);
    std::swap(handle, other.handle);
    std::swap(bytes, other.bytes);
  }

  std::shared_ptr<const CudaDevice> owner;
  void *handle = nullptr;
  size_t bytes = 0;
};

/// Device memory.
class CudaMemory : public CudaResource {
public:
  CudaMemory() = default;
  CudaMemory(CudaMemory &&) = default;
  CudaMemory &operator=(CudaMemory &&) = default;
  ~CudaMemory();
  static core::Result<CudaMemory> create(std::shared_ptr<const CudaDevice> device, size_t bytes);
  CudaPointer address() const { return reinterpret_cast<CudaPointer>(handle); }
  size_t size() const { return bytes; }
};

/// Page-locked host memory.
class CudaPinned : public CudaResource {
public:
  CudaPinned() = default;
  CudaPinned(CudaPinned &&) = default;
  CudaPinned &operator=(CudaPinned &&) = default;
  ~CudaPinned();
  static core::Result<CudaPinned> create(std::shared_ptr<const CudaDevice> device, size_t bytes);
  uint8_t *data() const { return static_cast<uint8_t *>(handle); }
  size_t size() const { return bytes; }
};

/// A stream that does not wait for the default stream.
class CudaOwnStream : public CudaResource {
public:
  CudaOwnStream() = default;
  CudaOwnStream(CudaOwnStream &&) = default;
  CudaOwnStream &operator=(CudaOwnStream &&) = default;
  ~CudaOwnStream();
  static core::Result<CudaOwnStream> create(std::shared_ptr<const CudaDevice> device);
  CudaStream get() const { return handle; }
};

class CudaEvent : public CudaResource {
public:
  CudaEvent() = default;
  CudaEvent(CudaEvent &&) = default;
  CudaEvent &operator=(CudaEvent &&) = default;
  ~CudaEvent();
  /// `isTimed`: since() may be asked.
  static core::Result<CudaEvent> create(std::shared_ptr<const CudaDevice> device,
                                        bool isTimed = true);
  /// Whether the stream got past the record; does not wait.
  core::Result<bool> isReached() const;
  /// CUevent.
  void *get() const { return handle; }
  core::Status record(CudaStream stream) const;
  core::Status synchronize() const;
  /// Milliseconds from `start` to this event; both have been reached.
  core::Result<double> since(const CudaEvent &start) const;
};

} // namespace attn::rt

#endif // ATTN_RUNTIME_CUDADRIVER_H
