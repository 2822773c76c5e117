// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the fuzzers of the runtime share: a kernel, an artifact of it, and the verdict. An input is
// refused with a short message, or what it gives equals what a second way gives; anything else
// ends the program.
#ifndef ATTN_TEST_FUZZ_SUBJECT_H
#define ATTN_TEST_FUZZ_SUBJECT_H

#include "attn/Core/Manifest.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace fuzz {

inline void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

inline void requireRefusal(const std::string &message) {
  require(!message.empty() && message.size() < 2000 && message.find('\n') == std::string::npos,
          "a refusal is one short line");
}

/// (causal and window(left)) or mm_prefix(mm), or the keys of q's document: tables of ranges,
/// documents and numbers, an integer and a float parameter.
inline attn::core::KernelSpec spec() {
  using namespace attn::core;
  KernelSpec spec;
  spec.name = "fuzzed";
  spec.specHash = std::string(64, 'e');
  spec.numHeads = 4;
  spec.numKvHeads = 2;
  spec.dimQk = spec.dimV = 8;
  spec.scale = 0.5;
  MaskProgram &p = spec.program;
  p.params = {{"left", ScalarType::I32, 0}, {"cap", ScalarType::F32, std::nullopt}};
  TableDecl mm, documents, prefix;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  documents.name = "doc";
  documents.kind = TableKind::Documents;
  prefix.name = "prefix_len";
  prefix.dims = {TableDim::B};
  p.tables = {mm, documents, prefix};
  auto add = [&](Op op, std::vector<NodeId> operands, int32_t ref, int64_t imm, ScalarType type) {
    Node node;
    node.op = op;
    node.type = type;
    node.operands = std::move(operands);
    node.ref = ref;
    node.imm = imm;
    return p.add(std::move(node));
  };
  constexpr ScalarType kBool = ScalarType::Bool;
  const NodeId left = add(Op::Param, {}, 0, 0, ScalarType::I32);
  const NodeId request = add(Op::IndexB, {}, -1, 0, ScalarType::I64);
  const NodeId prefixLen = add(Op::TableLoad, {request}, 2, 0, ScalarType::I32);
  const NodeId causal = add(Op::Causal, {}, -1, 0, kBool);
  const NodeId window = add(Op::Window, {left}, -1, 1, kBool);
  const NodeId near = add(Op::And, {causal, window}, -1, 0, kBool);
  const NodeId range = add(Op::MmPrefix, {}, 0, 0, kBool);
  const NodeId document = add(Op::Document, {}, 1, 0, kBool);
  const NodeId prefixKeys = add(Op::Prefix, {prefixLen}, -1, 0, kBool);
  const NodeId inDocument = add(Op::And, {document, prefixKeys}, -1, 0, kBool);
  const NodeId either = add(Op::Or, {near, range}, -1, 0, kBool);
  p.mask = add(Op::Or, {either, inDocument}, -1, 0, kBool);
  return spec;
}

/// The kernel with code that nobody runs.
inline attn::core::Artifact artifact() {
  using namespace attn::core;
  Artifact artifact;
  artifact.compilerVersion = "9.1";
  Kernel kernel;
  kernel.spec = spec();
  KernelBinary binary;
  binary.target = "cpu";
  binary.format = "elf-x86-64";
  binary.blob = 0;
  binary.entry = "f";
  binary.maskEntry = "m";
  binary.tilePlan = TilePlan::Intervals;
  binary.tables = kernel.spec.program.tables;
  TableDecl rows;
  rows.name = "rows";
  rows.kind = TableKind::QueryRanges;
  rows.source = 0;
  binary.tables.push_back(rows);
  kernel.binaries.push_back(binary);
  binary.target = "sm_90a";
  binary.format = "ptx";
  binary.maskEntry.clear();
  binary.cuda.emplace();
  binary.cuda->groups = 2;
  binary.cuda->keyTile = 64;
  binary.cuda->threads = 384;
  binary.cuda->sharedBytes = 1000;
  Recipe ranges, runs, splits;
  ranges.name = "images";
  ranges.source = 0;
  ranges.perRequest = 8;
  runs.name = "runs";
  runs.kind = RecipeKind::PageRuns;
  runs.pageSize = 16;
  splits.kind = RecipeKind::SplitPlan;
  splits.pieces = 4;
  binary.recipes = {ranges, runs};
  for (SplitPolicy policy :
       {SplitPolicy::Count, SplitPolicy::Measured, SplitPolicy::Sm100Relbias}) {
    splits.name = toString(policy);
    splits.policy = policy;
    splits.isLocal = policy == SplitPolicy::Sm100Relbias;
    binary.recipes.push_back(splits);
  }
  kernel.binaries.push_back(binary);
  artifact.kernels.push_back(std::move(kernel));
  artifact.blobs.push_back({1, 2, 3, 4, 5, 6, 7});
  return artifact;
}

} // namespace fuzz

#endif // ATTN_TEST_FUZZ_SUBJECT_H
