// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FieldSupport.h"

#include "../NormalFloats.h"
#include "FieldRecord.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <map>
#include <random>
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
      Trial trial(spec, launch, rows, layout, maskPasses);
      EXPECT_EQ(trial.compareMasks(), "");
      trial.fillRandom(11);
      trial.poisonInvisible();
      const Outputs want = trial.naive(score);
      const int64_t heads = trial.spec().numHeads;
      const int64_t dimV = trial.spec().dimV;
      EXPECT_EQ(compareRows(want, trial.reference(), trial.tokens(), heads, dimV, 1e-9), "")
          << "reference";
      EXPECT_EQ(compareRows(want, trial.native(), trial.tokens(), heads, dimV, 1e-5), "")
          << "native";
    }
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

Trial::Trial(const std::string &spec, const Launch &launch, const Rows &rows, Layout layout,
             bool maskPasses)
    : Attention(compiled(spec, maskPasses), field::bound(compiled(spec, maskPasses), launch),
                keepFrom(launch.requests, rows), layout),
      text(spec), launch(launch), keep(keepFrom(launch.requests, rows)) {}

void Trial::fillRandom(unsigned seed) {
  Attention::fillRandom(seed); // slots without a key
  std::mt19937 rng(seed);
  NormalFloats normal;
  for (int64_t token = 0; token < tokens(); ++token)
    for (int64_t h = 0; h < spec().numHeads; ++h)
      for (int64_t d = 0; d < spec().dimQk; ++d)
        setQ(token, h, d, normal(rng));
  for (int64_t b = 0; b < shape().numReqs(); ++b)
    for (int64_t k = 0; k < shape().seqLen[b]; ++k)
      for (int64_t h = 0; h < spec().numKvHeads; ++h) {
        for (int64_t d = 0; d < spec().dimQk; ++d)
          setK(b, k, h, d, normal(rng));
        for (int64_t d = 0; d < spec().dimV; ++d)
          setV(b, k, h, d, normal(rng));
      }
}

Outputs Trial::native() {
  run = Record::get().add({text, launch, problem, keep});
  return Attention::native();
}

static bool agrees(double value, double want, double tolerance) {
  if (std::isnan(want))
    return std::isnan(value);
  return value == want || std::abs(value - want) <= tolerance;
}

void Trial::expectClaims(const std::vector<Claim> &claims) {
  const int64_t dim = spec().dimV;
  const Outputs both[] = {reference(), native()};
  for (const Outputs &out : both)
    for (const Claim &claim : claims) {
      SCOPED_TRACE(std::string(&out == both ? "reference" : "native") + ", token " +
                   std::to_string(claim.token) + ", head " + std::to_string(claim.head));
      ASSERT_EQ(static_cast<int64_t>(claim.o.size()), dim);
      for (int64_t d = 0; d < dim; ++d) {
        const double value = out.o[(claim.token * spec().numHeads + claim.head) * dim + d];
        ASSERT_TRUE(agrees(value, claim.o[d], claim.tolerance))
            << "column " << d << ": " << value << ", expected " << claim.o[d];
      }
      const double lse = out.lse[claim.head * tokens() + claim.token];
      if (claim.lse) {
        EXPECT_TRUE(agrees(lse, *claim.lse, claim.tolerance * std::max(1.0, std::abs(*claim.lse))))
            << "lse " << lse << ", expected " << *claim.lse;
      }
    }
  Record::get().claim(run, claims);
}

float field::noise(unsigned salt, Int a, Int b, Int c) {
  uint64_t x = salt * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(a + 1) * 0xBF58476D1CE4E5B9ull +
               static_cast<uint64_t>(b + 1) * 0x94D049BB133111EBull +
               static_cast<uint64_t>(c + 1) * 0xD6E8FEB86659FD93ull;
  x ^= x >> 31;
  x *= 0x94D049BB133111EBull;
  x ^= x >> 29;
  return static_cast<float>(static_cast<int64_t>(x >> 40)) / float(1 << 23) - 1.0f;
}

void field::fillByPosition(Attention &attention, const std::vector<truth::Request> &requests,
                           unsigned sequence, bool distinct) {
  const core::KernelSpec &spec = attention.spec();
  int64_t token = 0;
  for (size_t b = 0; b < requests.size(); ++b) {
    const truth::Request &r = requests[b];
    const unsigned salt = 3 * (sequence + (distinct ? static_cast<unsigned>(b) : 0));
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

//===----------------------------------------------------------------------===//
// Pages in memory of the test
//===----------------------------------------------------------------------===//

int64_t field::pageElements(const core::KernelSpec &spec, int64_t slots) {
  return slots * spec.numKvHeads * (spec.dimQk + spec.dimV);
}

core::Problem field::inPages(const core::Problem &plain, void *memory, const int32_t *table,
                             int64_t stride, int64_t slots) {
  const core::KernelSpec &spec = *plain.spec;
  const int64_t vStart = slots * spec.numKvHeads * spec.dimQk;
  core::Problem paged = plain;
  paged.kv = {};
  paged.kv.pageTable = table;
  paged.kv.requestStride = stride;
  paged.kv.pageSize = slots;
  struct Side {
    const core::KvView &from;
    core::KvView &to;
    int64_t dim;
    int64_t start;
  };
  for (const Side &side :
       {Side{plain.k, paged.k, spec.dimQk, 0}, Side{plain.v, paged.v, spec.dimV, vStart}}) {
    side.to.data = static_cast<uint8_t *>(memory) + side.start * byteSize(spec.kvType);
    side.to.pageStride = pageElements(spec, slots);
    side.to.slotStride = spec.numKvHeads * side.dim;
    side.to.headStride = side.dim;
    for (int64_t b = 0; b < plain.batch->shape.numReqs(); ++b) {
      const int64_t length = plain.batch->shape.seqLen[b];
      for (int64_t k = 0; k < rt::livePages(length, slots) * slots; ++k)
        for (int64_t h = 0; h < spec.numKvHeads; ++h)
          for (int64_t d = 0; d < side.dim; ++d)
            storeElement(memory, spec.kvType, side.start + side.to.offset(paged.kv, b, k, h) + d,
                         k < length ? loadElement(side.from.data, spec.kvType,
                                                  side.from.offset(plain.kv, b, k, h) + d)
                                    : std::numeric_limits<float>::quiet_NaN());
    }
  }
  return paged;
}
