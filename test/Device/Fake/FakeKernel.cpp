// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a GPU kernel does with its arguments, tile by tile, in plain loops: entries from the highest
// key to the lowest, boxes through the tensor maps with zeros outside, masks in partial blocks
// only, hidden rows of V zeroed as the entry's bitmap says. A weight of zero times a NaN is a NaN
// here as well. Whatever the records and tables leave out or get wrong shows in the results.
#include "FakeCuda.h"

#include "attn/Core/IntMath.h"
#include "attn/Core/Manifest.h"
#include "attn/Core/MaskEval.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace fake;
using namespace attn::core;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class Emulator {
public:
  Emulator(const State &state, const Artifact &artifact, unsigned grid, void **parameters)
      : state(state), spec(artifact.kernels[0].spec), binary(artifact.kernels[0].binaries[0]),
        launch(*binary.cuda), grid(grid) {
    for (int i = 0; i < kCudaMaps; ++i)
      std::memcpy(&maps[i], parameters[i], sizeof(TensorMap));
    words = static_cast<const int64_t *>(parameters[kCudaMaps]);
    numWork = words[kCudaNumWork];
  }

  std::string run();

private:
  using Row = std::vector<float>;

  template <class T>
  const T *pointer(int64_t word) {
    return reinterpret_cast<const T *>(words[word]);
  }
  /// Whether `count` elements of T at `address` are device memory; notes the fault.
  template <class T>
  bool check(const char *what, const T *address, int64_t count) {
    if (count <= 0 || isDeviceMemory(state, reinterpret_cast<uint64_t>(address), count * sizeof(T)))
      return true;
    fail(std::string(what) + " outside device memory");
    return false;
  }
  void fail(const std::string &what) {
    if (fault.empty())
      fault = what;
  }

  bool readRecords();
  void readProgram();
  void readBatch();
  void placeRows(TileHeader &tile);
  void readTable(size_t i, const NativeTable &table);
  Row load(const TensorMap &map, int64_t row, int64_t head, int64_t page);
  Row loadKey(const TensorMap &map, const TileHeader &tile, int64_t head, int64_t key);
  void runItem(const WorkItem &item, MaskEvaluator &eval);
  bool isVisible(const TileHeader &tile, const TileEntry &entry, int64_t head, int64_t key,
                 int64_t place, MaskEvaluator &eval);
  void writeRow(const TileHeader &tile, int64_t head, int64_t i, const std::vector<double> &scores,
                const std::vector<Row> &values);

  const State &state;
  const KernelSpec &spec;
  const KernelBinary &binary;
  const CudaLaunch &launch;
  unsigned grid;
  int64_t numWork = 0;
  TensorMap maps[kCudaMaps];
  const int64_t *words;
  std::vector<TileHeader> tiles;
  MaskProgram program;
  std::vector<bool> isRead; ///< tables that a kernel reads
  Batch batch;
  std::string fault;
};

bool Emulator::readRecords() {
  const WorkItem *work = pointer<WorkItem>(kCudaWork);
  const uint32_t *claims = pointer<uint32_t>(kCudaClaims);
  const int32_t *listSize = pointer<int32_t>(kCudaListSize);
  if (!check("work", work, numWork) || !check("claims", claims, 1) ||
      !check("size of the list", listSize, 1))
    return false;
  if (grid > numWork || *claims != 0) {
    fail("more CTAs than work, or claims that are left over");
    return false;
  }
  numWork = std::min<int64_t>(numWork, *listSize);
  int64_t numTiles = 0;
  for (int64_t i = 0; i < numWork; ++i)
    numTiles = std::max<int64_t>(numTiles, work[i].tile + int64_t(1));
  const TileHeader *headers = pointer<TileHeader>(kCudaTiles);
  if (!check("tiles", headers, numTiles))
    return false;
  // Others may be left over from another step; those without rows are nobody's.
  tiles.assign(numTiles, TileHeader());
  for (int64_t i = 0; i < numWork; ++i)
    tiles[work[i].tile] = headers[work[i].tile];
  for (TileHeader &tile : tiles)
    placeRows(tile);
  for (const TileHeader &tile : tiles)
    if (!check("entries", pointer<TileEntry>(kCudaEntries) + tile.entryBegin, tile.entryCount))
      return false;
  return true;
}

