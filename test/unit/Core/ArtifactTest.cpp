// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The artifact container: round trips, refusals, and damage of every kind.
#include "ProgramBuilder.h"

#include "attn/Core/Json.h"
#include "attn/Core/Manifest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

using namespace attn::core;
using namespace attn::test;

namespace {

using Type = ScalarType;
using Bytes = std::vector<uint8_t>;

Artifact sample() {
  ProgramBuilder build;
  int32_t mm = build.table("mm", TableKind::Ranges);
  build.plain("bias", {TableDim::H, TableDim::Bucket}, Type::F32);
  build.table("rows", TableKind::QueryRanges, mm);
  int32_t left = build.param("left", Type::I32);
  build.program.params[left].minValue = 0;
  int32_t scale = build.param("scale", Type::F32);
  NodeId radius = build.node(Op::Param, Type::I32, {}, left);
  NodeId near = build.window(radius);
  NodeId window = build.andOf(build.mask(Op::Causal), near);
  build.program.mask = build.orOf(window, build.scanRanges(mm));
  NodeId s = build.node(Op::Score, Type::F32);
  NodeId extremes = build.f32(-0.0);
  for (double f : {-double(INFINITY), double(INFINITY), std::numeric_limits<double>::quiet_NaN(),
                   0.1, 1e300, 5e-324})
    extremes = build.node(Op::FMaxNum, Type::F32, {extremes, build.f32(f)});
  build.program.score = build.node(Op::FAdd, Type::F32, {s, extremes});
  build.i64(INT64_MIN);

  Artifact artifact;
  artifact.compilerVersion = "0.1.0";
  Kernel kernel;
  kernel.spec.name = "demo \"x\" \u00e9";
  kernel.spec.specHash = std::string(64, 'a');
  kernel.spec.numHeads = 8;
  kernel.spec.numKvHeads = 4;
  kernel.spec.dimQk = 192;
  kernel.spec.dimV = 128;
  kernel.spec.qType = DType::BF16;
  kernel.spec.kvType = DType::F16;
  kernel.spec.scale = 0.1;
  kernel.spec.scaleParam = scale;
  kernel.spec.program = build.program;
  KernelBinary binary;
  binary.target = "cpu";
  binary.format = "elf-x86-64";
  binary.blob = 1;
  binary.entry = "demo";
  binary.maskEntry = "demo_mask";
  binary.tilePlan = TilePlan::Intervals;
  binary.tables = build.program.tables;
  TableDecl built;
  built.name = "built";
  built.kind = TableKind::QueryRanges;
  built.source = mm;
  binary.tables.push_back(built);
  kernel.binaries.push_back(binary);
  artifact.kernels.push_back(kernel);
  Kernel plain;
  plain.spec.name = "plain";
  plain.spec.specHash = std::string(64, '0');
  plain.spec.numHeads = plain.spec.numKvHeads = plain.spec.dimQk = plain.spec.dimV = 1;
  artifact.kernels.push_back(plain);
  artifact.blobs = {{}, {1, 2, 3, 0, 255}};
  return artifact;
}

TEST(Artifact, RoundTrip) {
  Artifact artifact = sample();
  ASSERT_FALSE(verify(artifact.kernels[0].spec.program))
      << *verify(artifact.kernels[0].spec.program);
  Bytes bytes = serialize(artifact);
  Result<Artifact> back = parseArtifact(bytes.data(), bytes.size());
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(serialize(*back), bytes);

  EXPECT_EQ(back->compilerVersion, "0.1.0");
  ASSERT_EQ(back->kernels.size(), 2u);
  const KernelSpec &spec = back->kernels[0].spec, &original = artifact.kernels[0].spec;
  EXPECT_EQ(spec.name, original.name);
  EXPECT_EQ(spec.specHash, original.specHash);
  EXPECT_EQ(spec.numHeads, 8);
  EXPECT_EQ(spec.numKvHeads, 4);
  EXPECT_EQ(spec.dimQk, 192);
  EXPECT_EQ(spec.dimV, 128);
  EXPECT_EQ(spec.qType, DType::BF16);
  EXPECT_EQ(spec.kvType, DType::F16);
  EXPECT_EQ(spec.scale, 0.1);
  EXPECT_EQ(spec.scaleParam, 1);
  EXPECT_EQ(spec.program.params[0].minValue, 0);
  EXPECT_FALSE(spec.program.params[1].minValue);
  EXPECT_EQ(spec.program.mask, original.program.mask);
  EXPECT_EQ(spec.program.score, original.program.score);
  ASSERT_EQ(spec.program.nodes.size(), original.program.nodes.size());
  for (size_t i = 0; i < spec.program.nodes.size(); ++i) {
    const Node &a = spec.program.nodes[i], &b = original.program.nodes[i];
    EXPECT_EQ(a.op, b.op);
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.operands, b.operands);
    EXPECT_EQ(a.ref, b.ref);
    EXPECT_EQ(a.imm, b.imm);
    EXPECT_TRUE((std::isnan(a.fimm) && std::isnan(b.fimm)) ||
                std::memcmp(&a.fimm, &b.fimm, sizeof(double)) == 0);
  }
  const KernelBinary *binary = back->kernels[0].find("cpu");
  ASSERT_NE(binary, nullptr);
  EXPECT_EQ(binary->format, "elf-x86-64");
  EXPECT_EQ(binary->blob, 1);
  EXPECT_EQ(binary->entry, "demo");
  EXPECT_EQ(binary->maskEntry, "demo_mask");
  EXPECT_EQ(binary->tilePlan, TilePlan::Intervals);
  ASSERT_EQ(binary->tables.size(), 4u);
  EXPECT_EQ(binary->tables[1].dims, (std::vector<TableDim>{TableDim::H, TableDim::Bucket}));
  EXPECT_EQ(binary->tables[3].source, 0);
  EXPECT_EQ(back->kernels[0].find("sm_90a"), nullptr);
  EXPECT_EQ(back->blobs, artifact.blobs);
}

