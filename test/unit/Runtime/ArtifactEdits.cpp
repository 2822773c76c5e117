// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Artifacts that were changed and given a correct checksum again: the loader refuses a manifest
// that does not fit the code, and no damage of the code's tables brings it down.
#include "attn/Core/KernelSignature.h"
#include "attn/Runtime/Launch.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// Why the artifact is refused, or "loaded". It goes through the container, with new checksums.
std::string load(const Artifact &artifact) {
  std::vector<uint8_t> bytes = serialize(artifact);
  Result<Artifact> parsed = parseArtifact(bytes.data(), bytes.size());
  if (!parsed)
    return parsed.message();
  Result<rt::NativeRunner> runner = rt::NativeRunner::create(*parsed, parsed->kernels[0]);
  return runner ? std::string("loaded") : runner.message();
}

struct Edit {
  const char *says; ///< of the message: what the manifest says
  const char *madeFor;
  std::function<void(KernelSpec &, KernelBinary &)> change;
};

const Edit kEdits[] = {
    {"num_heads 8", "num_heads 4", [](auto &spec, auto &) { spec.numHeads = 8; }},
    {"num_heads 2", "num_heads 4", [](auto &spec, auto &) { spec.numHeads = 2; }},
    {"num_kv_heads 4", "num_kv_heads 2", [](auto &spec, auto &) { spec.numKvHeads = 4; }},
    {"dim_qk 4", "dim_qk 8", [](auto &spec, auto &) { spec.dimQk = 4; }},
    {"dim_v 5", "dim_v 6", [](auto &spec, auto &) { spec.dimV = 5; }},
    {"q_type bf16", "q_type f32", [](auto &spec, auto &) { spec.qType = DType::BF16; }},
    {"kv_type f16", "kv_type f32", [](auto &spec, auto &) { spec.kvType = DType::F16; }},
    {"scale 0.5", "scale_param 1",
     [](auto &spec, auto &) { spec.scaleParam = -1, spec.scale = 0.5; }},
    {"param 4:left i64 at least 0", "param 4:left i32 at least 0",
     [](auto &spec, auto &) {
       spec.program.params[0].type = ScalarType::I64;
       for (Node &node : spec.program.nodes)
         if (node.op == Op::Param)
           node.type = ScalarType::I64;
     }},
    {"param 4:left i32", "param 4:left i32 at least 0",
     [](auto &spec, auto &) { spec.program.params[0].minValue.reset(); }},
    {"param 5:right i32 at least 0", "param 4:left i32 at least 0",
     [](auto &spec, auto &) { spec.program.params[0].name = "right"; }},
    {"param 1:x i32", "table 2:mm ranges",
     [](auto &spec, auto &) {
       spec.program.params.push_back({"x", ScalarType::I32, std::nullopt});
     }},
    {"table 6:slopes plain h_kv of f32", "table 6:slopes plain h of f32",
     [](auto &spec, auto &binary) {
       spec.program.tables[1].dims = binary.tables[1].dims = {TableDim::HKv};
     }},
    {"table 6:slopes plain token of f32", "table 6:slopes plain h of f32",
     [](auto &spec, auto &binary) {
       spec.program.tables[1].dims = binary.tables[1].dims = {TableDim::Token};
     }},
    {"table 6:slopes plain h of i32", "table 6:slopes plain h of f32",
     [](auto &spec, auto &binary) {
       spec.program.tables[1].element = binary.tables[1].element = ScalarType::I32;
       spec.program.nodes.clear();
       spec.program.mask = spec.program.score = -1;
     }},
    {"table 2:mm documents", "table 2:mm ranges",
     [](auto &spec, auto &binary) {
       spec.program.tables[0].kind = binary.tables[0].kind = TableKind::Documents;
       spec.program.nodes.clear();
       spec.program.mask = spec.program.score = -1;
     }},
    {"table 1:m ranges", "table 2:mm ranges",
     [](auto &spec, auto &binary) { spec.program.tables[0].name = binary.tables[0].name = "m"; }},
    {"table 4:more query_ranges from 0", "",
     [](auto &, auto &binary) {
       TableDecl more = binary.tables[2];
       more.name = "more";
       binary.tables.push_back(more);
     }},
    {"", "table 4:rows query_ranges from 0",
     [](auto &, auto &binary) { binary.tables.pop_back(); }},
    {"mask_entry 12:tiny_forward", "mask_entry 9:tiny_mask",
     [](auto &, auto &binary) { binary.maskEntry = "tiny_forward"; }},
};

