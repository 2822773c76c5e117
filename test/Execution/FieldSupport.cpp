// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FieldSupport.h"

#include "gtest/gtest.h"

#include <map>
#include <stdexcept>

using namespace field;
using namespace exec;
using namespace attn;

std::string field::kernel(const std::string &clauses, const std::string &mask,
                          const std::string &score) {
  std::string text = "attn.kernel @k " + clauses + " {\n";
  if (!mask.empty())
    text += "  attn.mask (%b, %h, %q, %k) {\n" + mask + "    attn.yield %m : i1\n  }\n";
  if (!score.empty())
    text += "  attn.score (%s, %b, %h, %q, %k) {\n" + score + "    attn.yield %x : f32\n  }\n";
  return text + "}\n";
}

const LoadedKernel &field::compiled(const std::string &text, bool maskPasses) {
  static std::map<std::pair<std::string, bool>, std::unique_ptr<LoadedSpec>> cache;
  std::unique_ptr<LoadedSpec> &spec = cache[{text, maskPasses}];
  if (!spec) {
    std::string error;
    spec = compileAndLoad(text, maskPasses, 3, error);
    if (!spec)
      throw std::runtime_error(error + "\nin\n" + text);
  }
  return spec->kernels.at(0);
}

rt::BoundBatch field::bound(const LoadedKernel &kernel, const Launch &launch) {
  rt::BatchInput input = batchInput(*kernel.spec, launch.requests);
  for (const auto &[name, value] : launch.params) {
    rt::ParamInput param;
    param.name = name;
    param.i = value;
    input.params.push_back(param);
  }
  for (const rt::TableInput &table : launch.tables)
    input.tables.push_back(table);
  core::Result<rt::BoundBatch> result = rt::bindBatch(*kernel.spec, std::move(input));
  if (!result)
    throw std::runtime_error(result.message());
  return std::move(*result);
}

KeepHeadFn field::keepFrom(const std::vector<truth::Request> &requests, const Rows &rows) {
  if (rows.size() != requests.size())
    throw std::runtime_error("one list of rows for each request");
  for (size_t b = 0; b < rows.size(); ++b)
    if (static_cast<Int>(rows[b].size()) != requests[b].queryLen)
      throw std::runtime_error("one row for each query");
  return [requests, rows](int64_t b, int64_t, int64_t q, int64_t k) {
    for (auto [first, last] : rows[b][q - requests[b].contextLen])
      if (first <= k && k <= last)
        return true;
    return false;
  };
}

void field::expectRows(const std::string &spec, const Launch &launch, const Rows &rows,
                       const ScoreFn &score) {
  const Layout layouts[] = {{0, false, false}, {4, false, true}, {16, true, false}};
  for (bool maskPasses : {true, false})
    for (const Layout &layout : layouts) {
      SCOPED_TRACE(std::string(maskPasses ? "with" : "without") + " mask passes, page size " +
                   std::to_string(layout.pageSize));
      const LoadedKernel &kernel = compiled(spec, maskPasses);
      Attention attention(kernel, bound(kernel, launch), keepFrom(launch.requests, rows), layout);
      EXPECT_EQ(attention.compareMasks(), "");
      attention.fillRandom(11);
      attention.poisonInvisible();
      const Outputs want = attention.naive(score);
      const int64_t heads = kernel.spec->numHeads;
      const int64_t dimV = kernel.spec->dimV;
      EXPECT_EQ(compareRows(want, attention.reference(), attention.tokens(), heads, dimV, 1e-9), "")
          << "reference";
      EXPECT_EQ(compareRows(want, attention.native(), attention.tokens(), heads, dimV, 1e-5), "")
          << "native";
    }
}

/// A value in [-1, 1) from a few numbers.
static float noise(unsigned salt, Int a, Int b, Int c) {
  uint64_t x = salt * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(a + 1) * 0xBF58476D1CE4E5B9ull +
               static_cast<uint64_t>(b + 1) * 0x94D049BB133111EBull +
               static_cast<uint64_t>(c + 1) * 0xD6E8FEB86659FD93ull;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBull;
  x ^= x >> 29;
  return static_cast<float>(static_cast<int64_t>(x >> 40)) / float(1 << 23) - 1.0f;
}

void field::fillByPosition(Attention &attention, const std::vector<truth::Request> &requests,
                           unsigned salt) {
  const core::KernelSpec &spec = attention.spec();
  int64_t token = 0;
  for (size_t b = 0; b < requests.size(); ++b) {
    const truth::Request &r = requests[b];
    for (Int i = 0; i < r.queryLen; ++i, ++token)
      for (int64_t h = 0; h < spec.numHeads; ++h)
        for (int64_t d = 0; d < spec.dimQk; ++d)
          attention.setQ(token, h, d, noise(salt + 1, r.contextLen + i, h, d));
    for (Int k = 0; k < r.seqLen; ++k)
      for (int64_t h = 0; h < spec.numKvHeads; ++h) {
        for (int64_t d = 0; d < spec.dimQk; ++d)
          attention.setK(b, k, h, d, noise(salt + 2, k, h, d));
        for (int64_t d = 0; d < spec.dimV; ++d)
          attention.setV(b, k, h, d, noise(salt + 3, k, h, d));
      }
  }
}