TEST(Artifact, FileRoundTrip) {
  std::string path = testing::TempDir() + "attn-artifact-test.attn";
  ASSERT_TRUE(writeArtifact(sample(), path).ok());
  Result<Artifact> back = readArtifact(path);
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(serialize(*back), serialize(sample()));
  ASSERT_TRUE(writeFileAtomically(path, "hello there", 11).ok());
  Result<Artifact> foreign = readArtifact(path);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.message(), "'" + path + "': not an attn artifact");
  std::remove(path.c_str());
}

/// Every change of one byte is noticed, or changes nothing.
TEST(Artifact, EveryByteFlip) {
  Bytes bytes = serialize(sample());
  long refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes changed = bytes;
      changed[i] ^= static_cast<uint8_t>(1 << bit);
      Result<Artifact> artifact = parseArtifact(changed.data(), changed.size());
      if (artifact)
        ASSERT_EQ(serialize(*artifact), bytes) << "byte " << i << " bit " << bit;
      else
        ++refused;
    }
  std::printf("flips: %zu, refused: %ld\n", bytes.size() * 8, refused);
  EXPECT_EQ(refused, static_cast<long>(bytes.size() * 8));
}

TEST(Artifact, EveryTruncationAndExtension) {
  Bytes bytes = serialize(sample());
  for (size_t n = 0; n < bytes.size(); ++n)
    ASSERT_FALSE(parseArtifact(bytes.data(), n).ok()) << n;
  Result<Artifact> head = parseArtifact(bytes.data(), 10);
  EXPECT_EQ(head.message(), "artifact is cut short: expected at least 24 bytes, got 10");
  Result<Artifact> tail = parseArtifact(bytes.data(), bytes.size() - 1);
  EXPECT_EQ(tail.message(), "artifact is cut short: expected 5 bytes of blob 1, got 4");
  bytes.push_back(0);
  Result<Artifact> longer = parseArtifact(bytes.data(), bytes.size());
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.message(), "artifact has 1 bytes past its end");
}

uint64_t checksum(const std::string &data) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : data)
    hash = (hash ^ c) * 1099511628211u;
  return hash;
}

/// A container around any manifest text, with a right checksum.
Bytes container(const std::string &manifest, const Bytes &blobs) {
  std::string out = "ATTNART\n";
  for (uint64_t v : {uint64_t(manifest.size()), checksum(manifest)})
    for (int i = 0; i < 8; ++i)
      out += static_cast<char>(v >> (8 * i));
  out += manifest;
  Bytes bytes(out.begin(), out.end());
  bytes.insert(bytes.end(), blobs.begin(), blobs.end());
  return bytes;
}

