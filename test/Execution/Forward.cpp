// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Forward.h"

#include "../NormalFloats.h"

#include "attn/Reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

using namespace exec;
using namespace attn;
using namespace attn::core;

static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
static constexpr double kInf = std::numeric_limits<double>::infinity();

Attention::Attention(const LoadedKernel &kernel, rt::BoundBatch boundBatch, KeepHeadFn keepFn,
                     Layout layout)
    : kernel(kernel), bound(std::move(boundBatch)), keep(std::move(keepFn)) {
  problem.spec = kernel.spec;
  problem.batch = &bound.batch;
  qData.resize(tokens() * spec().numHeads * spec().dimQk * byteSize(spec().qType));
  problem.q = {qData.data(), spec().qType, spec().numHeads * spec().dimQk, spec().dimQk};
  layOut(layout);
}

/// Chooses strides and pages. Pages of the requests are dealt out in a shuffled order, with free
/// pages between them; block table entries past the live pages are junk.
void Attention::layOut(Layout layout) {
  const int64_t heads = spec().numKvHeads;
  const int64_t dims[2] = {spec().dimQk, spec().dimV};
  int64_t pages = 1;
  int64_t slots = bound.kvStart.back();
  if (layout.pageSize) {
    int64_t live = 0;
    int64_t widest = 0;
    for (int64_t length : bound.batch.shape.seqLen) {
      live += rt::livePages(length, layout.pageSize);
      widest = std::max(widest, rt::livePages(length, layout.pageSize));
    }
    pages = live + 3;
    slots = layout.pageSize;
    std::vector<int32_t> order(pages);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 rng(static_cast<unsigned>(live * 31 + layout.pageSize));
    std::shuffle(order.begin(), order.end(), rng);
    problem.kv.requestStride = widest + 2;
    problem.kv.pageSize = layout.pageSize;
    size_t next = 0;
    for (int64_t length : bound.batch.shape.seqLen)
      for (int64_t i = 0; i < widest + 2; ++i)
        pageTable.push_back(i < rt::livePages(length, layout.pageSize) ? order[next++]
                            : i % 2                                    ? -1
                                                                       : 1 << 30);
    pageTable.resize(std::max<size_t>(pageTable.size(), 1));
    problem.kv.pageTable = pageTable.data();
  } else {
    problem.kv.kvStart = bound.kvStart.data();
  }

  KvView *views[2] = {&problem.k, &problem.v};
  int64_t pageElements[2];
  for (int i = 0; i < 2; ++i) {
    views[i]->dtype = spec().kvType;
    views[i]->slotStride = layout.headMajor ? dims[i] : heads * dims[i];
    views[i]->headStride = layout.headMajor ? slots * dims[i] : dims[i];
    pageElements[i] = slots * heads * dims[i];
    views[i]->pageStride = pageElements[i];
  }
  if (layout.interleaved) {
    views[0]->pageStride = views[1]->pageStride = pageElements[0] + pageElements[1];
    vOffset = pageElements[0];
  } else {
    vOffset = pages * pageElements[0];
  }
  kvElements = pages * (pageElements[0] + pageElements[1]);
  const int64_t bytes = byteSize(spec().kvType);
  kvData.resize(std::max<int64_t>(kvElements, 1) * bytes);
  problem.k.data = kvData.data();
  problem.v.data = kvData.data() + vOffset * bytes;
}

int64_t Attention::elementOf(const KvView &view, int64_t b, int64_t k, int64_t kvHead) const {
  int64_t base = &view == &problem.v ? vOffset : 0;
  return base + view.offset(problem.kv, b, k, kvHead);
}

void Attention::setQ(int64_t token, int64_t head, int64_t d, float value) {
  storeElement(qData.data(), spec().qType, problem.q.offset(token, head) + d, value);
}

