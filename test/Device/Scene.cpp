// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Scene.h"

#include <algorithm>
#include <stdexcept>

using namespace device;
using namespace attn;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static bool recent(const Scene &s, Int q, Int k) {
  return truth::causal(q, k) && truth::windowLeft(q, k, s.left);
}

static const Family kFamilies[] = {
    {"none", [](const Scene &, Int, Int, Int, Int) { return true; }, false, true},
    {"causal", [](const Scene &, Int, Int, Int q, Int k) { return truth::causal(q, k); }, false,
     true},
    {"window", [](const Scene &s, Int, Int, Int q, Int k) { return recent(s, q, k); }, false, true},
    {"window_mm",
     [](const Scene &s, Int b, Int, Int q, Int k) {
       return recent(s, q, k) || truth::mmPrefix(s.requests[b], q, k);
     },
     false, true},
    {"window_mm_clamp",
     [](const Scene &s, Int b, Int, Int q, Int k) {
       return recent(s, q, k) || truth::mmPrefixClamp(s.requests[b], q, k, s.left);
     },
     false, true},
    {"prefix_lm",
     [](const Scene &s, Int b, Int, Int q, Int k) {
       return truth::causal(q, k) || truth::prefix(k, s.prefixLen[b]);
     },
     false, true},
    {"document",
     [](const Scene &s, Int b, Int, Int q, Int k) {
       return truth::causal(q, k) && truth::document(s.requests[b], q, k);
     },
     false, true},
    {"rswa",
     [](const Scene &s, Int b, Int, Int q, Int k) {
       return truth::causal(q, k) &&
              (truth::prefix(k, s.prefixLen[b]) || truth::windowLeft(q, k, s.left));
     },
     false, true},
    {"global_window",
     [](const Scene &s, Int, Int, Int q, Int k) {
       return truth::window(q, k, s.left, s.left) || truth::global(q, k, s.globalTokens);
     },
     false, true},
    {"not_window",
     [](const Scene &s, Int, Int, Int q, Int k) {
       return truth::causal(q, k) && !truth::windowLeft(q, k, s.left);
     },
     false, true},
    {"branches",
     [](const Scene &s, Int b, Int, Int q, Int k) {
       const int32_t mine = s.qBranch[s.firstToken[b] + q - s.requests[b].contextLen];
       const int32_t other = s.kBranch[b * s.kStride + k];
       return truth::causal(q, k) && (other == 0 || other == mine);
     },
     false, true},
    {"predicate",
     [](const Scene &, Int, Int, Int q, Int k) { return k <= q && (q + 2 * k) % 3 != 0; }, false,
     true},
    {"head_window",
     [](const Scene &s, Int, Int h, Int q, Int k) {
       return truth::causal(q, k) && truth::windowLeft(q, k, s.radii[h]);
     },
     true, true},
    {"alibi", [](const Scene &, Int, Int, Int q, Int k) { return truth::causal(q, k); }, false,
     false},
    {"softcap", [](const Scene &, Int, Int, Int q, Int k) { return truth::causal(q, k); }, false,
     true},
    {"softcap50", [](const Scene &s, Int, Int, Int q, Int k) { return recent(s, q, k); }, false,
     true},
};

const Family *device::familyOf(const std::string &kernel) {
  for (const Family &family : kFamilies)
    if (family.name == kernel)
      return &family;
  return nullptr;
}

Int Scene::tokens() const {
  return requests.empty() ? 0 : firstToken.back() + requests.back().queryLen;
}

//===----------------------------------------------------------------------===//
// Random batches
//===----------------------------------------------------------------------===//

/// Uniform in [lo, hi].
static Int in(std::mt19937 &rng, Int lo, Int hi) {
  return lo + static_cast<Int>(rng() % static_cast<uint64_t>(hi - lo + 1));
}

