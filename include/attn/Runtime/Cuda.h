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
#include "attn/Runtime/CudaRecipes.h"
#include "attn/Runtime/CudaStage.h"
#include "attn/Runtime/SubRange.h"
#include "attn/Runtime/WorkList.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
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

/// What one launch reads and writes. O and LSE of every scheduled token are written, or of
/// `tokens`.
struct CudaOperands {
  CudaRows q;
  CudaCache k, v;
  CudaRows o;
  CudaPointer lse = 0; ///< f32 [heads, lseHeadStride]
  int64_t lseHeadStride = 0;

  int64_t kvRows = 0; ///< contiguous K and V: rows of both

  CudaPointer pageTable = 0; ///< int32 [num_reqs, pageTableStride]; 0: contiguous
  int64_t pageTableStride = 0;
  int64_t pageSize = 0; ///< slots: 1 to 2^30 - 1, as in a batch
  int64_t numPages = 0; ///< pages of the cache

  /// int32 [num_reqs], of all requests of the batch, read where the host did not know the length
  /// (BatchShape::isBound); 0 where it knew all of them. Such a length must be one of those that
  /// the batch says it may have.
  CudaPointer seqLens = 0;

  CudaPointer counters = 0; ///< core::TileCounters, added to; for instrumented kernels

  /// The rows to compute; both bounds are cuts of the step (CudaPlan::build) or ends of the batch.
  /// Tensors and tables stay those of the whole batch.
  std::optional<TokenRange> tokens;
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
  /// `stream` waits for. Operands are checked first. Does not wait or allocate.
  ///
  /// May be captured into a graph if the plan was made for that: Q and O then have the rows of
  /// CudaPlanOptions::limits, and everything in `operands` is what replays use. A launch of some
  /// tokens then may not: what it has to do would differ from step to step.
  core::Status launch(const CudaPlan &plan, const CudaOperands &operands, CudaStream stream) const;
  /// Refuses a launch of some tokens that a plan for graphs would have captured.
  core::Status checkCapture(const CudaPlan &plan, const CudaOperands &operands,
                            CudaStream stream) const;
  /// The same as launch() for operands that checkOperands() and checkCapture() have accepted.
  core::Status launchChecked(const CudaPlan &plan, const CudaOperands &operands,
                             CudaStream stream) const;

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

/// The work list, parameters and tables of one step in device memory, for step after step.
///
/// A step is written straight into page-locked memory and copied on the caller's stream. There are
/// two slots on both sides, used in turn: a step's copy may run beside the kernels of the step
/// before, and only launches of the step before that must come earlier in the stream (of every
/// earlier step with CudaPlanOptions::forGraphs). Launches of one step may run side by side: up to
/// kMostLaunches of them, enqueued one after the other, may be under way at a time.
class CudaPlan {
public:
  /// A plan whose memory grows with the batches it meets: for tools. The kernel must outlive the
  /// plan.
  explicit CudaPlan(const CudaKernel &kernel);
  /// Takes all memory now. From then on a step within the limits allocates nothing, on the host
  /// (as far as WorkListBuilder::isFollowed) and on the device, and waits for nothing unless the
  /// stream is two steps behind; a larger one is refused.
  static core::Result<CudaPlan> create(const CudaKernel &kernel, const CudaPlanOptions &options);
  CudaPlan(CudaPlan &&) noexcept;
  CudaPlan &operator=(CudaPlan &&) noexcept;
  ~CudaPlan();

  /// Memory that such a plan takes, or that the caller gives it. Needs no device. `binary` is one
  /// for a GPU.
  static core::Result<CudaStageSizes> querySizes(const core::KernelSpec &spec,
                                                 const core::KernelBinary &binary,
                                                 const CudaPlanOptions &options);
  /// What a step is made of.
  std::vector<CudaField> fields() const;

  /// Builds everything on the host and enqueues its copies. `kvStart`: [num_reqs] rows of
  /// contiguous K/V, or null for a plan that is launched with pages. `cuts`: tokens, ascending, at
  /// which launches of a part may begin and end; work is ordered between them. `pages`: the block
  /// table on the host, for recipes of page runs; not looked at without one. Nothing of the batch
  /// is read afterwards. After a failure there is no step. Cannot be captured.
  core::Status build(const core::Batch &batch, const int64_t *kvStart, CudaStream stream,
                     Span<const int64_t> cuts = {}, const PageTable &pages = {});

  /// Why the last build() failed.
  CudaStepFault fault() const;

  /// Where launches were captured, later steps must have the parameters, and the extents of dense
  /// tables, that were captured: build() refuses others, because a graph would not see them. This
  /// ends it; the graphs must not be replayed any more.
  void forgetGraphs();
  /// The pages of the next step, which build() does not see: an error where captured launches have
  /// others, and then the plan has no step.
  core::Status checkPages(int64_t pageSize, int64_t numPages);

  /// Of the step built last; stays until the next but one.
  const WorkListView &workList() const;
  /// What a recipe of the binary built in the step built last; an error names the recipes there
  /// are. The device has it when the stream of the build has come past it. Allocates nothing.
  core::Result<CudaRecipe> recipe(std::string_view name) const;
  const CudaStepCounts &counts() const;

  static constexpr uint32_t kMostLaunches = 64;

private:
  friend class CudaKernel;
  struct Impl;
  explicit CudaPlan(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl;
};

/// The target whose code this runtime launches, and the compute capability it needs.
constexpr const char *kCudaTarget = "sm_90a";

} // namespace attn::rt

#endif // ATTN_RUNTIME_CUDA_H
