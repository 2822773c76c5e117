// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// attn-c/Engine.h.
#include "attn-c/Engine.h"

#include "Support.h"

#include "attn/Runtime/Capability.h"
#include "attn/Runtime/KernelCache.h"
#include "attn/Runtime/MicroBatch.h"
#include "attn/Runtime/StepFacts.h"

#include <algorithm>

using namespace attn;
using namespace attn::capi;

struct attn_selector {
  rt::KernelSelector selector;
};

struct attn_kernel_cache {
  rt::KernelCache cache;
};

/// Checks a kernel's number.
static attn_status findKernel(const attn_artifact *artifact, int64_t kernel,
                              const core::Kernel **out) {
  if (!artifact)
    return nullArgument("artifact");
  const std::vector<core::Kernel> &kernels = artifact->artifact.kernels;
  if (kernel < 0 || kernel >= static_cast<int64_t>(kernels.size()))
    return Failure(ATTN_INVALID_ARGUMENT,
                   "kernel " + std::to_string(kernel) + " of " + std::to_string(kernels.size()));
  *out = &kernels[static_cast<size_t>(kernel)];
  return ATTN_OK;
}

//===----------------------------------------------------------------------===//
// Facts of a step
//===----------------------------------------------------------------------===//

attn_status attn_plan_step_facts(const attn_plan *plan, const attn_split_rule *given,
                                 uint8_t *isPrefill, attn_step_facts *facts) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!plan->isPrepared)
      return notPrepared();
    attn_split_rule rule;
    if (auto fault = readStruct(given, "attn_split_rule", rule))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    const core::BatchShape &shape = plan->bound.batch.shape;
    const rt::Span<uint8_t> classes(isPrefill, isPrefill ? shape.numReqs() : 0);
    const core::Result<rt::StepCounts> counts = rt::classifyRequests(
        shape, plan->bound.isPrefilling,
        {rule.decode_threshold, rule.short_extends_are_decodes != 0, rule.has_ranges != 0},
        classes);
    if (!counts)
      return Failure(ATTN_INVALID_ARGUMENT, counts.message());
    const rt::QueryLengths longest = rt::longestQuery(shape);
    attn_step_facts value = {};
    value.longest_query = longest.exact;
    value.longest_query_rounded = longest.rounded;
    value.decodes = counts->decodes;
    value.decode_tokens = counts->decodeTokens;
    value.longest_decode = counts->longestDecode;
    value.prefills = counts->prefills;
    value.prefill_tokens = counts->prefillTokens;
    value.longest_prefill = counts->longestPrefill;
    value.decodes_first = counts->decodesFirst;
    value.any_prefill_has_context = counts->anyPrefillHasContext;
    return writeStruct(facts, "attn_step_facts", value);
  });
}

attn_status attn_chunk_table(const int64_t *queryStartLoc, const int64_t *computedTokens,
                             int64_t numSequences, int64_t chunkSize, int64_t capacity,
                             int64_t *chunkStart, int64_t *sequence, int64_t *lastChunk,
                             int64_t *numChunks) {
  return guarded([&]() -> attn_status {
    if (!queryStartLoc)
      return nullArgument("query_start_loc");
    if (numSequences < 0 || numSequences > core::kPositionLimit)
      return Failure(ATTN_INVALID_ARGUMENT, "num_sequences is " + std::to_string(numSequences) +
                                                ", expected 0 to " +
                                                std::to_string(core::kPositionLimit));
    if (numSequences > 0 && !computedTokens)
      return nullArgument("computed_tokens");
    if (!numChunks)
      return nullArgument("num_chunks");
    const rt::ChunkInput input = {
        {queryStartLoc, numSequences + 1}, {computedTokens, numSequences}, chunkSize};
    core::Result<int64_t> count = rt::countChunks(input);
    if (!count)
      return Failure(ATTN_INVALID_ARGUMENT, count.message());
    *numChunks = *count;
    if (!chunkStart && !sequence && !lastChunk)
      return ATTN_OK;
    if (!chunkStart || !sequence || !lastChunk)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "chunk_start, sequence and last_chunk are expected to be all null or none");
    if (capacity < *count)
      return Failure(ATTN_TOO_LARGE, "capacity is " + std::to_string(capacity) +
                                         ", expected at least " + std::to_string(*count));
    count = rt::chunkTable(
        input, {{chunkStart, capacity + 1}, {sequence, capacity}, {lastChunk, numSequences}});
    return count ? ATTN_OK : attn_status(Failure(ATTN_INVALID_ARGUMENT, count.message()));
  });
}

