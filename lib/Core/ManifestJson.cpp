// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writing and reading of the manifest. Keys with their default value are left out.
#include "ManifestJson.h"

#include "attn/Core/CudaAbi.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn::core {

std::string_view toString(TilePlan plan) {
  return plan == TilePlan::Intervals ? "intervals" : "abstract";
}

std::optional<TilePlan> parseTilePlan(std::string_view text) {
  for (TilePlan plan : {TilePlan::Intervals, TilePlan::Abstract})
    if (toString(plan) == text)
      return plan;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static JsonValue text(std::string_view s) { return JsonValue::string(std::string(s)); }

/// JSON has no spelling for these; they travel as strings.
static JsonValue writeFloat(double v) {
  if (std::isnan(v))
    return text("nan");
  if (std::isinf(v))
    return text(v > 0 ? "inf" : "-inf");
  return JsonValue::number(v);
}

static std::string toHex(uint64_t v) {
  std::string s(16, '0');
  for (size_t i = 16; i-- > 0; v >>= 4)
    s[i] = "0123456789abcdef"[v & 15];
  return s;
}

static JsonValue writeTables(const std::vector<TableDecl> &tables) {
  JsonValue list = JsonValue::array();
  for (const TableDecl &table : tables) {
    JsonValue t = JsonValue::object();
    t.set("name", text(table.name));
    t.set("kind", text(toString(table.kind)));
    if (table.kind == TableKind::Plain) {
      JsonValue dims = JsonValue::array();
      for (TableDim dim : table.dims)
        dims.push(text(toString(dim)));
      t.set("dims", std::move(dims));
      t.set("element", text(toString(table.element)));
    }
    if (table.kind == TableKind::QueryRanges)
      t.set("source", JsonValue::integer(table.source));
    list.push(std::move(t));
  }
  return list;
}

static JsonValue writeNode(const Node &node) {
  JsonValue n = JsonValue::object();
  n.set("op", text(toString(node.op)));
  n.set("type", text(toString(node.type)));
  if (!node.operands.empty()) {
    JsonValue operands = JsonValue::array();
    for (NodeId operand : node.operands)
      operands.push(JsonValue::integer(operand));
    n.set("operands", std::move(operands));
  }
  if (node.ref != -1)
    n.set("ref", JsonValue::integer(node.ref));
  if (node.imm != 0)
    n.set("imm", JsonValue::integer(node.imm));
  if (node.fimm != 0 || std::signbit(node.fimm))
    n.set("float", writeFloat(node.fimm));
  return n;
}

static JsonValue writeProgram(const MaskProgram &program) {
  JsonValue params = JsonValue::array();
  for (const ParamDecl &param : program.params) {
    JsonValue p = JsonValue::object();
    p.set("name", text(param.name));
    p.set("type", text(toString(param.type)));
    if (param.minValue)
      p.set("min", JsonValue::integer(*param.minValue));
    params.push(std::move(p));
  }
  JsonValue nodes = JsonValue::array();
  for (const Node &node : program.nodes)
    nodes.push(writeNode(node));
  JsonValue result = JsonValue::object();
  result.set("params", std::move(params));
  result.set("tables", writeTables(program.tables));
  result.set("nodes", std::move(nodes));
  result.set("mask", JsonValue::integer(program.mask));
  result.set("score", JsonValue::integer(program.score));
  return result;
}

static JsonValue writeCudaLaunch(const CudaLaunch &launch) {
  JsonValue c = JsonValue::object();
  c.set("groups", JsonValue::integer(launch.groups));
  c.set("key_tile", JsonValue::integer(launch.keyTile));
  c.set("threads", JsonValue::integer(launch.threads));
  c.set("shared_bytes", JsonValue::integer(launch.sharedBytes));
  if (launch.testsVisible)
    c.set("tests_visible", JsonValue::boolean(true));
  if (launch.countsTiles)
    c.set("counts_tiles", JsonValue::boolean(true));
  return c;
}

static JsonValue writeRecipes(const std::vector<Recipe> &recipes) {
  JsonValue list = JsonValue::array();
  for (const Recipe &recipe : recipes) {
    JsonValue r = JsonValue::object();
    r.set("name", text(recipe.name));
    r.set("kind", text(toString(recipe.kind)));
    switch (recipe.kind) {
    case RecipeKind::RangeTensor:
      r.set("source", JsonValue::integer(recipe.source));
      r.set("per_request", JsonValue::integer(recipe.perRequest));
      break;
    case RecipeKind::PageRuns:
      r.set("page_size", JsonValue::integer(recipe.pageSize));
      break;
    case RecipeKind::SplitPlan:
      r.set("policy", text(toString(recipe.policy)));
      r.set("pieces", JsonValue::integer(recipe.pieces));
      if (recipe.policy == SplitPolicy::Measured)
        r.set("ctas_per_sm", JsonValue::integer(recipe.ctasPerSm));
      if (recipe.policy == SplitPolicy::Sm100Relbias && recipe.isLocal)
        r.set("local", JsonValue::boolean(true));
      break;
    }
    list.push(std::move(r));
  }
  return list;
}

static JsonValue writeKernel(const Kernel &kernel) {
  const KernelSpec &spec = kernel.spec;
  JsonValue k = JsonValue::object();
  k.set("name", text(spec.name));
  k.set("spec_hash", text(spec.specHash));
  k.set("num_heads", JsonValue::integer(spec.numHeads));
  k.set("num_kv_heads", JsonValue::integer(spec.numKvHeads));
  k.set("dim_qk", JsonValue::integer(spec.dimQk));
  k.set("dim_v", JsonValue::integer(spec.dimV));
  k.set("q_type", text(toString(spec.qType)));
  k.set("kv_type", text(toString(spec.kvType)));
  k.set("scale", JsonValue::number(spec.scale));
  if (spec.scaleParam >= 0)
    k.set("scale_param", JsonValue::integer(spec.scaleParam));
  k.set("program", writeProgram(spec.program));
  JsonValue binaries = JsonValue::array();
  for (const KernelBinary &binary : kernel.binaries) {
    JsonValue b = JsonValue::object();
    b.set("target", text(binary.target));
    b.set("format", text(binary.format));
    b.set("blob", JsonValue::integer(binary.blob));
    b.set("entry", text(binary.entry));
    b.set("mask_entry", text(binary.maskEntry));
    b.set("tile_plan", text(toString(binary.tilePlan)));
    b.set("tables", writeTables(binary.tables));
    if (binary.cuda)
      b.set("cuda", writeCudaLaunch(*binary.cuda));
    if (!binary.recipes.empty())
      b.set("recipes", writeRecipes(binary.recipes));
    binaries.push(std::move(b));
  }
  k.set("binaries", std::move(binaries));
  return k;
}

JsonValue writeManifest(const Artifact &artifact, const std::vector<BlobPlace> &blobs) {
  JsonValue root = JsonValue::object();
  root.set("format", JsonValue::integer(kArtifactFormatVersion));
  root.set("compiler", text(artifact.compilerVersion));
  JsonValue kernels = JsonValue::array();
  for (const Kernel &kernel : artifact.kernels)
    kernels.push(writeKernel(kernel));
  root.set("kernels", std::move(kernels));
  JsonValue places = JsonValue::array();
  for (const BlobPlace &blob : blobs) {
    JsonValue b = JsonValue::object();
    b.set("offset", JsonValue::integer(blob.offset));
    b.set("size", JsonValue::integer(blob.size));
    b.set("fnv1a", text(toHex(blob.checksum)));
    places.push(std::move(b));
  }
  root.set("blobs", std::move(places));
  return root;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// A name of an enum: `parse` maps text to a value.
template <class Parse>
static auto readEnum(ObjectReader &reader, std::string_view key, Parse parse) {
  std::string name = reader.string(key);
  auto value = parse(name);
  if (!value && reader.ok())
    reader.fail(*reader.optional(key), key, "unknown name '" + name + "'");
  return value.value_or(typename decltype(value)::value_type());
}

static int32_t readIndex(ObjectReader &reader, std::string_view key) {
  return static_cast<int32_t>(reader.integer(key, -1, std::numeric_limits<int32_t>::max()));
}

/// Calls read(element, path) for each element of an array member until one fails.
template <class Read>
static void forEach(ObjectReader &reader, std::string_view key, const JsonValue *array, Read read) {
  if (!array)
    return;
  for (size_t i = 0; i < array->elements().size() && reader.ok(); ++i)
    if (Status s = read(array->elements()[i], elementPath(reader.path(key), i)); !s)
      reader.fail(Error{s.message()});
}

static void readTables(ObjectReader &reader, std::vector<TableDecl> &tables) {
  const JsonValue *list = reader.array("tables");
  forEach(reader, "tables", list, [&](const JsonValue &v, const std::string &path) {
    ObjectReader t(v, path);
    TableDecl table;
    table.name = t.string("name");
    table.kind = readEnum(t, "kind", parseTableKind);
    if (table.kind == TableKind::Plain) {
      forEach(t, "dims", t.array("dims"), [&](const JsonValue &d, const std::string &at) -> Status {
        std::optional<TableDim> dim = parseTableDim(d.asString());
        if (!dim)
          return errorAt(d, at, "expected a dimension, got '" + d.asString() + "'");
        table.dims.push_back(*dim);
        return {};
      });
      table.element = readEnum(t, "element", parseScalarType);
    }
    if (table.kind == TableKind::QueryRanges)
      table.source = readIndex(t, "source");
    tables.push_back(std::move(table));
    return t.finish();
  });
  if (!reader.ok())
    return;
  if (std::optional<std::string> fault = verifyTables(tables))
    reader.fail(*list, "tables", *fault);
}

static Status readNode(const JsonValue &v, const std::string &path, MaskProgram &program) {
  ObjectReader n(v, path);
  Node node;
  node.op = readEnum(n, "op", parseOp);
  node.type = readEnum(n, "type", parseScalarType);
  forEach(n, "operands", n.optionalArray("operands"),
          [&](const JsonValue &o, const std::string &at) -> Status {
            Result<int64_t> id = readInteger(o, at, 0, std::numeric_limits<NodeId>::max());
            if (!id)
              return id.takeError();
            node.operands.push_back(static_cast<NodeId>(*id));
            return {};
          });
  if (n.optional("ref"))
    node.ref = readIndex(n, "ref");
  node.imm = n.optionalInteger("imm").value_or(0);
  if (const JsonValue *f = n.optional("float")) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (f->isNumber())
      node.fimm = f->asDouble();
    else if (f->asString() == "inf" || f->asString() == "-inf")
      node.fimm = f->asString() == "inf" ? infinity : -infinity;
    else if (f->asString() == "nan")
      node.fimm = std::numeric_limits<double>::quiet_NaN();
    else
      n.fail(*f, "float", "expected a number, 'inf', '-inf' or 'nan'");
  }
  program.nodes.push_back(std::move(node));
  return n.finish();
}

static Status readProgram(const JsonValue &v, const std::string &path, MaskProgram &program) {
  ObjectReader reader(v, path);
  forEach(reader, "params", reader.array("params"), [&](const JsonValue &p, const std::string &at) {
    ObjectReader param(p, at);
    ParamDecl decl;
    decl.name = param.string("name");
    decl.type = readEnum(param, "type", parseScalarType);
    decl.minValue = param.optionalInteger("min");
    program.params.push_back(std::move(decl));
    return param.finish();
  });
  readTables(reader, program.tables);
  forEach(reader, "nodes", reader.array("nodes"),
          [&](const JsonValue &n, const std::string &at) { return readNode(n, at, program); });
  program.mask = readIndex(reader, "mask");
  program.score = readIndex(reader, "score");
  if (Status s = reader.finish(); !s)
    return s;
  if (std::optional<std::string> fault = verify(program))
    return errorAt(v, path, *fault);
  return {};
}

static bool sameTable(const TableDecl &a, const TableDecl &b) {
  return a.name == b.name && a.kind == b.kind && a.dims == b.dims && a.source == b.source &&
         (a.kind != TableKind::Plain || a.element == b.element);
}

/// True for the formats that a GPU driver loads.
static bool isCudaFormat(std::string_view format) { return format == "ptx" || format == "cubin"; }

static Status readCudaLaunch(const JsonValue &v, const std::string &path, CudaLaunch &launch) {
  constexpr int64_t kKeyTileStep = 16;    // of the matrix instructions
  constexpr int64_t kMostGroups = 3;      // with the producer, the most that registers allow
  constexpr int64_t kWarpgroup = 128;     // threads
  constexpr int64_t kMostShared = 232448; // bytes of a CTA
  ObjectReader reader(v, path);
  launch.groups = reader.integer("groups", 1, kMostGroups);
  launch.keyTile = reader.integer("key_tile", kKeyTileStep, kMaxKeyTile);
  launch.threads = reader.integer("threads", 1);
  launch.sharedBytes = reader.integer("shared_bytes", 1, kMostShared);
  launch.testsVisible = reader.optionalBoolean("tests_visible").value_or(false);
  launch.countsTiles = reader.optionalBoolean("counts_tiles").value_or(false);
  if (Status s = reader.finish(); !s)
    return s;
  if (launch.keyTile % kKeyTileStep != 0)
    return errorAt(v, path,
                   "key_tile " + std::to_string(launch.keyTile) + " is not a multiple of " +
                       std::to_string(kKeyTileStep));
  if (launch.threads != kWarpgroup * (launch.groups + 1))
    return errorAt(v, path,
                   "expected " + std::to_string(kWarpgroup * (launch.groups + 1)) +
                       " threads for " + std::to_string(launch.groups) + " groups, got " +
                       std::to_string(launch.threads));
  return {};
}

static Status readRecipe(const JsonValue &v, const std::string &path, Recipe &recipe) {
  ObjectReader reader(v, path);
  recipe.name = reader.string("name");
  const std::string kind = reader.string("kind");
  const std::optional<RecipeKind> known = parseRecipeKind(kind);
  if (!known && reader.ok())
    reader.fail(*reader.optional("kind"), "kind",
                "unknown recipe '" + kind +
                    "', expected one of range_tensor, page_runs, split_plan");
  recipe.kind = known.value_or(RecipeKind::RangeTensor);
  switch (recipe.kind) {
  case RecipeKind::RangeTensor:
    recipe.source = readIndex(reader, "source");
    recipe.perRequest = reader.integer("per_request", 1, kMostRangesPerRequest);
    break;
  case RecipeKind::PageRuns:
    recipe.pageSize = reader.integer("page_size", 1, kMostRecipePageSize);
    break;
  case RecipeKind::SplitPlan: {
    const std::string policy = reader.string("policy");
    const std::optional<SplitPolicy> chosen = parseSplitPolicy(policy);
    if (!chosen && reader.ok())
      reader.fail(*reader.optional("policy"), "policy",
                  "unknown policy '" + policy +
                      "', expected one of count, measured, sm100_relbias");
    recipe.policy = chosen.value_or(SplitPolicy::Count);
    recipe.pieces = reader.integer("pieces", 1, kMostSplitPieces);
    if (recipe.policy == SplitPolicy::Measured)
      recipe.ctasPerSm = reader.integer("ctas_per_sm", 1, kMostCtasPerSm);
    if (recipe.policy == SplitPolicy::Sm100Relbias)
      recipe.isLocal = reader.optionalBoolean("local").value_or(false);
    break;
  }
  }
  return reader.finish();
}

static void readRecipes(ObjectReader &reader, KernelBinary &binary) {
  const JsonValue *list = reader.optionalArray("recipes");
  if (!list)
    return;
  if (!isCudaFormat(binary.format)) {
    reader.fail(*list, "recipes",
                "code of format '" + binary.format + "' for target '" + binary.target +
                    "' has no recipes, code for a GPU has");
    return;
  }
  forEach(reader, "recipes", list, [&](const JsonValue &v, const std::string &at) {
    return readRecipe(v, at, binary.recipes.emplace_back());
  });
  if (!reader.ok())
    return;
  if (std::optional<std::string> fault = verifyRecipes(binary.recipes, binary.tables))
    reader.fail(*list, "recipes", *fault);
}

/// One binary of each format for a target: the runtime takes the first that it can load.
static bool hasBinary(const Kernel &kernel, const KernelBinary &binary) {
  return std::any_of(kernel.binaries.begin(), kernel.binaries.end(), [&](const KernelBinary &b) {
    return b.target == binary.target && b.format == binary.format;
  });
}

static Status readBinary(const JsonValue &v, const std::string &path, size_t numBlobs,
                         Kernel &kernel) {
  ObjectReader reader(v, path);
  KernelBinary binary;
  binary.target = reader.string("target");
  binary.format = reader.string("format");
  binary.blob =
      static_cast<int32_t>(reader.integer("blob", 0, std::numeric_limits<int32_t>::max()));
  binary.entry = reader.string("entry");
  binary.maskEntry = reader.string("mask_entry");
  binary.tilePlan = readEnum(reader, "tile_plan", parseTilePlan);
  readTables(reader, binary.tables);
  if (isCudaFormat(binary.format)) {
    if (const JsonValue *cuda = reader.object("cuda"))
      if (Status s = readCudaLaunch(*cuda, reader.path("cuda"), binary.cuda.emplace()); !s)
        return s;
  } else if (const JsonValue *cuda = reader.optional("cuda")) {
    reader.fail(*cuda, "cuda", "code of format '" + binary.format + "' is not launched on a GPU");
  }
  readRecipes(reader, binary);
  if (Status s = reader.finish(); !s)
    return s;
  if (binary.target.empty() || binary.format.empty() || binary.entry.empty())
    return errorAt(v, path, "target, format and entry must not be empty");
  if (hasBinary(kernel, binary))
    return errorAt(v, path,
                   "a second binary of format '" + binary.format + "' for target '" +
                       binary.target + "'");
  if (static_cast<size_t>(binary.blob) >= numBlobs)
    return errorAt(v, path,
                   "no blob " + std::to_string(binary.blob) + ", the artifact has " +
                       std::to_string(numBlobs));
  const std::vector<TableDecl> &own = kernel.spec.program.tables;
  if (binary.tables.size() < own.size() ||
      !std::equal(own.begin(), own.end(), binary.tables.begin(), sameTable))
    return errorAt(v, path, "tables do not start with those of the program");
  kernel.binaries.push_back(std::move(binary));
  return {};
}

static Status checkSpec(const JsonValue &v, const std::string &path, const KernelSpec &spec) {
  if (spec.name.empty())
    return errorAt(v, path, "empty name");
  auto isHex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (spec.specHash.size() != 64 || !std::all_of(spec.specHash.begin(), spec.specHash.end(), isHex))
    return errorAt(v, path, "expected a spec_hash of 64 hex digits");
  if (spec.numHeads % spec.numKvHeads != 0)
    return errorAt(v, path,
                   "num_heads " + std::to_string(spec.numHeads) +
                       " is not a multiple of num_kv_heads " + std::to_string(spec.numKvHeads));
  const std::vector<ParamDecl> &params = spec.program.params;
  if (spec.scaleParam >= static_cast<int32_t>(params.size()) ||
      (spec.scaleParam >= 0 && params[spec.scaleParam].type != ScalarType::F32))
    return errorAt(v, path,
                   "scale_param " + std::to_string(spec.scaleParam) + " is not an f32 parameter");
  return {};
}

static Status readKernel(const JsonValue &v, const std::string &path, size_t numBlobs,
                         Artifact &artifact) {
  ObjectReader reader(v, path);
  Kernel kernel;
  KernelSpec &spec = kernel.spec;
  spec.name = reader.string("name");
  spec.specHash = reader.string("spec_hash");
  spec.numHeads = reader.integer("num_heads", 1, kMaxKernelExtent);
  spec.numKvHeads = reader.integer("num_kv_heads", 1, kMaxKernelExtent);
  spec.dimQk = reader.integer("dim_qk", 1, kMaxKernelExtent);
  spec.dimV = reader.integer("dim_v", 1, kMaxKernelExtent);
  spec.qType = readEnum(reader, "q_type", parseDType);
  spec.kvType = readEnum(reader, "kv_type", parseDType);
  spec.scale = reader.number("scale");
  if (reader.optional("scale_param"))
    spec.scaleParam = readIndex(reader, "scale_param");
  if (const JsonValue *program = reader.object("program"))
    if (Status s = readProgram(*program, reader.path("program"), spec.program); !s)
      return s;
  if (reader.ok())
    if (Status s = checkSpec(v, path, spec); !s)
      return s;
  forEach(reader, "binaries", reader.array("binaries"),
          [&](const JsonValue &b, const std::string &at) {
            return readBinary(b, at, numBlobs, kernel);
          });
  for (const Kernel &other : artifact.kernels)
    if (other.spec.name == spec.name)
      return errorAt(v, path, "a second kernel '" + spec.name + "'");
  artifact.kernels.push_back(std::move(kernel));
  return reader.finish();
}

static Status readBlob(const JsonValue &v, const std::string &path, std::vector<BlobPlace> &blobs) {
  ObjectReader reader(v, path);
  BlobPlace blob;
  blob.offset = reader.integer("offset", 0);
  blob.size = reader.integer("size", 0);
  std::string hex = reader.string("fnv1a");
  for (char c : hex) {
    size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos || hex.size() != 16) {
      reader.fail(*reader.optional("fnv1a"), "fnv1a", "expected 16 hex digits");
      break;
    }
    blob.checksum = blob.checksum * 16 + digit;
  }
  blobs.push_back(blob);
  return reader.finish();
}

