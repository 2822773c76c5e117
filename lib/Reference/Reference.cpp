// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention forward by definition. The only liberties taken: rows of K and V are widened to float
// once (exact) instead of at each use, the keys of a row are found once for all heads where the
// mask does not depend on the head, and a few rows share a walk over the keys.
#include "attn/Reference/Reference.h"

#include "attn/Core/MaskEval.h"

#include "RowMath.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn::reference {

using namespace attn::core;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Rows of K or V of one request, widened when they are first asked for. A row that is never asked
/// for is never read.
class WidenedRows {
public:
  WidenedRows(const KvView &view, const KvLayout &layout, int64_t dim, int64_t numKvHeads)
      : view(view), layout(layout), dim(dim), numKvHeads(numKvHeads) {}

  /// Starts request `b`, of which keys [begin, end) may be asked for.
  void start(int64_t b, int64_t begin, int64_t end) {
    request = b;
    first = begin;
    size_t count = static_cast<size_t>(std::max<int64_t>(0, end - begin) * numKvHeads);
    present.assign(count, false);
    rows.resize(count * static_cast<size_t>(dim));
  }

  const float *row(int64_t k, int64_t kvHead) {
    size_t index = static_cast<size_t>((k - first) * numKvHeads + kvHead);
    float *out = rows.data() + index * static_cast<size_t>(dim);
    if (!present[index]) {
      present[index] = true;
      int64_t offset = view.offset(layout, request, k, kvHead);
      for (int64_t i = 0; i < dim; ++i)
        out[i] = loadElement(view.data, view.dtype, offset + i);
    }
    return out;
  }

private:
  const KvView &view;
  const KvLayout &layout;
  int64_t dim;
  int64_t numKvHeads;
  int64_t request = 0;
  int64_t first = 0;
  std::vector<bool> present;
  std::vector<float> rows;
};

/// Kept keys of the rows of a few consecutive tokens.
class MaskRows {
public:
  MaskRows(const KernelSpec &spec, const Batch &batch)
      : batch(batch), evaluator(spec.program, batch),
        numHeads(dependence(spec.program, spec.program.mask).h ? spec.numHeads : 1) {}

  /// Evaluates the rows of tokens [first, first + count) of request `b`.
  void start(RequestIndex b, TokenIndex first, int64_t count) {
    firstToken = first;
    kept.resize(static_cast<size_t>(count * numHeads));
    const BatchShape &shape = batch.shape;
    for (size_t i = 0; i < kept.size(); ++i) {
      kept[i].clear();
      QueryPos q = shape.queryOf(b, first + static_cast<int64_t>(i) / numHeads);
      HeadIndex h(static_cast<int64_t>(i) % numHeads);
      for (int64_t k = shape.keyBegin[b.value]; k < shape.keyEnd[b.value]; ++k)
        if (evaluator.keep(b, h, q, KeyPos(k)))
          kept[i].push_back(k);
    }
  }

  /// Kept keys of (h, token), ascending.
  const std::vector<int64_t> &keys(HeadIndex h, TokenIndex token) const {
    int64_t head = numHeads == 1 ? 0 : h.value;
    return kept[static_cast<size_t>((token - firstToken) * numHeads + head)];
  }

  double score(double s, RequestIndex b, HeadIndex h, QueryPos q, int64_t k) {
    return evaluator.score(s, b, h, q, KeyPos(k));
  }

private:
  const Batch &batch;
  MaskEvaluator evaluator;
  int64_t numHeads; ///< that differ: 1 if the mask does not depend on the head
  TokenIndex firstToken;
  std::vector<std::vector<int64_t>> kept;
};

/// One row of the result while it is computed.
struct Row {
  TokenIndex token;
  HeadIndex h;
  QueryPos q;
  std::vector<double> query;
  std::vector<int64_t> keys; ///< that take part
  std::vector<double> scores;
  double largest = -kInfinity;
  bool isInfinite = false; ///< some score is +inf
  double sum = 0;
};

/// Rows are computed a few at a time, key by key, so that a row of K or V serves all of them while
/// it is in the cache. Each row is summed in ascending order of its keys, whatever the others do.
class Runner {
public:
  explicit Runner(const Problem &problem)
      : problem(problem), spec(*problem.spec), shape(problem.batch->shape),
        masks(spec, *problem.batch), kRows(problem.k, problem.kv, spec.dimQk, spec.numKvHeads),
        vRows(problem.v, problem.kv, spec.dimV, spec.numKvHeads), math(rowMath()),
        scale(problem.scale()) {}

  Output run() {
    int64_t tokens = shape.numTokens();
    out.o.assign(static_cast<size_t>(tokens * spec.numHeads * spec.dimV), 0);
    out.lse.assign(static_cast<size_t>(tokens * spec.numHeads), -kInfinity);
    for (int64_t b = 0; b < shape.numReqs(); ++b) {
      kRows.start(b, shape.keyBegin[b], shape.keyEnd[b]);
      vRows.start(b, shape.keyBegin[b], shape.keyEnd[b]);
      int64_t end = shape.queryStartLoc[b + 1];
      for (int64_t t = shape.queryStartLoc[b]; t < end; t += kBlock)
        runBlock(RequestIndex(b), TokenIndex(t), std::min(kBlock, end - t));
    }
    return std::move(out);
  }

private:
  static constexpr int64_t kBlock = 4;

