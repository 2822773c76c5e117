// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CudaWorkload.h"

#include "../../Device/Fake/FakeArtifact.h"

#include "attn/Reference/Reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

KernelSpec testing_rt::gpuSpec() {
  KernelSpec spec = tinySpec();
  spec.dimQk = spec.dimV = 64;
  spec.qType = spec.kvType = DType::BF16;
  return spec;
}

Artifact testing_rt::gpuArtifact(bool countsTiles) {
  Artifact artifact;
  artifact.compilerVersion = "test";
  artifact.kernels.emplace_back();
  Kernel &kernel = artifact.kernels[0];
  kernel.spec = gpuSpec();
  KernelBinary binary;
  binary.target = "sm_90a";
  binary.entry = "k";
  binary.tilePlan = TilePlan::Intervals;
  binary.tables = kernel.spec.program.tables;
  TableDecl rows;
  rows.name = "rows";
  rows.kind = TableKind::QueryRanges;
  for (size_t i = 0; i < binary.tables.size(); ++i)
    if (binary.tables[i].kind == TableKind::Ranges)
      rows.source = static_cast<int32_t>(i);
  binary.tables.push_back(rows);
  binary.cuda.emplace();
  binary.cuda->groups = 2;
  binary.cuda->keyTile = 64;
  binary.cuda->threads = 384;
  binary.cuda->sharedBytes = 200000;
  binary.cuda->countsTiles = countsTiles;
  const std::vector<uint8_t> image = fake::imageOf(kernel, binary);
  for (const char *format : {"cubin", "ptx"}) {
    binary.format = format;
    binary.blob = static_cast<int32_t>(artifact.blobs.size());
    artifact.blobs.push_back(image);
    kernel.binaries.push_back(binary);
  }
  return artifact;
}

rt::CudaPointer Room::memory(size_t i, size_t bytes) {
  EXPECT_LE(bytes, kBytes);
  while (memories.size() <= i) {
    Result<rt::CudaMemory> created = rt::CudaMemory::create(device, kBytes);
    EXPECT_TRUE(created.ok());
    memories.push_back(std::move(*created));
  }
  return memories[i].address();
}

Workload::Workload(std::shared_ptr<const rt::CudaDevice> device, const Artifact &artifact,
                   int64_t pageSize, bool headMajor, uint64_t seed, Room *room)
    : device(std::move(device)), spec(artifact.kernels[0].spec), random(seed), room(room) {
  Result<rt::BoundBatch> result = rt::bindBatch(spec, input());
  EXPECT_TRUE(result.ok()) << result.message();
  bound = std::move(*result);
  tokens = bound.batch.shape.numTokens();
  lseStride = (room ? Room::kTokens : tokens) + 3;
  problem.spec = &spec;
  problem.batch = &bound.batch;
  fill(q, tokens * spec.numHeads * 64);
  problem.q = {q.data(), spec.qType, spec.numHeads * 64, 64};
  layOut(pageSize, headMajor);
  upload();
  operands.q.tokenStride = operands.o.tokenStride = spec.numHeads * 64;
  operands.q.headStride = operands.o.headStride = 64;
  operands.k = {operands.k.data, problem.k.pageStride, problem.k.slotStride, problem.k.headStride};
  operands.v = {operands.v.data, problem.v.pageStride, problem.v.slotStride, problem.v.headStride};
  operands.lseHeadStride = lseStride;
  operands.kvRows = pageSize ? 0 : room ? Room::kKeys : bound.kvStart.back();
  if (pageSize) {
    operands.pageTableStride = problem.kv.requestStride;
    operands.pageSize = pageSize;
    operands.numPages = numPages;
  }
}

template <class T>
rt::CudaPointer Workload::upload(size_t number, const std::vector<T> &values) {
  const size_t bytes = values.size() * sizeof(T);
  rt::CudaPointer address = 0;
  if (room) {
    address = room->memory(number, bytes);
  } else {
    if (memory.size() <= number) {
      Result<rt::CudaMemory> created = rt::CudaMemory::create(device, bytes);
      EXPECT_TRUE(created.ok());
      memory.push_back(std::move(*created));
    }
    address = memory[number].address();
  }
  EXPECT_TRUE(device->copyIn(address, values.data(), bytes, nullptr).ok());
  return address;
}

void Workload::upload() {
  o.assign(tokens * spec.numHeads * 64, 0xFFFF);
  lse.assign(spec.numHeads * lseStride, std::numeric_limits<float>::quiet_NaN());
  operands.q.data = upload(0, q);
  operands.k.data = upload(1, k);
  operands.v.data = upload(2, v);
  operands.o.data = upload(3, o);
  operands.lse = upload(4, lse);
  operands.counters = upload(5, zeros);
  if (!pages.empty())
    operands.pageTable = upload(6, pages);
  EXPECT_TRUE(device->synchronize(nullptr).ok());
}

std::string Workload::compare() {
  EXPECT_TRUE(device->copyOut(o.data(), operands.o.data, o.size() * 2, nullptr).ok());
  EXPECT_TRUE(device->copyOut(lse.data(), operands.lse, lse.size() * 4, nullptr).ok());
  const reference::Output want = reference::run(problem);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < spec.numHeads; ++h) {
      const int64_t row = (t * spec.numHeads + h) * 64;
      double distance = 0, norm = 0;
      for (int64_t d = 0; d < 64; ++d) {
        const double got = loadElement(o.data(), spec.qType, row + d);
        distance += (got - want.o[row + d]) * (got - want.o[row + d]);
        norm += want.o[row + d] * want.o[row + d];
      }
      const std::string place = "token " + std::to_string(t) + " head " + std::to_string(h);
      if (!(std::sqrt(distance) <= 8e-3 * std::sqrt(norm)))
        return place + ": error " + std::to_string(std::sqrt(distance / norm));
      const double got = lse[h * lseStride + t], wanted = want.lse[h * tokens + t];
      if (got != wanted && !(std::abs(got - wanted) <= 1e-3))
        return place + ": lse " + std::to_string(got) + ", expected " + std::to_string(wanted);
    }
  for (int64_t h = 0; h < spec.numHeads; ++h)
    for (int64_t t = tokens; t < lseStride; ++t)
      if (!std::isnan(lse[h * lseStride + t]))
        return "lse written past its tokens";
  return "";
}

