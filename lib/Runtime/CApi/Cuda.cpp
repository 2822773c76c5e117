// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of device cuda.
#include "Support.h"

using namespace attn;
using namespace attn::capi;

attn_status capi::createCuda(attn_plan &plan, const attn_artifact &artifact) {
  const PlanSettings &settings = plan.settings;
  auto refused = [](const std::string &why) {
    return Failure(ATTN_UNSUPPORTED, "device 'cuda': " + why);
  };
  core::Result<std::shared_ptr<const rt::CudaDriver>> driver =
      settings.driver.empty() ? rt::CudaDriver::load() : rt::CudaDriver::load(settings.driver);
  if (!driver)
    return refused(driver.message());
  core::Result<std::shared_ptr<const rt::CudaDevice>> device =
      rt::CudaDevice::open(*driver, settings.ordinal);
  if (!device)
    return refused(device.message());
  core::Result<rt::CudaKernel> kernel =
      rt::CudaKernel::load(*device, artifact.artifact, *settings.kernel);
  if (!kernel)
    return refused(kernel.message());
  plan.cudaKernel = std::move(*kernel);
  if (!settings.isFixed) {
    plan.cudaPlan.emplace(*plan.cudaKernel);
    return ATTN_OK;
  }
  core::Result<rt::CudaPlan> made = rt::CudaPlan::create(*plan.cudaKernel, settings.memory);
  if (!made)
    return Failure(settings.memory.workspace.host ? ATTN_INVALID_ARGUMENT : ATTN_FAILED,
                   "attn_plan_options: " + made.message());
  plan.cudaPlan.emplace(std::move(*made));
  const rt::StepLimits &limits = settings.memory.limits;
  plan.reader.reserve(limits.requests, limits.ranges);
  plan.binder->reserve(plan.bound, limits.requests, limits.ranges);
  plan.kvStart.reserve(static_cast<size_t>(limits.requests));
  return ATTN_OK;
}

attn_status capi::queryCuda(const PlanSettings &settings, attn_workspace_size *size) {
  const core::Kernel &kernel = *settings.kernel;
  const core::KernelBinary *binary = kernel.find(rt::kCudaTarget);
  if (!binary || !binary->cuda)
    return Failure(ATTN_UNSUPPORTED, "device 'cuda': kernel '" + kernel.spec.name +
                                         "' has no code for target '" + rt::kCudaTarget + "'");
  core::Result<rt::CudaStageSizes> sizes =
      rt::CudaPlan::querySizes(kernel.spec, *binary, settings.memory);
  if (!sizes)
    return Failure(ATTN_TOO_LARGE, "attn_plan_options: " + sizes.message());
  attn_workspace_size value = {};
  value.host_bytes = sizes->hostBytes;
  value.device_bytes = sizes->deviceBytes;
  value.alignment = rt::kCudaStageAlignment;
  return writeStruct(size, "attn_workspace_size", value);
}

static bool isPaged(const attn_plan &plan) { return plan.layout.pageSize != 0; }

attn_status capi::prepareCuda(attn_plan &plan, rt::Span<const int64_t> cuts, void *stream) {
  const int64_t *kvStart = isPaged(plan) ? nullptr : plan.layout.kvStart;
  // Without pages there is no table either.
  const rt::PageTable pages = {plan.layout.pageTable, plan.layout.requestStride,
                               plan.layout.pageSize};
  core::Status status;
  if (isPaged(plan))
    status = plan.cudaPlan->checkPages(plan.layout.pageSize, plan.numPages);
  if (status)
    status = plan.cudaPlan->build(plan.bound.batch, kvStart, stream, cuts, pages);
  if (status)
    return ATTN_OK;
  switch (plan.cudaPlan->fault()) {
  case rt::CudaStepFault::TooLarge:
    return Failure(ATTN_TOO_LARGE, status.message());
  case rt::CudaStepFault::Captured:
  case rt::CudaStepFault::Unsuited:
    return Failure(ATTN_INVALID_BATCH, status.message());
  case rt::CudaStepFault::None:
  case rt::CudaStepFault::Failed:
    break;
  }
  return Failure(ATTN_FAILED, status.message());
}

static rt::CudaPointer address(const void *pointer) {
  return reinterpret_cast<rt::CudaPointer>(pointer);
}

