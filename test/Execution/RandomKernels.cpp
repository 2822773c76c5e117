// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernels.h"

#include "Harness.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace exec;
using namespace attn;
using namespace attn::core;

using truth::Int;

namespace {

template <class... Ts>
auto pick(std::mt19937 &rng, Ts... values) {
  const std::vector<std::common_type_t<Ts...>> list = {values...};
  return list[rng() % list.size()];
}

int64_t in(std::mt19937 &rng, int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(rng() % static_cast<uint64_t>(hi - lo + 1));
}

} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static std::string joined(const std::vector<std::string> &items) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "" : ", ") + item;
  return text;
}

static std::string clause(const char *name, const std::string &content) {
  return content.empty() ? "" : std::string(" ") + name + "(" + content + ")";
}

/// The parameters and tables take turns at these.
static const char *const kParamTypes[] = {"i32", "f32", "i64"};
static const char *const kTableTypes[] = {"!attn.table<[h], f32>", "!attn.table<[b], i32>",
                                          "!attn.table<[h_kv], f32>"};

static std::string maskText(const RandomKernel &kernel) {
  std::string text = "%c = attn.causal %q, %k\n", mask = "%c";
  const auto combine = [&](const std::string &op, const std::string &operand) {
    text += mask + operand.substr(1) + " = attn." + op + " " + mask + ", " + operand + "\n";
    mask += operand.substr(1);
  };
  if (kernel.hasWindow) {
    text += "%w = attn.window %q, %k left(%p0)\n";
    combine("and", "%w");
  }
  if (kernel.hasDocuments) {
    text += "%d = attn.document %doc, %b, %q, %k\n";
    combine("and", "%d");
  }
  if (kernel.configuration.hasRanges) {
    text += "%r = attn.mm_prefix %mm, %b, %q, %k\n";
    combine("or", "%r");
  }
  return text + "attn.yield " + mask + " : i1\n";
}

static std::string scoreText(const RandomKernel &kernel) {
  std::string text, value = "%s";
  if (kernel.configuration.hasSoftCap) {
    text += "%capped = attn.soft_cap %s, " +
            std::string(kernel.configuration.numParams > 1 ? "%p1" : "5.0") + "\n";
    value = "%capped";
  }
  if (kernel.hasDistance) {
    text += "%away = arith.subi %q, %k : index\n%narrow = arith.index_cast %away : index to i32\n"
            "%far = arith.sitofp %narrow : i32 to f32\n%rate = arith.constant -0.015625 : f32\n"
            "%less = arith.mulf %far, %rate : f32\n%nearer = arith.addf " +
            value + ", %less : f32\n";
    value = "%nearer";
  }
  if (kernel.hasBias) {
    text += "%bias = attn.load %t0[%h] : !attn.table<[h], f32>\n%biased = arith.addf " + value +
            ", %bias : f32\n";
    value = "%biased";
  }
  return text.empty() ? "" : text + "attn.yield " + value + " : f32\n";
}

std::string RandomKernel::spec() const {
  const rt::Configuration &c = configuration;
  std::vector<std::string> params, tables;
  for (int64_t i = 0; i < c.numParams; ++i)
    params.push_back("%p" + std::to_string(i) + ": " + kParamTypes[i % 3]);
  if (c.hasRanges)
    tables.push_back("%mm: !attn.ranges");
  if (hasDocuments)
    tables.push_back("%doc: !attn.documents");
  for (int64_t i = 0; i < plainTables; ++i)
    tables.push_back("%t" + std::to_string(i) + ": " + kTableTypes[i % 3]);
  const std::string score = scoreText(*this);
  return "attn.kernel @k heads(" + std::to_string(c.numHeads) + ") kv_heads(" +
         std::to_string(c.numKvHeads) + ") dim(" + std::to_string(c.dimQk) + ") dim_v(" +
         std::to_string(c.dimV) + ") q(" + c.qType + ") kv(" + c.kvType + ")" +
         clause("params", joined(params)) + clause("tables", joined(tables)) +
         (c.hasSink ? " sinks(%sink: f32)" : "") + " {\nattn.mask (%b, %h, %q, %k) {\n" +
         maskText(*this) + "}\n" +
         (score.empty() ? "" : "attn.score (%s, %b, %h, %q, %k) {\n" + score + "}\n") + "}\n";
}