Workload::Results Workload::results() {
  Results now;
  now.o.resize(o.size());
  now.lse.resize(lse.size());
  EXPECT_TRUE(device->copyOut(now.o.data(), operands.o.data, now.o.size() * 2, nullptr).ok());
  EXPECT_TRUE(device->copyOut(now.lse.data(), operands.lse, now.lse.size() * 4, nullptr).ok());
  return now;
}

Workload::Results Workload::only(Results all, const std::vector<bool> &done) const {
  const float unwritten = std::numeric_limits<float>::quiet_NaN();
  for (int64_t t = 0; t < tokens; ++t) {
    if (done[t])
      continue;
    const int64_t row = spec.numHeads * 64;
    std::fill_n(all.o.begin() + t * row, row, 0xFFFF);
    for (int64_t h = 0; h < spec.numHeads; ++h)
      std::memcpy(&all.lse[h * lseStride + t], &unwritten, sizeof(unwritten));
  }
  return all;
}

TileCounters Workload::counters() {
  TileCounters result{};
  EXPECT_TRUE(device->copyOut(&result, operands.counters, sizeof(result), nullptr).ok());
  return result;
}

rt::BatchInput Workload::input() {
  rt::BatchInput in;
  in.allowPartialRanges = true;
  in.mmRanges.emplace();
  in.mmRanges->offsets = {0};
  for (int64_t b = random.in(1, 4); b > 0; --b) {
    rt::RequestInput request;
    request.queryLen = random.in(0, 3) ? random.in(1, 150) : 0;
    request.seqLen = random.in(0, 4) ? request.queryLen + random.in(0, 90) : random.in(0, 20);
    in.requests.push_back(request);
    if (request.seqLen > 5)
      in.mmRanges->ranges.push_back({random.in(0, 3), random.in(4, request.seqLen - 1)});
    in.mmRanges->offsets.push_back(static_cast<int64_t>(in.mmRanges->ranges.size()));
  }
  for (const ParamDecl &decl : spec.program.params) {
    rt::ParamInput param;
    param.name = decl.name;
    param.isInteger = decl.type != ScalarType::F32;
    param.i = room ? room->left : random.in(0, 60);
    param.f = 0.125;
    in.params.push_back(param);
  }
  rt::TableInput slopes;
  slopes.name = "slopes";
  slopes.dense.emplace();
  slopes.dense->element = ScalarType::F32;
  slopes.dense->extents = {spec.numHeads};
  // Every other element: the device gets them without the gaps.
  slopes.dense->strides = {2};
  for (int64_t h = 0; h < spec.numHeads; ++h)
    for (float value : {(room ? room->slope : 0.01f) * static_cast<float>(h), 1e30f}) {
      const unsigned char *bytes = reinterpret_cast<const unsigned char *>(&value);
      slopes.dense->owned.insert(slopes.dense->owned.end(), bytes, bytes + 4);
    }
  in.tables.push_back(std::move(slopes));
  return in;
}

void Workload::fill(std::vector<uint16_t> &tensor, int64_t elements) {
  tensor.resize(elements);
  for (int64_t i = 0; i < elements; ++i)
    storeElement(tensor.data(), DType::BF16, i, random.real());
}

/// Slots that hold no key are NaN, table entries past the live pages junk.
void Workload::layOut(int64_t pageSize, bool headMajor) {
  int64_t slots = room ? Room::kKeys : std::max<int64_t>(bound.kvStart.back(), 1);
  if (pageSize) {
    slots = pageSize;
    int64_t width = room ? Room::kWidth : 2;
    for (int64_t length : bound.batch.shape.seqLen)
      width = std::max(width, rt::livePages(length, pageSize) + (room ? 0 : 2));
    for (int64_t length : bound.batch.shape.seqLen)
      for (int64_t i = 0; i < width; ++i)
        pages.push_back(i < rt::livePages(length, pageSize) ? static_cast<int32_t>(numPages++)
                        : i % 2                             ? -7
                                                            : 1 << 30);
    numPages = room ? Room::kPages : std::max<int64_t>(numPages, 1);
    problem.kv.pageTable = pages.data();
    problem.kv.requestStride = width;
    problem.kv.pageSize = pageSize;
  } else {
    numPages = 1;
    problem.kv.kvStart = bound.kvStart.data();
  }
  const int64_t page = slots * spec.numKvHeads * 64;
  for (auto *part : {&k, &v}) {
    part->assign(numPages * page, 0xFFFF);
    KvView &view = part == &k ? problem.k : problem.v;
    view = {part->data(), spec.kvType, page, headMajor ? 64 : spec.numKvHeads * 64,
            headMajor ? slots * 64 : 64};
    for (int64_t b = 0; b < bound.batch.shape.numReqs(); ++b)
      for (int64_t key = 0; key < bound.batch.shape.seqLen[b]; ++key)
        for (int64_t h = 0; h < spec.numKvHeads; ++h)
          for (int64_t d = 0; d < 64; ++d)
            storeElement(part->data(), DType::BF16, view.offset(problem.kv, b, key, h) + d,
                         random.real());
  }
}
