// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans: prepare and run.
#include "Support.h"

using namespace attn;
using namespace attn::capi;

/// Alignment of a workspace: a cache line.
static constexpr size_t kWorkspaceAlignment = 64;

/// The options of the memory on cuda; other devices have none.
static attn_status readMemoryOptions(const attn_plan_options &options, PlanSettings &settings) {
  constexpr uint64_t kFlags = ATTN_PLAN_FIXED | ATTN_PLAN_FOR_GRAPHS | ATTN_PLAN_STRICT;
  if (options.flags & ~kFlags)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_plan_options.flags: unknown bits " +
                                              std::to_string(options.flags & ~kFlags));
  if (settings.device != PlanDevice::Cuda) {
    const bool hasAny = options.flags || options.workspace || options.heap_allocations ||
                        options.max_ranges || options.max_seq_len || options.max_document_keys ||
                        options.max_slots || options.max_buckets || options.max_cuts ||
                        options.max_slack || options.max_pages;
    return hasAny ? attn_status(Failure(ATTN_INVALID_ARGUMENT,
                                        "attn_plan_options: members of device 'cuda' from "
                                        "max_ranges on are set, expected 0"))
                  : ATTN_OK;
  }
  rt::CudaPlanOptions &memory = settings.memory;
  memory.limits.requests = options.max_reqs;
  memory.limits.tokens = options.max_tokens;
  memory.limits.ranges = options.max_ranges;
  memory.limits.keys = options.max_seq_len;
  memory.limits.documentKeys = options.max_document_keys;
  memory.limits.slots = options.max_slots;
  memory.limits.buckets = options.max_buckets;
  memory.limits.cuts = options.max_cuts;
  memory.limits.slack = options.max_slack;
  memory.limits.pages = options.max_pages;
  memory.forGraphs = options.flags & ATTN_PLAN_FOR_GRAPHS;
  memory.isStrict = options.flags & ATTN_PLAN_STRICT;
  memory.heapAllocations = options.heap_allocations;
  settings.isFixed =
      (options.flags & (ATTN_PLAN_FIXED | ATTN_PLAN_FOR_GRAPHS)) || options.workspace;
  if (memory.isStrict && !settings.isFixed)
    return Failure(ATTN_INVALID_ARGUMENT,
                   "attn_plan_options.flags: ATTN_PLAN_STRICT, expected ATTN_PLAN_FIXED with it");
  if (options.heap_allocations && !memory.isStrict)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_plan_options.heap_allocations is set, expected "
                                          "ATTN_PLAN_STRICT with it");
  if (!options.workspace)
    return ATTN_OK;
  attn_workspace workspace;
  if (auto fault = readStruct(options.workspace, "attn_plan_options.workspace", workspace))
    return Failure(ATTN_INVALID_ARGUMENT, *fault);
  memory.workspace = {workspace.host, workspace.host_bytes,
                      reinterpret_cast<rt::CudaPointer>(workspace.device), workspace.device_bytes};
  if (!workspace.host || !workspace.device)
    return nullArgument(workspace.host ? "attn_plan_options.workspace->device"
                                       : "attn_plan_options.workspace->host");
  return ATTN_OK;
}

/// Checks the options of a plan.
static attn_status readSettings(const attn_artifact *artifact, const attn_plan_options *given,
                                PlanSettings &settings) {
  if (!artifact)
    return nullArgument("artifact");
  attn_plan_options options;
  if (auto fault = readStruct(given, "attn_plan_options", options))
    return Failure(ATTN_INVALID_ARGUMENT, *fault);
  const std::vector<core::Kernel> &kernels = artifact->artifact.kernels;
  auto invalid = [](const char *member, int64_t value, const std::string &expected) {
    return Failure(ATTN_INVALID_ARGUMENT, std::string("attn_plan_options.") + member + " is " +
                                              std::to_string(value) + ", expected " + expected);
  };
  if (options.kernel < 0 || options.kernel >= static_cast<int64_t>(kernels.size()))
    return invalid("kernel", options.kernel, "0 to " + std::to_string(kernels.size() - 1));
  if (!options.device)
    return nullArgument("attn_plan_options.device");
  const std::string device = options.device;
  if (device == "cpu")
    settings.device = PlanDevice::Cpu;
  else if (device == "cuda")
    settings.device = PlanDevice::Cuda;
  else if (device != "none")
    return Failure(ATTN_UNSUPPORTED,
                   "device '" + device + "' is not known (known: cpu, cuda, none)");
  const bool isCuda = settings.device == PlanDevice::Cuda;
  if (options.max_reqs < 0 || options.max_reqs > core::kPositionLimit)
    return invalid("max_reqs", options.max_reqs, "0 to " + std::to_string(core::kPositionLimit));
  if (options.max_tokens < 0 || options.max_tokens > INT32_MAX)
    return invalid("max_tokens", options.max_tokens, "0 to " + std::to_string(INT32_MAX));
  if (options.num_threads < 0 || options.num_threads > 1024)
    return invalid("num_threads", options.num_threads, "0 to 1024");
  if (isCuda && options.num_threads != 0)
    return invalid("num_threads", options.num_threads, "0 on device 'cuda'");
  if (!isCuda && options.device_ordinal != 0)
    return invalid("device_ordinal", options.device_ordinal, "0 on device '" + device + "'");
  if (!isCuda && options.cuda_driver)
    return Failure(ATTN_INVALID_ARGUMENT,
                   "attn_plan_options.cuda_driver: expected null on device '" + device + "'");
  settings.kernel = &kernels[options.kernel];
  settings.ordinal = options.device_ordinal;
  settings.driver = options.cuda_driver ? options.cuda_driver : "";
  settings.maxReqs = options.max_reqs;
  settings.maxTokens = options.max_tokens;
  settings.threads = options.num_threads > 1 ? static_cast<unsigned>(options.num_threads) : 1;
  return readMemoryOptions(options, settings);
}

