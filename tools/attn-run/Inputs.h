// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of a run: from a file or random, and K/V once more in pages.
#ifndef ATTN_TOOLS_ATTNRUN_INPUTS_H
#define ATTN_TOOLS_ATTNRUN_INPUTS_H

#include "attn/Core/Problem.h"
#include "attn/Runtime/BatchIO.h"
#include "attn/Runtime/Safetensors.h"

#include <cstdlib>
#include <memory>
#include <vector>

namespace attn::run {

/// Zeroed memory that costs nothing until it is touched: a cache may be mostly free pages.
class Buffer {
public:
  Buffer() = default;
  /// Throws std::bad_alloc.
  explicit Buffer(size_t bytes);
  uint8_t *data() { return memory.get(); }
  size_t size() const { return bytes; }

private:
  struct Free {
    void operator()(uint8_t *p) const { std::free(p); }
  };
  std::unique_ptr<uint8_t, Free> memory;
  size_t bytes = 0;
};

/// q [tokens, heads, dim], k and v [sum of seq_len, kv_heads, dim], all dense.
struct Tensors {
  Buffer q, k, v;
};

/// K and V in pages, with the block table that finds them.
struct PagedCache {
  Buffer k, v;
  std::vector<int32_t> blockTable; ///< [num_reqs, stride]
  int64_t stride = 0;
  int64_t numPages = 0;
};

/// Moves the dense tables that `file` holds into `input`: by name, or as "tables.NAME", which those
/// named q, k or v need. Refuses tensors that are neither q, k, v nor a table of the kernel.
core::Status takeTables(const rt::SafetensorsFile &file, const core::KernelSpec &spec,
                        rt::BatchInput &input);

/// q, k and v of a file; shapes and dtypes must be the kernel's.
core::Result<Tensors> readTensors(const rt::SafetensorsFile &file, const core::KernelSpec &spec,
                                  const rt::BoundBatch &bound);
/// Normal random numbers, the same on every machine.
Tensors randomTensors(const core::KernelSpec &spec, const rt::BoundBatch &bound, uint64_t seed);

/// Lays K and V out in pages: `given` names them, else they are scrambled. Slots without a key hold
/// NaN (in caches past 256 MiB only those of live pages). Where two keys share a slot, the later
/// one's values count, in `tensors` too.
core::Result<PagedCache> pageTensors(Tensors &tensors, const core::KernelSpec &spec,
                                     const rt::BoundBatch &bound, int64_t pageSize,
                                     const rt::BlockTableInput *given, uint64_t seed);

/// The problem on dense K/V, and on pages.
core::Problem denseProblem(Tensors &tensors, const core::KernelSpec &spec,
                           const rt::BoundBatch &bound);
core::Problem pagedProblem(Tensors &tensors, PagedCache &cache, const core::KernelSpec &spec,
                           const rt::BoundBatch &bound, int64_t pageSize);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_INPUTS_H