void Attention::setK(int64_t b, int64_t k, int64_t kvHead, int64_t d, float value) {
  storeElement(kvData.data(), spec().kvType, elementOf(problem.k, b, k, kvHead) + d, value);
}

void Attention::setV(int64_t b, int64_t k, int64_t kvHead, int64_t d, float value) {
  storeElement(kvData.data(), spec().kvType, elementOf(problem.v, b, k, kvHead) + d, value);
}

void Attention::fillQ(float value) {
  const int64_t elements = static_cast<int64_t>(qData.size()) / byteSize(spec().qType);
  for (int64_t i = 0; i < elements; ++i)
    storeElement(qData.data(), spec().qType, i, value);
}

void Attention::fillK(float value) {
  for (int64_t b = 0; b < bound.batch.shape.numReqs(); ++b)
    for (int64_t k = 0; k < bound.batch.shape.seqLen[b]; ++k)
      for (int64_t h = 0; h < spec().numKvHeads; ++h)
        for (int64_t d = 0; d < spec().dimQk; ++d)
          setK(b, k, h, d, value);
}

void Attention::fillV(float value) {
  for (int64_t b = 0; b < bound.batch.shape.numReqs(); ++b)
    for (int64_t k = 0; k < bound.batch.shape.seqLen[b]; ++k)
      for (int64_t h = 0; h < spec().numKvHeads; ++h)
        for (int64_t d = 0; d < spec().dimV; ++d)
          setV(b, k, h, d, value);
}

void Attention::fillRandom(unsigned seed) {
  std::mt19937 rng(seed);
  NormalFloats normal;
  const int64_t elements = static_cast<int64_t>(qData.size()) / byteSize(spec().qType);
  for (int64_t i = 0; i < elements; ++i)
    storeElement(qData.data(), spec().qType, i, normal(rng));
  for (int64_t i = 0; i < kvElements; ++i)
    storeElement(kvData.data(), spec().kvType, i, normal(rng));
}

void Attention::poisonInvisible() {
  const BatchShape &s = bound.batch.shape;
  const int64_t group = spec().numHeads / spec().numKvHeads;
  // Everything is invisible until a key says otherwise.
  std::vector<uint8_t> visible(kvElements, 0);
  for (int64_t b = 0; b < s.numReqs(); ++b)
    for (int64_t k = s.keyBegin[b]; k < s.keyEnd[b]; ++k)
      for (int64_t hKv = 0; hKv < spec().numKvHeads; ++hKv) {
        bool seen = false;
        for (int64_t h = hKv * group; h < (hKv + 1) * group && !seen; ++h)
          for (int64_t i = 0; i < s.queryLen(RequestIndex(b)) && !seen; ++i)
            seen = keep(b, h, s.contextLen[b] + i, k);
        if (!seen)
          continue;
        std::fill_n(visible.begin() + elementOf(problem.k, b, k, hKv), spec().dimQk, 1);
        std::fill_n(visible.begin() + elementOf(problem.v, b, k, hKv), spec().dimV, 1);
      }
  for (int64_t i = 0; i < kvElements; ++i)
    if (!visible[i])
      storeElement(kvData.data(), spec().kvType, i, kNan);
}