static Failure hasNoStream(const PlanSettings &settings) {
  return Failure(ATTN_UNSUPPORTED, std::string("stream: device '") + deviceName(settings) +
                                       "' has none, expected null");
}

/// On cuda the memory is the plan's from the start.
static Failure takesNoWorkspace() {
  return Failure(ATTN_UNSUPPORTED,
                 "attn_workspace: device 'cuda' takes its memory when the plan is "
                 "made (attn_plan_options.workspace), expected null");
}

/// Bytes of the built tables of a batch of `tokens`.
static size_t tableBytes(const PlanSettings &settings, int64_t tokens) {
  const bool isCpu = settings.device == PlanDevice::Cpu;
  const core::KernelBinary *binary = isCpu ? settings.kernel->find("cpu") : nullptr;
  return binary ? rt::NativeTables::rowsNeeded(*binary, tokens) * sizeof(core::Range) : 0;
}

attn_status attn_plan_create(const attn_artifact *artifact, const attn_plan_options *options,
                             attn_plan **out) {
  return guarded([&]() -> attn_status {
    if (!out)
      return nullArgument("out");
    auto plan = std::make_unique<attn_plan>();
    if (attn_status status = readSettings(artifact, options, plan->settings); status != ATTN_OK)
      return status;
    plan->binder.emplace(plan->settings.kernel->spec);
    if (plan->settings.device == PlanDevice::Cuda) {
      if (attn_status status = createCuda(*plan, *artifact); status != ATTN_OK)
        return status;
    } else if (plan->settings.device == PlanDevice::Cpu) {
      const core::Kernel &kernel = *plan->settings.kernel;
      auto runner = rt::NativeRunner::create(artifact->artifact, kernel);
      if (!runner)
        return Failure(kernel.find("cpu") ? ATTN_FAILED : ATTN_UNSUPPORTED, runner.message());
      plan->runner = std::move(*runner);
    }
    *out = plan.release();
    return ATTN_OK;
  });
}

void attn_plan_destroy(attn_plan *plan) { delete plan; }

attn_status attn_plan_query_workspace(const attn_artifact *artifact,
                                      const attn_plan_options *options, attn_workspace_size *size) {
  return guarded([&]() -> attn_status {
    PlanSettings settings;
    if (attn_status status = readSettings(artifact, options, settings); status != ATTN_OK)
      return status;
    if (settings.device == PlanDevice::Cuda)
      return queryCuda(settings, size);
    attn_workspace_size value = {};
    value.host_bytes = tableBytes(settings, settings.maxTokens);
    value.alignment = kWorkspaceAlignment;
    return writeStruct(size, "attn_workspace_size", value);
  });
}

//===----------------------------------------------------------------------===//
// Prepare
//===----------------------------------------------------------------------===//

/// The caller's memory for the built tables; null if the plan keeps them itself.
static attn_status takeWorkspace(const attn_plan &plan, const attn_workspace *given, size_t needed,
                                 core::Range **rows) {
  if (!given)
    return ATTN_OK;
  attn_workspace workspace;
  if (auto fault = readStruct(given, "attn_workspace", workspace))
    return Failure(ATTN_INVALID_ARGUMENT, *fault);
  if (workspace.host_bytes < needed)
    return Failure(ATTN_TOO_LARGE, "attn_workspace.host_bytes is " +
                                       std::to_string(workspace.host_bytes) +
                                       ", the tables of this batch need " + std::to_string(needed));
  if (needed == 0)
    return ATTN_OK;
  if (!workspace.host)
    return nullArgument("attn_workspace.host");
  if (reinterpret_cast<uintptr_t>(workspace.host) % kWorkspaceAlignment)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_workspace.host is not aligned to " +
                                              std::to_string(kWorkspaceAlignment) + " bytes");
  *rows = static_cast<core::Range *>(workspace.host);
  return ATTN_OK;
}