TEST(ArtifactEdits, AManifestThatDoesNotFitTheCodeIsRefused) {
  ASSERT_EQ(load(tinyArtifact()), "loaded");
  for (const Edit &edit : kEdits) {
    Artifact artifact = tinyArtifact("edited");
    edit.change(artifact.kernels[0].spec, artifact.kernels[0].binaries[0]);
    EXPECT_EQ(load(artifact), std::string("kernel 'edited': the manifest does not fit its code: "
                                          "the manifest says '") +
                                  edit.says + "', the code is made for '" + edit.madeFor + "'");
  }
}

TEST(ArtifactEdits, TheOrderOfParametersAndTablesCounts) {
  Artifact artifact = tinyArtifact();
  KernelSpec &spec = artifact.kernels[0].spec;
  KernelBinary &binary = artifact.kernels[0].binaries[0];
  spec.program.nodes.clear();
  spec.program.mask = spec.program.score = -1;
  EXPECT_EQ(load(artifact), "loaded"); // the program is no part of the signature
  std::swap(spec.program.tables[0], spec.program.tables[1]);
  std::swap(binary.tables[0], binary.tables[1]);
  binary.tables[2].source = 1;
  EXPECT_NE(load(artifact).find("the manifest does not fit its code"), std::string::npos);
  artifact = tinyArtifact();
  std::swap(artifact.kernels[0].spec.program.params[0], artifact.kernels[0].spec.program.params[1]);
  artifact.kernels[0].spec.program.nodes.clear();
  artifact.kernels[0].spec.program.mask = artifact.kernels[0].spec.program.score = -1;
  artifact.kernels[0].spec.scaleParam = 0;
  EXPECT_NE(load(artifact).find("the manifest does not fit its code"), std::string::npos);
}

TEST(ArtifactEdits, LiteralScalesAreTold) {
  KernelSpec spec = plainSpec();
  KernelBinary binary;
  binary.entry = "f";
  const std::string signature = kernelSignature(spec, binary);
  EXPECT_TRUE(checkSignature(spec, binary, signature));
  spec.scale = 0.25;
  EXPECT_EQ(checkSignature(spec, binary, signature).message(),
            "the manifest does not fit its code: the manifest says 'scale 0.25', the code is made "
            "for 'scale 0.5'");
}

TEST(ArtifactEdits, CodeWithoutASignatureIsRefused) {
  Artifact artifact = tinyArtifact();
  artifact.kernels[0].binaries[0].entry = artifact.kernels[0].binaries[0].maskEntry;
  EXPECT_EQ(load(artifact), "kernel 'tiny': native code: no constant 'attn.signature.tiny_mask'");
  // A signature that was cut or changed.
  for (const char *text : {"dim_qk 8", "abi 1", "from 0\n"}) {
    artifact = tinyArtifact();
    std::vector<uint8_t> &blob = artifact.blobs[0];
    auto at = std::search(blob.begin(), blob.end(), text, text + std::strlen(text));
    ASSERT_NE(at, blob.end());
    *at ^= 1;
    EXPECT_NE(load(artifact).find("the manifest does not fit its code"), std::string::npos);
  }
}

//===----------------------------------------------------------------------===//
// Damaged objects
//===----------------------------------------------------------------------===//

template <class T>
T read(const std::vector<uint8_t> &bytes, size_t at) {
  T value;
  std::memcpy(&value, &bytes[at], sizeof(value));
  return value;
}

template <class T>
void write(std::vector<uint8_t> &bytes, size_t at, T value) {
  std::memcpy(&bytes[at], &value, sizeof(value));
}

struct Piece {
  uint64_t begin, end;
};

/// File header, section headers, and the sections of `types`.
std::vector<Piece> tablesOf(const std::vector<uint8_t> &object, std::set<uint32_t> types) {
  const uint64_t headers = read<uint64_t>(object, 40);
  const unsigned count = read<uint16_t>(object, 60);
  std::vector<Piece> pieces = {{0, 64}, {headers, headers + count * 64}};
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t header = headers + i * 64;
    const uint64_t offset = read<uint64_t>(object, header + 24);
    if (types.count(read<uint32_t>(object, header + 4)))
      pieces.push_back({offset, offset + read<uint64_t>(object, header + 32)});
  }
  return pieces;
}

