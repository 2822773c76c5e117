// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading of GPU code.
#include "attn/Runtime/Cuda.h"

#include "../BinaryTables.h"
#include "Api.h"
#include "Arguments.h"

#include "attn/Runtime/Capability.h"

#include <cstring>

using namespace attn;
using namespace attn::core;
using namespace attn::rt;
using namespace attn::rt::cuda;

static Error kernelError(const KernelSpec &spec, const std::string &what) {
  return Error{"kernel '" + spec.name + "': " + what};
}

/// What the target takes, by the table that the capability query reads.
static Status checkSpec(const KernelSpec &spec) {
  std::string all;
  for (const std::string &reason : reasonsAgainst(configurationOf(spec, kCudaTarget)))
    all += (all.empty() ? "" : "; ") + reason;
  return all.empty() ? Status() : kernelError(spec, all);
}

static Status checkBinary(const Artifact &artifact, const KernelSpec &spec,
                          const KernelBinary &binary) {
  if (binary.format != "ptx" && binary.format != "cubin")
    return kernelError(spec, "code of format '" + binary.format + "', expected 'ptx' or 'cubin'");
  if (!binary.cuda)
    return kernelError(spec, "its " + binary.format + " code does not say how it is launched");
  if (binary.blob < 0 || static_cast<size_t>(binary.blob) >= artifact.blobs.size())
    return kernelError(spec, "code " + std::to_string(binary.blob) + " is not in the artifact");
  const std::vector<uint8_t> &code = artifact.blobs[binary.blob];
  if (binary.format == "ptx" && (code.empty() || code.back() != 0))
    return kernelError(spec, "its ptx code is not text that ends in a zero byte");
  const int64_t words = numArgumentWords(spec, binary);
  if (words > kMaxCudaWords)
    return kernelError(spec, "its parameters and tables take " + std::to_string(words) +
                                 " words of kernel arguments, expected at most " +
                                 std::to_string(kMaxCudaWords));
  return {};
}

/// What the compiler of the driver or its loader said, on one line.
static std::string logText(const char *log) {
  std::string text;
  for (const char *c = log; *c; ++c)
    text += *c == '\n' ? std::string("; ") : std::string(1, *c);
  while (!text.empty() && (text.back() == ' ' || text.back() == ';'))
    text.pop_back();
  return text.empty() ? "" : ": " + text;
}

/// Loads a module and finds its entry. Only what the driver compiles has options for its compiler.
static Status loadCode(const Api &api, const std::vector<uint8_t> &code, bool isText,
                       const std::string &entry, void *&module, void *&function) {
  std::vector<char> log(16384, 0);
  int options[] = {kJitErrorLogBuffer, kJitErrorLogBufferSizeBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  if (Status status = check(api, "cuModuleLoadDataEx",
                            api.moduleLoad(&module, code.data(), isText ? 2 : 0, options, values));
      !status)
    return Error{status.message() + logText(log.data())};
  Status status =
      check(api, "cuModuleGetFunction", api.moduleGetFunction(&function, module, entry.c_str()));
  if (status)
    return {};
  api.moduleUnload(module);
  module = function = nullptr;
  return Error{"entry '" + entry + "': " + status.message()};
}

Status CudaKernel::loadModule(const Artifact &artifact, const Kernel &kernel) {
  std::string attempts;
  for (const KernelBinary &binary : kernel.binaries) {
    if (binary.target != kCudaTarget)
      continue;
    Status status = checkBinary(artifact, kernel.spec, binary);
    if (status)
      status = checkBinaryTables(kernel, binary);
    if (!status)
      return status;
    status = loadCode(owner->api(), artifact.blobs[binary.blob], binary.format == "ptx",
                      binary.entry, module, function);
    if (status) {
      kernelBinary = &binary;
      return {};
    }
    attempts += (attempts.empty() ? "" : "; ") + binary.format + ": " + status.message();
  }
  return kernelError(kernel.spec, attempts);
}

/// Checks the function against its launch and raises its shared memory limit.
Status CudaKernel::prepare() {
  const Api &api = owner->api();
  const CudaLaunch &launch = shape();
  int threads = 0, shared = 0;
  const std::pair<int, int *> attributes[] = {
      {kFuncMaxThreadsPerBlock, &threads},
      {kFuncSharedBytes, &shared},
      {kFuncLocalBytes, &numLocalBytes},
      {kFuncNumRegisters, &numRegisters},
  };
  for (const auto &[attribute, value] : attributes)
    if (Status status =
            check(api, "cuFuncGetAttribute", api.functionGetAttribute(value, attribute, function));
        !status)
      return kernelError(*kernelSpec, status.message());
  if (threads < launch.threads)
    return kernelError(*kernelSpec, "its code runs with at most " + std::to_string(threads) +
                                        " threads, expected " + std::to_string(launch.threads));
  if (shared + launch.sharedBytes > owner->sharedBytes())
    return kernelError(*kernelSpec, "needs " + std::to_string(shared + launch.sharedBytes) +
                                        " bytes of shared memory, the GPU '" + owner->name() +
                                        "' has " + std::to_string(owner->sharedBytes()));
  if (Status status = check(api, "cuFuncSetAttribute",
                            api.functionSetAttribute(function, kFuncMaxDynamicSharedBytes,
                                                     static_cast<int>(launch.sharedBytes)));
      !status)
    return kernelError(*kernelSpec, status.message());
  return {};
}

Result<CudaKernel> CudaKernel::load(std::shared_ptr<const CudaDevice> device,
                                    const Artifact &artifact, const Kernel &kernel) {
  const KernelSpec &spec = kernel.spec;
  if (!kernel.find(kCudaTarget)) {
    std::string available;
    for (const KernelBinary &other : kernel.binaries)
      available += (available.empty() ? "" : ", ") + other.target;
    return kernelError(
        spec, std::string("no code for target '") + kCudaTarget +
                  "' (the artifact has: " + (available.empty() ? "none" : available) + ")");
  }
  if (Status status = checkSpec(spec); !status)
    return Error{status.message()};
  if (device->computeMajor() != 9 || device->computeMinor() != 0)
    return kernelError(spec, std::string("code for target '") + kCudaTarget +
                                 "' needs a GPU of compute capability 9.0, '" + device->name() +
                                 "' has " + std::to_string(device->computeMajor()) + "." +
                                 std::to_string(device->computeMinor()));
  CurrentContext current(*device);
  if (!current.status())
    return Error{current.status().message()};
  CudaKernel result;
  result.owner = std::move(device);
  result.kernelSpec = &spec;
  if (Status status = result.loadModule(artifact, kernel); !status)
    return Error{status.message()};
  if (Status status = result.prepare(); !status)
    return Error{status.message()};
  return result;
}

CudaKernel::CudaKernel(CudaKernel &&other) noexcept { *this = std::move(other); }

CudaKernel &CudaKernel::operator=(CudaKernel &&other) noexcept {
  std::swap(owner, other.owner);
  std::swap(kernelSpec, other.kernelSpec);
  std::swap(kernelBinary, other.kernelBinary);
  std::swap(module, other.module);
  std::swap(function, other.function);
  std::swap(numRegisters, other.numRegisters);
  std::swap(numLocalBytes, other.numLocalBytes);
  return *this;
}

CudaKernel::~CudaKernel() {
  if (!module)
    return;
  CurrentContext current(*owner);
  if (current.status())
    owner->api().moduleUnload(module);
}
