// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Harness.h"

#include "llvm/Support/Error.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace exec;
using namespace attn;
using namespace attn::core;

const LoadedKernel *LoadedSpec::find(const std::string &name) const {
  for (const LoadedKernel &kernel : kernels)
    if (kernel.spec->name == name)
      return &kernel;
  return nullptr;
}

std::unique_ptr<LoadedSpec> exec::compileAndLoad(const std::string &text, bool maskPasses,
                                                 unsigned optLevel, std::string &error) {
  compiler::CompileOptions options;
  options.maskPasses = maskPasses;
  options.optLevel = optLevel;
  llvm::Expected<Artifact> compiled = compiler::compile(text, "test.mlir", options);
  if (!compiled) {
    error = llvm::toString(compiled.takeError());
    return nullptr;
  }
  std::vector<uint8_t> bytes = serialize(*compiled);
  Result<Artifact> parsed = parseArtifact(bytes.data(), bytes.size());
  if (!parsed) {
    error = parsed.message();
    return nullptr;
  }
  auto loaded = std::make_unique<LoadedSpec>();
  loaded->artifact = std::move(*parsed);
  for (const std::vector<uint8_t> &blob : loaded->artifact.blobs) {
    Result<rt::NativeModule> module = rt::NativeModule::load(blob.data(), blob.size());
    if (!module) {
      error = module.message();
      return nullptr;
    }
    loaded->modules.push_back(std::move(*module));
  }
  for (const Kernel &kernel : loaded->artifact.kernels) {
    const KernelBinary *binary = kernel.find("cpu");
    if (!binary) {
      error = "kernel " + kernel.spec.name + " has no cpu code";
      return nullptr;
    }
    const rt::NativeModule &module = loaded->modules.at(binary->blob);
    Result<NativeKernel> forward = module.find(binary->entry);
    Result<NativeKernel> mask = module.find(binary->maskEntry);
    if (!forward || !mask) {
      error = forward ? mask.message() : forward.message();
      return nullptr;
    }
    loaded->kernels.push_back({&loaded->artifact, &kernel, &kernel.spec, binary, *forward, *mask});
  }
  return loaded;
}

rt::BatchInput exec::batchInput(const KernelSpec &spec,
                                const std::vector<truth::Request> &requests) {
  rt::BatchInput input;
  rt::RangesInput ranges;
  rt::DocumentsInput documents;
  ranges.offsets.push_back(0);
  documents.offsets.push_back(0);
  for (const truth::Request &r : requests) {
    rt::RequestInput request;
    request.queryLen = r.queryLen;
    request.seqLen = r.seqLen;
    request.contextLen = r.contextLen;
    input.requests.push_back(request);
    for (const truth::Range &range : r.ranges)
      ranges.ranges.push_back({range.start, range.end});
    ranges.offsets.push_back(static_cast<int64_t>(ranges.ranges.size()));
    documents.ids.insert(documents.ids.end(), r.documents.begin(), r.documents.end());
    documents.offsets.push_back(static_cast<int64_t>(documents.ids.size()));
  }
  input.mmRanges = std::move(ranges);
  input.allowPartialRanges = true;
  for (const TableDecl &decl : spec.program.tables)
    if (decl.kind == TableKind::Documents) {
      rt::TableInput table;
      table.name = decl.name;
      table.documents = documents;
      input.tables.push_back(std::move(table));
    }
  return input;
}

//===----------------------------------------------------------------------===//
// Native calls
//===----------------------------------------------------------------------===//

std::vector<int64_t> exec::nativeParams(const MaskProgram &program,
                                        const std::vector<ParamValue> &params) {
  std::vector<int64_t> words;
  for (size_t i = 0; i < params.size(); ++i) {
    int64_t word = params[i].i;
    if (program.params[i].type == ScalarType::F32) {
      float value = static_cast<float>(params[i].f);
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      word = bits;
    }
    words.push_back(word);
  }
  return words;
}