static rt::CudaOperands makeOperands(const attn_plan &plan, const attn_run_args &args) {
  rt::CudaOperands operands;
  operands.q = {address(args.q), args.q_token_stride, args.q_head_stride};
  operands.k = {address(args.k), args.k_page_stride, args.k_slot_stride, args.k_head_stride};
  operands.v = {address(args.v), args.v_page_stride, args.v_slot_stride, args.v_head_stride};
  operands.o = {address(args.o), args.o_token_stride, args.o_head_stride};
  operands.lse = address(args.lse);
  operands.lseHeadStride = args.lse_head_stride;
  operands.counters = address(args.counters);
  operands.seqLens = address(args.device_seq_lens);
  if (isPaged(plan)) {
    operands.pageTable = address(args.device_block_table);
    operands.pageTableStride = args.device_block_table_stride;
    operands.pageSize = plan.layout.pageSize;
    operands.numPages = plan.numPages;
  } else {
    operands.kvRows = args.kv_slots ? args.kv_slots : plan.usedSlots;
  }
  return operands;
}

attn_status capi::runCuda(const attn_plan &plan, const attn_run_args &args, void *stream) {
  if (args.kv_start)
    return Failure(ATTN_UNSUPPORTED, "attn_run_args.kv_start: device 'cuda' takes "
                                     "attn_batch.kv_start instead, expected null");
  const bool hasTokens = plan.bound.batch.shape.numTokens() > 0;
  if (isPaged(plan) && hasTokens && !args.device_block_table)
    return nullArgument("attn_run_args.device_block_table");
  if (isPaged(plan) && args.kv_slots)
    return Failure(ATTN_INVALID_ARGUMENT,
                   "attn_run_args.kv_slots: expected 0, the batch has pages");
  if (!isPaged(plan) && args.device_block_table)
    return Failure(ATTN_INVALID_ARGUMENT,
                   "attn_run_args.device_block_table: expected null, the batch has no pages");
  rt::CudaOperands operands = makeOperands(plan, args);
  if (args.part) {
    rt::SubRange part;
    if (attn_status status = readPart(plan, args.part, part); status != ATTN_OK)
      return status;
    operands.tokens = part.tokens(plan.bound.batch.shape);
  }
  if (core::Status status = plan.cudaKernel->checkOperands(*plan.cudaPlan, operands); !status)
    return Failure(ATTN_INVALID_ARGUMENT, "attn_run_args: " + status.message());
  if (core::Status status = plan.cudaKernel->checkCapture(*plan.cudaPlan, operands, stream);
      !status)
    return Failure(ATTN_UNSUPPORTED, "attn_run_args.part: " + status.message());
  if (core::Status status = plan.cudaKernel->launchChecked(*plan.cudaPlan, operands, stream);
      !status)
    return Failure(ATTN_FAILED, status.message());
  return ATTN_OK;
}

attn_status attn_plan_tile_counts(const attn_plan *plan, attn_tile_counts *counts) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (plan->settings.device != PlanDevice::Cuda)
      return Failure(ATTN_UNSUPPORTED, std::string("device '") + deviceName(plan->settings) +
                                           "' has no tiles to count");
    if (!plan->isPrepared)
      return notPrepared();
    const core::TileCounters &counted = plan->cudaPlan->workList().counts;
    attn_tile_counts value = {};
    value.loaded = counted.loaded;
    value.visited = counted.visited;
    value.full = counted.full;
    return writeStruct(counts, "attn_tile_counts", value);
  });
}

attn_status attn_plan_forget_graphs(attn_plan *plan) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (plan->cudaPlan)
      plan->cudaPlan->forgetGraphs();
    return ATTN_OK;
  });
}

attn_status attn_plan_step_counts(const attn_plan *plan, attn_step_counts *counts) {
  return guarded([&]() -> attn_status {
    if (!plan)
      return nullArgument("plan");
    if (!plan->cudaPlan)
      return Failure(ATTN_UNSUPPORTED,
                     std::string("device '") + deviceName(plan->settings) + "' copies nothing");
    const rt::CudaStepCounts &counted = plan->cudaPlan->counts();
    attn_step_counts value = {};
    value.steps = counted.steps;
    value.copies = counted.copies;
    value.copied_bytes = counted.copiedBytes;
    value.constant_copies = counted.constantCopies;
    value.waits = counted.waits;
    return writeStruct(counts, "attn_step_counts", value);
  });
}