std::string manifestOf(const Bytes &bytes) {
  uint64_t size = 0;
  for (int i = 0; i < 8; ++i)
    size |= uint64_t(bytes[8 + i]) << (8 * i);
  return {bytes.begin() + 24, bytes.begin() + 24 + static_cast<long>(size)};
}

/// Random edits behind a right checksum reach the reader of the manifest: it must not crash, and
/// what it accepts must be a program that verifies.
TEST(Artifact, EditedManifestsNeverCrash) {
  Artifact artifact = sample();
  std::string manifest = manifestOf(serialize(artifact));
  const Bytes &blob = artifact.blobs[1];
  std::mt19937 random(9);
  long accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    std::string changed = manifest;
    for (unsigned n = 1 + random() % 2; n > 0; --n) {
      size_t at = random() % changed.size();
      switch (random() % 3) {
      case 0:
        changed[at] = static_cast<char>('0' + random() % 10);
        break;
      case 1:
        changed[at] = static_cast<char>(random());
        break;
      default:
        changed.erase(at, 1 + random() % 5);
        break;
      }
    }
    Bytes bytes = container(changed, blob);
    Result<Artifact> back = parseArtifact(bytes.data(), bytes.size());
    if (!back) {
      ASSERT_EQ(back.message().rfind("artifact", 0), 0u) << back.message();
      continue;
    }
    ++accepted;
    for (const Kernel &kernel : back->kernels) {
      ASSERT_FALSE(verify(kernel.spec.program));
      toFormula(kernel.spec.program, kernel.spec.program.mask);
    }
  }
  std::printf("edited manifests accepted: %ld of 30000\n", accepted);
  EXPECT_GT(accepted, 0);
}

struct Edit {
  const char *from, *to, *message;
};

void expectRefused(const std::string &manifest, const Bytes &blobs, const Edit &edit) {
  std::string changed = manifest;
  size_t at = changed.find(edit.from);
  ASSERT_NE(at, std::string::npos) << edit.from;
  changed.replace(at, std::strlen(edit.from), edit.to);
  Bytes bytes = container(changed, blobs);
  Result<Artifact> back = parseArtifact(bytes.data(), bytes.size());
  ASSERT_FALSE(back.ok()) << edit.to;
  EXPECT_NE(back.message().find(edit.message), std::string::npos)
      << "got      " << back.message() << "\nexpected " << edit.message;
}

