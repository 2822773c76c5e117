// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Scene.h"

#include "attn/Core/IndexSpaces.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace attn;
using namespace attn::proofs;
using core::ScalarType;
using core::TableDim;
using core::TableKind;

/// Elements of a table that is made for a replay.
static constexpr int64_t kMaxElements = int64_t(1) << 22;

//===----------------------------------------------------------------------===//
// From a model
//===----------------------------------------------------------------------===//

/// Document ids of `length` keys such that q's document is [lo, hi) where that is known, and k is
/// in it or not.
static std::vector<int32_t> makeDocuments(int64_t length, int64_t q, int64_t k, bool same,
                                          std::optional<std::pair<int64_t, int64_t>> extent) {
  std::vector<int32_t> ids(static_cast<size_t>(length));
  bool inTable = 0 <= q && q < length;
  if (inTable && !extent)
    extent = same ? std::pair(std::min(q, k), std::max(q, k) + 1) : std::pair(q, q + 1);
  int32_t next = 1;
  for (int64_t i = 0; i < length; ++i) {
    bool inside = inTable && extent->first <= i && i < extent->second;
    ids[static_cast<size_t>(i)] = inside ? 0 : next++;
  }
  return ids;
}

std::optional<Scene> proofs::makeScene(const Observations &seen,
                                       const std::map<std::string, Wide> &model, int64_t heads,
                                       int64_t kvHeads, bool fewKeys) {
  auto read = [&](const std::string &name) {
    auto found = model.find(name);
    return found == model.end() ? int64_t(0) : static_cast<int64_t>(found->second);
  };
  Scene scene;
  scene.heads = heads;
  scene.kvHeads = kvHeads;
  scene.b = read(seen.b);
  scene.h = read(seen.h);
  scene.q = scene.contextLen = read(seen.q);
  scene.k = read(seen.k);
  scene.seqLen = fewKeys ? scene.k + 1 : read(seen.seqLen);
  if (scene.b > 1000)
    return std::nullopt;
  for (const auto &[name, symbol] : seen.params) {
    core::ParamValue &value = scene.params[name];
    value.i = read(symbol);
    auto bits = static_cast<uint32_t>(value.i);
    float single;
    std::memcpy(&single, &bits, sizeof(single));
    value.f = single;
  }
  for (const auto &[name, list] : seen.ranges) {
    std::vector<core::Range> &ranges = scene.ranges[name];
    for (int64_t i = 0, n = read(list.count); i < n; ++i) {
      auto [start, end] = list.bounds[static_cast<size_t>(i)];
      ranges.push_back({static_cast<int32_t>(read(start)), static_cast<int32_t>(read(end))});
    }
  }
  for (const auto &[name, document] : seen.documents) {
    if (!document.isRead) {
      // Only to be written, if it can be.
      scene.documents[name].resize(static_cast<size_t>(std::min(scene.seqLen, kMaxPrinted + 1)));
      continue;
    }
    if (scene.seqLen > kMaxElements)
      return std::nullopt;
    std::optional<std::pair<int64_t, int64_t>> extent;
    if (!document.lo.empty())
      extent = {read(document.lo), read(document.hi)};
    scene.documents[name] =
        makeDocuments(scene.seqLen, scene.q, scene.k, read(document.sameAsKey) != 0, extent);
  }
  for (const auto &[name, table] : seen.tables) {
    Scene::Table &entry = scene.tables[name];
    std::vector<int64_t> extents;
    for (const std::string &extent : table.extents)
      extents.push_back(read(extent));
    for (bool isKeys : table.isKeys)
      entry.extents.push_back(isKeys ? scene.seqLen : 1);
    for (const auto &one : table.reads) {
      std::vector<int64_t> indices;
      bool inside = true;
      for (const std::string &index : one.indices) {
        indices.push_back(read(index));
        inside &= 0 <= indices.back() && indices.back() < extents[indices.size() - 1];
      }
      // Reads outside stay outside of a smaller table.
      if (!inside)
        continue;
      for (size_t d = 0; d < indices.size(); ++d)
        entry.extents[d] = std::max(entry.extents[d], indices[d] + 1);
      entry.elements[indices] = read(one.value);
    }
  }
  return scene;
}

//===----------------------------------------------------------------------===//
// At random
//===----------------------------------------------------------------------===//

