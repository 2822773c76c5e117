// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/Launch.h"

#include "attn/Core/KernelSignature.h"
#include "attn/Runtime/Builders.h"

#include "BinaryTables.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

int64_t rt::paramWord(const ParamDecl &decl, const ParamValue &value) {
  if (decl.type != ScalarType::F32)
    return value.i;
  const float f = static_cast<float>(value.f);
  uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof(bits));
  return bits;
}

/// A table of the batch as native code reads it.
static NativeTable nativeTable(TableKind kind, const TableData &data) {
  NativeTable table = {};
  switch (kind) {
  case TableKind::Plain:
    table.data = data.data;
    std::copy(data.extents.begin(), data.extents.end(), table.extents);
    std::copy(data.strides.begin(), data.strides.end(), table.strides);
    break;
  case TableKind::Ranges:
    table.data = data.ranges.data();
    table.offsets = data.rangeOffsets.data();
    break;
  case TableKind::Documents:
    table.data = data.documents.data();
    table.offsets = data.documentOffsets.data();
    break;
  case TableKind::QueryRanges:
    break;
  }
  return table;
}

int64_t NativeTables::rowsNeeded(const KernelBinary &binary, int64_t tokens) {
  return tokens * std::count_if(binary.tables.begin(), binary.tables.end(), [](const TableDecl &d) {
           return d.kind == TableKind::QueryRanges;
         });
}

NativeTables::NativeTables(const KernelSpec &spec, const KernelBinary &binary, const Batch &batch,
                           Range *rows) {
  const int64_t tokens = batch.shape.numTokens();
  if (!rows) {
    ownRows.resize(rowsNeeded(binary, tokens));
    rows = ownRows.data();
  }
  for (size_t i = 0; i < spec.program.params.size(); ++i)
    paramWords.push_back(paramWord(spec.program.params[i], batch.params[i]));
  for (size_t i = 0; i < binary.tables.size(); ++i) {
    const TableDecl &decl = binary.tables[i];
    if (decl.kind != TableKind::QueryRanges) {
      entries.push_back(nativeTable(decl.kind, batch.tables[i]));
      continue;
    }
    buildRows(batch.shape, binary.tables[decl.source].kind, batch.tables[decl.source], rows);
    NativeTable table = {};
    table.data = rows;
    entries.push_back(table);
    rows += tokens;
  }
}

//===----------------------------------------------------------------------===//
// Runner
//===----------------------------------------------------------------------===//

Status rt::checkBinaryTables(const Kernel &kernel, const KernelBinary &binary) {
  const std::vector<TableDecl> &program = kernel.spec.program.tables;
  auto fail = [&](const std::string &what) {
    return Error{"kernel '" + kernel.spec.name + "': code for target '" + binary.target + "' " +
                 what};
  };
  if (binary.tables.size() < program.size())
    return fail("takes " + std::to_string(binary.tables.size()) + " tables, expected at least " +
                std::to_string(program.size()));
  for (size_t i = 0; i < binary.tables.size(); ++i) {
    const TableDecl &decl = binary.tables[i];
    const bool isBuilt = decl.kind == TableKind::QueryRanges;
    if (i < program.size() ? decl.kind != program[i].kind : !isBuilt)
      return fail("takes table '" + decl.name + "', which the kernel does not declare");
    if (!isBuilt)
      continue;
    if (decl.source < 0 || static_cast<size_t>(decl.source) >= program.size() ||
        (program[decl.source].kind != TableKind::Ranges &&
         program[decl.source].kind != TableKind::Documents))
      return fail("takes table '" + decl.name + "', whose source cannot be built from");
  }
  return {};
}

/// The code was made for the shapes, parameters and tables that the manifest gives it.
static Status checkCode(const NativeModule &module, const Kernel &kernel,
                        const KernelBinary &binary) {
  Result<std::string_view> signature = module.findConstant(signatureSymbol(binary.entry));
  Status status = signature ? checkSignature(kernel.spec, binary, *signature)
                            : Status(Error{signature.message()});
  if (!status)
    return Error{"kernel '" + kernel.spec.name + "': " + status.message()};
  return {};
}

