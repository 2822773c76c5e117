// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CaseSets.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

using namespace exec;
using namespace attn;
using namespace attn::core;
using masks::Atom;
using masks::Expr;
using masks::Int;

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

std::string exec::tableSignature(const std::vector<TableDecl> &tables) {
  std::string text;
  for (const TableDecl &decl : tables)
    text += " " + std::string(toString(decl.kind)) + "/" + std::to_string(decl.source);
  return text;
}

std::optional<Batch> exec::bindRequests(const KernelSpec &spec,
                                        const std::vector<truth::Request> &requests,
                                        std::string &error) {
  rt::BatchInput input = batchInput(spec, requests);
  for (const ParamDecl &decl : spec.program.params) {
    rt::ParamInput param;
    param.name = decl.name;
    param.i = 1;
    input.params.push_back(param);
  }
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, std::move(input));
  if (!bound) {
    error = bound.message();
    return std::nullopt;
  }
  return std::move(bound->batch);
}

template <class T>
static bool sameBytes(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         (a.empty() || !std::memcmp(a.data(), b.data(), a.size() * sizeof(T)));
}

bool exec::sameTables(const Batch &a, const Batch &b) {
  bool same = sameBytes(a.shape.queryStartLoc, b.shape.queryStartLoc) &&
              sameBytes(a.shape.seqLen, b.shape.seqLen) &&
              sameBytes(a.shape.contextLen, b.shape.contextLen) &&
              sameBytes(a.shape.keyBegin, b.shape.keyBegin) &&
              sameBytes(a.shape.keyEnd, b.shape.keyEnd) && a.tables.size() == b.tables.size();
  for (size_t i = 0; same && i < a.tables.size(); ++i) {
    const TableData &x = a.tables[i];
    const TableData &y = b.tables[i];
    same = sameBytes(x.ranges, y.ranges) && sameBytes(x.rangeOffsets, y.rangeOffsets) &&
           sameBytes(x.documents, y.documents) && sameBytes(x.documentOffsets, y.documentOffsets) &&
           sameBytes(x.rows, y.rows) && !x.data && !y.data;
  }
  return same;
}

/// Appends the entries of `from` that request b has to `to`, whose offsets start at 0.
template <class T>
static void takeEntries(const std::vector<T> &from, const std::vector<int64_t> &fromOffsets,
                        int64_t b, std::vector<T> &to, std::vector<int64_t> &toOffsets) {
  if (fromOffsets.empty())
    return;
  if (toOffsets.empty())
    toOffsets.push_back(0);
  to.insert(to.end(), from.begin() + fromOffsets[b], from.begin() + fromOffsets[b + 1]);
  toOffsets.push_back(static_cast<int64_t>(to.size()));
}

/// The batch that consists of these requests of `whole`.
static Batch partOf(const Batch &whole, const std::vector<int64_t> &requests) {
  Batch part;
  part.numHeads = whole.numHeads;
  part.numKvHeads = whole.numKvHeads;
  part.params = whole.params;
  part.tables.resize(whole.tables.size());
  part.shape.queryStartLoc.push_back(0);
  for (int64_t b : requests) {
    const int64_t token = whole.shape.queryStartLoc[b];
    const int64_t length = whole.shape.queryLen(RequestIndex(b));
    part.shape.queryStartLoc.push_back(part.shape.queryStartLoc.back() + length);
    part.shape.seqLen.push_back(whole.shape.seqLen[b]);
    part.shape.contextLen.push_back(whole.shape.contextLen[b]);
    part.shape.keyBegin.push_back(whole.shape.keyBegin[b]);
    part.shape.keyEnd.push_back(whole.shape.keyEnd[b]);
    for (size_t i = 0; i < whole.tables.size(); ++i) {
      const TableData &from = whole.tables[i];
      TableData &to = part.tables[i];
      takeEntries(from.ranges, from.rangeOffsets, b, to.ranges, to.rangeOffsets);
      takeEntries(from.documents, from.documentOffsets, b, to.documents, to.documentOffsets);
      if (!from.rows.empty())
        to.rows.insert(to.rows.end(), from.rows.begin() + token,
                       from.rows.begin() + token + length);
    }
  }
  return part;
}