/// With at most `most` queries.
static truth::Request randomRequest(Int most, std::mt19937 &rng) {
  auto queries = [&](Int hi) { return in(rng, 1, std::min(hi, most)); };
  switch (rng() % 6) {
  case 0:
    return truth::request(1, in(rng, 1, 700));
  case 1: {
    // More queries than keys, down to no key at all.
    const Int keys = in(rng, 0, std::min<Int>(80, most - 1));
    return truth::request(keys + in(rng, 1, std::min<Int>(90, most - keys)), keys);
  }
  case 2: {
    const Int length = queries(420);
    return truth::request(length, length);
  }
  case 3: {
    // Cut behind its queries: keys follow that no query of this launch is.
    truth::Request r = truth::request(queries(150), 0);
    r.contextLen = in(rng, 0, 150);
    r.seqLen = r.contextLen + r.queryLen + in(rng, 0, 60);
    return r;
  }
  default: {
    const Int length = queries(260);
    return truth::request(length, length + in(rng, 0, 400));
  }
  }
}

/// With a range longer than the window.
static truth::Request longRangeRequest(Int left, Int most, std::mt19937 &rng) {
  truth::Request r = truth::request(in(rng, std::min<Int>(40, most), std::min<Int>(200, most)), 0);
  r.seqLen = r.queryLen + left + in(rng, 20, 120);
  r.contextLen = r.seqLen - r.queryLen;
  r.ranges = {{in(rng, 0, 10), r.seqLen - 1 - in(rng, 0, 5)}};
  return r;
}

static void addRanges(truth::Request &r, Int count, std::mt19937 &rng) {
  for (; count > 0 && r.seqLen > 1; --count) {
    const Int start = in(rng, 0, r.seqLen - 1);
    r.ranges.push_back({start, start + in(rng, 0, 150)});
  }
}

static void addDocuments(truth::Request &r, std::mt19937 &rng) {
  int id = static_cast<int>(rng() % 3);
  for (Int k = 0; k < r.seqLen; ++k) {
    id += rng() % 60 == 0;
    r.documents.push_back(id);
  }
}

/// Everything that follows from the requests.
static void finish(Scene &scene, Int heads, std::mt19937 &rng) {
  Int token = 0;
  scene.kStride = 1;
  for (truth::Request &r : scene.requests) {
    scene.firstToken.push_back(token);
    token += r.queryLen;
    scene.kStride = std::max(scene.kStride, r.seqLen);
    scene.prefixLen.push_back(static_cast<int32_t>(in(rng, 0, r.seqLen + 2)));
    addDocuments(r, rng);
  }
  scene.globalTokens = in(rng, 0, 40);
  for (Int h = 0; h < heads; ++h) {
    scene.radii.push_back(static_cast<int32_t>(in(rng, 0, 300)));
    scene.slopes.push_back(static_cast<float>(in(rng, 0, 64)) / 256);
  }
  // Branches change rarely, so some tiles are whole ones.
  for (auto [table, count] :
       {std::pair(&scene.qBranch, token),
        std::pair(&scene.kBranch, static_cast<Int>(scene.requests.size()) * scene.kStride)}) {
    int32_t branch = 0;
    for (Int i = 0; i < count; ++i) {
      if (rng() % 50 == 0)
        branch = static_cast<int32_t>(rng() % 4);
      table->push_back(branch);
    }
  }
  // Keys that all queries keep and keys that none does, both longer than two blocks and no multiple
  // of one.
  if (scene.manyRuns)
    for (size_t k = 0; k < scene.kBranch.size(); ++k)
      scene.kBranch[k] = k / 300 % 2 ? 4 : 0;
}

static Int randomWindow(std::mt19937 &rng) {
  const Int windows[] = {0, 3, 17, 64, 128, 200};
  return windows[rng() % 6];
}