/// Keeps where the keys of the batch lie.
static void setLayout(attn_plan &plan, const attn_batch &batch) {
  const core::BatchShape &shape = plan.bound.batch.shape;
  const int64_t *kvStart = plan.bound.kvStart.data();
  plan.usedSlots = plan.bound.kvStart.back();
  if (batch.kv_start) {
    plan.kvStart.assign(batch.kv_start, batch.kv_start + batch.num_reqs);
    kvStart = plan.kvStart.data();
    plan.usedSlots = 0;
    for (int64_t b = 0; b < shape.numReqs(); ++b)
      plan.usedSlots = std::max(plan.usedSlots, kvStart[b] + shape.seqLen[b]);
  }
  plan.layout = {};
  plan.layout.kvStart = kvStart;
  plan.layout.pageTable = batch.block_table;
  plan.layout.requestStride = batch.block_table_stride;
  plan.layout.pageSize = batch.page_size;
  plan.numPages = batch.num_pages;
}

attn_status capi::requireExactLengths(const attn_plan &plan, std::string_view who) {
  core::Status status = rt::requireExactLengths(plan.bound, who);
  return status ? ATTN_OK : attn_status(Failure(ATTN_UNSUPPORTED, status.message()));
}

static attn_status prepare(attn_plan &plan, const attn_batch &batch,
                           const attn_workspace *workspace, void *stream) {
  const PlanSettings &settings = plan.settings;
  const bool isCuda = settings.device == PlanDevice::Cuda;
  if (batch.num_reqs > settings.maxReqs)
    return Failure(ATTN_TOO_LARGE, "the batch has " + std::to_string(batch.num_reqs) +
                                       " requests, the plan allows max_reqs " +
                                       std::to_string(settings.maxReqs));
  if (auto fault = plan.reader.read(batch, settings.device))
    return Failure(ATTN_INVALID_ARGUMENT, "attn_batch: " + *fault);
  if (core::Status status = plan.binder->bind(plan.reader.input(), plan.bound); !status)
    return Failure(ATTN_INVALID_BATCH, status.message());
  if (settings.device == PlanDevice::Cpu)
    if (attn_status status = requireExactLengths(plan, "device 'cpu'"); status != ATTN_OK)
      return status;
  const int64_t tokens = plan.bound.batch.shape.numTokens();
  if (tokens > settings.maxTokens)
    return Failure(ATTN_TOO_LARGE, "the batch has " + std::to_string(tokens) +
                                       " tokens, the plan allows max_tokens " +
                                       std::to_string(settings.maxTokens));
  const rt::Span<const int64_t> cuts = {batch.cuts, batch.num_cuts};
  if (core::Status status = rt::checkCuts(plan.bound.batch.shape, cuts); !status)
    return Failure(ATTN_INVALID_BATCH, status.message());
  if (isCuda && workspace)
    return takesNoWorkspace();
  core::Range *rows = nullptr;
  if (attn_status status = takeWorkspace(plan, workspace, tableBytes(settings, tokens), &rows);
      status != ATTN_OK)
    return status;

  setLayout(plan, batch);
  plan.tables = {};
  if (settings.device == PlanDevice::Cpu)
    plan.tables =
        rt::NativeTables(settings.kernel->spec, plan.runner->binary(), plan.bound.batch, rows);
  if (isCuda)
    if (attn_status status = prepareCuda(plan, cuts, stream); status != ATTN_OK)
      return status;
  plan.isPrepared = true;
  return ATTN_OK;
}

attn_status attn_plan_prepare(attn_plan *plan, const attn_batch *batch,
                              const attn_workspace *workspace, void *stream) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    plan->isPrepared = false;
    if (stream && plan->settings.device != PlanDevice::Cuda)
      return hasNoStream(plan->settings);
    attn_batch copy;
    if (auto fault = readStruct(batch, "attn_batch", copy))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    return prepare(*plan, copy, workspace, stream);
  });
}

//===----------------------------------------------------------------------===//
// Run
//===----------------------------------------------------------------------===//