//===----------------------------------------------------------------------===//
// Case sets
//===----------------------------------------------------------------------===//

constexpr int64_t kSmallQueries = 6;
constexpr int64_t kSmallKeys = 8;

CaseSet::CaseSet(std::vector<truth::Request> requests) : list(std::move(requests)) {
  for (const truth::Request &r : list) {
    numRows += r.queryLen;
    numPairs += r.queryLen * r.seqLen;
    rowStride = std::max<int64_t>(rowStride, r.seqLen);
    small = small && r.queryLen <= kSmallQueries && r.seqLen < kSmallKeys;
  }
  if (small)
    rowStride = kSmallKeys;
  valid.assign(numRows * rowStride, 0);
  poison.assign(numRows * rowStride, kPoison);
  int64_t row = 0;
  for (const truth::Request &r : list)
    for (int64_t q = 0; q < r.queryLen; ++q, ++row) {
      std::fill_n(valid.begin() + row * rowStride, r.seqLen, 1);
      std::fill_n(poison.begin() + row * rowStride, r.seqLen, 0);
    }
}

const std::vector<uint8_t> &CaseSet::truthOf(Atom atom, const std::vector<Int> &params) {
  std::vector<uint8_t> &bytes = truths[{atom, params}];
  if (!bytes.empty() || numRows == 0)
    return bytes;
  bytes.assign(numRows * rowStride, 0);
  uint8_t *row = bytes.data();
  for (const truth::Request &r : list)
    for (Int q = r.contextLen; q < r.contextLen + r.queryLen; ++q, row += rowStride)
      for (Int k = 0; k < r.seqLen; ++k)
        row[k] = masks::keep(atom, params.data(), r, q, k);
  return bytes;
}

void CaseSet::expected(const Expr &expr, const std::vector<Int> &params,
                       std::vector<uint8_t> &out) {
  const size_t size = valid.size();
  scratch.resize(std::max(scratch.size(), expr.nodes.size()));
  std::vector<const uint8_t *> values(expr.nodes.size());
  for (size_t id = 0; id < expr.nodes.size(); ++id) {
    const masks::Node &node = expr.nodes[id];
    const uint8_t flip = node.negated ? 1 : 0;
    std::vector<uint8_t> &result = scratch[id];
    result.resize(size);
    if (node.kind == masks::Node::Leaf) {
      auto first = params.begin() + node.firstParam;
      const uint8_t *atom = truthOf(node.atom, {first, first + masks::numParams(node.atom)}).data();
      if (!flip) {
        values[id] = atom;
        continue;
      }
      for (size_t i = 0; i < size; ++i)
        result[i] = atom[i] ^ 1;
    } else {
      const uint8_t *a = values[node.lhs];
      const uint8_t *b = values[node.rhs];
      if (node.kind == masks::Node::And)
        for (size_t i = 0; i < size; ++i)
          result[i] = (a[i] & b[i]) ^ flip;
      else
        for (size_t i = 0; i < size; ++i)
          result[i] = (a[i] | b[i]) ^ flip;
    }
    values[id] = result.data();
  }
  out.resize(size);
  const uint8_t *mask = values.back();
  for (size_t i = 0; i < size; ++i)
    out[i] = static_cast<uint8_t>((mask[i] & valid[i]) | poison[i]);
}

Batch *CaseSet::batchFor(const KernelSpec &spec, std::string &error) {
  const std::string key =
      std::to_string(spec.program.params.size()) + tableSignature(spec.program.tables);
  auto it = batches.find(key);
  if (it != batches.end())
    return &it->second;
  std::optional<Batch> batch = bindRequests(spec, list, error);
  if (!batch)
    return nullptr;
  return &batches.emplace(key, std::move(*batch)).first->second;
}

const rt::NativeTables &CaseSet::tablesFor(const LoadedKernel &kernel, const Batch &batch) {
  std::string key = std::to_string(batch.params.size()) +
                    tableSignature(kernel.spec->program.tables) + " |" +
                    tableSignature(kernel.binary->tables);
  std::unique_ptr<rt::NativeTables> &tables = nativeTables[key];
  if (!tables)
    tables = std::make_unique<rt::NativeTables>(*kernel.spec, *kernel.binary, batch);
  return *tables;
}