attn_status attn_most_chunks(int64_t tokens, int64_t sequences, int64_t chunkSize,
                             int64_t *numChunks) {
  return guarded([&]() -> attn_status {
    if (!numChunks)
      return nullArgument("num_chunks");
    const core::Result<int64_t> most = rt::mostChunks(tokens, sequences, chunkSize);
    if (!most)
      return Failure(ATTN_INVALID_ARGUMENT, most.message());
    *numChunks = *most;
    return ATTN_OK;
  });
}

attn_status attn_plan_nearest_safe_cut(const attn_plan *plan, int64_t request, int64_t token,
                                       int64_t *cut) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!cut)
      return nullArgument("cut");
    if (!plan->isPrepared)
      return notPrepared();
    const int64_t requests = plan->bound.batch.shape.numReqs();
    if (request < 0 || request >= requests)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "request " + std::to_string(request) + " of " + std::to_string(requests));
    const core::Result<core::TokenIndex> nearest =
        rt::nearestSafeCut(plan->settings.kernel->spec, plan->bound, core::RequestIndex(request),
                           core::TokenIndex(token));
    if (!nearest)
      return Failure(ATTN_INVALID_ARGUMENT, nearest.message());
    *cut = nearest->value;
    return ATTN_OK;
  });
}

//===----------------------------------------------------------------------===//
// What a target can do
//===----------------------------------------------------------------------===//

attn_status attn_kernel_supported(const attn_artifact *artifact, int64_t kernel, const char *target,
                                  int64_t pageSize, int32_t isContextParallel) {
  return guarded([&]() -> attn_status {
    const core::Kernel *found = nullptr;
    if (attn_status status = findKernel(artifact, kernel, &found); status != ATTN_OK)
      return status;
    if (!target)
      return nullArgument("target");
    rt::Configuration configuration = rt::configurationOf(found->spec, target);
    configuration.pageSize = pageSize;
    configuration.isContextParallel = isContextParallel != 0;
    std::string all;
    for (const std::string &reason : rt::reasonsAgainst(configuration))
      all += (all.empty() ? "" : "\n") + reason;
    return all.empty() ? ATTN_OK : attn_status(Failure(ATTN_UNSUPPORTED, all));
  });
}

attn_status attn_selector_create(const attn_candidate *given, int64_t count, const char *target,
                                 int64_t pageSize, attn_selector **out) {
  return guarded([&]() -> attn_status {
    if (!out)
      return nullArgument("out");
    if (!target)
      return nullArgument("target");
    std::vector<rt::KernelCandidate> candidates;
    const auto read = [&](const std::string &place,
                          const attn_candidate &candidate) -> std::optional<std::string> {
      const core::Kernel *kernel = nullptr;
      if (findKernel(candidate.artifact, candidate.kernel, &kernel) != ATTN_OK)
        return place + ": " + attn_last_error();
      if (candidate.use < ATTN_USE_NO_RANGES || candidate.use > ATTN_USE_ALWAYS)
        return place + ".use is " + std::to_string(candidate.use) + ", expected an attn_kernel_use";
      candidates.push_back({kernel, static_cast<rt::KernelUse>(candidate.use), candidate.priority,
                            static_cast<int64_t>(candidates.size())});
      return std::nullopt;
    };
    if (auto fault = forEach(given, count, "candidates", read))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    rt::Configuration launch;
    launch.pageSize = pageSize;
    core::Result<rt::KernelSelector> selector =
        rt::KernelSelector::create(std::move(candidates), target, launch);
    if (!selector)
      return Failure(ATTN_UNSUPPORTED, selector.message());
    *out = new attn_selector{std::move(*selector)};
    return ATTN_OK;
  });
}

void attn_selector_destroy(attn_selector *selector) { delete selector; }

