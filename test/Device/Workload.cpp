// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Workload.h"

#include "../NormalFloats.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

using namespace device;
using namespace attn;
using namespace attn::core;

static constexpr double kInf = std::numeric_limits<double>::infinity();
/// NaN in both 16-bit types, and in f32 twice over.
static constexpr uint16_t kPoison = 0xFFFF;
static constexpr int64_t kRowPadding = 8, kLsePadding = 3;

std::string Layout::text() const {
  return (pageSize ? "pages of " + std::to_string(pageSize) : std::string("contiguous")) +
         (headMajor ? ", head major" : "") + (interleaved ? ", interleaved" : "");
}

double device::rowBar(DType type) { return type == DType::F16 ? 2e-3 : 8e-3; }

void device::parallelFor(int64_t count, const std::function<void(int64_t)> &work) {
  std::atomic<int64_t> next{0};
  auto loop = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;)
      work(i);
  };
  const int64_t threads = std::min<int64_t>(count, std::thread::hardware_concurrency());
  std::vector<std::thread> workers;
  for (int64_t i = 1; i < threads; ++i)
    workers.emplace_back(loop);
  loop();
  for (std::thread &worker : workers)
    worker.join();
}

Workload::Workload(const KernelSpec &spec, rt::BoundBatch boundBatch, const Keep &keep,
                   bool perHead, Layout layout, std::mt19937 &rng)
    : spec(spec), bound(std::move(boundBatch)), layout(layout) {
  tokens = bound.batch.shape.numTokens();
  problem.spec = &spec;
  problem.batch = &bound.batch;
  NormalFloats normal;
  q.resize(std::max<int64_t>(tokens * spec.numHeads * spec.dimQk, 1));
  for (size_t i = 0; i < q.size(); ++i)
    storeElement(q.data(), spec.qType, static_cast<int64_t>(i), normal(rng));
  problem.q = {q.data(), spec.qType, spec.numHeads * spec.dimQk, spec.dimQk};
  layOut(rng);
  findVisible(keep, perHead);
  for (size_t i = 0; i < kv.size(); ++i)
    if (visible[i])
      storeElement(kv.data(), spec.kvType, static_cast<int64_t>(i), normal(rng));
  isNaN.assign(tokens * spec.numHeads, false);
  const std::vector<Node> &nodes = spec.program.nodes;
  const bool isCapped =
      std::any_of(nodes.begin(), nodes.end(), [](const Node &n) { return n.op == Op::SoftCap; });
  if (isCapped && rng() % 2)
    reachCap(rng);
}

template <class Visit>
void Workload::forVisibleKeys(Visit visit) const {
  const BatchShape &s = bound.batch.shape;
  for (int64_t b = 0; b < s.numReqs(); ++b)
    for (int64_t k = s.keyBegin[b]; k < s.keyEnd[b]; ++k)
      for (int64_t kvHead = 0; kvHead < spec.numKvHeads; ++kvHead) {
        const int64_t at = problem.k.offset(problem.kv, b, k, kvHead);
        if (visible[at])
          visit(at, vOffset + problem.v.offset(problem.kv, b, k, kvHead));
      }
}

/// The first element of a key is 8 or -8, all of one sign or mixed; that of a query row is 0, or so
/// large that all its scores are the cap or all minus the cap (or, mixed, each one of the two),
/// where even an approximate tanh is exact. A few rows have a NaN. V may be large or small.
void Workload::reachCap(std::mt19937 &rng) {
  const float first[] = {0, 0, 32768, -32768};
  const int64_t rows = tokens * spec.numHeads;
  for (int64_t row = 0; row < rows; ++row) {
    isNaN[row] = rng() % 64 == 0;
    const float value = isNaN[row] ? std::numeric_limits<float>::quiet_NaN() : first[rng() % 4];
    storeElement(q.data(), spec.qType, row * spec.dimQk, value);
  }
  const bool isMixed = rng() % 2;
  // f16 has no more range than its V needs.
  const float sizes[] = {1, 1048576, 1.0f / 1048576};
  const float size = spec.kvType == DType::BF16 ? sizes[rng() % 3] : 1;
  forVisibleKeys([&](int64_t k, int64_t v) {
    storeElement(kv.data(), spec.kvType, k, isMixed && rng() % 2 ? -8 : 8);
    for (int64_t i = v; i < v + spec.dimV; ++i)
      storeElement(kv.data(), spec.kvType, i,
                   size * static_cast<float>(loadElement(kv.data(), spec.kvType, i)));
  });
}