//===----------------------------------------------------------------------===//
// Judge
//===----------------------------------------------------------------------===//

Judge::Judge(const LoadedKernel &kernel, const Expr &expr, bool named, bool literals,
             Counts &counts)
    : kernel(kernel), expr(expr), exact(named || kernel.binary->tilePlan == TilePlan::Intervals),
      literals(literals), counts(counts) {
  ++counts.kernels;
  counts.intervalKernels += kernel.binary->tilePlan == TilePlan::Intervals;
  counts.exactKernels += exact;
}

void Judge::fail(int64_t request, const std::string &what) {
  if (++counts.failures > 20)
    return;
  std::printf("FAILED %s: %s\n  params", masks::describe(expr).c_str(), what.c_str());
  for (Int p : current)
    std::printf(" %lld", p);
  std::printf("%s\n", literals ? " (literals)" : "");
  if (request >= 0) {
    const truth::Request &r = set->requests()[request];
    std::printf("  request %lld: query_len %lld seq_len %lld context_len %lld ranges",
                static_cast<long long>(request), r.queryLen, r.seqLen, r.contextLen);
    for (const truth::Range &range : r.ranges)
      std::printf(" [%lld, %lld]", range.start, range.end);
    std::printf(" documents");
    for (int id : r.documents)
      std::printf(" %d", id);
    std::printf("\n");
  }
  std::fflush(stdout);
}

bool Judge::start(CaseSet &cases, const std::vector<Int> &params) {
  set = &cases;
  current = params;
  tilesJudged = false;
  std::string error;
  batch = set->batchFor(*kernel.spec, error);
  if (!batch) {
    fail(-1, "the batch was refused: " + error);
    return false;
  }
  if (!literals)
    for (size_t i = 0; i < params.size(); ++i)
      batch->params.at(i).i = params[i];
  words = nativeParams(kernel.spec->program, batch->params);
  set->expected(expr, params, want);
  return true;
}

void Judge::checkMask() {
  counts.cases += static_cast<int64_t>(set->requests().size());
  counts.pairs += set->pairs();
  got.assign(want.size(), CaseSet::kPoison);
  NativeArgs args = {};
  fillBatchArgs(args, *batch, set->tablesFor(kernel, *batch), words);
  args.keep = got.data();
  args.keepStride = set->stride();
  kernel.mask(&args);
  if (std::memcmp(want.data(), got.data(), want.size()) == 0)
    return;
  int64_t row = 0;
  for (size_t b = 0; b < set->requests().size(); ++b) {
    const truth::Request &r = set->requests()[b];
    for (int64_t q = 0; q < r.queryLen; ++q, ++row)
      for (int64_t k = 0; k < set->stride(); ++k) {
        int64_t at = row * set->stride() + k;
        if (want[at] == got[at])
          continue;
        return fail(static_cast<int64_t>(b),
                    "native mask at q " + std::to_string(r.contextLen + q) + " k " +
                        std::to_string(k) + ": expected " + std::to_string(want[at]) + ", got " +
                        std::to_string(got[at]));
      }
  }
}