std::string Attention::compareMasks() {
  const BatchShape &s = bound.batch.shape;
  int64_t stride = 1;
  for (int64_t end : s.keyEnd)
    stride = std::max(stride, end);
  std::vector<uint8_t> byReference = reference::denseMask(spec(), bound.batch, stride);
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(*kernel.artifact, *kernel.kernel);
  if (!runner)
    return runner.message();
  rt::NativeTables tables(spec(), *kernel.binary, bound.batch);
  std::vector<uint8_t> byNative = runner->denseMask(bound.batch, tables, stride);
  const size_t bytes = spec().numHeads * tokens() * stride;
  if (byReference.size() != bytes || byNative.size() != bytes)
    return "dense masks of the wrong size";
  for (int64_t b = 0; b < s.numReqs(); ++b)
    for (int64_t h = 0; h < spec().numHeads; ++h)
      for (int64_t i = 0; i < s.queryLen(RequestIndex(b)); ++i)
        for (int64_t k = s.keyBegin[b]; k < s.keyEnd[b]; ++k) {
          const int64_t q = s.contextLen[b] + i;
          const int64_t at = (h * tokens() + s.queryStartLoc[b] + i) * stride + k;
          const bool want = keep(b, h, q, k);
          if (byReference[at] == want && byNative[at] == want)
            continue;
          return "request " + std::to_string(b) + " head " + std::to_string(h) + " q " +
                 std::to_string(q) + " k " + std::to_string(k) + ": expected " +
                 std::to_string(want) + ", reference " + std::to_string(byReference[at]) +
                 ", native " + std::to_string(byNative[at]);
        }
  return "";
}

Outputs Attention::reference() {
  reference::Output out = reference::run(problem);
  return {std::move(out.o), std::move(out.lse)};
}

Outputs Attention::native(unsigned threads) { return runNative(kernel, problem, threads); }

Outputs Attention::naive(const ScoreFn &score) const {
  const BatchShape &s = bound.batch.shape;
  const int64_t heads = spec().numHeads;
  const int64_t group = heads / spec().numKvHeads;
  const double scale = problem.scale();
  Outputs out;
  out.o.assign(tokens() * heads * spec().dimV, 0.0);
  out.lse.assign(tokens() * heads, -kInf);
  std::vector<std::pair<int64_t, double>> logits;
  for (int64_t b = 0; b < s.numReqs(); ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < s.queryLen(RequestIndex(b)); ++i) {
        const int64_t token = s.queryStartLoc[b] + i;
        const int64_t q = s.contextLen[b] + i;
        logits.clear();
        double top = -kInf;
        for (int64_t k = s.keyBegin[b]; k < s.keyEnd[b]; ++k) {
          if (!keep(b, h, q, k))
            continue;
          double dot = 0;
          for (int64_t d = 0; d < spec().dimQk; ++d)
            dot += double(loadElement(problem.q.data, problem.q.dtype,
                                      problem.q.offset(token, h) + d)) *
                   double(loadElement(problem.k.data, problem.k.dtype,
                                      problem.k.offset(problem.kv, b, k, h / group) + d));
          double logit = score ? score(dot * scale, b, h, q, k) : dot * scale;
          logits.push_back({k, logit});
          top = std::max(top, logit);
        }
        if (logits.empty() || top == -kInf)
          continue;
        double sum = 0;
        double *row = out.o.data() + (token * heads + h) * spec().dimV;
        for (auto [k, logit] : logits) {
          double p = std::exp(logit - top);
          sum += p;
          for (int64_t d = 0; d < spec().dimV; ++d)
            row[d] += p * double(loadElement(problem.v.data, problem.v.dtype,
                                             problem.v.offset(problem.kv, b, k, h / group) + d));
        }
        for (int64_t d = 0; d < spec().dimV; ++d)
          row[d] /= sum;
        out.lse[h * tokens() + token] = top + std::log(sum);
      }
  return out;
}

void exec::runNativeInto(const LoadedKernel &kernel, const Problem &problem, float *o,
                         int64_t oTokenStride, int64_t oHeadStride, float *lse,
                         int64_t lseHeadStride, unsigned threads) {
  const Batch &batch = *problem.batch;
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(*kernel.artifact, *kernel.kernel);
  if (!runner)
    throw std::runtime_error(runner.message());
  rt::NativeTables tables(*kernel.spec, *kernel.binary, batch);
  runner->run(problem, tables, {o, oTokenStride, oHeadStride, lse, lseHeadStride},
              rt::SubRange::all(batch.shape), threads);
}