attn_status attn_selector_select(const attn_selector *selector, int32_t batchHasRanges,
                                 int32_t layerIgnoresRanges, int64_t *candidate) {
  return guarded([&]() -> attn_status {
    if (!selector)
      return nullArgument("selector");
    if (!candidate)
      return nullArgument("candidate");
    const core::Result<const rt::KernelCandidate *> picked =
        selector->selector.pick({batchHasRanges != 0, layerIgnoresRanges != 0});
    if (!picked)
      return Failure(ATTN_UNSUPPORTED, picked.message());
    *candidate = (*picked)->number;
    return ATTN_OK;
  });
}

//===----------------------------------------------------------------------===//
// Kernel cache
//===----------------------------------------------------------------------===//

static_assert(int(rt::KernelUse::NoRanges) == ATTN_USE_NO_RANGES &&
                  int(rt::KernelUse::IgnoresRanges) == ATTN_USE_IGNORES_RANGES &&
                  int(rt::KernelUse::Always) == ATTN_USE_ALWAYS,
              "uses are the same on both sides");

attn_status attn_kernel_cache_create(const attn_kernel_cache_options *given,
                                     attn_kernel_cache **out) {
  return guarded([&]() -> attn_status {
    if (!out)
      return nullArgument("out");
    attn_kernel_cache_options options;
    if (auto fault = readStruct(given, "attn_kernel_cache_options", options))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    if (options.memory_bytes < 0 || options.folder_bytes < 0)
      return Failure(ATTN_INVALID_ARGUMENT,
                     "attn_kernel_cache_options: " + std::to_string(options.memory_bytes) +
                         " memory_bytes and " + std::to_string(options.folder_bytes) +
                         " folder_bytes, expected neither below 0");
    rt::KernelCacheOptions settings;
    if (options.folder)
      settings.folder = options.folder;
    if (options.memory_bytes)
      settings.memoryBytes = options.memory_bytes;
    if (options.folder_bytes)
      settings.folderBytes = options.folder_bytes;
    *out = new attn_kernel_cache{rt::KernelCache(std::move(settings))};
    return ATTN_OK;
  });
}

void attn_kernel_cache_destroy(attn_kernel_cache *cache) { delete cache; }

/// The caller's compiler as the cache calls it.
static rt::KernelCache::Compile compilerOf(attn_compile_fn compile, void *context,
                                           const attn_kernel_key &key) {
  if (!compile)
    return nullptr;
  return [compile, context, &key](const rt::KernelKey &) -> core::Result<core::Artifact> {
    char message[1024] = "";
    attn_artifact *made = nullptr;
    const int32_t code = compile(context, &key, &made, message, sizeof(message));
    const std::unique_ptr<attn_artifact> owner(made);
    message[sizeof(message) - 1] = 0;
    if (code != 0)
      return core::Error{message[0] ? std::string(message)
                                    : "the compiler returned " + std::to_string(code)};
    if (!made)
      return core::Error{"the compiler made no artifact"};
    return std::move(owner->artifact);
  };
}

attn_status attn_kernel_cache_get(attn_kernel_cache *cache, const attn_kernel_key *given,
                                  attn_compile_fn compile, void *context, attn_artifact **out,
                                  int64_t *kernel) {
  return guarded([&]() -> attn_status {
    if (!cache)
      return nullArgument("cache");
    if (!out)
      return nullArgument("out");
    if (!kernel)
      return nullArgument("kernel");
    attn_kernel_key key;
    if (auto fault = readStruct(given, "attn_kernel_key", key))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    for (auto [name, text] :
         {std::pair("spec_hash", key.spec_hash), std::pair("target", key.target),
          std::pair("compiler_version", key.compiler_version)})
      if (!text)
        return nullArgument((std::string("attn_kernel_key.") + name).c_str());
    const rt::KernelKey wanted = {key.spec_hash, key.target, key.compiler_version, {}};
    core::Result<rt::CachedKernel> found = cache->cache.get(
        wanted, compilerOf(compile, context, key), key.spec_file ? key.spec_file : "SPEC.mlir");
    if (!found)
      return Failure(compile ? ATTN_FAILED : ATTN_UNSUPPORTED, found.message());
    *kernel = found->kernel - found->artifact->kernels.data();
    *out = new attn_artifact{*found->artifact};
    return ATTN_OK;
  });
}
