// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the field failure tests: specs from a few lines, batches from a few numbers, and the
// checks that every row of the collection goes through.
#ifndef ATTN_TEST_EXECUTION_FIELDSUPPORT_H
#define ATTN_TEST_EXECUTION_FIELDSUPPORT_H

#include "Forward.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace field {

using truth::Int;

/// Keys of one row as inclusive stretches: {{0, 3}} is 0 to 3, {} no key.
using Keys = std::vector<std::pair<Int, Int>>;
/// Rows of each request in turn.
using Rows = std::vector<std::vector<Keys>>;
using Params = std::vector<std::pair<std::string, Int>>;

/// A kernel around the lines of a mask region ("" for no mask) and of a score region.
std::string kernel(const std::string &clauses, const std::string &mask,
                   const std::string &score = "");

/// The first kernel of a spec, compiled once for each text. Throws what the compiler says.
const exec::LoadedKernel &compiled(const std::string &text, bool maskPasses = true);

/// A dense table for batchInput.
template <class T>
attn::rt::TableInput denseTable(const std::string &name, attn::core::ScalarType element,
                                std::vector<int64_t> extents, const std::vector<T> &values) {
  attn::rt::TableInput table;
  table.name = name;
  table.dense.emplace();
  table.dense->element = element;
  table.dense->extents = std::move(extents);
  table.dense->owned.resize(values.size() * sizeof(T));
  auto *bytes = reinterpret_cast<const unsigned char *>(values.data());
  table.dense->owned.assign(bytes, bytes + values.size() * sizeof(T));
  return table;
}

struct Launch {
  std::vector<truth::Request> requests;
  Params params;
  std::vector<attn::rt::TableInput> tables;
};

/// Binds a launch; throws what the binder says.
attn::rt::BoundBatch bound(const exec::LoadedKernel &kernel, const Launch &launch);

/// keep() that looks the key up in `rows`.
exec::KeepHeadFn keepFrom(const std::vector<truth::Request> &requests, const Rows &rows);

/// The row's check: on the spec after all mask passes and without any, with contiguous and paged
/// memory, the dense masks of reference and native path are exactly `rows`, and so are O and LSE of
/// both with NaN in every slot that no query keeps. Failures go to gtest.
void expectRows(const std::string &spec, const Launch &launch, const Rows &rows,
                const exec::ScoreFn &score = nullptr);

/// What one row comes to, on every device: the columns of O and, if given, LSE.
struct Claim {
  int64_t token = 0;
  int64_t head = 0;
  std::vector<double> o;
  std::optional<double> lse;
  double tolerance = 0; ///< absolute, in f32; 0: exact, with 16-bit operands too
};

/// A forward pass whose native launches enter the record for GPUs, see FieldRecord.h.
class Trial : public exec::Attention {
public:
  Trial(const std::string &spec, const Launch &launch, const Rows &rows, exec::Layout layout = {},
        bool maskPasses = true);

  /// The same values in every layout.
  void fillRandom(unsigned seed);
  exec::Outputs native();
  /// Both truths hold to the claims, which go to the record too.
  void expectClaims(const std::vector<Claim> &claims);
  /// Number of the last native launch in the record, -1 without one.
  int recorded() const { return run; }

private:
  const std::string text;
  const Launch launch;
  const exec::KeepHeadFn keep;
  int run = -1;
};

/// A value in [-1, 1) from a few numbers.
float noise(unsigned salt, Int a, Int b, Int c);

/// Tensors whose values depend on positions only, so that two launches over one sequence agree.
/// Request b of a launch is sequence `sequence` + b if they are `distinct`, else all are that one.
void fillByPosition(exec::Attention &attention, const std::vector<truth::Request> &requests,
                    unsigned sequence = 0, bool distinct = false);

/// K and V of `plain` once more in `memory`, in pages of `slots` with V of a page behind its K;
/// slots without a key hold NaN. Entries of `table` past the live pages are not read.
attn::core::Problem inPages(const attn::core::Problem &plain, void *memory, const int32_t *table,
                            int64_t stride, int64_t slots);
/// Elements of such a page, K and V.
int64_t pageElements(const attn::core::KernelSpec &spec, int64_t slots);

} // namespace field

#endif // ATTN_TEST_EXECUTION_FIELDSUPPORT_H