/// Tests of ranges and documents as kernels do them: against the rows built from the table, where
/// there are such.
void Emulator::readProgram() {
  program = spec.program;
  program.tables = binary.tables;
  program.nodes.clear();
  std::vector<NodeId> moved;
  isRead.assign(binary.tables.size(), true);
  std::vector<int32_t> rowsOf(binary.tables.size(), -1);
  for (size_t i = 0; i < binary.tables.size(); ++i)
    if (binary.tables[i].kind == TableKind::QueryRanges) {
      rowsOf[binary.tables[i].source] = static_cast<int32_t>(i);
      isRead[binary.tables[i].source] = false;
    }
  const auto add = [&](Op op, ScalarType type, std::vector<NodeId> operands, int32_t ref) {
    Node node;
    node.op = op;
    node.type = type;
    node.operands = std::move(operands);
    node.ref = ref;
    node.imm = op == Op::Window;
    return program.add(std::move(node));
  };
  for (const Node &old : spec.program.nodes) {
    std::vector<NodeId> operands;
    for (NodeId operand : old.operands)
      operands.push_back(moved[operand]);
    const bool looksUp = (old.op == Op::MmPrefix || old.op == Op::Document) && rowsOf[old.ref] >= 0;
    if (looksUp) {
      const NodeId lo = add(Op::RowLo, ScalarType::I64, {}, rowsOf[old.ref]);
      const NodeId hi = add(Op::RowHi, ScalarType::I64, {}, rowsOf[old.ref]);
      NodeId keep = add(Op::InRows, ScalarType::Bool, {lo, hi}, -1);
      if (!operands.empty())
        keep = add(Op::And, ScalarType::Bool,
                   {keep, add(Op::Window, ScalarType::Bool, {operands[0]}, -1)}, -1);
      moved.push_back(keep);
      continue;
    }
    if (old.op == Op::NumRanges || old.op == Op::RangeStart || old.op == Op::RangeEnd)
      isRead[old.ref] = true;
    Node node = old;
    node.operands = std::move(operands);
    moved.push_back(program.add(std::move(node)));
  }
  for (Node &node : program.nodes)
    if (node.op == Op::LoopIndex || node.op == Op::LoopCarried || node.op == Op::ForResult)
      node.ref = moved[node.ref];
  program.mask = spec.program.mask < 0 ? -1 : moved[spec.program.mask];
  program.score = spec.program.score < 0 ? -1 : moved[spec.program.score];
}

/// The tables' own forms, read back from device memory.
void Emulator::readTable(size_t i, const NativeTable &table) {
  if (!isRead[i])
    return;
  const int64_t requests = batch.shape.numReqs();
  TableData &data = batch.tables[i];
  auto offsetsOf = [&](std::vector<int64_t> &offsets) {
    if (!check("offsets of a table", table.offsets, requests + 1))
      return int64_t(0);
    offsets.assign(table.offsets, table.offsets + requests + 1);
    return offsets.back();
  };
  switch (binary.tables[i].kind) {
  case TableKind::Plain: {
    data.data = table.data;
    int64_t elements = 1;
    for (size_t dim = 0; dim < binary.tables[i].dims.size(); ++dim) {
      data.extents.push_back(table.extents[dim]);
      data.strides.push_back(table.strides[dim]);
      elements *= table.extents[dim];
    }
    const int64_t bytes = elements * bitWidth(binary.tables[i].element) / 8;
    // One element is read even of a table that has none.
    check("a plain table", static_cast<const char *>(table.data), std::max<int64_t>(bytes, 8));
    break;
  }
  case TableKind::Ranges: {
    const int64_t count = offsetsOf(data.rangeOffsets);
    if (table.extents[0] < count) // requests behind the last tile have some too
      fail("a ranges table with the extent of another");
    const Range *ranges = static_cast<const Range *>(table.data);
    if (check("a ranges table", ranges, count + 1))
      data.ranges.assign(ranges, ranges + count);
    break;
  }
  case TableKind::Documents: {
    const int64_t count = offsetsOf(data.documentOffsets);
    if (table.extents[0] < count) // requests behind the last tile have some too
      fail("a documents table with the extent of another");
    const int32_t *documents = static_cast<const int32_t *>(table.data);
    if (check("a documents table", documents, count + 1))
      data.documents.assign(documents, documents + count);
    break;
  }
  case TableKind::QueryRanges: {
    int64_t tokens = 0;
    for (const TileHeader &tile : tiles)
      tokens = std::max<int64_t>(tokens, int64_t(tile.tokenBegin) + tile.rows);
    const Range *rows = static_cast<const Range *>(table.data);
    data.rows.assign(tokens, {-1, -1});
    if (table.extents[0] != 0 && table.extents[0] < tokens)
      fail("a built table with the extent of another");
    else if (check("a built table", rows, table.extents[0] + 1) && table.extents[0])
      data.rows.assign(rows, rows + tokens);
    break;
  }
  }
}