/// Whether a parameter says how long a loop is.
static bool hasLoopOverParam(const core::MaskProgram &program) {
  std::vector<core::NodeId> open;
  for (const core::Node &node : program.nodes)
    if (node.op == core::Op::For)
      open.insert(open.end(), node.operands.begin(), node.operands.begin() + 2);
  std::vector<bool> seen(program.nodes.size());
  while (!open.empty()) {
    core::NodeId id = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(id)])
      continue;
    seen[static_cast<size_t>(id)] = true;
    const core::Node &node = program.nodes[id];
    if (node.op == core::Op::Param)
      return true;
    open.insert(open.end(), node.operands.begin(), node.operands.end());
  }
  return false;
}

Scene proofs::makeRandomScene(std::mt19937 &random,
                              const std::vector<const core::MaskProgram *> &programs, int64_t heads,
                              int64_t kvHeads) {
  auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  Scene scene;
  scene.heads = heads;
  scene.kvHeads = kvHeads;
  scene.b = pick(0, 1);
  scene.h = pick(0, std::min<int64_t>(heads, 8) - 1);
  scene.seqLen = pick(1, 9);
  scene.queryLen = 11;
  scene.contextLen = scene.q = -2;
  bool mayBeHuge = llvm::none_of(
      programs, [](const core::MaskProgram *program) { return hasLoopOverParam(*program); });
  for (const core::MaskProgram *program : programs) {
    for (const core::ParamDecl &param : program->params) {
      auto [entry, isNew] = scene.params.try_emplace(param.name);
      if (!isNew)
        continue;
      entry->second.f = static_cast<double>(pick(-4, 4)) / 2;
      int64_t low = param.minValue.value_or(-3);
      int64_t huge = param.type == ScalarType::I64 ? INT64_MAX : INT32_MAX;
      entry->second.i = pick(0, 7) == 0 && mayBeHuge ? huge : pick(low, low + 8);
    }
    for (const core::TableDecl &table : program->tables) {
      if (table.kind == TableKind::Ranges && !scene.ranges.count(table.name)) {
        std::vector<core::Range> &ranges = scene.ranges[table.name];
        for (int64_t i = 0, n = pick(0, 3); i < n; ++i) {
          auto start = static_cast<int32_t>(pick(0, scene.seqLen - 1));
          ranges.push_back({start, static_cast<int32_t>(pick(start + 1, start + 5))});
        }
      }
      if (table.kind == TableKind::Documents && !scene.documents.count(table.name)) {
        std::vector<int32_t> &ids = scene.documents[table.name];
        for (int64_t i = 0; i < scene.seqLen; ++i)
          ids.push_back(i && pick(0, 2) ? ids.back() : static_cast<int32_t>(i));
      }
      if (table.kind == TableKind::Plain && !scene.tables.count(table.name)) {
        Scene::Table &entry = scene.tables[table.name];
        for (TableDim dim : table.dims)
          if (!isImplicit(dim))
            entry.extents.push_back(dim == TableDim::K ? scene.seqLen : pick(1, 9));
        std::vector<int64_t> indices(entry.extents.size(), 0);
        // Every element of up to two explicit dims, else the first ones.
        for (int64_t i = 0; i < 81; ++i) {
          int64_t rest = i;
          for (size_t d = indices.size(); d-- > 0; rest /= 9)
            indices[d] = rest % 9;
          int64_t value = pick(-2, 6);
          auto single = static_cast<float>(value) / 2;
          uint32_t bits;
          std::memcpy(&bits, &single, sizeof(bits));
          entry.elements[indices] = table.element == ScalarType::F32 ? bits : value;
        }
      }
    }
  }
  return scene;
}

void proofs::addDocumentViews(Scene &scene, const core::MaskProgram &program,
                              const std::map<std::string, std::string> &views) {
  for (const core::TableDecl &table : program.tables) {
    auto view = views.find(table.name);
    if (view == views.end())
      continue;
    const std::vector<int32_t> &ids = scene.documents[view->second];
    Scene::Table &entry = scene.tables[table.name];
    entry.extents = {static_cast<int64_t>(ids.size())};
    entry.elements.clear();
    for (size_t i = 0; i < ids.size(); ++i)
      entry.elements[{static_cast<int64_t>(i)}] = table.element == ScalarType::I8 ? 1 : ids[i];
  }
}

//===----------------------------------------------------------------------===//
// As a batch
//===----------------------------------------------------------------------===//

static int64_t totalOf(const std::vector<int64_t> &extents) {
  int64_t total = 1;
  for (int64_t extent : extents) {
    if (extent > kMaxElements || total * extent > kMaxElements)
      return kMaxElements + 1;
    total *= extent;
  }
  return total;
}

