// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "attn/Runtime/Capability.h"

#include "attn/Core/CudaAbi.h"
#include "attn/Core/IndexSpaces.h"
#include "attn/Runtime/StepFacts.h"

#include <algorithm>
#include <iterator>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

const std::vector<TargetCapability> &rt::targetCapabilities() {
  static const std::vector<TargetCapability> table = [] {
    TargetCapability cpu;
    cpu.name = "cpu";
    cpu.types = {"f32", "f16", "bf16"};
    cpu.writesPartials = true; // its O is f32, and every launch covers an interval of keys
    TargetCapability hopper;
    hopper.name = "sm_90a";
    hopper.types = {"f16", "bf16"};
    hopper.takesTypesThatDiffer = false;
    hopper.dims = {64, 128, 256};
    hopper.takesDimsThatDiffer = false;
    hopper.mostArgumentWords = kMaxCudaWords;
    return std::vector<TargetCapability>{cpu, hopper};
  }();
  return table;
}

Configuration rt::configurationOf(const KernelSpec &spec, std::string_view target) {
  Configuration c;
  c.target = target;
  c.qType = toString(spec.qType);
  c.kvType = toString(spec.kvType);
  c.numHeads = spec.numHeads;
  c.numKvHeads = spec.numKvHeads;
  c.dimQk = spec.dimQk;
  c.dimV = spec.dimV;
  const MaskProgram &program = spec.program;
  c.numParams = static_cast<int64_t>(program.params.size());
  c.numTables = static_cast<int64_t>(program.tables.size());
  std::vector<bool> isBuiltFrom(program.tables.size(), false);
  for (const Node &node : program.nodes) {
    c.hasSoftCap |= node.op == Op::SoftCap;
    if (node.op == Op::MmPrefix || node.op == Op::Document)
      isBuiltFrom[node.ref] = true;
  }
  c.numTables += std::count(isBuiltFrom.begin(), isBuiltFrom.end(), true);
  c.hasRanges = hasRangesTable(program);
  return c;
}

template <class T, class ToText>
static std::string joined(const std::vector<T> &values, const char *separator, ToText toText) {
  std::string text;
  for (const T &value : values)
    text += (text.empty() ? "" : separator) + toText(value);
  return text;
}

namespace {

/// Collects the reasons against one configuration.
class Judge {
public:
  Judge(const Configuration &c, const TargetCapability &target) : c(c), target(target) {}

  std::vector<std::string> run() {
    checkTypes();
    checkShape();
    checkFeatures();
    checkLaunch();
    return std::move(reasons);
  }

private:
  void refuse(const std::string &why) { reasons.push_back("target '" + target.name + "' " + why); }

  void checkTypes() {
    auto takes = [&](const std::string &type) {
      return std::find(target.types.begin(), target.types.end(), type) != target.types.end();
    };
    const std::string types =
        joined(target.types, " or ", [](const std::string &type) { return type; });
    if (!takes(c.qType))
      refuse("takes q of type " + types + ", got '" + c.qType + "'");
    if (!takes(c.kvType))
      refuse("takes kv of type " + types + ", got '" + c.kvType + "'");
    if (!target.takesTypesThatDiffer && c.qType != c.kvType)
      refuse("takes q and kv of one type, got '" + c.qType + "' and '" + c.kvType + "'");
  }

  void checkShape() {
    if (c.numHeads > 0 && c.numKvHeads > 0 && c.numHeads % c.numKvHeads)
      reasons.push_back("heads " + std::to_string(c.numHeads) +
                        " expected to be a multiple of kv_heads " + std::to_string(c.numKvHeads));
    for (auto [name, value] : {std::pair("heads", c.numHeads), std::pair("kv_heads", c.numKvHeads),
                               std::pair("dim", c.dimQk), std::pair("dim_v", c.dimV)})
      if (value < 1 || value > kMaxKernelExtent)
        reasons.push_back(std::string(name) + " expected to be 1 to " +
                          std::to_string(kMaxKernelExtent) + ", got " + std::to_string(value));
    if (!target.takesDimsThatDiffer && c.dimQk != c.dimV)
      refuse("takes dim_v equal to dim, got " + std::to_string(c.dimV) + " and " +
             std::to_string(c.dimQk));
    if (!target.dims.empty() &&
        std::find(target.dims.begin(), target.dims.end(), c.dimQk) == target.dims.end())
      refuse("has no kernel for dim " + std::to_string(c.dimQk) + ", expected one of " +
             joined(target.dims, ", ", [](int64_t dim) { return std::to_string(dim); }));
  }