TEST(Artifact, RefusalsNameThePlace) {
  Artifact artifact = sample();
  std::string manifest = manifestOf(serialize(artifact));
  const Edit edits[] = {
      {"\"format\": 5", "\"format\": 6",
       "artifact manifest: format 6 is newer than 5, the newest one known here"},
      {"\"format\": 5", "\"format\": 4",
       "artifact manifest: format 4 is older than 5, the only one known here; compile the spec "
       "again"},
      {"\"format\": 5", "\"format\": 0",
       "artifact manifest: line 2, column 13: format: expected an integer, 5 to 5, got 0"},
      {"\"compiler\": ", "\"compiled\": ",
       "artifact manifest: line 1, column 1: missing key 'compiler'"},
      {"\"num_heads\": 8", "\"num_heads\": 8, \"color\": 1",
       "unknown key 'color', expected one of name, spec_hash, num_heads"},
      {"\"num_heads\": 8", "\"num_heads\": 7",
       "kernels[0]: num_heads 7 is not a multiple of "
       "num_kv_heads 4"},
      {"\"num_heads\": 8", "\"num_heads\": 0",
       "kernels[0].num_heads: expected an integer, 1 to 1048576, got 0"},
      {"\"q_type\": \"bf16\"", "\"q_type\": \"f64\"", "kernels[0].q_type: unknown name 'f64'"},
      {"\"scale_param\": 1", "\"scale_param\": 0",
       "kernels[0]: scale_param 0 is not an f32 "
       "parameter"},
      {"\"scale\": 0.1", "\"scale\": null", "kernels[0].scale: expected a number, got null"},
      {"\"op\": \"causal\"", "\"op\": \"casual\"",
       "kernels[0].program.nodes[2].op: unknown name "
       "'casual'"},
      {"\"op\": \"causal\", \"type\": \"i1\"", "\"op\": \"causal\", \"type\": \"i8\"",
       "kernels[0].program: node 2 (causal): expected type i1, got i8"},
      {"\"op\": \"causal\"", "\"op\": \"causal\", \"float\": \"big\"",
       "nodes[2].float: expected a number, 'inf', '-inf' or 'nan'"},
      {"\"source\": 0", "\"source\": 7", "program.tables: table 2: no source table 7"},
      {"\"tile_plan\": \"intervals\"", "\"tile_plan\": \"guess\"",
       "kernels[0].binaries[0].tile_plan: unknown name 'guess'"},
      {"\"blob\": 1", "\"blob\": 2", "kernels[0].binaries[0]: no blob 2, the artifact has 2"},
      {"\"name\": \"plain\"", "\"name\": \"demo \\\"x\\\" \u00e9\"",
       "kernels[1]: a second kernel 'demo \"x\" \u00e9'"},
      {"\"spec_hash\": \"aaaa", "\"spec_hash\": \"zaaa",
       "kernels[0]: expected a spec_hash of 64 "
       "hex digits"},
      {"\"offset\": 0, \"size\": 5", "\"offset\": 1, \"size\": 5",
       "artifact manifest: blob 1: expected offset 0, got 1"},
      {"\"offset\": 0, \"size\": 5", "\"offset\": 0, \"size\": 4",
       "artifact is damaged: blob 1 does not match its checksum"},
      {"\"fnv1a\": \"cb", "\"fnv1a\": \"xb", "blobs[0].fnv1a: expected 16 hex digits"},
      {"\"target\": \"cpu\"", "\"target\": \"\"",
       "kernels[0].binaries[0]: target, format and entry must not be empty"},
  };
  for (const Edit &edit : edits)
    expectRefused(manifest, artifact.blobs[1], edit);
  Bytes empty =
      container("{\"format\": 5, \"compiler\": \"\", \"kernels\": [], \"blobs\": []}", {});
  Result<Artifact> none = parseArtifact(empty.data(), empty.size());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.message(),
            "artifact manifest: line 1, column 42: kernels: expected at least one kernel");
  Bytes text = container("hello", {});
  EXPECT_EQ(parseArtifact(text.data(), text.size()).message(),
            "artifact manifest: line 1, column 1: expected a value, got 'h'");
}

TEST(Artifact, BinariesStartWithTheProgramsTables) {
  Artifact artifact = sample();
  artifact.kernels[0].binaries[0].tables.erase(artifact.kernels[0].binaries[0].tables.begin() + 1);
  artifact.kernels[0].binaries[0].tables[1].source = 0;
  Bytes bytes = serialize(artifact);
  Result<Artifact> back = parseArtifact(bytes.data(), bytes.size());
  ASSERT_FALSE(back.ok());
  EXPECT_NE(back.message().find("tables do not start with those of the program"),
            std::string::npos);
}

/// The sample with code for a GPU: a cubin, then PTX.
Artifact gpuSample() {
  Artifact artifact = sample();
  Kernel &kernel = artifact.kernels[0];
  KernelBinary binary = kernel.binaries[0];
  binary.target = "sm_90a";
  binary.maskEntry.clear();
  binary.cuda.emplace();
  binary.cuda->groups = 2;
  binary.cuda->keyTile = 128;
  binary.cuda->threads = 384;
  binary.cuda->sharedBytes = 200000;
  for (const char *format : {"cubin", "ptx"}) {
    binary.format = format;
    binary.blob = static_cast<int32_t>(artifact.blobs.size());
    artifact.blobs.push_back({'x', 0});
    kernel.binaries.push_back(binary);
    binary.cuda->testsVisible = binary.cuda->countsTiles = true;
  }
  return artifact;
}

