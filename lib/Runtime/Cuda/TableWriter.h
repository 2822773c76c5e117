// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the tables of a batch into their places of a slot.
#ifndef ATTN_LIB_RUNTIME_CUDA_TABLEWRITER_H
#define ATTN_LIB_RUNTIME_CUDA_TABLEWRITER_H

#include "StageLayout.h"

#include "attn/Core/Batch.h"
#include "attn/Core/NativeAbi.h"

namespace attn::rt::cuda {

/// Of one batch, which is within the limits. Allocates nothing.
class TableWriter {
public:
  TableWriter(const core::KernelSpec &spec, const core::KernelBinary &binary,
              const StageLayout &layout, const CudaPlanOptions &options, const core::Batch &batch,
              Span<core::Range> scratch)
      : spec(spec), binary(binary), layout(layout), options(options), batch(batch),
        scratch(scratch) {}

  /// Whether `memory` holds the elements of a plain table as write() would leave them.
  bool hasSameContent(size_t table, const uint8_t *memory) const;

  /// Writes a table and returns its extents and strides; `used` takes what was written. With
  /// `isWritten` false only the shape is wanted.
  core::Result<core::NativeTable> write(size_t table, uint8_t *memory, bool isWritten,
                                        std::vector<Section> *used) const;

private:
  struct Shape {
    int64_t extents[core::kMaxTableRank];
    int64_t strides[core::kMaxTableRank];
    size_t rank;
    int64_t width; ///< bytes of an element
  };
  bool shapeOf(size_t table, Shape &shape) const;
  template <class Visit>
  bool forEachRun(size_t table, const Shape &shape, Visit visit) const;
  void writeLists(size_t table, uint8_t *memory, core::NativeTable &result,
                  std::vector<Section> *used) const;
  void writeRows(size_t table, uint8_t *memory, core::NativeTable &result,
                 std::vector<Section> *used) const;

  const core::KernelSpec &spec;
  const core::KernelBinary &binary;
  const StageLayout &layout;
  const CudaPlanOptions &options;
  const core::Batch &batch;
  Span<core::Range> scratch;
};

} // namespace attn::rt::cuda

#endif // ATTN_LIB_RUNTIME_CUDA_TABLEWRITER_H