/// Extents of all dims.
static std::vector<int64_t> extentsOf(const Scene &scene, const core::TableDecl &table) {
  std::vector<int64_t> extents;
  size_t next = 0;
  auto known = scene.tables.find(table.name);
  for (TableDim dim : table.dims)
    switch (dim) {
    case TableDim::B:
      extents.push_back(scene.b + 1);
      break;
    case TableDim::H:
      extents.push_back(scene.heads);
      break;
    case TableDim::HKv:
      extents.push_back(scene.kvHeads);
      break;
    case TableDim::Token:
      extents.push_back(scene.queryLen);
      break;
    default:
      extents.push_back(known == scene.tables.end() ? 1 : known->second.extents[next]);
      ++next;
      break;
    }
  return extents;
}

/// The element at `at`, one index for each dim: the same in all rows.
static int64_t elementOf(const Scene &scene, const core::TableDecl &table,
                         const std::vector<int64_t> &at) {
  std::vector<int64_t> indices;
  for (size_t d = 0; d < table.dims.size(); ++d)
    if (!isImplicit(table.dims[d]))
      indices.push_back(at[d]);
  auto known = scene.tables.find(table.name);
  if (known == scene.tables.end())
    return 0;
  auto found = known->second.elements.find(indices);
  return found == known->second.elements.end() ? 0 : found->second;
}

static std::optional<core::TableData> makePlain(const Scene &scene, const core::TableDecl &table) {
  core::TableData data;
  data.extents = extentsOf(scene, table);
  int64_t total = totalOf(data.extents);
  if (total > kMaxElements)
    return std::nullopt;
  data.strides.resize(data.extents.size());
  int64_t stride = 1;
  for (size_t d = data.extents.size(); d-- > 0; stride *= data.extents[d])
    data.strides[d] = stride;
  size_t bytes = std::max(1u, core::bitWidth(table.element) / 8);
  data.owned.resize(static_cast<size_t>(std::max<int64_t>(total, 1)) * bytes);
  std::vector<int64_t> at(data.extents.size());
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i;
    for (size_t d = at.size(); d-- > 0; rest /= data.extents[d])
      at[d] = rest % data.extents[d];
    // Little-endian: the low bytes hold narrower types.
    int64_t value = elementOf(scene, table, at);
    std::memcpy(data.owned.data() + static_cast<size_t>(i) * bytes, &value, bytes);
  }
  data.data = data.owned.data();
  return data;
}

std::optional<core::Batch> proofs::makeBatch(const Scene &scene, const core::MaskProgram &program) {
  core::Batch batch;
  batch.numHeads = scene.heads;
  batch.numKvHeads = scene.kvHeads;
  auto requests = static_cast<size_t>(scene.b) + 1;
  core::BatchShape &shape = batch.shape;
  shape.queryStartLoc.assign(requests + 1, 0);
  shape.queryStartLoc.back() = scene.queryLen;
  for (std::vector<int64_t> *list :
       {&shape.seqLen, &shape.contextLen, &shape.keyBegin, &shape.keyEnd})
    list->assign(requests, 0);
  shape.seqLen.back() = shape.keyEnd.back() = scene.seqLen;
  shape.contextLen.back() = scene.contextLen;
  for (const core::ParamDecl &param : program.params) {
    auto known = scene.params.find(param.name);
    batch.params.push_back(known == scene.params.end() ? core::ParamValue() : known->second);
  }
  auto fillOffsets = [&](std::vector<int64_t> &offsets, size_t size) {
    offsets.assign(requests + 1, 0);
    offsets.back() = static_cast<int64_t>(size);
  };
  for (const core::TableDecl &table : program.tables) {
    core::TableData data;
    if (table.kind == TableKind::Plain) {
      std::optional<core::TableData> plain = makePlain(scene, table);
      if (!plain)
        return std::nullopt;
      data = std::move(*plain);
    } else if (table.kind == TableKind::Ranges) {
      if (auto known = scene.ranges.find(table.name); known != scene.ranges.end())
        data.ranges = known->second;
      fillOffsets(data.rangeOffsets, data.ranges.size());
    } else if (table.kind == TableKind::Documents) {
      if (auto known = scene.documents.find(table.name); known != scene.documents.end())
        data.documents = known->second;
      fillOffsets(data.documentOffsets, data.documents.size());
    }
    batch.tables.push_back(std::move(data));
  }
  return batch;
}