/// What `number` decides besides the requests with queries.
static void complete(Scene &scene, int number, Int heads, std::mt19937 &rng) {
  const Int size = static_cast<Int>(scene.requests.size());
  const Int places[] = {0, size / 2, size};
  if (number % 4 != 3)
    scene.requests.insert(scene.requests.begin() + places[number % 4],
                          truth::request(0, in(rng, 0, 90)));
  for (const truth::Request &r : scene.requests) {
    if (number % 4 != 1) {
      scene.keys.push_back({0, r.seqLen});
    } else if (rng() % 2) {
      const Int begin = in(rng, 0, r.seqLen);
      scene.keys.push_back({begin, in(rng, begin, r.seqLen)});
    } else {
      // A little before the diagonal: the block that they begin in and two that the diagonal
      // crosses are then partial ones side by side.
      scene.keys.push_back({std::max<Int>(0, r.contextLen - in(rng, 0, 200)), r.seqLen});
    }
  }
  scene.what = std::to_string(scene.requests.size()) + " requests, left " +
               std::to_string(scene.left) +
               (number % 2 == 0 ? ", a range longer than the window" : "") +
               (number % 4 == 1 ? ", part of the keys" : "");
  finish(scene, heads, rng);
}

Scene device::randomScene(int number, Int heads, std::mt19937 &rng) {
  constexpr Int kAny = 1000;
  Scene scene;
  scene.left = randomWindow(rng);
  const Int count = in(rng, 1, 6);
  for (Int b = 0; b < count; ++b) {
    scene.requests.push_back(randomRequest(kAny, rng));
    addRanges(scene.requests.back(), in(rng, 0, 3), rng);
  }
  if (number % 2 == 0) {
    truth::Request &r = scene.requests[rng() % scene.requests.size()];
    r = longRangeRequest(scene.left, kAny, rng);
  }
  complete(scene, number, heads, rng);
  return scene;
}

Scene device::smallScene(int number, Int heads, Int tiles, Int queryTile, bool manyRuns,
                         std::mt19937 &rng) {
  Scene scene;
  if (!manyRuns && tiles > 2 && rng() % 3 == 0) {
    // Tiles without keys, which are many at little cost. A CTA needs 23 of them until an arrival
    // too few at the 2 slots of the work queue, where 12 warps arrive, has become a phase too many.
    constexpr Int kTiles = 24; // of 2 heads, on the simulator's 2 CTAs
    for (Int i = 0; i < kTiles; ++i)
      scene.requests.push_back(truth::request(in(rng, 1, 4), 0));
    complete(scene, number, heads, rng);
    return scene;
  }
  // Often more key blocks than any ring has slots.
  scene.manyRuns = manyRuns;
  const Int more = manyRuns ? 5000 : rng() % 3 ? 0 : in(rng, 200, 700);
  scene.left = more && rng() % 2 ? in(rng, 200, 700) : randomWindow(rng);
  for (Int open = tiles; open > 0;) {
    if (number % 2 == 0 && open == tiles) {
      scene.requests.push_back(longRangeRequest(scene.left, open * queryTile, rng));
    } else {
      scene.requests.push_back(randomRequest(open * queryTile, rng));
      addRanges(scene.requests.back(), in(rng, 0, 3), rng);
    }
    truth::Request &r = scene.requests.back();
    r.contextLen += more;
    r.seqLen += more;
    for (truth::Range &range : r.ranges)
      range.end += more;
    open -= (r.queryLen + queryTile - 1) / queryTile;
  }
  complete(scene, number, heads, rng);
  return scene;
}