bool RandomKernel::keeps(const truth::Request &request, Int left, Int q, Int k) const {
  const bool kept = truth::causal(q, k) && (!hasWindow || truth::windowLeft(q, k, left)) &&
                    (!hasDocuments || truth::document(request, q, k));
  return kept || (configuration.hasRanges && truth::mmPrefix(request, q, k));
}

/// One thing that some target does not take.
static void change(RandomKernel &kernel, std::mt19937 &rng) {
  rt::Configuration &c = kernel.configuration;
  switch (rng() % 13) {
  case 0:
    c.qType = c.kvType = "f32";
    break;
  case 1:
    c.kvType = pick(rng, "f32", "f16", "bf16");
    break;
  case 2: // of no target
    (rng() % 2 ? c.qType : c.kvType) = pick(rng, "f8E4M3FN", "f8E5M2", "f64", "i8");
    break;
  case 3:
    c.numKvHeads = 2 + static_cast<int64_t>(rng() % 2);
    c.numHeads = 2 * c.numKvHeads + 1;
    break;
  case 4:
    (rng() % 2 ? c.numHeads : c.numKvHeads) = pick(rng, 0, -1, -4);
    break;
  case 5:
    c.dimQk = c.dimV = pick(rng, 1, 16, 80, 96, 192, 512);
    break;
  case 6:
    c.dimV = pick(rng, 1, 8, 64, 128, 512);
    break;
  case 7:
    (rng() % 2 ? c.dimQk : c.dimV) =
        pick(rng, int64_t(0), int64_t(-64), kMaxKernelExtent + 1, kMaxKernelExtent << 12);
    break;
  case 8:
    c.numKvHeads = 1;
    c.numHeads = pick(rng, kMaxKernelExtent + 1, kMaxKernelExtent << 12);
    break;
  case 9:
    c.hasSink = true;
    break;
  case 10: // around the largest number of kernel arguments
    kernel.plainTables = in(rng, 39, 46);
    break;
  case 11:
    c.pageSize = pick(rng, int64_t(-1), int64_t(-16), kPositionLimit, kPositionLimit * 2,
                      std::numeric_limits<int64_t>::max());
    break;
  case 12:
    c.isContextParallel = true;
    break;
  }
}