/// What follows from a length that the device alone knows.
void Emulator::placeRows(TileHeader &tile) {
  if (!tile.isBound)
    return;
  const int32_t *length = pointer<int32_t>(kCudaSeqLens) + tile.request;
  if (!check("a length", length, 1))
    return;
  tile.keyEnd = std::min(tile.keyEnd, *length);
  tile.queryBegin += tile.keyEnd;
  if (tile.rows > kMostBoundRows)
    fail("a tile of " + std::to_string(tile.rows) + " rows at positions known on the device");
}

/// A batch that gives the evaluator what the kernel has.
void Emulator::readBatch() {
  int64_t requests = 0;
  for (const TileHeader &tile : tiles)
    requests = std::max<int64_t>(requests, tile.request + int64_t(1));
  BatchShape &shape = batch.shape;
  for (std::vector<int64_t> *lengths :
       {&shape.seqLen, &shape.contextLen, &shape.keyBegin, &shape.keyEnd})
    lengths->assign(requests, 0);
  shape.queryStartLoc.assign(requests + 1, 0);
  for (const TileHeader &tile : tiles) {
    if (tile.rows == 0)
      continue;
    shape.queryStartLoc[tile.request] = tile.tokenBegin;
    shape.contextLen[tile.request] = tile.queryBegin;
    shape.keyBegin[tile.request] = tile.keyBegin;
    shape.seqLen[tile.request] = shape.keyEnd[tile.request] = tile.keyEnd;
  }
  batch.numHeads = spec.numHeads;
  batch.numKvHeads = spec.numKvHeads;
  const int64_t *word = words + kNumCudaArgs;
  for (const ParamDecl &param : spec.program.params) {
    ParamValue value;
    value.i = *word;
    float f = 0;
    std::memcpy(&f, word++, sizeof(f));
    value.f = param.type == ScalarType::F32 ? f : 0;
    batch.params.push_back(value);
  }
  batch.tables.resize(binary.tables.size());
  for (size_t i = 0; i < binary.tables.size(); ++i) {
    NativeTable table;
    std::memcpy(&table, word + i * kNativeTableWords, sizeof(table));
    readTable(i, table);
  }
}

/// One row of all column groups; zeros outside the tensor.
Emulator::Row Emulator::load(const TensorMap &map, int64_t row, int64_t head, int64_t page) {
  const int64_t groups = static_cast<int64_t>(map.dims[2]);
  Row result(groups * 64, 0.0f);
  const bool inside = row >= 0 && row < int64_t(map.dims[1]) && head < int64_t(map.dims[3]) &&
                      page >= 0 && page < int64_t(map.dims[4]);
  for (int64_t group = 0; inside && group < groups; ++group) {
    const uint64_t address = map.address + row * map.strides[0] + group * map.strides[1] +
                             head * map.strides[2] + page * map.strides[3];
    if (!check("a row of a tensor", reinterpret_cast<const uint16_t *>(address), 64))
      return result;
    for (int64_t c = 0; c < 64; ++c)
      result[group * 64 + c] = loadElement(reinterpret_cast<const void *>(address),
                                           map.isBf16 ? DType::BF16 : DType::F16, c);
  }
  return result;
}