void Judge::checkEvaluator(rt::TileShape box) {
  MaskEvaluator eval(kernel.spec->program, *batch);
  const HeadIndex h(0);
  int64_t row = 0;
  for (size_t b = 0; b < set->requests().size(); ++b) {
    const truth::Request &r = set->requests()[b];
    const RequestIndex request(static_cast<int64_t>(b));
    counts.evaluatorPairs += r.queryLen * r.seqLen;
    for (Int i = 0; i < r.queryLen; ++i, ++row) {
      const QueryPos q(r.contextLen + i);
      std::optional<IntervalSet> keys = eval.rowKeys(request, h, q);
      IntervalSet bound = eval.rowKeysBound(request, h, q);
      for (Int k = 0; k < r.seqLen; ++k) {
        bool kept = want[row * set->stride() + k] == 1;
        const char *who = eval.keep(request, h, q, KeyPos(k)) != kept ? "evaluator"
                          : keys && keys->contains(k) != kept         ? "row set"
                          : kept && !bound.contains(k)                ? "row bound"
                                                                      : nullptr;
        if (who)
          return fail(static_cast<int64_t>(b),
                      std::string(who) + " at q " + std::to_string(q.value) + " k " +
                          std::to_string(k) + ": expected " + std::to_string(kept));
      }
    }
    for (Int i = 0; i < r.queryLen; i += box.queries)
      for (Int k = 0; k < r.seqLen; k += box.keys) {
        const Int iEnd = std::min<Int>(i + box.queries, r.queryLen);
        const Int kEnd = std::min<Int>(k + box.keys, r.seqLen);
        Int kept = 0;
        for (Int j = i; j < iEnd; ++j)
          for (Int key = k; key < kEnd; ++key)
            kept += want[(row - r.queryLen + j) * set->stride() + key];
        TileClass cls =
            eval.classify(request, h, {r.contextLen + i, r.contextLen + iEnd}, {k, kEnd});
        if ((cls == TileClass::Skip && kept) ||
            (cls == TileClass::Full && kept != (iEnd - i) * (kEnd - k)))
          return fail(static_cast<int64_t>(b), "box at q " + std::to_string(r.contextLen + i) +
                                                   " k " + std::to_string(k) + ": class " +
                                                   std::to_string(static_cast<int>(cls)) +
                                                   " with " + std::to_string(kept) + " kept pairs");
      }
  }
}

/// Judges the tile records of `part`; request i of it is number numbers[i] of the set, or i.
void Judge::judge(const Batch &part, rt::TileShape shape, int64_t anchor, const KeptFn &keptIn,
                  const std::vector<int64_t> *numbers) {
  std::vector<TileRecord> records = rt::buildTileRecords(kernel.spec->program, part, shape, anchor);
  TileTotals totals;
  std::string fault = judgeTiles(records, part, shape, anchor, exact, keptIn, totals);
  counts.tileCases += tilesJudged ? 0 : static_cast<int64_t>(set->requests().size());
  tilesJudged = true;
  counts.tileBuilds += part.shape.numReqs();
  counts.tiles += totals.tiles;
  counts.tilesVisited += totals.visited;
  counts.tilesFull += totals.full;
  if (!fault.empty())
    fail(numbers && totals.faulty >= 0 ? numbers->at(totals.faulty) : totals.faulty,
         "tiles " + std::to_string(shape.queries) + "x" + std::to_string(shape.keys) + " anchor " +
             std::to_string(anchor) + ": " + fault);
}

void Judge::checkTiles(rt::TileShape shape, int64_t anchor) {
  auto keptIn = [&](int64_t b, Interval q, Interval k) {
    int64_t kept = 0;
    for (int64_t i = q.lo; i < q.hi; ++i) {
      const int64_t row = batch->shape.tokenOf(RequestIndex(b), QueryPos(i)).value;
      const uint8_t *keys = want.data() + row * set->stride();
      kept += std::count(keys + k.lo, keys + k.hi, 1);
    }
    return kept;
  };
  judge(*batch, shape, anchor, keptIn, nullptr);
}

/// The kept pairs of 8 mask bytes as 8 bits.
static uint64_t bitsOfRow(const uint8_t *row) {
  uint64_t bytes;
  std::memcpy(&bytes, row, sizeof bytes);
  return ((bytes & 0x0101010101010101) * 0x0102040810204080) >> 56;
}

