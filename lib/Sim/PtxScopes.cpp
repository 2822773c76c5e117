// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PtxScopes.h"

#include <algorithm>
#include <charconv>

namespace attn::sim {

const PtxLabelUse *PtxScopes::close() {
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  const PtxLabelUse *missing = nullptr;
  for (const PtxLabelUse &use : scope.pending) {
    auto label = scope.labels.find(use.name);
    if (label != scope.labels.end()) {
      kernel.instructions[use.instruction].operands[use.operand].value =
          static_cast<int64_t>(label->second);
    } else if (!scopes.empty()) {
      scopes.back().pending.push_back(use);
    } else if (!missing || use.instruction < missing->instruction) {
      undefined = use;
      missing = &undefined;
    }
  }
  return missing;
}

bool PtxScopes::declareRegister(std::string_view name, PtxType type) {
  Entry entry;
  entry.type = type;
  return scopes.back().names.emplace(name, std::move(entry)).second;
}

bool PtxScopes::declareRange(std::string_view prefix, PtxType type, int32_t count) {
  return scopes.back().ranges.emplace(prefix, Range{type, count}).second;
}

bool PtxScopes::declareVariable(std::string_view name, std::string &unique) {
  Scope &scope = scopes.back();
  unique = std::string(name) + scope.suffix();
  Entry entry;
  entry.isVariable = true;
  entry.unique = unique;
  return scope.names.emplace(name, std::move(entry)).second && !moduleVariables.count(unique) &&
         variables.insert(unique).second;
}

bool PtxScopes::defineLabel(std::string_view name) {
  return scopes.back().labels.emplace(name, kernel.instructions.size()).second;
}

int32_t PtxScopes::addRegister(const Scope &scope, std::string_view name, PtxType type) {
  kernel.registers.push_back({std::string(name) + scope.suffix(), type});
  return static_cast<int32_t>(kernel.registers.size() - 1);
}

PtxName PtxScopes::findIn(Scope &scope, std::string_view name) {
  PtxName result;
  auto known = scope.names.find(name);
  if (known != scope.names.end() && known->second.number >= 0) {
    result.kind = PtxName::Kind::Register;
    result.number = known->second.number;
    return result;
  }
  // "%r12" may be number 12 of range %r and number 2 of range %r1.
  int meanings = known != scope.names.end();
  PtxType type = meanings ? known->second.type : PtxType::B32;
  constexpr size_t kMaxDigits = 10;
  for (size_t digits = 1; digits < name.size() && digits <= kMaxDigits; ++digits) {
    std::string_view tail = name.substr(name.size() - digits);
    if (tail[0] < '0' || tail[0] > '9')
      break;
    auto range = scope.ranges.find(name.substr(0, name.size() - digits));
    if (range == scope.ranges.end() || (digits > 1 && tail[0] == '0'))
      continue;
    int64_t index = 0;
    std::from_chars(tail.data(), tail.data() + tail.size(), index);
    if (index >= range->second.count)
      continue;
    ++meanings;
    type = range->second.type;
  }
  if (meanings == 0)
    return result;
  if (meanings > 1) {
    result.kind = PtxName::Kind::Ambiguous;
    return result;
  }
  if (known != scope.names.end() && known->second.isVariable) {
    result.kind = PtxName::Kind::Variable;
    result.text = known->second.unique;
    return result;
  }
  result.kind = PtxName::Kind::Register;
  result.number = addRegister(scope, name, type);
  Entry &entry = scope.names[name];
  entry.type = type;
  entry.number = result.number;
  return result;
}

PtxName PtxScopes::find(std::string_view name) {
  for (size_t i = scopes.size(); i-- > 0;) {
    PtxName result = findIn(scopes[i], name);
    if (result.kind != PtxName::Kind::Unknown)
      return result;
  }
  PtxName result;
  if (moduleVariables.count(name)) {
    result.kind = PtxName::Kind::Variable;
    result.text = name;
  }
  return result;
}

} // namespace attn::sim