Outputs exec::runNative(const LoadedKernel &kernel, const Problem &problem, unsigned threads) {
  const KernelSpec &spec = *problem.spec;
  const Batch &batch = *problem.batch;
  const int64_t tokens = batch.shape.numTokens();
  constexpr int64_t pad = 3;
  constexpr float padValue = 777.0f;
  const int64_t tokenStride = spec.numHeads * spec.dimV + pad;
  const int64_t lseStride = tokens + pad;
  std::vector<float> o(tokens * tokenStride + 1, padValue);
  std::vector<float> lse(spec.numHeads * lseStride, padValue);
  for (int64_t t = 0; t < tokens; ++t)
    std::fill_n(o.begin() + t * tokenStride, tokenStride - pad, kNan);
  for (int64_t h = 0; h < spec.numHeads; ++h)
    std::fill_n(lse.begin() + h * lseStride, tokens, kNan);

  runNativeInto(kernel, problem, o.data(), tokenStride, spec.dimV, lse.data(), lseStride, threads);

  Outputs out;
  bool padKept = o.back() == padValue;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < tokenStride; ++i) {
      if (i < tokenStride - pad)
        out.o.push_back(o[t * tokenStride + i]);
      else
        padKept &= o[t * tokenStride + i] == padValue;
    }
  for (int64_t h = 0; h < spec.numHeads; ++h)
    for (int64_t t = 0; t < lseStride; ++t) {
      if (t < tokens)
        out.lse.push_back(lse[h * lseStride + t]);
      else
        padKept &= lse[h * lseStride + t] == padValue;
    }
  // A write outside the rows shows as a result that no comparison accepts.
  if (!padKept)
    std::fill(out.lse.begin(), out.lse.end(), kNan);
  return out;
}

std::string exec::compareRows(const Outputs &want, const Outputs &got, int64_t tokens,
                              int64_t heads, int64_t dimV, double tolerance) {
  if (want.o.size() != got.o.size() || want.lse.size() != got.lse.size() ||
      static_cast<int64_t>(want.o.size()) != tokens * heads * dimV)
    return "results of different sizes";
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const std::string place = "token " + std::to_string(t) + " head " + std::to_string(h);
      const double *a = want.o.data() + (t * heads + h) * dimV;
      const double *b = got.o.data() + (t * heads + h) * dimV;
      const double lseA = want.lse[h * tokens + t];
      const double lseB = got.lse[h * tokens + t];
      double distance = 0;
      double norm = 0;
      for (int64_t d = 0; d < dimV; ++d) {
        distance += (a[d] - b[d]) * (a[d] - b[d]);
        norm += a[d] * a[d];
      }
      if (lseA == -kInf) {
        if (lseB != -kInf || distance != 0)
          return place + ": expected an empty row, got lse " + std::to_string(lseB);
        continue;
      }
      if (!(std::sqrt(distance) <= tolerance * std::sqrt(norm)))
        return place + ": relative error " + std::to_string(std::sqrt(distance / norm)) +
               ", first elements " + std::to_string(a[0]) + " and " + std::to_string(b[0]);
      if (!(std::abs(lseA - lseB) <= tolerance * std::max(1.0, std::abs(lseA))))
        return place + ": lse expected " + std::to_string(lseA) + ", got " + std::to_string(lseB);
    }
  return "";
}

Outputs exec::merge(const Outputs &a, const Outputs &b, int64_t tokens, int64_t heads,
                    int64_t dimV) {
  Outputs out = a;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const double la = a.lse[h * tokens + t];
      const double lb = b.lse[h * tokens + t];
      const double top = std::max(la, lb);
      if (top == -kInf)
        continue;
      const double wa = std::exp(la - top);
      const double wb = std::exp(lb - top);
      out.lse[h * tokens + t] = top + std::log(wa + wb);
      for (int64_t d = 0; d < dimV; ++d) {
        const int64_t at = (t * heads + h) * dimV + d;
        out.o[at] = (wa * a.o[at] + wb * b.o[at]) / (wa + wb);
      }
    }
  return out;
}
