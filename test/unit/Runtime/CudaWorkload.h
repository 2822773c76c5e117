// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel that the fake driver emulates, and random batches for it with tensors and expected
// results.
#ifndef ATTN_TEST_UNIT_RUNTIME_CUDAWORKLOAD_H
#define ATTN_TEST_UNIT_RUNTIME_CUDAWORKLOAD_H

#include "TestKernel.h"

#include "attn/Core/Problem.h"
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Cuda.h"

#include <string>
#include <vector>

namespace testing_rt {

/// tinySpec in a shape that GPU kernels have.
attn::core::KernelSpec gpuSpec();
/// gpuSpec with code that the fake driver loads: a cubin and PTX.
attn::core::Artifact gpuArtifact(bool countsTiles = true);

/// Tensors with room for any batch of a kind, at addresses that stay.
class Room {
public:
  static constexpr int64_t kTokens = 620, kRequests = 4, kKeys = 1100, kPageSize = 16;
  static constexpr int64_t kWidth = 20, kPages = kRequests * kWidth;

  explicit Room(std::shared_ptr<const attn::rt::CudaDevice> device) : device(std::move(device)) {}

  int64_t left = 17;   ///< parameter of every batch
  float slope = 0.01f; ///< of head 1; others have multiples

  /// Memory number `i` of a workload, made when first asked for.
  attn::rt::CudaPointer memory(size_t i, size_t bytes);

private:
  static constexpr size_t kBytes = 1 << 20;
  std::shared_ptr<const attn::rt::CudaDevice> device;
  std::vector<attn::rt::CudaMemory> memories;
};

/// A batch with tensors on the device and on the host.
class Workload {
public:
  /// `pageSize` 0: contiguous. `headMajor`: slots inside heads. `room`: where the tensors go; else
  /// they have memory of their own.
  Workload(std::shared_ptr<const attn::rt::CudaDevice> device, const attn::core::Artifact &artifact,
           int64_t pageSize, bool headMajor, uint64_t seed, Room *room = nullptr);

  const int64_t *kvStart() const { return operands.pageTable ? nullptr : bound.kvStart.data(); }
  /// Copies the inputs to the device once more, and results nobody wrote.
  void upload();
  /// Results against the reference; empty text when right.
  std::string compare();
  attn::core::TileCounters counters();

  /// O and LSE as they are on the device.
  struct Results {
    std::vector<uint16_t> o;
    std::vector<uint32_t> lse; ///< bits
    bool operator==(const Results &other) const { return o == other.o && lse == other.lse; }
  };
  Results results();
  /// `all` in the rows of the tokens that are `done`, in the others what upload() left there.
  Results only(Results all, const std::vector<bool> &done) const;

  std::shared_ptr<const attn::rt::CudaDevice> device;
  const attn::core::KernelSpec &spec;
  attn::rt::BoundBatch bound;
  attn::rt::CudaOperands operands;

private:
  attn::rt::BatchInput input();
  void fill(std::vector<uint16_t> &tensor, int64_t elements);
  void layOut(int64_t pageSize, bool headMajor);
  template <class T>
  attn::rt::CudaPointer upload(size_t number, const std::vector<T> &values);

  Random random;
  Room *room;
  int64_t tokens = 0, numPages = 0, lseStride = 0;
  std::vector<uint16_t> q, k, v, o;
  std::vector<float> lse;
  std::vector<uint64_t> zeros = std::vector<uint64_t>(3, 0);
  std::vector<int32_t> pages;
  attn::core::Problem problem;
  std::vector<attn::rt::CudaMemory> memory;
};

} // namespace testing_rt

#endif // ATTN_TEST_UNIT_RUNTIME_CUDAWORKLOAD_H