void exec::fillBatchArgs(NativeArgs &args, const Batch &batch, const rt::NativeTables &tables,
                         const std::vector<int64_t> &params) {
  args.queryStartLoc = batch.shape.queryStartLoc.data();
  args.contextLen = batch.shape.contextLen.data();
  args.keyBegin = batch.shape.keyBegin.data();
  args.keyEnd = batch.shape.keyEnd.data();
  args.requestBegin = 0;
  args.requestEnd = batch.shape.numReqs();
  args.tokenBegin = 0;
  args.tokenEnd = batch.shape.numTokens();
  args.numTokens = batch.shape.numTokens();
  args.params = params.data();
  args.tables = tables.tables();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

/// Judges one record by counting the kept pairs of each of its tiles.
static std::string judgeRecord(const TileRecord &record, const Batch &batch, rt::TileShape shape,
                               int64_t anchor, bool exact, const KeptFn &keptIn,
                               TileTotals &totals) {
  const int64_t b = record.request.value;
  const int64_t keyBegin = batch.shape.keyBegin[b];
  const int64_t keyEnd = batch.shape.keyEnd[b];
  const Interval queries{record.queryBegin.value, record.queryBegin.value + record.queryCount};
  auto place = [&](int64_t begin, int64_t end) {
    return "request " + std::to_string(b) + " queries [" + std::to_string(record.queryBegin.value) +
           ", +" + std::to_string(record.queryCount) + ") keys [" + std::to_string(begin) + ", " +
           std::to_string(end) + ")";
  };
  int64_t previous = keyBegin;
  for (const Segment &s : record.segments) {
    bool aligned =
        (s.begin == keyBegin ||
         floorDiv(s.begin - anchor, shape.keys) * shape.keys == s.begin - anchor) &&
        (s.end == keyEnd || floorDiv(s.end - anchor, shape.keys) * shape.keys == s.end - anchor);
    if (s.begin >= s.end || s.begin < previous || s.end > keyEnd || !aligned)
      return place(s.begin, s.end) + ": segment out of order, empty, unclipped or unaligned";
    previous = s.end;
  }
  size_t next = 0;
  for (int64_t begin = keyBegin; begin < keyEnd;) {
    int64_t end =
        std::min(keyEnd, (floorDiv(begin - anchor, shape.keys) + 1) * shape.keys + anchor);
    const int64_t kept = keptIn(b, queries, {begin, end});
    while (next < record.segments.size() && record.segments[next].end <= begin)
      ++next;
    bool visited = next < record.segments.size() && record.segments[next].begin <= begin;
    bool full = visited && record.segments[next].cls == kSegmentFull;
    bool all = kept == (end - begin) * record.queryCount;
    ++totals.tiles;
    totals.visited += visited;
    totals.full += full;
    if (!visited && kept)
      return place(begin, end) + ": skipped, but " + std::to_string(kept) + " pairs are kept";
    if (full && !all)
      return place(begin, end) + ": full, but only " + std::to_string(kept) + " pairs are kept";
    if (exact && visited && !kept)
      return place(begin, end) + ": visited, but no pair is kept";
    if (exact && !full && all)
      return place(begin, end) + ": partial, but every pair is kept";
    begin = end;
  }
  return "";
}

std::string exec::judgeTiles(const std::vector<TileRecord> &records, const Batch &batch,
                             rt::TileShape shape, int64_t anchor, bool exact, const KeptFn &keptIn,
                             TileTotals &totals) {
  size_t next = 0;
  for (int64_t b = 0; b < batch.shape.numReqs(); ++b) {
    const int64_t begin = batch.shape.contextLen[b];
    const int64_t end = begin + batch.shape.queryLen(RequestIndex(b));
    for (int64_t q = begin; q < end; q += shape.queries, ++next) {
      if (next >= records.size())
        return "records end before request " + std::to_string(b) + " q " + std::to_string(q);
      const TileRecord &record = records[next];
      if (record.request.value != b || record.queryBegin.value != q ||
          record.queryCount != std::min(shape.queries, end - q) || record.headBegin.value != 0 ||
          record.headCount != batch.numHeads)
        return "record " + std::to_string(next) + " is not the tile of request " +
               std::to_string(b) + " q " + std::to_string(q) + " for all heads";
      std::string fault = judgeRecord(record, batch, shape, anchor, exact, keptIn, totals);
      if (!fault.empty()) {
        totals.faulty = b;
        return fault;
      }
    }
  }
  if (next != records.size())
    return std::to_string(records.size()) + " records, expected " + std::to_string(next);
  return "";
}
