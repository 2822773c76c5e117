// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Versions, errors, artifacts and what they say about their kernels.
#include "Support.h"

#include "attn/Config.h"

#include <algorithm>

using namespace attn;
using namespace attn::capi;

/// This thread's last error.
static std::string &lastError() {
  static thread_local std::string message;
  return message;
}

capi::Failure::Failure(attn_status code, std::string message) : code(code) {
  lastError() = std::move(message);
}

std::optional<std::string> capi::checkStruct(const void *data, size_t given, size_t oldest,
                                             size_t expected, const char *name) {
  constexpr size_t kLargest = 4096;
  const auto *bytes = static_cast<const uint8_t *>(data);
  if (given < oldest || given > kLargest)
    return std::string(name) + ".struct_size is " + std::to_string(given) + ", expected " +
           std::to_string(expected);
  if (given > expected &&
      std::any_of(bytes + expected, bytes + given, [](uint8_t byte) { return byte != 0; }))
    return std::string(name) + " sets members that this library does not know";
  return std::nullopt;
}

int32_t attn_abi_version(void) { return ATTN_ABI_VERSION; }

const char *attn_version(void) { return ATTN_VERSION; }

const char *attn_last_error(void) { return lastError().c_str(); }

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static attn_status takeArtifact(core::Result<core::Artifact> parsed, attn_artifact **out) {
  if (!parsed)
    return Failure(ATTN_INVALID_ARTIFACT, parsed.message());
  *out = new attn_artifact{std::move(*parsed)};
  return ATTN_OK;
}

attn_status attn_artifact_load_file(const char *path, attn_artifact **out) {
  return guarded([&]() -> attn_status {
    if (!path)
      return nullArgument("path");
    if (!out)
      return nullArgument("out");
    return takeArtifact(core::readArtifact(path), out);
  });
}

attn_status attn_artifact_load_memory(const void *data, size_t size, attn_artifact **out) {
  return guarded([&]() -> attn_status {
    if (!data)
      return nullArgument("data");
    if (!out)
      return nullArgument("out");
    return takeArtifact(core::parseArtifact(static_cast<const uint8_t *>(data), size), out);
  });
}

void attn_artifact_destroy(attn_artifact *artifact) { delete artifact; }

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

int64_t attn_artifact_num_kernels(const attn_artifact *artifact) {
  return artifact ? static_cast<int64_t>(artifact->artifact.kernels.size()) : 0;
}

attn_status attn_artifact_find_kernel(const attn_artifact *artifact, const char *name,
                                      int64_t *out) {
  return guarded([&]() -> attn_status {
    if (!artifact)
      return nullArgument("artifact");
    if (!out)
      return nullArgument("out");
    const std::vector<core::Kernel> &kernels = artifact->artifact.kernels;
    std::vector<std::string> names;
    for (size_t i = 0; i < kernels.size(); ++i) {
      if (name ? kernels[i].spec.name == name : kernels.size() == 1) {
        *out = static_cast<int64_t>(i);
        return ATTN_OK;
      }
      names.push_back(kernels[i].spec.name);
    }
    const std::string list = " (the artifact has: " + rt::quotedList(names) + ")";
    if (!name)
      return Failure(ATTN_INVALID_ARGUMENT, "name is null and there are several kernels" + list);
    return Failure(ATTN_INVALID_ARGUMENT, "no kernel '" + std::string(name) + "'" + list);
  });
}

/// Runs `query` on the spec of a kernel after checking its number.
template <class Query>
static attn_status withKernel(const attn_artifact *artifact, int64_t kernel, Query query) {
  return guarded([&]() -> attn_status {
    if (!artifact)
      return nullArgument("artifact");
    const int64_t count = attn_artifact_num_kernels(artifact);
    if (kernel < 0 || kernel >= count)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "kernel " + std::to_string(kernel) + " of " + std::to_string(count));
    return query(artifact->artifact.kernels[kernel].spec);
  });
}