TEST(Artifact, GpuBinariesKeepTheirLaunch) {
  Bytes bytes = serialize(gpuSample());
  Result<Artifact> back = parseArtifact(bytes.data(), bytes.size());
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(serialize(*back), bytes);
  const Kernel &kernel = back->kernels[0];
  ASSERT_EQ(kernel.binaries.size(), 3u);
  EXPECT_FALSE(kernel.binaries[0].cuda);
  EXPECT_EQ(kernel.find("sm_90a"), &kernel.binaries[1]);
  for (int i : {1, 2}) {
    const KernelBinary &binary = kernel.binaries[i];
    EXPECT_EQ(binary.format, i == 1 ? "cubin" : "ptx");
    ASSERT_TRUE(binary.cuda);
    EXPECT_EQ(binary.cuda->groups, 2);
    EXPECT_EQ(binary.cuda->queryTile(), 128);
    EXPECT_EQ(binary.cuda->keyTile, 128);
    EXPECT_EQ(binary.cuda->threads, 384);
    EXPECT_EQ(binary.cuda->sharedBytes, 200000);
    EXPECT_EQ(binary.cuda->testsVisible, i == 2);
    EXPECT_EQ(binary.cuda->countsTiles, i == 2);
  }
}

TEST(Artifact, LaunchesThatNoKernelHasAreRefused) {
  Artifact artifact = gpuSample();
  std::string manifest = manifestOf(serialize(artifact));
  Bytes blobs;
  for (const Bytes &blob : artifact.blobs)
    blobs.insert(blobs.end(), blob.begin(), blob.end());
  const Edit edits[] = {
      {"\"groups\": 2", "\"groups\": 0",
       "kernels[0].binaries[1].cuda.groups: expected an integer, 1 to 3, got 0"},
      {"\"groups\": 2", "\"groups\": 4",
       "kernels[0].binaries[1].cuda.groups: expected an integer, 1 to 3, got 4"},
      {"\"groups\": 2", "\"groups\": 3",
       "kernels[0].binaries[1].cuda: expected 512 threads for 3 groups, got 384"},
      {"\"groups\": 2, ", "", "kernels[0].binaries[1].cuda: missing key 'groups'"},
      {"\"key_tile\": 128", "\"key_tile\": 0",
       "kernels[0].binaries[1].cuda.key_tile: expected an integer, 16 to 256, got 0"},
      {"\"key_tile\": 128", "\"key_tile\": 272",
       "kernels[0].binaries[1].cuda.key_tile: expected an integer, 16 to 256, got 272"},
      {"\"key_tile\": 128", "\"key_tile\": 120",
       "kernels[0].binaries[1].cuda: key_tile 120 is not a multiple of 16"},
      {"\"threads\": 384", "\"threads\": -384",
       "kernels[0].binaries[1].cuda.threads: expected an integer, at least 1, got -384"},
      {"\"threads\": 384", "\"threads\": 256",
       "kernels[0].binaries[1].cuda: expected 384 threads for 2 groups, got 256"},
      {"\"shared_bytes\": 200000", "\"shared_bytes\": 232449",
       "kernels[0].binaries[1].cuda.shared_bytes: expected an integer, 1 to 232448, got 232449"},
      {"\"shared_bytes\": 200000", "\"shared_bytes\": 0",
       "kernels[0].binaries[1].cuda.shared_bytes: expected an integer, 1 to 232448, got 0"},
      {"\"counts_tiles\": true", "\"counts_tiles\": 1",
       "kernels[0].binaries[2].cuda.counts_tiles: expected a boolean, got an integer"},
      {"\"counts_tiles\": true", "\"clusters\": true",
       "kernels[0].binaries[2].cuda: unknown key 'clusters'"},
      {"\"cuda\": {", "\"gpu\": {", "kernels[0].binaries[1]: missing key 'cuda'"},
      {"\"format\": \"cubin\"", "\"format\": \"elf-x86-64\"",
       "kernels[0].binaries[1].cuda: code of format 'elf-x86-64' is not launched on a GPU"},
      {"\"format\": \"cubin\"", "\"format\": \"ptx\"",
       "kernels[0].binaries[2]: a second binary of format 'ptx' for target 'sm_90a'"},
  };
  for (const Edit &edit : edits)
    expectRefused(manifest, blobs, edit);
}

