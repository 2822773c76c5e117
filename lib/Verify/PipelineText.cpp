// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Verify/Passes.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

/// Splits at the commas outside of brackets.
static SmallVector<StringRef> splitPasses(StringRef text) {
  SmallVector<StringRef> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '(' || c == '{' || c == '[')
      ++depth;
    if (c == ')' || c == '}' || c == ']')
      --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  if (!text.drop_front(start).trim().empty())
    parts.push_back(text.drop_front(start).trim());
  return parts;
}

static std::string addChecksTo(StringRef text, StringRef options, bool onKernel) {
  const std::string before = "attn-tv-snapshot", after = "attn-tv-check{" + options.str() + "}";
  SmallVector<std::string> parts;
  for (StringRef part : splitPasses(text)) {
    StringRef name = part.take_until([](char c) { return c == '(' || c == '{'; });
    StringRef rest = part.drop_front(name.size());
    bool isKernel = name.trim() == attn::KernelOp::getOperationName();
    bool isNested = rest.starts_with("("), isModule = name.trim() == "builtin.module";
    if (isNested && (isKernel || isModule)) {
      parts.push_back(name.str() + "(" +
                      addChecksTo(rest.drop_front().drop_back(), options, isKernel) + ")");
      continue;
    }
    // What runs on any operation runs on kernels. Conversions leave no kernel to compare.
    bool isElsewhere = isNested && (onKernel || name.trim() != "any");
    if (isElsewhere || name.starts_with("attn-tv-") || name.starts_with("convert-attn-")) {
      parts.push_back(part.str());
      continue;
    }
    auto nest = [&](const std::string &pass) {
      return onKernel ? pass : attn::KernelOp::getOperationName().str() + "(" + pass + ")";
    };
    parts.append({nest(before), part.str(), nest(after)});
  }
  return join(parts, ",");
}

std::string attn::proofs::addChecks(StringRef pipeline, StringRef checkOptions) {
  return addChecksTo(pipeline, checkOptions, /*onKernel=*/false);
}