static int32_t dtypeOf(core::DType type) {
  switch (type) {
  case core::DType::F32:
    return ATTN_F32;
  case core::DType::F16:
    return ATTN_F16;
  case core::DType::BF16:
    break;
  }
  return ATTN_BF16;
}

static int32_t scalarOf(core::ScalarType type) {
  switch (type) {
  case core::ScalarType::I8:
    return ATTN_SCALAR_I8;
  case core::ScalarType::I64:
    return ATTN_SCALAR_I64;
  case core::ScalarType::F32:
    return ATTN_SCALAR_F32;
  default:
    return ATTN_SCALAR_I32;
  }
}

attn_status attn_kernel_get_info(const attn_artifact *artifact, int64_t kernel,
                                 attn_kernel_info *info) {
  return withKernel(artifact, kernel, [&](const core::KernelSpec &spec) {
    attn_kernel_info value = {};
    value.name = spec.name.c_str();
    value.spec_hash = spec.specHash.c_str();
    value.num_heads = spec.numHeads;
    value.num_kv_heads = spec.numKvHeads;
    value.dim_qk = spec.dimQk;
    value.dim_v = spec.dimV;
    value.q_dtype = dtypeOf(spec.qType);
    value.kv_dtype = dtypeOf(spec.kvType);
    value.num_params = static_cast<int64_t>(spec.program.params.size());
    value.num_tables = static_cast<int64_t>(spec.program.tables.size());
    return writeStruct(info, "attn_kernel_info", value);
  });
}

attn_status attn_kernel_get_param(const attn_artifact *artifact, int64_t kernel, int64_t param,
                                  attn_param_info *info) {
  return withKernel(artifact, kernel, [&](const core::KernelSpec &spec) -> attn_status {
    const int64_t count = static_cast<int64_t>(spec.program.params.size());
    if (param < 0 || param >= count)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "param " + std::to_string(param) + " of " + std::to_string(count));
    const core::ParamDecl &decl = spec.program.params[param];
    attn_param_info value = {};
    value.name = decl.name.c_str();
    value.type = scalarOf(decl.type);
    value.has_min = decl.minValue.has_value();
    value.min = decl.minValue.value_or(0);
    return writeStruct(info, "attn_param_info", value);
  });
}

static const char *dimName(core::TableDim dim) {
  switch (dim) {
  case core::TableDim::B:
    return "b";
  case core::TableDim::Token:
    return "token";
  case core::TableDim::K:
    return "k";
  case core::TableDim::Slot:
    return "slot";
  case core::TableDim::H:
    return "h";
  case core::TableDim::HKv:
    return "h_kv";
  case core::TableDim::Bucket:
    break;
  }
  return "bucket";
}

static int32_t tableKindOf(core::TableKind kind) {
  switch (kind) {
  case core::TableKind::Plain:
    return ATTN_TABLE_DENSE;
  case core::TableKind::Ranges:
    return ATTN_TABLE_RANGES;
  case core::TableKind::Documents:
    return ATTN_TABLE_DOCUMENTS;
  case core::TableKind::QueryRanges:
    break;
  }
  return ATTN_TABLE_QUERY_RANGES;
}

attn_status attn_kernel_get_table(const attn_artifact *artifact, int64_t kernel, int64_t table,
                                  attn_table_info *info) {
  return withKernel(artifact, kernel, [&](const core::KernelSpec &spec) -> attn_status {
    const int64_t count = static_cast<int64_t>(spec.program.tables.size());
    if (table < 0 || table >= count)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "table " + std::to_string(table) + " of " + std::to_string(count));
    const core::TableDecl &decl = spec.program.tables[table];
    attn_table_info value = {};
    value.name = decl.name.c_str();
    value.kind = tableKindOf(decl.kind);
    value.element = scalarOf(decl.element);
    value.rank = static_cast<int32_t>(decl.dims.size());
    for (size_t i = 0; i < decl.dims.size() && i < ATTN_MAX_TABLE_RANK; ++i)
      value.dims[i] = dimName(decl.dims[i]);
    return writeStruct(info, "attn_table_info", value);
  });
}