//===----------------------------------------------------------------------===//
// As JSON
//===----------------------------------------------------------------------===//

static std::string floatText(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return text;
}

/// Elements of a table from dim `at.size()` on, as nested lists.
static void addElements(std::string &text, const Scene &scene, const core::TableDecl &table,
                        const std::vector<int64_t> &extents, std::vector<int64_t> &at) {
  if (at.size() == extents.size()) {
    int64_t value = elementOf(scene, table, at);
    if (table.element != ScalarType::F32) {
      text += std::to_string(value);
      return;
    }
    auto bits = static_cast<uint32_t>(value);
    float single;
    std::memcpy(&single, &bits, sizeof(single));
    text += floatText(single);
    return;
  }
  text += "[";
  for (int64_t i = 0; i < extents[at.size()]; ++i) {
    text += i ? ", " : "";
    at.push_back(i);
    addElements(text, scene, table, extents, at);
    at.pop_back();
  }
  text += "]";
}

/// A list for each request, of which only the last has something.
static std::string perRequest(const Scene &scene, const std::string &last) {
  std::string text = "[";
  for (int64_t i = 0; i < scene.b; ++i)
    text += "[], ";
  return text + "[" + last + "]]";
}

static std::string rangesText(const Scene &scene, const std::string &name) {
  std::string text;
  auto known = scene.ranges.find(name);
  if (known == scene.ranges.end())
    return text;
  for (const core::Range &range : known->second)
    text += (text.empty() ? "[" : ", [") + std::to_string(range.start) + ", " +
            std::to_string(range.end) + "]";
  return text;
}

/// Numbers that tableText writes.
static int64_t countNumbers(const Scene &scene, const core::TableDecl &table) {
  if (table.kind == TableKind::Plain)
    return totalOf(extentsOf(scene, table));
  auto known = scene.documents.find(table.name);
  return known == scene.documents.end() ? 0 : static_cast<int64_t>(known->second.size());
}

static std::string tableText(const Scene &scene, const core::TableDecl &table) {
  if (table.kind == TableKind::Ranges)
    return perRequest(scene, rangesText(scene, table.name));
  if (table.kind == TableKind::Documents) {
    std::string ids;
    if (auto known = scene.documents.find(table.name); known != scene.documents.end())
      for (int32_t id : known->second)
        ids += (ids.empty() ? "" : ", ") + std::to_string(id);
    return perRequest(scene, ids);
  }
  std::vector<int64_t> extents = extentsOf(scene, table), at;
  std::string text;
  addElements(text, scene, table, extents, at);
  return text;
}

std::optional<std::string> proofs::toJson(const Scene &scene, const core::MaskProgram &program) {
  int64_t numbers = 0;
  for (const core::TableDecl &table : program.tables)
    numbers += table.kind == TableKind::QueryRanges ? 0 : countNumbers(scene, table);
  if (numbers > kMaxPrinted)
    return std::nullopt;
  std::string text = "{\"requests\": [";
  for (int64_t i = 0; i < scene.b; ++i)
    text += "{\"query_len\": 0, \"seq_len\": 0}, ";
  text += "{\"query_len\": " + std::to_string(scene.queryLen) +
          ", \"seq_len\": " + std::to_string(scene.seqLen) +
          ", \"context_len\": " + std::to_string(scene.contextLen) + "}]";
  std::string params, tables;
  for (const core::ParamDecl &param : program.params) {
    auto known = scene.params.find(param.name);
    core::ParamValue value = known == scene.params.end() ? core::ParamValue() : known->second;
    params += (params.empty() ? "\"" : ", \"") + param.name + "\": " +
              (param.type == ScalarType::F32 ? floatText(value.f) : std::to_string(value.i));
  }
  if (!params.empty())
    text += ", \"params\": {" + params + "}";
  bool cut = false;
  for (const core::TableDecl &table : program.tables) {
    if (table.kind == TableKind::QueryRanges)
      continue;
    tables += (tables.empty() ? "\"" : ", \"") + table.name + "\": " + tableText(scene, table);
    if (auto known = scene.ranges.find(table.name); known != scene.ranges.end())
      for (const core::Range &range : known->second)
        cut |= range.end >= scene.seqLen;
  }
  if (!tables.empty())
    text += ", \"tables\": {" + tables + "}";
  if (cut)
    text += ", \"partial_ranges\": \"allow\"";
  return text + "}";
}