/// The row of a key: pages are looked up box by box, and not for boxes past the keys.
Emulator::Row Emulator::loadKey(const TensorMap &map, const TileHeader &tile, int64_t head,
                                int64_t key) {
  const int32_t *pages = pointer<int32_t>(kCudaPageTable);
  if (!pages)
    return load(map, tile.kvRow + key, head, 0);
  const int64_t pageSize = words[kCudaPageSize], boxRows = words[kCudaBoxRows];
  if (key < 0 && fault.empty())
    fault = "a block of pages that begins ahead of key 0";
  const int64_t box = key - key % boxRows;
  int64_t page = words[kCudaNumPages];
  if (box < tile.keyEnd) {
    const int32_t *entry = pages + tile.request * words[kCudaPageTableStride] + box / pageSize;
    if (!check("an entry of the page table", entry, 1))
      return Row(map.dims[2] * 64, 0.0f);
    page = *entry;
  }
  return load(map, box % pageSize + key % boxRows, head, page);
}

bool Emulator::isVisible(const TileHeader &tile, const TileEntry &entry, int64_t head, int64_t key,
                         int64_t place, MaskEvaluator &eval) {
  if (entry.visible < 0 && !launch.testsVisible)
    return true;
  if (entry.visible >= 0 && !tile.isBound) {
    const uint32_t *bits = pointer<uint32_t>(kCudaVisible) + entry.visible * kVisibleWords;
    return check("a bitmap", bits, kVisibleWords) && ((bits[place / 32] >> (place % 32)) & 1);
  }
  if (key < tile.keyBegin || key >= tile.keyEnd)
    return false;
  for (int64_t i = 0; i < tile.rows; ++i)
    if (eval.keep(RequestIndex(tile.request), HeadIndex(head), QueryPos(tile.queryBegin + i),
                  KeyPos(key)))
      return true;
  return false;
}

void Emulator::writeRow(const TileHeader &tile, int64_t head, int64_t i,
                        const std::vector<double> &scores, const std::vector<Row> &values) {
  double top = -kInf;
  bool isNan = false;
  for (double s : scores) {
    top = std::max(top, s);
    isNan |= std::isnan(s);
  }
  std::vector<double> sums(spec.dimV, 0.0);
  double total = 0;
  for (size_t k = 0; k < scores.size(); ++k) {
    const double p = top == -kInf && !isNan ? 0 : std::exp(scores[k] - top);
    total += p;
    for (int64_t d = 0; d < spec.dimV; ++d)
      sums[d] += p * values[k][d]; // also where p is 0
  }
  const int64_t token = int64_t(tile.tokenBegin) + i;
  uint16_t *o = const_cast<uint16_t *>(pointer<uint16_t>(kCudaO)) +
                token * words[kCudaOTokenStride] + head * words[kCudaOHeadStride];
  float *lse =
      const_cast<float *>(pointer<float>(kCudaLse)) + head * words[kCudaLseHeadStride] + token;
  if (!check("o", o, spec.dimV) || !check("lse", lse, 1))
    return;
  for (int64_t d = 0; d < spec.dimV; ++d)
    storeElement(o, spec.qType, d, static_cast<float>(sums[d] / (total == 0 ? 1 : total)));
  *lse = static_cast<float>(total == 0 ? -kInf : top + std::log(total));
}

/// The products of a query with all keys of a block, of which `keys` has one column each; a sum
/// takes its terms in order.
static void multiply(const std::vector<float> &query, const std::vector<double> &keys,
                     std::vector<double> &sums) {
  const size_t count = sums.size();
  std::fill(sums.begin(), sums.end(), 0.0);
  for (size_t d = 0; d * count < keys.size(); ++d)
    for (size_t place = 0; place < count; ++place)
      sums[place] += double(query[d]) * keys[d * count + place];
}

