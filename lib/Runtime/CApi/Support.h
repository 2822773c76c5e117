// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every call of the C API needs: the handles, errors, and structs that start with their size.
#ifndef ATTN_LIB_RUNTIME_CAPI_SUPPORT_H
#define ATTN_LIB_RUNTIME_CAPI_SUPPORT_H

#include "../BindTables.h"
#include "attn-c/Runtime.h"
#include "attn/Core/Manifest.h"
#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Cuda.h"
#include "attn/Runtime/Launch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>

struct attn_artifact {
  attn::core::Artifact artifact;
};

enum class PlanDevice { None, Cpu, Cuda };

namespace attn::capi {

/// Makes the input of a binder from the caller's arrays, in memory that is used again.
class BatchReader {
public:
  /// A message names what is malformed. `device`: what will read the pages.
  std::optional<std::string> read(const attn_batch &batch, PlanDevice device);
  /// Takes memory for batches of so many requests and unnamed ranges.
  void reserve(int64_t requests, int64_t ranges);
  const rt::BatchInput &input() const { return given; }

private:
  std::optional<std::string> readRequests(const attn_batch &batch);
  std::optional<std::string> readParams(const attn_batch &batch);
  std::optional<std::string> readRanges(const attn_batch &batch);
  std::optional<std::string> readDocuments(const attn_batch &batch);
  std::optional<std::string> readTables(const attn_batch &batch);
  std::optional<std::string> readPages(const attn_batch &batch, PlanDevice device);
  rt::TableInput &nextTable(const char *name);

  rt::BatchInput given;
  size_t numTables = 0;           ///< of `given`, those of this batch
  rt::RangesInput spareRanges;    ///< memory of `given.mmRanges` where there are none
  rt::BlockTableInput spareTable; ///< and of `given.blockTable`
};

} // namespace attn::capi

/// Limits and device of a plan, checked.
struct PlanSettings {
  const attn::core::Kernel *kernel = nullptr;
  PlanDevice device = PlanDevice::None;
  int ordinal = 0;                  ///< of the GPU
  std::string driver;               ///< library that stands in for the GPU's driver, or empty
  bool isFixed = false;             ///< memory of the GPU path is taken at once
  attn::rt::CudaPlanOptions memory; ///< of it
  int64_t maxReqs = 0;
  int64_t maxTokens = 0;
  unsigned threads = 1;
};

struct attn_plan {
  PlanSettings settings;
  std::optional<attn::rt::NativeRunner> runner;   ///< device cpu
  std::optional<attn::rt::CudaKernel> cudaKernel; ///< device cuda
  std::optional<attn::rt::CudaPlan> cudaPlan;     ///< points at `cudaKernel`

  // Memory of prepare that is used again.
  std::optional<attn::rt::BatchBinder> binder;
  attn::capi::BatchReader reader;

  // The batch prepared last.
  bool isPrepared = false;
  attn::rt::BoundBatch bound;
  attn::rt::NativeTables tables; ///< cpu: points into `bound` and the workspace
  std::vector<int64_t> kvStart;  ///< the caller's [num_reqs], if given
  attn::core::KvLayout layout;   ///< points into `kvStart` or `bound` and the caller's block table
  int64_t usedSlots = 0;         ///< of contiguous K and V, up to the last key
  int64_t numPages = 0;
};

