// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs GPU kernels of an artifact: a CudaKernel is the code loaded on a device, a CudaPlan the work
// and the tables of one batch there, and a launch puts both to work on the caller's stream with
// the caller's tensors. See attn/Core/CudaAbi.h for what a kernel is given.
#ifndef ATTN_RUNTIME_CUDA_H
#define ATTN_RUNTIME_CUDA_H

#include "attn/Core/Batch.h"
#include "attn/Core/Manifest.h"
#include "attn/Runtime/CudaDriver.h"
#include "attn/Runtime/WorkList.h"

#include <cstdint>
#include <vector>

namespace attn::rt {

/// Q or O in device memory: [tokens, heads, dim] of the kernel's 16-bit type, the last dim
/// contiguous; strides in elements.
struct CudaRows {
  CudaPointer data = 0;
  int64_t tokenStride = 0;
  int64_t headStride = 0;
};

/// K or V in device memory: pages of slots of heads, the last dim contiguous; strides in elements.
/// NHD, HND and interleaved caches are strides.
struct CudaCache {
  CudaPointer data = 0;
  int64_t pageStride = 0; ///< not used without pages
  int64_t slotStride = 0;
  int64_t headStride = 0;
};

/// What one launch reads and writes. O and LSE of every scheduled token are written.
struct CudaOperands {
  CudaRows q;
  CudaCache k, v;
  CudaRows o;
  CudaPointer lse = 0; ///< f32 [heads, lseHeadStride]
  int64_t lseHeadStride = 0;

  int64_t kvRows = 0; ///< contiguous K and V: rows of both

  CudaPointer pageTable = 0; ///< int32 [num_reqs, pageTableStride]; 0: contiguous
  int64_t pageTableStride = 0;
  int64_t pageSize = 0;
  int64_t numPages = 0; ///< pages of the cache

  CudaPointer counters = 0; ///< core::TileCounters, added to; for instrumented kernels
};

class CudaPlan;

/// The loaded code of one kernel on one device. Immutable: any number of threads may launch it.
/// Spec and binary belong to the artifact, which must outlive the kernel.
class CudaKernel {
public:
  /// Loads the first GPU code of `kernel` that this device and its driver take: the cubin, else the
  /// PTX, which the driver compiles. Errors say what each attempt met, with the driver's log.
  static core::Result<CudaKernel> load(std::shared_ptr<const CudaDevice> device,
                                       const core::Artifact &artifact, const core::Kernel &kernel);
  CudaKernel(CudaKernel &&other) noexcept;
  CudaKernel &operator=(CudaKernel &&other) noexcept;
  ~CudaKernel();

  const core::KernelSpec &spec() const { return *kernelSpec; }
  const core::KernelBinary &binary() const { return *kernelBinary; }
  const core::CudaLaunch &shape() const { return *kernelBinary->cuda; }
  const std::shared_ptr<const CudaDevice> &device() const { return owner; }
  /// Registers and local memory (spills, in bytes) of a thread.
  int registers() const { return numRegisters; }
  int localBytes() const { return numLocalBytes; }

  /// What a launch would refuse: operands that the hardware cannot take or that do not fit the
  /// plan.
  core::Status checkOperands(const CudaPlan &plan, const CudaOperands &operands) const;

  /// Enqueues the kernel. The plan must have been built for this kernel on `stream` or on one that
  /// `stream` waits for. Operands are checked first. Does not wait.
  core::Status launch(const CudaPlan &plan, const CudaOperands &operands, CudaStream stream) const;

private:
  CudaKernel() = default;
  core::Status loadModule(const core::Artifact &artifact, const core::Kernel &kernel);
  core::Status prepare();

  std::shared_ptr<const CudaDevice> owner;
  const core::KernelSpec *kernelSpec = nullptr;
  const core::KernelBinary *kernelBinary = nullptr;
  void *module = nullptr;
  void *function = nullptr;
  int numRegisters = 0;
  int numLocalBytes = 0;
};

/// The work list, parameters and tables of one batch in device memory. May be built again for
/// another batch: buffers that are large enough are used again. Launches of the earlier batch must
/// then come before in the stream.
class CudaPlan {
public:
  /// The kernel must outlive the plan.
  explicit CudaPlan(const CudaKernel &kernel) : kernel(&kernel) {}

  /// Builds everything on the host and enqueues one copy. `kvStart`: [num_reqs] rows of contiguous
  /// K/V, or null for a plan that is launched with pages. Nothing of the batch is read afterwards.
  core::Status build(const core::Batch &batch, const int64_t *kvStart, CudaStream stream);

  const WorkList &workList() const { return list; }

private:
  friend class CudaKernel;

  /// What launches are checked against.
  struct Needs {
    bool paged = false;
    int64_t tokens = 0;
    int64_t requests = 0;
    int64_t kvRows = 0;  ///< contiguous: past the last key
    int64_t longest = 0; ///< keys of a request
  };

  const CudaKernel *kernel;
  WorkList list;
  Needs needs;
  std::vector<int64_t> words; ///< the argument block; operands are filled in by a launch
  CudaPinned host;
  CudaMemory memory;
  CudaEvent copied; ///< the last copy out of `host`
  bool isCopying = false;
  bool isBuilt = false;
};

/// The target whose code this runtime launches, and the compute capability it needs.
constexpr const char *kCudaTarget = "sm_90a";

} // namespace attn::rt

#endif // ATTN_RUNTIME_CUDA_H