TEST(ArtifactEdits, DamagedTablesAreRefusedOrLoad) {
  const Artifact good = tinyArtifact();
  Random random(11);
  int loaded = 0, refused = 0;
  auto count = [&](const Artifact &artifact) {
    const std::string message = load(artifact);
    EXPECT_FALSE(message.empty());
    (message == "loaded" ? loaded : refused) += 1;
  };
  // Symbol tables (2), string tables (3), relocations (4): every byte, with some other values.
  for (const Piece &piece : tablesOf(good.blobs[0], {2, 3, 4}))
    for (uint64_t at = piece.begin; at < piece.end; ++at)
      for (int flips : {1, 1, 3}) {
        Artifact bad = good;
        bad.blobs[0][at] ^= static_cast<uint8_t>(random.in(1, 255));
        for (int i = 1; i < flips; ++i)
          bad.blobs[0][random.in(piece.begin, piece.end - 1)] = static_cast<uint8_t>(random.next());
        count(bad);
      }
  std::printf("%d loaded, %d refused\n", loaded, refused);
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 1000);
}

/// Offset in the file of the first section of this name.
uint64_t headerOf(const std::vector<uint8_t> &object, const std::string &name) {
  const uint64_t headers = read<uint64_t>(object, 40);
  const uint64_t names = read<uint64_t>(object, headers + read<uint16_t>(object, 62) * 64 + 24);
  for (unsigned i = 0; i < read<uint16_t>(object, 60); ++i)
    if (name ==
        reinterpret_cast<const char *>(&object[names + read<uint32_t>(object, headers + i * 64)]))
      return headers + i * 64;
  ADD_FAILURE() << "no section " << name;
  return headers;
}

TEST(ArtifactEdits, EachCheckOfTheLoader) {
  const Artifact good = tinyArtifact();
  const std::vector<uint8_t> &object = good.blobs[0];
  auto message = [&](auto change) {
    Artifact bad = good;
    change(bad.blobs[0]);
    return load(bad);
  };
  const uint64_t rela = read<uint64_t>(object, headerOf(object, ".rela.text") + 24);
  EXPECT_NE(message([&](auto &o) {
              write<uint64_t>(o, rela, uint64_t(1) << 40);
            }).find("lies outside its section"),
            std::string::npos);
  EXPECT_NE(
      message([&](auto &o) { write<uint32_t>(o, rela + 12, 9999); }).find("names symbol 9999"),
      std::string::npos);
  EXPECT_NE(message([&](auto &o) {
              write<int64_t>(o, rela + 16, 1 << 20);
            }).find("points outside the object"),
            std::string::npos);
  EXPECT_NE(message([&](auto &o) {
              write<int64_t>(o, rela + 16, -(1 << 20));
            }).find("points outside the object"),
            std::string::npos);

  const uint64_t symtab = headerOf(object, ".symtab");
  const uint64_t symbols = read<uint64_t>(object, symtab + 24);
  const uint64_t names = read<uint64_t>(object, headerOf(object, ".strtab") + 24);
  uint64_t forward = 0, imported = 0, signature = 0;
  for (uint64_t at = symbols; at < symbols + read<uint64_t>(object, symtab + 32); at += 24) {
    const char *name = reinterpret_cast<const char *>(&object[names + read<uint32_t>(object, at)]);
    if (!std::strcmp(name, "tiny_forward"))
      forward = at;
    if (!std::strcmp(name, "expf"))
      imported = at;
    if (!std::strcmp(name, "attn.signature.tiny_forward"))
      signature = at;
  }
  ASSERT_TRUE(forward && imported && signature);
  const uint16_t constants = read<uint16_t>(object, signature + 6);
  EXPECT_NE(message([&](auto &o) {
              write<uint64_t>(o, forward + 8, 1 << 20);
            }).find("symbol 'tiny_forward' lies outside section '.text'"),
            std::string::npos);
  EXPECT_NE(message([&](auto &o) {
              write<uint64_t>(o, signature + 16, 1 << 20);
            }).find("symbol 'attn.signature.tiny_forward' lies outside section '.rodata'"),
            std::string::npos);
  // An entry that is no code, and a call of what is no code.
  EXPECT_EQ(message([&](auto &o) {
              write<uint16_t>(o, forward + 6, constants);
              write<uint64_t>(o, forward + 8, 0);
              write<uint64_t>(o, forward + 16, 1);
            }),
            "kernel 'tiny': native code: no function 'tiny_forward'");
  EXPECT_NE(message([&](auto &o) {
              write<uint16_t>(o, imported + 6, constants);
            }).find("calls 'expf', which is no code"),
            std::string::npos);
  // Absolute addresses are nobody's.
  EXPECT_NE(message([&](auto &o) {
              write<uint16_t>(o, imported + 6, 0xfff1);
            }).find("refers to 'expf', which is not loaded"),
            std::string::npos);
}

} // namespace
