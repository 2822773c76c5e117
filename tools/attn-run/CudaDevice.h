// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a problem on a GPU or in the simulator of one.
#ifndef ATTN_TOOLS_ATTNRUN_CUDADEVICE_H
#define ATTN_TOOLS_ATTNRUN_CUDADEVICE_H

#include "Check.h"
#include "Device.h"

#include "attn/Runtime/Cuda.h"
#include "attn/Sim/Sim.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace attn::run {

/// Bars of the GPU: inputs, weights and results are rounded to the kernel's 16-bit type.
Tolerance cudaTolerance(core::DType type);

/// The tensors behind a problem.
struct CudaInputs {
  core::Problem problem;
  size_t qBytes = 0, kBytes = 0, vBytes = 0;
  int64_t kvRows = 0;   ///< contiguous K and V: rows
  int64_t numPages = 0; ///< paged: pages of the cache
};

/// What there is to say about a run besides its results and times.
struct CudaReport {
  bool counted = false;          ///< the kernel is instrumented
  core::TileCounters counts{};   ///< by the kernel, in one run
  core::TileCounters expected{}; ///< by its work list
};

/// How the simulator runs.
struct SimOptions {
  sim::Policy policy;
  unsigned threads = 1;
  uint64_t maxSteps = 0; ///< warp instructions of a launch; 0: the simulator's own limit
};

/// What the simulator says about a run.
struct SimReport {
  std::vector<sim::Report> reports; ///< empty: nothing is wrong
  sim::Counters counters;
};

/// The first GPU, or the simulator, with a kernel loaded.
class CudaRunner {
public:
  static core::Result<CudaRunner> create(const core::Artifact &artifact,
                                         const core::Kernel &kernel);
  /// `report` is filled in by runs and must outlive the runner; there is one such runner at a time.
  static core::Result<CudaRunner> createSimulated(const core::Artifact &artifact,
                                                  const core::Kernel &kernel,
                                                  const SimOptions &options, SimReport &report);

  /// "NVIDIA H200, cubin, 168 registers, 0 bytes of local memory".
  std::string describe() const;

  /// Uploads, runs once or with `bench` many times, downloads. Results start as NaN, so a row that
  /// the kernel does not write cannot pass for one.
  core::Result<CpuOutput> run(const CudaInputs &inputs, bool bench, Timing &timing,
                              CudaReport &report) const;

private:
  static core::Result<CudaRunner> create(std::shared_ptr<const rt::CudaDriver> driver,
                                         const std::string &device, const core::Artifact &artifact,
                                         const core::Kernel &kernel);
  CudaRunner(rt::CudaKernel kernel, std::string device)
      : kernel(std::move(kernel)), device(std::move(device)) {}

  rt::CudaKernel kernel;
  std::string device; ///< "device 'cuda'", for errors
};

/// Multiplications and additions of the products over the pairs that the mask keeps.
double keptFlops(const core::Problem &problem);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_CUDADEVICE_H
