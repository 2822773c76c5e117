// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Core/KernelSignature.h"

#include "attn/Core/Json.h"
#include "attn/Core/NativeAbi.h"

namespace attn::core {

std::string signatureSymbol(std::string_view entry) {
  return "attn.signature." + std::string(entry);
}

/// Names may hold anything; with their length in front, two lists never read the same.
static std::string quoted(std::string_view name) {
  return std::to_string(name.size()) + ":" + std::string(name);
}

static std::string lineOf(const ParamDecl &param) {
  std::string line = "param " + quoted(param.name) + " " + std::string(toString(param.type));
  if (param.minValue)
    line += " at least " + std::to_string(*param.minValue);
  return line;
}

static std::string lineOf(const TableDecl &table) {
  std::string line = "table " + quoted(table.name) + " " + std::string(toString(table.kind));
  if (table.kind == TableKind::Plain) {
    for (TableDim dim : table.dims)
      line += " " + std::string(toString(dim));
    line += " of " + std::string(toString(table.element));
  }
  if (table.kind == TableKind::QueryRanges)
    line += " from " + std::to_string(table.source);
  return line;
}

std::string kernelSignature(const KernelSpec &spec, const KernelBinary &binary) {
  std::string text;
  auto add = [&](const std::string &line) { text += line + "\n"; };
  add("abi 1 " + std::to_string(sizeof(NativeArgs)) + " " + std::to_string(sizeof(NativeTable)));
  add("entry " + quoted(binary.entry));
  add("mask_entry " + quoted(binary.maskEntry));
  add("num_heads " + std::to_string(spec.numHeads));
  add("num_kv_heads " + std::to_string(spec.numKvHeads));
  add("dim_qk " + std::to_string(spec.dimQk));
  add("dim_v " + std::to_string(spec.dimV));
  add("q_type " + std::string(toString(spec.qType)));
  add("kv_type " + std::string(toString(spec.kvType)));
  if (spec.scaleParam >= 0)
    add("scale_param " + std::to_string(spec.scaleParam));
  else
    add("scale " + writeJson(JsonValue::number(spec.scale)));
  for (const ParamDecl &param : spec.program.params)
    add(lineOf(param));
  for (const TableDecl &table : binary.tables)
    add(lineOf(table));
  return text;
}

/// The line of `text` at `begin`, cut to a length that a message can take.
static std::string lineAt(std::string_view text, size_t begin) {
  constexpr size_t kMaxLength = 80;
  std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  return std::string(line.substr(0, kMaxLength));
}

Status checkSignature(const KernelSpec &spec, const KernelBinary &binary, std::string_view ofCode) {
  const std::string expected = kernelSignature(spec, binary);
  if (ofCode == expected)
    return {};
  size_t line = 0;
  for (size_t i = 0; i < expected.size() && i < ofCode.size() && expected[i] == ofCode[i]; ++i)
    if (expected[i] == '\n')
      line = i + 1;
  return Error{"the manifest does not fit its code: the manifest says '" + lineAt(expected, line) +
               "', the code is made for '" + lineAt(ofCode, line) + "'"};
}

} // namespace attn::core