void Emulator::runItem(const WorkItem &item, MaskEvaluator &eval) {
  const TileHeader &tile = tiles[item.tile];
  const int64_t kvHead = item.head / (spec.numHeads / spec.numKvHeads);
  const RequestIndex b(tile.request);
  const HeadIndex h(item.head);
  const double scale = spec.scaleParam >= 0 ? batch.params[spec.scaleParam].f : spec.scale;
  std::vector<Row> queries, values;
  for (int64_t i = 0; i < tile.rows; ++i)
    queries.push_back(load(maps[0], tile.tokenBegin + i, item.head, 0));
  std::vector<std::vector<double>> scores(tile.rows);
  TileCounters counts{};
  for (int32_t e = tile.entryBegin; e < tile.entryBegin + tile.entryCount; ++e) {
    const TileEntry &entry = pointer<TileEntry>(kCudaEntries)[e];
    for (int64_t block = entry.blocks - 1; block >= 0; --block) {
      const int64_t first = entry.keyBegin + block * launch.keyTile;
      const bool isHighest = e == tile.entryBegin && block == entry.blocks - 1;
      std::vector<double> keys(spec.dimQk * launch.keyTile), products(launch.keyTile);
      for (int64_t place = 0; place < launch.keyTile; ++place) {
        const Row key = loadKey(maps[1], tile, kvHead, first + place);
        for (int64_t d = 0; d < spec.dimQk; ++d)
          keys[d * launch.keyTile + place] = key[d];
        values.push_back(loadKey(maps[2], tile, kvHead, first + place));
        if (!isVisible(tile, entry, item.head, first + place, place, eval))
          std::fill(values.back().begin(), values.back().end(), 0.0f);
      }
      ++counts.loaded;
      for (int64_t g = 0; g < launch.groups; ++g) {
        const uint32_t cls = (entry.classes >> (kGroupClassBits * g)) & 3;
        counts.visited += cls != kGroupSkip;
        counts.full += cls == kGroupFull;
        const int64_t last = std::min<int64_t>((g + 1) * kGroupRows, tile.rows);
        for (int64_t i = g * kGroupRows; i < last; ++i) {
          if (cls != kGroupSkip)
            multiply(queries[i], keys, products);
          for (int64_t place = 0; place < launch.keyTile; ++place) {
            const int64_t k = first + place;
            const QueryPos q(int64_t(tile.queryBegin) + i);
            const bool keep =
                cls == kGroupFull || (cls == kGroupPartial && k >= tile.keyBegin &&
                                      k < tile.keyEnd && eval.keep(b, h, q, KeyPos(k)));
            if (keep && isHighest && ((tile.halves >> g) & 1) && 2 * place >= launch.keyTile &&
                fault.empty())
              fault = "a group that needs more than the half of its block";
            scores[i].push_back(keep ? eval.score(products[place] * scale, b, h, q, KeyPos(k))
                                     : -kInf);
          }
        }
      }
    }
  }
  for (int64_t i = 0; i < tile.rows; ++i)
    writeRow(tile, item.head, i, scores[i], values);
  if (launch.countsTiles) {
    TileCounters *total = const_cast<TileCounters *>(pointer<TileCounters>(kCudaCounters));
    if (check("counters", total, 1)) {
      total->loaded += counts.loaded;
      total->visited += counts.visited;
      total->full += counts.full;
    }
  }
}

std::string Emulator::run() {
  for (const TensorMap &map : maps)
    if (map.mark != kTensorMapMark)
      return "a tensor map that nobody encoded";
  if (maps[0].boxRows != kGroupRows || maps[0].boxGroups != spec.dimQk / 64 ||
      maps[1].boxRows != words[kCudaBoxRows] || maps[2].boxRows != words[kCudaBoxRows] ||
      launch.keyTile % words[kCudaBoxRows] || maps[3].boxRows != kWarpRows ||
      maps[3].boxGroups != 1)
    return "boxes that are not the kernel's";
  const Reciprocal perPage = Reciprocal::of(words[kCudaPageSize]);
  if (words[kCudaPerPage] != (int64_t(perPage.shift) << 32 | perPage.factor))
    return "a page size whose reciprocal is another's";
  if (!readRecords())
    return fault;
  readProgram();
  readBatch();
  if (!fault.empty())
    return fault;
  MaskEvaluator eval(program, batch);
  for (int64_t i = 0; i < numWork && fault.empty(); ++i)
    runItem(pointer<WorkItem>(kCudaWork)[i], eval);
  return fault;
}

} // namespace

std::string fake::emulate(const State &state, const Artifact &artifact, unsigned grid,
                          void **parameters) {
  return Emulator(state, artifact, grid, parameters).run();
}
