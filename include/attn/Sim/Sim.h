// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A functional simulator of GPU kernels: executes PTX, with every asynchronous operation completing
// at a time that a policy chooses, and reports what a GPU would hide.
#ifndef ATTN_SIM_SIM_H
#define ATTN_SIM_SIM_H

#include "attn/Core/Status.h"
#include "attn/Sim/Ptx.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::sim {

/// When asynchronous operations complete and which warp runs next.
struct Policy {
  enum class Kind : uint8_t {
    Earliest, ///< as soon as they are issued; warps in turn
    Latest,   ///< when somebody waits for them; a warp runs until it must wait
    Random    ///< by `seed`, anywhere in between
  };
  Kind kind = Kind::Earliest;
  uint64_t seed = 0;
};
/// "earliest", "latest" or "random:SEED".
core::Result<Policy> parsePolicy(std::string_view text);

/// Global memory that a launch may touch: host memory that stands for device memory at the same
/// address. An access outside all of them is a report.
struct GlobalBuffer {
  std::string name; ///< for reports: "K"
  void *data = nullptr;
  size_t size = 0;
  bool writable = false;
};

/// What cuTensorMapEncodeTiled was given (CUDA driver API).
struct TensorMap {
  int rank = 0;                      ///< 1 to 5
  int elementBytes = 2;              ///< 1, 2, 4, 8
  const void *data = nullptr;        ///< global address, 16-byte aligned
  std::array<uint64_t, 5> dims{};    ///< in elements, innermost first
  std::array<uint64_t, 5> strides{}; ///< bytes of dimensions 1 and up; [0] unused
  std::array<uint32_t, 5> box{};     ///< in elements
  std::array<uint32_t, 5> elementStrides{1, 1, 1, 1, 1};
  int swizzleBytes = 0; ///< 0, 32, 64, 128
};
/// The 128 bytes to pass for `map`, little endian, the rest zero: 0 "TTA_MAP1", 8 data, 16 strides
/// of dimensions 1 to 4, 48 dims - 1 (32 bits each), 68 box (16 bits each), 78 element strides (8
/// bits each), 83 rank, 84 bytes of an element, 85 bytes of the swizzle; of dimensions past the
/// rank 0. An error is a map that has no place there: a rank, a size or an extent of 0 or too
/// large.
core::Result<std::array<uint8_t, 128>> encode(const TensorMap &map);

struct Report {
  enum class Kind : uint8_t {
    ReadBeforeComplete, ///< of data that a copy may still be writing
    OverwriteWhileRead, ///< of a slot that an asynchronous operation may still read
    LoadInFlight,       ///< a copy over what a load may not have read yet
    RegisterInFlight,   ///< accumulator or A register touched between wgmma and its wait
    MissingProxyFence,  ///< generic write, then asynchronous read (or the reverse) without a fence
    MissingWgmmaFence,  ///< registers written, then read by wgmma without wgmma.fence
    BarrierMisuse,      ///< phase skipped, arrival overflow, tx mismatch, not initialised
    Uninitialised,      ///< shared memory read before anybody wrote it
    OutOfBounds,
    DataRace,         ///< two warps, no happens-before
    DivergentBarrier, ///< a part of the warp is at what all or the lanes of a mask must do together
    Deadlock,
    Unsupported, ///< an instruction the simulator does not know
    Misaligned,
    Registers, ///< setmaxnreg accounting
    StepLimit,
    UnfinishedAtExit, ///< the CTA ends with copies, products or accesses of its cluster under way
  };
  Kind kind{};
  int32_t line = 0;      ///< of the PTX
  int32_t otherLine = 0; ///< of the other access, 0 if none
  int32_t cta = 0, warp = 0;
  uint64_t address = 0;
  std::string text; ///< whole: "line 812: warp 5 reads shared+0x4400 ... "
};
const char *toString(Report::Kind kind);

struct Counters {
  uint64_t instructions = 0; ///< warp instructions
  /// The instructions by class: `other` are copies, products, their groups and waits, hints.
  uint64_t alu = 0, fp = 0, sfu = 0, loads = 0, stores = 0, branches = 0, barriers = 0, other = 0;
  // Bytes by space, a lane counted by itself; cp.async counts where it reads and writes.
  uint64_t globalLoadBytes = 0, globalStoreBytes = 0, sharedLoadBytes = 0, sharedStoreBytes = 0;
  uint64_t localLoadBytes = 0, localStoreBytes = 0, paramLoadBytes = 0;
  uint64_t clusterLoadBytes = 0, clusterStoreBytes = 0; ///< shared memory of other CTAs
  /// Bulk and tensor copies: how many, bytes of global memory read (by a multicast once) and
  /// written.
  uint64_t tmaLoads = 0, tmaStores = 0, tmaLoadBytes = 0, tmaStoreBytes = 0;
  uint64_t wgmmas = 0;        ///< of warpgroups
  double mmaFlops = 0;        ///< 2 m n k a product
  uint64_t bankConflicts = 0; ///< extra cycles of shared accesses by 32 banks of 4 bytes
};

struct Launch {
  const PtxModule *module = nullptr;
  std::string kernel;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::array<uint32_t, 3> cluster{0, 0, 0}; ///< CTAs; 0: what the kernel requires, or 1
  uint32_t dynamicShared = 0;
  std::vector<std::vector<uint8_t>> params; ///< one a kernel parameter, of its size
  std::vector<GlobalBuffer> buffers;
  Policy policy;
  unsigned maxReports = 16;       ///< the launch stops after so many
  uint64_t maxSteps = 1ull << 34; ///< warp instructions, against endless loops
  /// Threads of the host that run clusters; those are independent but for global atomics.
  unsigned threads = 1;
};

struct Outcome {
  std::vector<Report> reports; ///< empty: clean
  Counters counters;
  bool finished = false; ///< every thread has returned
};

/// Runs a launch. An error is a launch that cannot start (no such kernel, sizes of parameters, too
/// much shared memory, not enough memory of the host); what goes wrong while it runs is in the
/// outcome.
core::Result<Outcome> run(const Launch &launch);

} // namespace attn::sim

#endif // ATTN_SIM_SIM_H