/// The GPU's binaries with a recipe of every kind and policy.
Artifact recipeSample() {
  Artifact artifact = gpuSample();
  Recipe images, runs, splits;
  images.name = "images";
  images.source = 0;
  images.perRequest = 8;
  runs.name = "runs";
  runs.kind = RecipeKind::PageRuns;
  runs.pageSize = 16;
  splits.kind = RecipeKind::SplitPlan;
  std::vector<Recipe> recipes = {images, runs};
  for (SplitPolicy policy :
       {SplitPolicy::Count, SplitPolicy::Measured, SplitPolicy::Sm100Relbias}) {
    splits.name = std::string("by ") + std::string(toString(policy));
    splits.policy = policy;
    splits.pieces = 4 + static_cast<int64_t>(policy);
    splits.ctasPerSm = policy == SplitPolicy::Measured ? 3 : 1;
    splits.isLocal = policy == SplitPolicy::Sm100Relbias;
    recipes.push_back(splits);
  }
  for (KernelBinary &binary : artifact.kernels[0].binaries)
    if (binary.cuda)
      binary.recipes = recipes;
  return artifact;
}

TEST(Artifact, RecipesRoundTrip) {
  const Artifact artifact = recipeSample();
  Bytes bytes = serialize(artifact);
  Result<Artifact> back = parseArtifact(bytes.data(), bytes.size());
  ASSERT_TRUE(back.ok()) << back.message();
  EXPECT_EQ(serialize(*back), bytes);
  EXPECT_TRUE(back->kernels[0].binaries[0].recipes.empty());
  for (int i : {1, 2}) {
    const std::vector<Recipe> &got = back->kernels[0].binaries[i].recipes;
    const std::vector<Recipe> &want = artifact.kernels[0].binaries[i].recipes;
    ASSERT_EQ(got.size(), 5u);
    for (size_t r = 0; r < got.size(); ++r) {
      EXPECT_EQ(got[r].name, want[r].name);
      EXPECT_EQ(got[r].kind, want[r].kind);
      EXPECT_EQ(got[r].source, want[r].source);
      EXPECT_EQ(got[r].perRequest, want[r].perRequest);
      EXPECT_EQ(got[r].pageSize, want[r].pageSize);
      EXPECT_EQ(got[r].policy, want[r].policy);
      EXPECT_EQ(got[r].pieces, want[r].pieces);
      EXPECT_EQ(got[r].ctasPerSm, want[r].ctasPerSm);
      EXPECT_EQ(got[r].isLocal, want[r].isLocal);
    }
  }
}

/// The manifest of code without recipes is what it was before there were any.
TEST(Artifact, CodeWithoutRecipesDoesNotMentionThem) {
  const std::string plain = manifestOf(serialize(gpuSample()));
  EXPECT_EQ(plain.find("recipe"), std::string::npos);
  EXPECT_NE(plain.find("\"format\": 5"), std::string::npos);
  std::string stripped = manifestOf(serialize(recipeSample()));
  for (int i = 0; i < 2; ++i) {
    const size_t key = stripped.find("\"recipes\"");
    ASSERT_NE(key, std::string::npos);
    const size_t begin = stripped.rfind(',', key), end = stripped.find(']', key);
    stripped.erase(begin, end + 1 - begin);
  }
  EXPECT_EQ(stripped, plain);
}