attn_status capi::readPart(const attn_plan &plan, const attn_subrange *given, rt::SubRange &part) {
  const core::BatchShape &shape = plan.bound.batch.shape;
  part = rt::SubRange::all(shape);
  if (!given)
    return ATTN_OK;
  attn_subrange range;
  if (auto fault = readStruct(given, "attn_subrange", range))
    return Failure(ATTN_INVALID_ARGUMENT, *fault);
  auto outside = [](const char *what, int64_t begin, int64_t end, int64_t count) {
    return Failure(ATTN_INVALID_ARGUMENT, std::string("attn_subrange: ") + what + " [" +
                                              std::to_string(begin) + ", " + std::to_string(end) +
                                              ") expected to lie in [0, " + std::to_string(count) +
                                              ")");
  };
  if (range.request_begin < 0 || range.request_begin > range.request_end ||
      range.request_end > shape.numReqs())
    return outside("requests", range.request_begin, range.request_end, shape.numReqs());
  if (range.token_begin < 0 || range.token_begin > range.token_end ||
      range.token_end > shape.numTokens())
    return outside("tokens", range.token_begin, range.token_end, shape.numTokens());
  part = {range.request_begin, range.request_end, range.token_begin, range.token_end};
  return ATTN_OK;
}

/// The tensors of a run; a null pointer is legal only where nothing is read or written.
static attn_status checkTensors(const attn_plan &plan, const attn_run_args &args) {
  const bool hasTokens = plan.bound.batch.shape.numTokens() > 0;
  const bool hasKeys = plan.bound.kvStart.back() > 0;
  if (hasTokens && !args.q)
    return nullArgument("attn_run_args.q");
  if (hasTokens && !args.o)
    return nullArgument("attn_run_args.o");
  if (hasTokens && !args.lse)
    return nullArgument("attn_run_args.lse");
  if (hasTokens && hasKeys && !args.k)
    return nullArgument("attn_run_args.k");
  if (hasTokens && hasKeys && !args.v)
    return nullArgument("attn_run_args.v");
  return ATTN_OK;
}

static core::Problem makeProblem(const attn_plan &plan, const attn_run_args &args) {
  const core::KernelSpec &spec = plan.settings.kernel->spec;
  core::Problem problem;
  problem.spec = &spec;
  problem.batch = &plan.bound.batch;
  problem.q = {const_cast<void *>(args.q), spec.qType, args.q_token_stride, args.q_head_stride};
  problem.k = {args.k, spec.kvType, args.k_page_stride, args.k_slot_stride, args.k_head_stride};
  problem.v = {args.v, spec.kvType, args.v_page_stride, args.v_slot_stride, args.v_head_stride};
  problem.kv = plan.layout;
  if (args.kv_start)
    problem.kv.kvStart = args.kv_start;
  return problem;
}

static attn_status runCpu(const attn_plan &plan, const attn_run_args &args) {
  auto unknown = [](const char *member) {
    return Failure(ATTN_INVALID_ARGUMENT,
                   std::string("attn_run_args.") + member + ": expected null on device 'cpu'");
  };
  if (args.device_block_table)
    return unknown("device_block_table");
  if (args.counters)
    return unknown("counters");
  if (args.device_seq_lens)
    return unknown("device_seq_lens");
  if (args.kv_slots)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_run_args.kv_slots: expected 0 on device 'cpu'");
  rt::SubRange part;
  if (attn_status status = readPart(plan, args.part, part); status != ATTN_OK)
    return status;
  if (attn_status status = checkTensors(plan, args); status != ATTN_OK)
    return status;
  rt::NativeOutput output;
  output.o = static_cast<float *>(args.o);
  output.oTokenStride = args.o_token_stride;
  output.oHeadStride = args.o_head_stride;
  output.lse = args.lse;
  output.lseHeadStride = args.lse_head_stride;
  plan.runner->run(makeProblem(plan, args), plan.tables, output, part, plan.settings.threads);
  return ATTN_OK;
}

attn_status attn_plan_run(const attn_plan *plan, const attn_run_args *given, void *stream) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (plan->settings.device == PlanDevice::None)
      return Failure(ATTN_UNSUPPORTED, "device 'none' runs nothing");
    if (!plan->isPrepared)
      return notPrepared();
    if (stream && plan->settings.device != PlanDevice::Cuda)
      return hasNoStream(plan->settings);
    attn_run_args args;
    if (auto fault = readStruct(given, "attn_run_args", args))
      return Failure(ATTN_INVALID_ARGUMENT, *fault);
    if (plan->settings.device == PlanDevice::Cpu)
      return runCpu(*plan, args);
    if (attn_status status = checkTensors(*plan, args); status != ATTN_OK)
      return status;
    return runCuda(*plan, args, stream);
  });
}