Result<Artifact> readManifest(const JsonValue &manifest, std::vector<BlobPlace> &blobs) {
  // The version decides what the other keys mean, so it is looked at before them.
  const JsonValue *format = manifest.find("format");
  if (format && format->isInt() && format->asInt() > kArtifactFormatVersion)
    return Error{"format " + std::to_string(format->asInt()) + " is newer than " +
                 std::to_string(kArtifactFormatVersion) + ", the newest one known here"};
  if (format && format->isInt() && format->asInt() >= 1 && format->asInt() < kArtifactFormatVersion)
    return Error{"format " + std::to_string(format->asInt()) + " is older than " +
                 std::to_string(kArtifactFormatVersion) +
                 ", the only one known here; compile the spec again"};
  ObjectReader reader(manifest, "");
  Artifact artifact;
  reader.integer("format", kArtifactFormatVersion, kArtifactFormatVersion);
  artifact.compilerVersion = reader.string("compiler");
  forEach(reader, "blobs", reader.array("blobs"),
          [&](const JsonValue &b, const std::string &at) { return readBlob(b, at, blobs); });
  const JsonValue *kernels = reader.array("kernels");
  if (kernels && kernels->elements().empty())
    reader.fail(*kernels, "kernels", "expected at least one kernel");
  forEach(reader, "kernels", kernels, [&](const JsonValue &k, const std::string &at) {
    return readKernel(k, at, blobs.size(), artifact);
  });
  if (Status s = reader.finish(); !s)
    return Error{s.message()};
  return artifact;
}

} // namespace attn::core