namespace attn::capi {

/// A status with its message; converts to the bare status and stores the message for
/// attn_last_error().
class Failure {
public:
  Failure(attn_status code, std::string message);
  operator attn_status() const { return code; }

private:
  attn_status code;
};

/// Runs the body of a call; no exception leaves it.
template <class Body>
attn_status guarded(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return Failure(ATTN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &e) {
    return Failure(ATTN_FAILED, e.what());
  }
}

inline Failure nullArgument(const char *name) {
  return Failure(ATTN_INVALID_ARGUMENT, std::string(name) + " is null");
}

inline Failure notPrepared() {
  return Failure(ATTN_NOT_PREPARED, "the plan has no batch; call attn_plan_prepare first");
}

/// Bytes of a caller's struct before members were added to it.
template <class T>
inline constexpr size_t kOldestSize = sizeof(T);
template <>
inline constexpr size_t kOldestSize<attn_plan_options> = offsetof(attn_plan_options,
                                                                  device_ordinal);
template <>
inline constexpr size_t kOldestSize<attn_batch> = offsetof(attn_batch, kv_start);
template <>
inline constexpr size_t kOldestSize<attn_run_args> = offsetof(attn_run_args, device_block_table);

/// Why a caller's struct of `given` bytes cannot be taken for one of `expected`, of which `oldest`
/// were always there, or nothing. A longer one comes from a newer caller: it is fine while the
/// members unknown here are zero.
std::optional<std::string> checkStruct(const void *data, size_t given, size_t oldest,
                                       size_t expected, const char *name);

/// Checks struct_size and copies what this library knows; what the caller does not know is zero.
template <class T>
std::optional<std::string> readStruct(const T *from, const char *name, T &to) {
  if (!from)
    return std::string(name) + " is null";
  if (std::optional<std::string> fault =
          checkStruct(from, from->struct_size, kOldestSize<T>, sizeof(T), name))
    return fault;
  to = T();
  std::memcpy(static_cast<void *>(&to), from, std::min(from->struct_size, sizeof(T)));
  return std::nullopt;
}

/// Calls `read(place, element)` for each element of an array of sized structs.
template <class T, class Read>
std::optional<std::string> forEach(const T *array, int64_t count, const char *name, Read read) {
  if (count < 0)
    return std::string(name) + ": count is " + std::to_string(count);
  if (count > 0 && !array)
    return std::string(name) + " is null";
  for (int64_t i = 0; i < count; ++i) {
    const auto *at = reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) +
                                                 static_cast<size_t>(i) * array->struct_size);
    const std::string place = std::string(name) + "[" + std::to_string(i) + "]";
    T element;
    if (std::optional<std::string> fault = readStruct(at, place.c_str(), element))
      return fault;
    if (at->struct_size != array->struct_size)
      return place + ".struct_size is " + std::to_string(at->struct_size) + ", expected " +
             std::to_string(array->struct_size) + " as in the first element";
    if (std::optional<std::string> fault = read(place, element))
      return fault;
  }
  return std::nullopt;
}

/// Fills a caller's struct but its struct_size.
template <class T>
attn_status writeStruct(T *to, const char *name, T value) {
  if (!to)
    return nullArgument(name);
  if (to->struct_size < sizeof(T))
    return Failure(ATTN_INVALID_ARGUMENT, std::string(name) + ".struct_size is " +
                                              std::to_string(to->struct_size) + ", expected " +
                                              std::to_string(sizeof(T)));
  value.struct_size = to->struct_size;
  std::memcpy(static_cast<void *>(to), &value, sizeof(T));
  return ATTN_OK;
}

inline const char *deviceName(const PlanSettings &settings) {
  switch (settings.device) {
  case PlanDevice::None:
    return "none";
  case PlanDevice::Cpu:
    return "cpu";
  case PlanDevice::Cuda:
    break;
  }
  return "cuda";
}

/// For what is computed from positions, which rows with seq_len_is_bound have on the device only.
/// Plan.cpp.
attn_status requireExactLengths(const attn_plan &plan, std::string_view who);
/// Number of the ranges or documents table called `name`; null means the only one. With
/// `rangesOnly`, of a ranges table. Tables.cpp.
attn_status findSource(const core::MaskProgram &program, const char *name, bool rangesOnly,
                       size_t &table);
/// Memory of the caller's that is too small. Tables.cpp.
Failure tooSmall(const char *name, int64_t capacity, int64_t needed);
/// The part that a run asks for, or all of the batch. Plan.cpp.
attn_status readPart(const attn_plan &plan, const attn_subrange *given, rt::SubRange &part);

// Device cuda; Cuda.cpp.

/// Memory that a plan takes.
attn_status queryCuda(const PlanSettings &settings, attn_workspace_size *size);
/// Loads the driver, opens the GPU and loads the kernel there.
attn_status createCuda(attn_plan &plan, const attn_artifact &artifact);
/// Builds the work and the tables of the plan's batch and enqueues their copy.
attn_status prepareCuda(attn_plan &plan, rt::Span<const int64_t> cuts, void *stream);
/// Enqueues the kernel. The tensors that must not be null are not.
attn_status runCuda(const attn_plan &plan, const attn_run_args &args, void *stream);

} // namespace attn::capi

#endif // ATTN_LIB_RUNTIME_CAPI_SUPPORT_H