/// Chooses strides and pages.
void Workload::layOut(std::mt19937 &rng) {
  const std::vector<int64_t> &seqLen = bound.batch.shape.seqLen;
  int64_t slots = std::max<int64_t>(bound.kvStart.back(), 1);
  numPages = 1;
  kvRows = slots;
  if (layout.pageSize) {
    slots = layout.pageSize;
    int64_t width = 0;
    numPages = 3; // free ones
    for (size_t b = 0; b < seqLen.size(); ++b)
      width = std::max(width, rt::livePages(bound.batch.shape.longest(b), slots));
    for (int64_t length : seqLen) {
      numPages += rt::livePages(length, slots);
    }
    width += 2;
    std::vector<int32_t> order(numPages);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng);
    const int32_t junk[] = {-1, 1 << 30, order.back(), std::numeric_limits<int32_t>::min()};
    size_t next = 0;
    for (int64_t length : seqLen)
      for (int64_t i = 0; i < width; ++i)
        pages.push_back(i < rt::livePages(length, slots) ? order[next++] : junk[rng() % 4]);
    problem.kv.pageTable = pages.data();
    problem.kv.requestStride = width;
    problem.kv.pageSize = slots;
  } else {
    problem.kv.kvStart = bound.kvStart.data();
  }
  const int64_t dims[2] = {spec.dimQk, spec.dimV};
  KvView *views[2] = {&problem.k, &problem.v};
  int64_t pageElements[2];
  for (int i = 0; i < 2; ++i) {
    pageElements[i] = slots * spec.numKvHeads * dims[i];
    views[i]->dtype = spec.kvType;
    views[i]->slotStride = layout.headMajor ? dims[i] : spec.numKvHeads * dims[i];
    views[i]->headStride = layout.headMajor ? slots * dims[i] : dims[i];
    views[i]->pageStride = pageElements[i];
  }
  vOffset = numPages * pageElements[0];
  if (layout.interleaved) {
    views[0]->pageStride = views[1]->pageStride = pageElements[0] + pageElements[1];
    vOffset = pageElements[0];
  }
  kv.assign(numPages * (pageElements[0] + pageElements[1]), kPoison);
  problem.k.data = kv.data();
  problem.v.data = kv.data() + vOffset;
}

/// Counts the kept keys of every row and marks the elements of keys that some row keeps.
void Workload::findVisible(const Keep &keep, bool perHead) {
  const BatchShape &s = bound.batch.shape;
  const int64_t group = spec.numHeads / spec.numKvHeads;
  visible.assign(kv.size(), 0);
  kept.assign(tokens * (perHead ? spec.numHeads : 1), 0);
  std::mutex mutex;
  // Keys [begin, end) of request b; `counts` is this worker's.
  auto visit = [&](int64_t b, int64_t begin, int64_t end, std::vector<int64_t> &counts) {
    const int64_t rows = s.queryLen(RequestIndex(b));
    for (int64_t k = begin; k < end; ++k) {
      bool seen = false;
      for (int64_t h = 0; h < spec.numHeads; ++h) {
        if (h == 0 || perHead)
          for (int64_t i = 0; i < rows; ++i)
            if (keep(b, h, s.contextLen[b] + i, k)) {
              ++counts[(perHead ? h * tokens : 0) + s.queryStartLoc[b] + i];
              seen = true;
            }
        if ((h + 1) % group)
          continue;
        if (seen) {
          const int64_t kvHead = h / group;
          std::fill_n(visible.begin() + problem.k.offset(problem.kv, b, k, kvHead), spec.dimQk, 1);
          std::fill_n(visible.begin() + vOffset + problem.v.offset(problem.kv, b, k, kvHead),
                      spec.dimV, 1);
        }
        seen = seen && !perHead;
      }
    }
  };
  constexpr int64_t kPiece = 256;
  for (int64_t b = 0; b < s.numReqs(); ++b)
    parallelFor((s.keyEnd[b] - s.keyBegin[b] + kPiece - 1) / kPiece, [&](int64_t piece) {
      const int64_t begin = s.keyBegin[b] + piece * kPiece;
      std::vector<int64_t> counts(kept.size(), 0);
      visit(b, begin, std::min(begin + kPiece, s.keyEnd[b]), counts);
      const std::lock_guard<std::mutex> lock(mutex);
      for (size_t i = 0; i < kept.size(); ++i)
        kept[i] += counts[i];
    });
}

void Workload::clearKeys() {
  forVisibleKeys([&](int64_t k, int64_t) { std::fill_n(kv.begin() + k, spec.dimQk, uint16_t(0)); });
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

/// Device memory that lives as long as one run.
class Uploads {
public:
  Uploads(const rt::CudaKernel &kernel, rt::CudaStream stream)
      : device(kernel.device()), stream(stream) {}

  template <class T>
  rt::CudaPointer add(const std::vector<T> &values) {
    const size_t bytes = values.size() * sizeof(T);
    if (!status)
      return 0;
    Result<rt::CudaMemory> memory = rt::CudaMemory::create(device, bytes);
    if (!memory) {
      status = memory.takeError();
      return 0;
    }
    status = device->copyIn(memory->address(), values.data(), bytes, stream);
    owned.push_back(std::move(*memory));
    return owned.back().address();
  }

  Status status;

private:
  const std::shared_ptr<const rt::CudaDevice> &device;
  rt::CudaStream stream;
  std::vector<rt::CudaMemory> owned;
};

} // namespace