  void runBlock(RequestIndex b, TokenIndex first, int64_t count) {
    masks.start(b, first, count);
    int64_t group = spec.numHeads / spec.numKvHeads;
    rows.resize(static_cast<size_t>(count * group));
    for (int64_t kvHead = 0; kvHead < spec.numKvHeads; ++kvHead) {
      for (int64_t i = 0; i < count * group; ++i)
        startRow(rows[i], b, first + i / group, HeadIndex(kvHead * group + i % group));
      forEachKey(
          [&](const Row &row) -> auto & { return masks.keys(row.h, row.token); },
          [&](Row &row, size_t, int64_t k) { addKey(row, b, k, kRows.row(k, kvHead)); });
      forEachKey(
          [](const Row &row) -> auto & { return row.keys; },
          [&](Row &row, size_t i, int64_t k) { addValue(row, i, vRows.row(k, kvHead)); });
      for (const Row &row : rows)
        finishRow(row);
    }
  }

  /// Calls visit(row, i, k) for entry i, which is k, of the ascending list of each row, smallest k
  /// first.
  template <class List, class Visit>
  void forEachKey(List list, Visit visit) {
    constexpr int64_t none = std::numeric_limits<int64_t>::max();
    next.assign(rows.size(), 0);
    auto keyOf = [&](size_t r) {
      const std::vector<int64_t> &keys = list(rows[r]);
      return next[r] < keys.size() ? keys[next[r]] : none;
    };
    while (true) {
      int64_t k = none;
      for (size_t r = 0; r < rows.size(); ++r)
        k = std::min(k, keyOf(r));
      if (k == none)
        return;
      for (size_t r = 0; r < rows.size(); ++r)
        if (keyOf(r) == k)
          visit(rows[r], next[r]++, k);
    }
  }

  void startRow(Row &row, RequestIndex b, TokenIndex token, HeadIndex h) {
    row.token = token;
    row.h = h;
    row.q = shape.queryOf(b, token);
    row.query.resize(static_cast<size_t>(spec.dimQk));
    int64_t offset = problem.q.offset(token.value, h.value);
    for (int64_t i = 0; i < spec.dimQk; ++i)
      row.query[i] = loadElement(problem.q.data, problem.q.dtype, offset + i);
    row.keys.clear();
    row.scores.clear();
    row.largest = -kInfinity;
    row.isInfinite = false;
    row.sum = 0;
  }

  void addKey(Row &row, RequestIndex b, int64_t k, const float *keyRow) {
    double s = scale * math.dot(row.query.data(), keyRow, spec.dimQk);
    s = masks.score(s, b, row.h, row.q, k);
    if (s == -kInfinity)
      return;
    row.keys.push_back(k);
    row.scores.push_back(s);
    row.isInfinite |= s == kInfinity;
    // Once a NaN is the largest, it stays.
    if (!(s <= row.largest) && !std::isnan(row.largest))
      row.largest = s;
  }

  double *outputOf(const Row &row) {
    return out.o.data() + (row.token.value * spec.numHeads + row.h.value) * spec.dimV;
  }

  void addValue(Row &row, size_t i, const float *valueRow) {
    // exp(+inf) / exp(+inf) is no number, which +inf - +inf gives here.
    double weight = std::exp(row.scores[i] - row.largest);
    row.sum += weight;
    math.accumulate(outputOf(row), weight, valueRow, spec.dimV);
  }

  void finishRow(const Row &row) {
    if (row.keys.empty())
      return;
    double *o = outputOf(row);
    for (int64_t i = 0; i < spec.dimV; ++i)
      o[i] /= row.sum;
    double &lse = out.lse[row.h.value * shape.numTokens() + row.token.value];
    lse = row.isInfinite ? kInfinity : row.largest + std::log(row.sum);
  }

  const Problem &problem;
  const KernelSpec &spec;
  const BatchShape &shape;
  MaskRows masks;
  WidenedRows kRows, vRows;
  RowMath math;
  double scale;
  std::vector<Row> rows;    ///< of the current block and key/value head
  std::vector<size_t> next; ///< scratch of forEachKey
  Output out;
};

} // namespace

Output run(const Problem &problem) { return Runner(problem).run(); }

std::vector<uint8_t> denseMask(const KernelSpec &spec, const Batch &batch, int64_t stride) {
  const BatchShape &shape = batch.shape;
  int64_t tokens = shape.numTokens();
  std::vector<uint8_t> keep(static_cast<size_t>(spec.numHeads * tokens * stride), 0);
  MaskRows masks(spec, batch);
  for (int64_t b = 0; b < shape.numReqs(); ++b)
    for (int64_t t = shape.queryStartLoc[b]; t < shape.queryStartLoc[b + 1]; ++t) {
      masks.start(RequestIndex(b), TokenIndex(t), 1);
      for (int64_t h = 0; h < spec.numHeads; ++h)
        for (int64_t k : masks.keys(HeadIndex(h), TokenIndex(t)))
          keep[static_cast<size_t>((h * tokens + t) * stride + k)] = 1;
    }
  return keep;
}

} // namespace attn::reference
