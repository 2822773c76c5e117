// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Micro-batches: a part of a batch, by request and token, as a batch of its own. Requests are
// numbered anew, so what is kept per request or per token is too; positions are absolute, so
// ranges, documents and key intervals stay as they are, and a request that is cut gets an explicit
// context_len. Running the parts of a batch one after the other gives what running it whole gives.
//
// A kernel that takes a SubRange (NativeRunner::run) needs none of this: it addresses the tables of
// the whole batch.
#ifndef ATTN_RUNTIME_MICROBATCH_H
#define ATTN_RUNTIME_MICROBATCH_H

#include "attn/Runtime/BatchBinding.h"
#include "attn/Runtime/Launch.h"

namespace attn::rt {

/// The two parts of a batch that is cut before `token` (0 to numTokens). Every request belongs to
/// one of them, the one that holds the token before and the token after the cut to both. Requests
/// without tokens at the cut go to the second.
struct Halves {
  SubRange first;
  SubRange second;
};
Halves cutBefore(const core::BatchShape &shape, core::TokenIndex token);

struct SliceOptions {
  /// The keys of all scheduled tokens of the batch are in memory when the part runs, those of
  /// tokens past the part too. Otherwise a request of which tokens are left out at the end has the
  /// keys before these only, and a cut after which a row of the part would miss keys is refused.
  bool keysWritten = false;
};

/// Why `part` of a batch cannot run by itself, if it cannot:
///   - its last token and the next one lie inside a range, or its rows may keep keys past the cut,
///     and the keys are not declared written;
///   - it cuts a request whose length, so whose positions, are known on the device only;
///   - the kernel computes with the number of a request, which changes.
core::Status checkSlice(const core::KernelSpec &spec, const BoundBatch &bound, const SubRange &part,
                        const SliceOptions &options = {});

/// A checked part. Memory of plain tables is the batch's, which must outlive it: only base, extents
/// and strides differ.
struct MicroBatch {
  /// As bindBatch makes it, but kvStart still counts rows of the whole batch's K and V (its last
  /// entry is past the last request of the part).
  BoundBatch bound;
  int64_t requestBegin = 0; ///< rows of a page table to skip
  int64_t tokenBegin = 0;   ///< rows of Q, O and LSE to skip
};

core::Result<MicroBatch> sliceBatch(const core::KernelSpec &spec, const BoundBatch &bound,
                                    const SubRange &part, const SliceOptions &options = {});

/// The same in engine terms: input for bindBatch. `input` is checked as bindBatch checks it. Memory
/// of dense tables and of the block table is that of `input`, which must outlive the result.
core::Result<BatchInput> sliceInput(const core::KernelSpec &spec, const BatchInput &input,
                                    const SubRange &part, const SliceOptions &options = {});

/// The cut nearest to `token` (of two, the earlier) that keeps keys of request `b` on their side:
/// no row before it keeps a key, or lies in a range with one, at or past it. First token and end of
/// the request always qualify, and are all that do if its mask is not understood or its length is
/// known on the device only. `token` lies in the request or at its end.
core::Result<core::TokenIndex> nearestSafeCut(const core::KernelSpec &spec, const BoundBatch &bound,
                                              core::RequestIndex b, core::TokenIndex token);

} // namespace attn::rt

#endif // ATTN_RUNTIME_MICROBATCH_H