/// What the host knows of the batch.
static Batch hostView(const Batch &batch) {
  Batch view = batch;
  BatchShape &shape = view.shape;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    if (shape.isBound(b)) {
      shape.seqLen[b] = shape.keyEnd[b] = shape.mostSeqLen[b];
      shape.contextLen[b] = shape.mostSeqLen[b] - shape.queryLen(RequestIndex(b));
    }
  return view;
}

/// The lengths on the device: junk where the host knows them.
static std::vector<int32_t> deviceLengths(const BatchShape &shape) {
  std::vector<int32_t> lengths(shape.numReqs() + 1, std::numeric_limits<int32_t>::min());
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    if (shape.isBound(b))
      lengths[b] = static_cast<int32_t>(shape.seqLen[b]);
  return lengths;
}

Status Workload::run(const rt::CudaKernel &kernel, rt::CudaPlan &plan) {
  const std::shared_ptr<const rt::CudaDevice> &device = kernel.device();
  Result<rt::CudaOwnStream> stream = rt::CudaOwnStream::create(device);
  if (!stream)
    return stream.takeError();
  oTokenStride = spec.numHeads * spec.dimV + kRowPadding;
  lseStride = tokens + kLsePadding;
  o.assign(std::max<int64_t>(tokens * oTokenStride, 1), kPoison);
  lse.resize(spec.numHeads * lseStride);
  std::memset(lse.data(), 0xFF, lse.size() * sizeof(float));

  Uploads uploads(kernel, stream->get());
  rt::CudaOperands operands;
  operands.q = {uploads.add(q), problem.q.tokenStride, problem.q.headStride};
  const rt::CudaPointer cache = uploads.add(kv);
  operands.k = {cache, problem.k.pageStride, problem.k.slotStride, problem.k.headStride};
  operands.v = {cache + static_cast<uint64_t>(vOffset) * 2, problem.v.pageStride,
                problem.v.slotStride, problem.v.headStride};
  operands.o = {uploads.add(o), oTokenStride, spec.dimV};
  operands.lse = uploads.add(lse);
  operands.lseHeadStride = lseStride;
  operands.kvRows = kvRows;
  if (layout.pageSize) {
    operands.pageTable = uploads.add(pages);
    operands.pageTableStride = problem.kv.requestStride;
    operands.pageSize = layout.pageSize;
    operands.numPages = numPages;
  }
  operands.counters = uploads.add(std::vector<uint64_t>(sizeof(TileCounters) / 8, 0));
  if (!bound.batch.shape.mostSeqLen.empty())
    operands.seqLens = uploads.add(deviceLengths(bound.batch.shape));
  Status status = uploads.status;
  if (status)
    status = plan.build(hostView(bound.batch), layout.pageSize ? nullptr : bound.kvStart.data(),
                        stream->get());
  if (status)
    status = kernel.launch(plan, operands, stream->get());
  if (status)
    status = device->copyOut(o.data(), operands.o.data, o.size() * 2, stream->get());
  if (status)
    status = device->copyOut(lse.data(), operands.lse, lse.size() * sizeof(float), stream->get());
  if (status)
    status = device->copyOut(&counts, operands.counters, sizeof(counts), stream->get());
  if (status)
    status = device->synchronize(stream->get());
  return status;
}

RunRecord Workload::record() const {
  RunRecord record;
  record.type = spec.qType;
  record.tokens = tokens;
  record.heads = spec.numHeads;
  record.dim = spec.dimV;
  for (int64_t t = 0; t < tokens; ++t)
    record.o.insert(record.o.end(), o.begin() + t * oTokenStride,
                    o.begin() + t * oTokenStride + spec.numHeads * spec.dimV);
  for (int64_t h = 0; h < spec.numHeads; ++h)
    record.lse.insert(record.lse.end(), lse.begin() + h * lseStride,
                      lse.begin() + h * lseStride + tokens);
  record.counts = counts;
  return record;
}

//===----------------------------------------------------------------------===//
// Judging
//===----------------------------------------------------------------------===//

/// Tokens [begin, end) of a batch.
static Batch tokensOf(const Batch &batch, int64_t begin, int64_t end) {
  Batch part = batch;
  BatchShape &shape = part.shape;
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    shape.contextLen[b] +=
        std::clamp(shape.queryStartLoc[b], begin, end) - batch.shape.queryStartLoc[b];
  for (int64_t &start : shape.queryStartLoc)
    start = std::clamp(start, begin, end);
  return part;
}