TEST(Artifact, RecipesThatAreNoneAreRefused) {
  Artifact artifact = recipeSample();
  const std::string manifest = manifestOf(serialize(artifact));
  Bytes blobs;
  for (const Bytes &blob : artifact.blobs)
    blobs.insert(blobs.end(), blob.begin(), blob.end());
  const Edit edits[] = {
      {"\"kind\": \"range_tensor\"", "\"kind\": \"tile_lists\"",
       "kernels[0].binaries[1].recipes[0].kind: unknown recipe 'tile_lists', expected one of "
       "range_tensor, page_runs, split_plan"},
      {"\"policy\": \"measured\"", "\"policy\": \"guess\"",
       "kernels[0].binaries[1].recipes[3].policy: unknown policy 'guess', expected one of count, "
       "measured, sm100_relbias"},
      {"\"source\": 0, \"per_request\"", "\"source\": 1, \"per_request\"",
       "kernels[0].binaries[1].recipes: recipe 'images': source table 'bias' is of kind plain, "
       "expected ranges"},
      {"\"source\": 0, \"per_request\"", "\"source\": 3, \"per_request\"",
       "recipe 'images': source table 'built' is of kind query_ranges, expected ranges"},
      {"\"source\": 0, \"per_request\"", "\"source\": 9, \"per_request\"",
       "recipe 'images': no source table 9"},
      {"\"source\": 0, \"per_request\"", "\"per_request\"",
       "kernels[0].binaries[1].recipes[0]: missing key 'source'"},
      {"\"per_request\": 8", "\"per_request\": 0",
       "recipes[0].per_request: expected an integer, 1 to 1048576, got 0"},
      {"\"per_request\": 8", "\"per_request\": 1048577",
       "recipes[0].per_request: expected an integer, 1 to 1048576, got 1048577"},
      {"\"page_size\": 16", "\"page_size\": 0",
       "recipes[1].page_size: expected an integer, 1 to 1073741823, got 0"},
      {"\"pieces\": 4", "\"pieces\": 129",
       "recipes[2].pieces: expected an integer, 1 to 128, got 129"},
      {"\"pieces\": 4", "\"pieces\": 4, \"ctas_per_sm\": 2",
       "recipes[2]: unknown key 'ctas_per_sm'"},
      {"\"ctas_per_sm\": 3", "\"ctas_per_sm\": 33",
       "recipes[3].ctas_per_sm: expected an integer, 1 to 32, got 33"},
      {"\"local\": true", "\"local\": 1", "recipes[4].local: expected a boolean, got an integer"},
      {"\"name\": \"runs\"", "\"name\": \"images\"",
       "kernels[0].binaries[1].recipes: recipe 'images': a second one of this name"},
      {"\"name\": \"runs\"", "\"name\": \"built\"", "recipe 'built': a table has this name"},
      {"\"name\": \"runs\"", "\"name\": \"work\"",
       "recipe 'work': a part of every step has this name"},
      {"\"name\": \"runs\"", "\"name\": \"\"", "recipe 1 has no name"},
  };
  for (const Edit &edit : edits)
    expectRefused(manifest, blobs, edit);
  // Code for the CPU has none.
  artifact = sample();
  artifact.kernels[0].binaries[0].recipes = recipeSample().kernels[0].binaries[1].recipes;
  Bytes bytes = serialize(artifact);
  const std::string message = parseArtifact(bytes.data(), bytes.size()).message();
  EXPECT_NE(message.find("kernels[0].binaries[0].recipes: code of format 'elf-x86-64' for target "
                         "'cpu' has no recipes, code for a GPU has"),
            std::string::npos)
      << message;
}

/// What an artifact made in memory may hold.
TEST(Artifact, RecipesAreVerified) {
  const Artifact artifact = recipeSample();
  const KernelBinary &binary = artifact.kernels[0].binaries[1];
  EXPECT_FALSE(verifyRecipes(binary.recipes, binary.tables));
  const auto fault = [&](auto change) {
    std::vector<Recipe> recipes = binary.recipes;
    change(recipes);
    return verifyRecipes(recipes, binary.tables).value_or("none");
  };
  using Recipes = std::vector<Recipe>;
  EXPECT_EQ(fault([](Recipes &r) { r[0].source = -1; }), "recipe 'images': no source table -1");
  for (const char *name : {"\xff", "\xed\xa0\x80", "a\tb", "\x7f"})
    EXPECT_EQ(fault([&](Recipes &r) { r[1].name = name; }),
              "recipe 1: its name has other characters than printable ones of ASCII");
  EXPECT_EQ(fault([](Recipes &r) { r[1].name = std::string("a\0b", 3); }),
            "recipe 1: its name has other characters than printable ones of ASCII");
  EXPECT_EQ(fault([](Recipes &r) { r[0].perRequest = -5; }),
            "recipe 'images': per_request -5, expected 1 to 1048576");
  EXPECT_EQ(fault([](Recipes &r) { r[1].pageSize = kMostRecipePageSize + 1; }),
            "recipe 'runs': page_size 1073741824, expected 1 to 1073741823");
  EXPECT_EQ(fault([](Recipes &r) { r[2].pieces = 0; }),
            "recipe 'by count': pieces 0, expected 1 to 128");
  EXPECT_EQ(fault([](Recipes &r) { r[3].ctasPerSm = 0; }),
            "recipe 'by measured': ctas_per_sm 0, expected 1 to 32");
}

} // namespace