Scene device::manyRequests(Int left, Int heads, std::mt19937 &rng) {
  Scene scene;
  scene.left = left;
  const Int count = in(rng, 1, 64);
  Int ranges = in(rng, 0, 64);
  for (Int b = 0; b < count; ++b) {
    // A few requests are longer than every window; most are short.
    const Int queries = rng() % 3 ? 1 : in(rng, 1, 90);
    const Int context = b < 2 ? in(rng, 0, 1200) : in(rng, 0, 90);
    truth::Request r = truth::request(queries, queries + context);
    const Int mine = std::min(ranges, in(rng, 0, 4));
    addRanges(r, mine, rng);
    ranges -= mine;
    scene.requests.push_back(std::move(r));
  }
  for (const truth::Request &r : scene.requests)
    scene.keys.push_back({0, r.seqLen});
  scene.what = std::to_string(count) + " requests, left " + std::to_string(left);
  finish(scene, heads, rng);
  return scene;
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

template <class T>
static rt::DenseInput dense(core::ScalarType element, std::vector<int64_t> extents,
                            const std::vector<T> &values) {
  rt::DenseInput input;
  input.element = element;
  input.extents = std::move(extents);
  const unsigned char *bytes = reinterpret_cast<const unsigned char *>(values.data());
  input.owned.assign(bytes, bytes + values.size() * sizeof(T));
  return input;
}

static rt::TableInput tableInput(const Scene &scene, const std::string &name) {
  using core::ScalarType;
  const int64_t requests = static_cast<int64_t>(scene.requests.size());
  const int64_t heads = static_cast<int64_t>(scene.radii.size());
  rt::TableInput table;
  table.name = name;
  if (name == "doc") {
    table.documents.emplace();
    table.documents->offsets = {0};
    for (const truth::Request &r : scene.requests) {
      std::vector<int32_t> &ids = table.documents->ids;
      ids.insert(ids.end(), r.documents.begin(), r.documents.end());
      table.documents->offsets.push_back(static_cast<int64_t>(ids.size()));
    }
  } else if (name == "prefix_len") {
    table.dense = dense(ScalarType::I32, {requests}, scene.prefixLen);
  } else if (name == "radii") {
    table.dense = dense(ScalarType::I32, {heads}, scene.radii);
  } else if (name == "slopes") {
    table.dense = dense(ScalarType::F32, {heads}, scene.slopes);
  } else if (name == "q_branch") {
    table.dense =
        dense(ScalarType::I32, {static_cast<int64_t>(scene.qBranch.size())}, scene.qBranch);
  } else if (name == "k_branch") {
    table.dense = dense(ScalarType::I32, {requests, scene.kStride}, scene.kBranch);
  } else {
    throw std::runtime_error("no table '" + name + "' in device scenes");
  }
  return table;
}

static rt::ParamInput paramInput(const Scene &scene, const core::ParamDecl &decl) {
  rt::ParamInput param;
  param.name = decl.name;
  param.isInteger = decl.type != core::ScalarType::F32;
  param.i = decl.name == "global_tokens" ? scene.globalTokens : scene.left;
  param.f = decl.name == "cap" ? scene.cap : scene.scale;
  return param;
}

rt::BatchInput device::batchInput(const Scene &scene, const core::KernelSpec &spec) {
  rt::BatchInput input;
  input.allowPartialRanges = true;
  input.mmRanges.emplace();
  input.mmRanges->offsets = {0};
  for (size_t b = 0; b < scene.requests.size(); ++b) {
    const truth::Request &r = scene.requests[b];
    rt::RequestInput request;
    request.queryLen = r.queryLen;
    request.seqLen = r.seqLen;
    request.contextLen = r.contextLen;
    request.keyBegin = scene.keys[b].first;
    request.keyEnd = scene.keys[b].second;
    input.requests.push_back(request);
    for (const truth::Range &range : r.ranges)
      input.mmRanges->ranges.push_back({range.start, range.end});
    input.mmRanges->offsets.push_back(static_cast<int64_t>(input.mmRanges->ranges.size()));
  }
  for (const core::ParamDecl &decl : spec.program.params)
    input.params.push_back(paramInput(scene, decl));
  for (const core::TableDecl &decl : spec.program.tables)
    if (decl.kind == core::TableKind::Plain || decl.kind == core::TableKind::Documents)
      input.tables.push_back(tableInput(scene, decl.name));
  return input;
}