reference::Output device::parallelReference(const Problem &problem) {
  const int64_t tokens = problem.batch->shape.numTokens();
  const int64_t heads = problem.spec->numHeads, dim = problem.spec->dimV;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const int64_t piece = std::max<int64_t>(16, tokens / (4 * threads) + 1);
  reference::Output all;
  all.o.resize(tokens * heads * dim);
  all.lse.resize(heads * tokens);
  parallelFor((tokens + piece - 1) / piece, [&](int64_t i) {
    const int64_t begin = i * piece, end = std::min(begin + piece, tokens);
    const Batch part = tokensOf(*problem.batch, begin, end);
    Problem slice = problem;
    slice.batch = &part;
    const reference::Output out = reference::run(slice);
    std::copy(out.o.begin() + begin * heads * dim, out.o.begin() + end * heads * dim,
              all.o.begin() + begin * heads * dim);
    for (int64_t h = 0; h < heads; ++h)
      std::copy(out.lse.begin() + h * end + begin, out.lse.begin() + (h + 1) * end,
                all.lse.begin() + h * tokens + begin);
  });
  return all;
}

std::string Workload::place(int64_t token, int64_t head) const {
  const BatchShape &s = bound.batch.shape;
  int64_t b = 0;
  while (s.queryStartLoc[b + 1] <= token)
    ++b;
  return "request " + std::to_string(b) + " token " + std::to_string(token) + " (q " +
         std::to_string(s.contextLen[b] + token - s.queryStartLoc[b]) + ") head " +
         std::to_string(head);
}

/// What lies between the rows must be as it was.
std::string Workload::padding() const {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = oTokenStride - kRowPadding; i < oTokenStride; ++i)
      if (o[t * oTokenStride + i] != kPoison)
        return "o is written behind the row of token " + std::to_string(t);
  for (int64_t h = 0; h < spec.numHeads; ++h)
    for (int64_t t = tokens; t < lseStride; ++t)
      if (!std::isnan(lse[h * lseStride + t]))
        return "lse is written behind the row of head " + std::to_string(h);
  return "";
}

/// Was NaN written as every result of a row?
bool Workload::isRowNaN(int64_t token, int64_t head) const {
  const int64_t first = token * oTokenStride + head * spec.dimV;
  for (int64_t i = first; i < first + spec.dimV; ++i)
    if (o[i] == kPoison || !std::isnan(loadElement(o.data(), spec.qType, i)))
      return false;
  return std::isnan(lse[head * lseStride + token]);
}

Judgement Workload::judge() const {
  const reference::Output want = parallelReference(problem);
  Judgement result;
  result.fault = padding();
  const double bar = rowBar(spec.qType);
  char text[160];
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < spec.numHeads; ++h) {
      double distance = 0, norm = 0;
      for (int64_t d = 0; d < spec.dimV; ++d) {
        const double got = loadElement(o.data(), spec.qType, t * oTokenStride + h * spec.dimV + d);
        const double ref = want.o[(t * spec.numHeads + h) * spec.dimV + d];
        distance += (got - ref) * (got - ref);
        norm += ref * ref;
      }
      const double got = lse[h * lseStride + t], ref = want.lse[h * tokens + t];
      // An empty row is exactly 0 and -inf.
      double row = norm > 0 ? std::sqrt(distance / norm) : distance == 0 ? 0 : kInf;
      double off = got == ref ? 0 : std::abs(got - ref);
      if (std::isnan(ref))
        row = off = isRowNaN(t, h) ? 0 : kInf;
      row = std::isnan(row) ? kInf : row;
      off = std::isnan(off) ? kInf : off;
      ++result.rows;
      result.emptyRows += ref == -kInf;
      result.row = std::max(result.row, row);
      result.lse = std::max(result.lse, off);
      if ((row <= bar && off <= kLseBar) || !result.fault.empty())
        continue;
      std::snprintf(text, sizeof(text), ": row error %.3g (bar %.0e), lse %.6g expected %.6g", row,
                    bar, got, ref);
      result.fault = place(t, h) + text;
    }
  return result;
}

std::string Workload::judgeCounts() const {
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < spec.numHeads; ++h) {
      if (isNaN[t * spec.numHeads + h])
        continue;
      const double counted = std::exp(static_cast<double>(lse[h * lseStride + t]));
      if (std::isfinite(counted) && std::llround(counted) == keptKeys(t, h))
        continue;
      return place(t, h) + ": counts " + std::to_string(counted) + " keys, expected " +
             std::to_string(keptKeys(t, h));
    }
  return padding();
}