RandomKernel exec::randomKernel(const std::string &target, std::mt19937 &rng) {
  RandomKernel kernel;
  rt::Configuration &c = kernel.configuration;
  const bool isCpu = target == "cpu";
  c.target = target;
  c.qType = c.kvType = pick(rng, "bf16", "f16");
  c.numKvHeads = in(rng, 1, isCpu ? 3 : 2);
  c.numHeads = c.numKvHeads * in(rng, 1, isCpu ? 3 : 2);
  c.dimQk = c.dimV = pick(rng, 64, 64, 64, 128, 128, 256); // wider ones take longer
  if (isCpu) {
    c.qType = pick(rng, "f32", "bf16", "f16");
    c.kvType = rng() % 2 ? c.qType : pick(rng, "f32", "bf16", "f16");
    c.dimQk = in(rng, 1, 72);
    c.dimV = rng() % 2 ? c.dimQk : in(rng, 1, 72);
    if (rng() % 30 == 0) {
      c.numHeads = c.numKvHeads = 1;
      (rng() % 2 ? c.dimQk : c.dimV) = kMaxKernelExtent;
    }
  }
  // Pages of long rows are large.
  c.pageSize = std::max(c.dimQk, c.dimV) > 1024 ? pick(rng, 0, 1, 3)
                                                : pick(rng, 0, 0, 0, 1, 3, 8, 16, 48, 128);
  c.hasRanges = rng() % 2;
  c.hasSoftCap = rng() % 2;
  c.numParams = pick(rng, 0, 1, 2, 7);
  kernel.hasWindow = c.numParams && rng() % 2;
  kernel.hasDocuments = rng() % 4 == 0;
  kernel.plainTables = pick(rng, 0, 0, 1, 3);
  for (uint32_t changes = rng() % 3; changes > 0; --changes)
    change(kernel, rng);
  kernel.hasBias = kernel.plainTables && rng() % 2;
  kernel.hasDistance = rng() % 4 == 0;
  c.numTables = kernel.plainTables + 2 * c.hasRanges + 2 * kernel.hasDocuments;
  return kernel;
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

static truth::Request randomRequest(std::mt19937 &rng) {
  const Int some = in(rng, 1, 40);
  switch (rng() % 6) {
  case 0: // decode
    return truth::request(1, in(rng, 1, 150));
  case 1: // more queries than keys
    return truth::request(some, in(rng, 0, some - 1));
  case 2: // nothing scheduled
    return truth::request(0, in(rng, 0, 40));
  case 3: // more than one query tile
    return truth::request(in(rng, 120, 150), in(rng, 100, 180));
  default:
    return truth::request(some, some + in(rng, 0, 90));
  }
}

RandomBatch exec::randomBatch(const RandomKernel &kernel, std::mt19937 &rng) {
  RandomBatch batch;
  batch.left = in(rng, 0, 60);
  const bool isLong = std::max(kernel.configuration.dimQk, kernel.configuration.dimV) > 1024;
  for (int64_t count = isLong ? 1 : in(rng, 1, 3); count > 0; --count)
    batch.requests.push_back(isLong ? truth::request(2, in(rng, 1, 3)) : randomRequest(rng));
  if (std::all_of(batch.requests.begin(), batch.requests.end(),
                  [](const truth::Request &r) { return r.queryLen == 0; }))
    batch.requests.push_back(truth::request(1, 9));
  for (truth::Request &r : batch.requests) {
    for (uint32_t n = rng() % 3; n > 0 && r.seqLen > 1; --n) {
      const Int start = in(rng, 0, r.seqLen - 1);
      r.ranges.push_back({start, std::min(r.seqLen - 1, start + in(rng, 0, 70))});
    }
    int document = 0;
    for (Int k = 0; k < r.seqLen; ++k)
      r.documents.push_back(document += rng() % 40 == 0);
  }
  return batch;
}

template <class T>
static std::vector<unsigned char> bytesOf(const std::vector<T> &values) {
  std::vector<unsigned char> bytes(values.size() * sizeof(T));
  if (!bytes.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

static rt::TableInput plainTable(const TableDecl &decl, const KernelSpec &spec, int64_t requests,
                                 std::mt19937 &rng) {
  rt::TableInput table;
  table.name = decl.name;
  rt::DenseInput &dense = table.dense.emplace();
  dense.element = decl.element;
  if (decl.element == ScalarType::I32) {
    dense.extents = {requests};
    dense.owned = bytesOf(std::vector<int32_t>(requests, 7));
    return table;
  }
  dense.extents = {decl.dims[0] == TableDim::H ? spec.numHeads : spec.numKvHeads};
  std::vector<float> values;
  for (int64_t i = 0; i < dense.extents[0]; ++i)
    values.push_back(static_cast<float>(in(rng, -64, 64)) / 32);
  dense.owned = bytesOf(values);
  return table;
}

rt::BatchInput exec::batchInput(const RandomKernel &kernel, const KernelSpec &spec,
                                const RandomBatch &batch, std::mt19937 &rng) {
  rt::BatchInput input = batchInput(spec, batch.requests);
  if (kernel.configuration.pageSize)
    input.pageSize = kernel.configuration.pageSize;
  for (const ParamDecl &decl : spec.program.params) {
    rt::ParamInput param;
    param.name = decl.name;
    param.isInteger = decl.type != ScalarType::F32;
    param.i = decl.name == "p0" ? batch.left : in(rng, 0, 100);
    param.f = static_cast<double>(in(rng, 8, 80)) / 4;
    input.params.push_back(param);
  }
  for (const TableDecl &decl : spec.program.tables)
    if (decl.kind == TableKind::Plain)
      input.tables.push_back(
          plainTable(decl, spec, static_cast<int64_t>(batch.requests.size()), rng));
  return input;
}