void Judge::checkNewTiles(rt::TileShape shape, int64_t anchor) {
  if (!set->isSmall())
    return checkTiles(shape, anchor);
  std::vector<int64_t> numbers;
  std::vector<uint64_t> masks;
  const uint64_t tiling = static_cast<uint64_t>(shape.queries << 6 | shape.keys << 3 | anchor);
  const uint8_t *row = want.data();
  for (size_t b = 0; b < set->requests().size(); ++b) {
    const truth::Request &r = set->requests()[b];
    uint64_t mask = 0;
    for (Int i = 0; i < r.queryLen; ++i, row += kSmallKeys)
      mask |= bitsOfRow(row) << (kSmallKeys * i);
    const uint64_t lengths = static_cast<uint64_t>(r.queryLen << 3 | r.seqLen);
    if (!seen.insert(tiling << 54 | lengths << 48 | mask).second)
      continue;
    numbers.push_back(static_cast<int64_t>(b));
    masks.push_back(mask);
  }
  const Batch part = partOf(*batch, numbers);
  auto keptIn = [&](int64_t b, Interval q, Interval k) -> int64_t {
    const uint64_t row = ((uint64_t(1) << k.hi) - (uint64_t(1) << k.lo)) * 0x0101010101010101;
    const int64_t first = kSmallKeys * (q.lo - part.shape.contextLen[b]);
    const int64_t last = kSmallKeys * (q.hi - part.shape.contextLen[b]);
    const uint64_t rows = (uint64_t(1) << last) - (uint64_t(1) << first);
    return __builtin_popcountll(masks[b] & row & rows);
  };
  judge(part, shape, anchor, keptIn, &numbers);
}

/// With K = 0 and V[k] the unit vector k mod 8, scaled by 1 + k / 8, the forward entry reveals how
/// many keys a row keeps and, for up to 8 keys, which. Slots that no query keeps hold NaN.
void Judge::checkForward() {
  constexpr int64_t dimQk = 2;
  constexpr int64_t dimV = 8;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<int64_t> kvStart;
  int64_t slots = 0;
  for (const truth::Request &r : set->requests()) {
    kvStart.push_back(slots);
    slots += r.seqLen;
  }
  std::vector<float> q(set->rows() * dimQk, 0.5f);
  std::vector<float> k(slots * dimQk, nan);
  std::vector<float> v(slots * dimV, nan);
  std::vector<float> o(set->rows() * dimV, nan);
  std::vector<float> lse(set->rows(), nan);
  int64_t row = 0;
  for (size_t b = 0; b < set->requests().size(); ++b) {
    const truth::Request &r = set->requests()[b];
    for (Int key = 0; key < r.seqLen; ++key) {
      bool seen = false;
      for (Int i = 0; i < r.queryLen; ++i)
        seen |= want[(row + i) * set->stride() + key] == 1;
      if (!seen)
        continue;
      std::fill_n(k.begin() + (kvStart[b] + key) * dimQk, dimQk, 0.0f);
      std::fill_n(v.begin() + (kvStart[b] + key) * dimV, dimV, 0.0f);
      v[(kvStart[b] + key) * dimV + key % dimV] = 1.0f + static_cast<float>(key / dimV);
    }
    row += r.queryLen;
  }
  NativeArgs args = {};
  fillBatchArgs(args, *batch, set->tablesFor(kernel, *batch), words);
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.o = o.data();
  args.lse = lse.data();
  args.qTokenStride = args.qHeadStride = dimQk;
  args.kSlotStride = args.kHeadStride = dimQk;
  args.vSlotStride = args.vHeadStride = dimV;
  args.oTokenStride = args.oHeadStride = dimV;
  args.lseHeadStride = set->rows();
  args.kvStart = kvStart.data();
  kernel.forward(&args);

  row = 0;
  for (size_t b = 0; b < set->requests().size(); ++b) {
    const truth::Request &r = set->requests()[b];
    for (Int i = 0; i < r.queryLen; ++i, ++row) {
      double sums[dimV] = {};
      int64_t count = 0;
      for (Int key = 0; key < r.seqLen; ++key)
        if (want[row * set->stride() + key] == 1) {
          sums[key % dimV] += 1.0 + static_cast<double>(key / dimV);
          ++count;
        }
      bool right = count ? std::abs(lse[row] - std::log(double(count))) < 1e-5
                         : lse[row] == -std::numeric_limits<float>::infinity();
      for (int64_t d = 0; d < dimV; ++d) {
        double expected = count ? sums[d] / double(count) : 0;
        right &= count ? std::abs(o[row * dimV + d] - expected) <= 1e-5 * (1 + expected)
                       : o[row * dimV + d] == 0;
      }
      ++counts.probeRows;
      if (!right)
        return fail(static_cast<int64_t>(b),
                    "forward entry at q " + std::to_string(r.contextLen + i) + ": expected " +
                        std::to_string(count) + " keys, got lse " + std::to_string(lse[row]));
    }
  }
}