Result<NativeRunner> NativeRunner::create(const Artifact &artifact, const Kernel &kernel) {
  const KernelBinary *binary = kernel.find("cpu");
  if (!binary) {
    std::string available;
    for (const KernelBinary &other : kernel.binaries)
      available += (available.empty() ? "" : ", ") + other.target;
    return Error{"kernel '" + kernel.spec.name + "': no code for target 'cpu' (the artifact has: " +
                 (available.empty() ? "none" : available) + ")"};
  }
  if (binary->format != "elf-x86-64")
    return Error{"kernel '" + kernel.spec.name + "': code of format '" + binary->format +
                 "', expected 'elf-x86-64'"};
  if (binary->blob < 0 || static_cast<size_t>(binary->blob) >= artifact.blobs.size())
    return Error{"kernel '" + kernel.spec.name + "': code " + std::to_string(binary->blob) +
                 " is not in the artifact"};
  if (Status status = checkBinaryTables(kernel, *binary); !status)
    return Error{status.message()};
  const std::vector<uint8_t> &code = artifact.blobs[binary->blob];
  Result<NativeModule> module = NativeModule::load(code.data(), code.size());
  if (!module)
    return Error{"kernel '" + kernel.spec.name + "': " + module.message()};
  NativeRunner runner(std::move(*module));
  runner.kernelSpec = &kernel.spec;
  runner.kernelBinary = binary;
  Result<NativeKernel> entry = runner.module.find(binary->entry);
  Result<NativeKernel> maskEntry = runner.module.find(binary->maskEntry);
  if (!entry || !maskEntry)
    return Error{"kernel '" + kernel.spec.name +
                 "': " + (entry ? maskEntry.message() : entry.message())};
  if (Status status = checkCode(runner.module, kernel, *binary); !status)
    return Error{status.message()};
  runner.entry = *entry;
  runner.maskEntry = *maskEntry;
  return runner;
}

/// The part of the arguments that both entries read.
static NativeArgs batchArgs(const Batch &batch, const NativeTables &tables, const SubRange &part) {
  NativeArgs args = {};
  args.queryStartLoc = batch.shape.queryStartLoc.data();
  args.contextLen = batch.shape.contextLen.data();
  args.keyBegin = batch.shape.keyBegin.data();
  args.keyEnd = batch.shape.keyEnd.data();
  args.requestBegin = part.requestBegin;
  args.requestEnd = part.requestEnd;
  args.tokenBegin = part.tokenBegin;
  args.tokenEnd = part.tokenEnd;
  args.numTokens = batch.shape.numTokens();
  args.params = tables.params();
  args.tables = tables.tables();
  return args;
}

/// Calls `entry` on pieces of the token range of `args` from several threads.
static void runPieces(NativeKernel entry, const NativeArgs &args, unsigned threads) {
  // Rows differ in cost, so pieces are small and handed out as workers come free.
  constexpr int64_t kPiece = 16;
  std::atomic<int64_t> next{args.tokenBegin};
  auto work = [&] {
    NativeArgs piece = args;
    for (;;) {
      piece.tokenBegin = next.fetch_add(kPiece);
      if (piece.tokenBegin >= args.tokenEnd)
        return;
      piece.tokenEnd = std::min(piece.tokenBegin + kPiece, args.tokenEnd);
      entry(&piece);
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(threads - 1);
  try {
    for (unsigned i = 1; i < threads; ++i)
      workers.emplace_back(work);
  } catch (const std::exception &) {
    // The machine gives no more threads; those that run, this one included, do the rest.
  }
  work();
  for (std::thread &worker : workers)
    worker.join();
}

void NativeRunner::run(const Problem &problem, const NativeTables &tables,
                       const NativeOutput &output, const SubRange &part, unsigned threads) const {
  NativeArgs args = batchArgs(*problem.batch, tables, part);
  args.q = problem.q.data;
  args.k = problem.k.data;
  args.v = problem.v.data;
  args.o = output.o;
  args.lse = output.lse;
  args.qTokenStride = problem.q.tokenStride;
  args.qHeadStride = problem.q.headStride;
  args.kPageStride = problem.k.pageStride;
  args.kSlotStride = problem.k.slotStride;
  args.kHeadStride = problem.k.headStride;
  args.vPageStride = problem.v.pageStride;
  args.vSlotStride = problem.v.slotStride;
  args.vHeadStride = problem.v.headStride;
  args.oTokenStride = output.oTokenStride;
  args.oHeadStride = output.oHeadStride;
  args.lseHeadStride = output.lseHeadStride;
  args.kvStart = problem.kv.kvStart;
  args.pageTable = problem.kv.pageTable;
  args.pageTableStride = problem.kv.requestStride;
  args.pageSize = problem.kv.pageSize;
  if (threads <= 1)
    return entry(&args);
  runPieces(entry, args, threads);
}

std::vector<uint8_t> NativeRunner::denseMask(const Batch &batch, const NativeTables &tables,
                                             int64_t stride) const {
  std::vector<uint8_t> keep(batch.numHeads * batch.shape.numTokens() * stride, 0);
  NativeArgs args = batchArgs(batch, tables, SubRange::all(batch.shape));
  args.keep = keep.data();
  args.keepStride = stride;
  maskEntry(&args);
  return keep;
}