  void checkFeatures() {
    if (c.hasRanges && !target.takesRanges)
      refuse("takes no ranges");
    if (c.hasSoftCap && !target.takesSoftCap)
      refuse("takes no soft-cap");
    if (c.hasSink && !target.takesSinks)
      refuse("takes no sinks");
    const int64_t words = kNumCudaArgs + c.numParams + kNativeTableWords * c.numTables;
    if (target.mostArgumentWords && words > target.mostArgumentWords)
      reasons.push_back("parameters and tables take " + std::to_string(words) +
                        " words of kernel arguments, expected at most " +
                        std::to_string(target.mostArgumentWords));
  }

  void checkLaunch() {
    if (c.pageSize < 0 || c.pageSize >= kPositionLimit)
      reasons.push_back("page_size is " + std::to_string(c.pageSize) + ", expected 0 to " +
                        std::to_string(kPositionLimit - 1));
    else if (c.pageSize && !target.takesPages)
      refuse("takes no pages");
    if (c.isContextParallel && !target.writesPartials)
      refuse("writes no partial results in f32, which context parallelism takes");
  }

  const Configuration &c;
  const TargetCapability &target;
  std::vector<std::string> reasons;
};

} // namespace

std::vector<std::string> rt::reasonsAgainst(const Configuration &configuration) {
  for (const TargetCapability &target : targetCapabilities())
    if (target.name == configuration.target)
      return Judge(configuration, target).run();
  return {"target '" + configuration.target + "' is not available, expected one of: " +
          joined(targetCapabilities(), ", ", [](const TargetCapability &t) { return t.name; })};
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

namespace {

/// A row of the table of uses.
struct UseRow {
  KernelUse use;
  const char *name;
  bool (*fits)(const SelectorFacts &facts);
  const char *why; ///< it does not
};

constexpr UseRow kUses[] = {
    {KernelUse::NoRanges, "no ranges in this batch",
     [](const SelectorFacts &f) { return !f.batchHasRanges; }, "the batch has ranges"},
    {KernelUse::IgnoresRanges, "this layer ignores ranges",
     [](const SelectorFacts &f) { return f.layerIgnoresRanges; }, "ranges bind this layer"},
    {KernelUse::Always, "fallback", [](const SelectorFacts &) { return true; }, ""},
};

const UseRow &rowOf(KernelUse use) {
  for (const UseRow &row : kUses)
    if (row.use == use)
      return row;
  return kUses[std::size(kUses) - 1];
}

/// Why a candidate cannot be taken, or null.
const char *misfit(const KernelCandidate &candidate, const SelectorFacts &facts) {
  const UseRow &row = rowOf(candidate.use);
  if (!row.fits(facts))
    return row.why;
  if (facts.batchHasRanges && !facts.layerIgnoresRanges &&
      !hasRangesTable(candidate.kernel->spec.program))
    return "it takes no ranges, and the batch has some";
  return nullptr;
}

} // namespace

std::string_view rt::toString(KernelUse use) { return rowOf(use).name; }

Result<KernelSelector> KernelSelector::create(std::vector<KernelCandidate> candidates,
                                              std::string_view target,
                                              const Configuration &launch) {
  KernelSelector selector;
  for (const KernelCandidate &candidate : candidates) {
    if (!candidate.kernel)
      return Error{"selector: a candidate without a kernel"};
    Configuration c = configurationOf(candidate.kernel->spec, target);
    c.pageSize = launch.pageSize;
    c.isContextParallel = launch.isContextParallel;
    std::vector<std::string> reasons = reasonsAgainst(c);
    if (reasons.empty() && !candidate.kernel->find(target))
      reasons.push_back("no code for target '" + c.target + "'");
    if (reasons.empty()) {
      selector.candidates.push_back(candidate);
      continue;
    }
    for (const std::string &reason : reasons)
      selector.rejected += (selector.rejected.empty() ? "kernel '" : "\nkernel '") +
                           candidate.kernel->spec.name + "': " + reason;
  }
  if (selector.candidates.empty())
    return Error{"selector: no kernel for target '" + std::string(target) + "'" +
                 (selector.rejected.empty() ? "" : "\n" + selector.rejected)};
  std::stable_sort(
      selector.candidates.begin(), selector.candidates.end(),
      [](const KernelCandidate &a, const KernelCandidate &b) { return a.priority > b.priority; });
  return selector;
}

Result<const Kernel *> KernelSelector::select(const SelectorFacts &facts) const {
  Result<const KernelCandidate *> candidate = pick(facts);
  if (!candidate)
    return candidate.takeError();
  return (*candidate)->kernel;
}

Result<const KernelCandidate *> KernelSelector::pick(const SelectorFacts &facts) const {
  for (const KernelCandidate &candidate : candidates)
    if (!misfit(candidate, facts))
      return &candidate;
  std::string text = "selector: no kernel fits this step";
  for (const KernelCandidate &candidate : candidates)
    text += "\nkernel '" + candidate.kernel->spec.name + "' (" +
            std::string(toString(candidate.use)) + "): " + misfit(candidate, facts);
  return Error{text};
}
