// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestKernel.h"

#include <fstream>
#include <iterator>

using namespace attn::core;

std::vector<uint8_t> testing_rt::readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

std::vector<uint8_t> testing_rt::objectBytes(const std::string &name) {
  return readBytes(std::string(ATTN_TEST_OBJECTS) + "/" + name + ".o");
}

static NodeId node(MaskProgram &program, Op op, ScalarType type, std::vector<NodeId> operands = {},
                   int32_t ref = -1, int64_t imm = 0) {
  Node n;
  n.op = op;
  n.type = type;
  n.operands = std::move(operands);
  n.ref = ref;
  n.imm = imm;
  return program.add(std::move(n));
}

KernelSpec testing_rt::tinySpec() {
  KernelSpec spec;
  spec.name = "tiny";
  spec.specHash = std::string(64, 'a');
  spec.numHeads = 4;
  spec.numKvHeads = 2;
  spec.dimQk = 8;
  spec.dimV = 6;
  spec.scaleParam = 1;
  MaskProgram &p = spec.program;
  p.params = {{"left", ScalarType::I32, 0}, {"scale", ScalarType::F32, std::nullopt}};
  TableDecl mm;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  TableDecl slopes;
  slopes.name = "slopes";
  slopes.dims = {TableDim::H};
  slopes.element = ScalarType::F32;
  p.tables = {mm, slopes};
  NodeId causal = node(p, Op::Causal, ScalarType::Bool);
  NodeId left = node(p, Op::Param, ScalarType::I32, {}, 0);
  NodeId window = node(p, Op::Window, ScalarType::Bool, {left}, -1, 1);
  NodeId both = node(p, Op::And, ScalarType::Bool, {causal, window});
  NodeId prefix = node(p, Op::MmPrefix, ScalarType::Bool, {}, 0);
  p.mask = node(p, Op::Or, ScalarType::Bool, {both, prefix});
  NodeId h = node(p, Op::IndexH, ScalarType::I64);
  NodeId slope = node(p, Op::TableLoad, ScalarType::F32, {h}, 1);
  NodeId s = node(p, Op::Score, ScalarType::F32);
  p.score = node(p, Op::Alibi, ScalarType::F32, {s, slope});
  return spec;
}

Artifact testing_rt::tinyArtifact(const std::string &name) {
  Artifact artifact;
  artifact.compilerVersion = "test";
  artifact.blobs.push_back(objectBytes("tiny"));
  Kernel kernel;
  kernel.spec = tinySpec();
  kernel.spec.name = name;
  KernelBinary binary;
  binary.target = "cpu";
  binary.format = "elf-x86-64";
  binary.blob = 0;
  binary.entry = "tiny_forward";
  binary.maskEntry = "tiny_mask";
  binary.tilePlan = TilePlan::Intervals;
  binary.tables = kernel.spec.program.tables;
  TableDecl rows;
  rows.name = "rows";
  rows.kind = TableKind::QueryRanges;
  rows.source = 0;
  binary.tables.push_back(rows);
  kernel.binaries.push_back(binary);
  artifact.kernels.push_back(kernel);
  return artifact;
}

KernelSpec testing_rt::plainSpec() {
  KernelSpec spec;
  spec.name = "plain";
  spec.specHash = std::string(64, 'b');
  spec.numHeads = 2;
  spec.numKvHeads = 1;
  spec.dimQk = 4;
  spec.dimV = 4;
  spec.scale = 0.5;
  return spec;
}

NodeId testing_rt::add(MaskProgram &p, Op op, ScalarType type, std::vector<NodeId> operands,
                       int32_t ref, int64_t imm) {
  Node n;
  n.op = op;
  n.type = type;
  n.operands = std::move(operands);
  n.ref = ref;
  n.imm = imm;
  return p.add(std::move(n));
}
