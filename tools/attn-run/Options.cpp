// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Options.h"

#include <charconv>
#include <cstring>
#include <getopt.h>
#include <limits>

using namespace attn;
using namespace attn::core;
using namespace attn::run;

const char *run::toString(Device device) {
  switch (device) {
  case Device::Reference:
    return "reference";
  case Device::Cpu:
    return "cpu";
  case Device::Sim:
    return "sim";
  case Device::Cuda:
    break;
  }
  return "cuda";
}

std::string run::helpText() {
  return R"(usage: attn-run ARTIFACT --batch BATCH.json [options]

Runs one kernel of an artifact (made by attn-compile) on a batch: checks the batch against the
kernel, builds the tables the kernel reads, runs it, and checks or times it if asked to.

  --batch FILE       the batch: lengths, ranges, parameters, tables (docs/batch.md); required
  --kernel NAME      which kernel; needed only if the artifact holds several
  --device DEVICE    where to run:
                       cpu        the artifact's native code, f32 (default)
                       cuda       the first GPU, by the artifact's code for it
                       sim        the artifact's PTX in a simulator of a GPU, which reports races
                                  and the like on standard error (docs/simulator.md); slow
                       reference  by definition, float64; slow
  --inputs FILE      safetensors file with
                       q     [tokens, heads, dim]
                       k, v  [sum of seq_len, kv_heads, dim]
                     in the kernel's element types, and dense tables by their names or as
                     tables.NAME; a table named q, k or v only as tables.NAME. Without it q, k and
                     v are random (normal, rounded to the kernel's types)
  --seed N           seed of the random inputs and of the page order (default 1); refused where
                     nothing is random
  --output FILE      write the results as safetensors:
                       o     [tokens, heads, dim_v]
                       lse   [heads, tokens], natural logarithm
                     F32 from the cpu, the GPU and the simulator, F64 from the reference
  --check            compare every (token, head) row with the reference: the norm of the
                     difference, relative to the norm of the row. A row whose terms cancel is
                     allowed what f32 arithmetic loses on terms of that size: about 1e-6 of sum
                     p |v| for scores of ordinary size, more for large ones. On a GPU and in
                     the simulator, where inputs, weights and results are rounded to 16 bits,
                     each row is allowed 8e-3 (bf16) or 2e-3 (f16) of its norm
  --bench            time several runs; prints median and minimum, for a GPU also TFLOP/s over the
                     pairs that the mask keeps
  --tune             time every kernel of an artifact of attn-compile --shapes=all on a GPU, in turn
                     and several times over; prints them from the fastest on
  --sim-policy WHEN  when the simulator lets asynchronous operations complete: earliest (default),
                     latest, or random:SEED; refused with another device
  --sim-steps N      warp instructions that a launch in the simulator may take, all CTAs together
                     (default 2^34): a kernel that loops for ever ends there with a report; refused
                     with another device
  --threads N        threads of the cpu device and of the simulator (default: all); refused with
                     another device
  --help, --version

If the batch has a page_size, K and V are laid out in pages, in scrambled order unless the batch
brings a block_table; slots that hold no key are filled with NaN.

A batch whose tensors pass the machine's memory is refused; one that is expected to take more than
a minute is announced on standard error.

exit status: 0 done, 1 the check failed or the simulator reported something, 2 bad input, usage, or
output that cannot be written. No file is written unless the status is 0.
)";
}

namespace {

enum OptionId {
  kHelp = 1,
  kVersion,
  kBatch,
  kKernel,
  kInputs,
  kOutput,
  kDevice,
  kCheck,
  kBench,
  kSeed,
  kThreads,
  kSimPolicy,
  kSimSteps,
  kTune
};

/// In the order of OptionId.
const option kLongOptions[] = {
    {"help", no_argument, nullptr, kHelp},
    {"version", no_argument, nullptr, kVersion},
    {"batch", required_argument, nullptr, kBatch},
    {"kernel", required_argument, nullptr, kKernel},
    {"inputs", required_argument, nullptr, kInputs},
    {"output", required_argument, nullptr, kOutput},
    {"device", required_argument, nullptr, kDevice},
    {"check", no_argument, nullptr, kCheck},
    {"bench", no_argument, nullptr, kBench},
    {"seed", required_argument, nullptr, kSeed},
    {"threads", required_argument, nullptr, kThreads},
    {"sim-policy", required_argument, nullptr, kSimPolicy},
    {"sim-steps", required_argument, nullptr, kSimSteps},
    {"tune", no_argument, nullptr, kTune},
    {nullptr, 0, nullptr, 0},
};

Result<uint64_t> parseNumber(const char *option, const char *text, uint64_t min, uint64_t max) {
  uint64_t value = 0;
  const char *end = text + std::strlen(text);
  auto [rest, error] = std::from_chars(text, end, value);
  if (error != std::errc() || rest != end || value < min || value > max)
    return Error{std::string(option) + ": expected a number from " + std::to_string(min) + " to " +
                 std::to_string(max) + ", got '" + text + "'"};
  return value;
}

Result<Device> parseDevice(const std::string &text) {
  for (Device device : {Device::Reference, Device::Cpu, Device::Sim, Device::Cuda})
    if (text == toString(device))
      return device;
  return Error{"--device: unknown device '" + text + "' (available: reference, cpu, sim, cuda)"};
}

/// Takes one option over; `value` is its argument or null.
Status apply(int id, const char *value, Options &options) {
  switch (id) {
  case kHelp:
    options.help = true;
    break;
  case kVersion:
    options.version = true;
    break;
  case kBatch:
    options.batch = value;
    break;
  case kKernel:
    options.kernel = value;
    break;
  case kInputs:
    options.inputs = value;
    break;
  case kOutput:
    options.output = value;
    break;
  case kDevice: {
    Result<Device> device = parseDevice(value);
    if (!device)
      return device.takeError();
    options.device = *device;
    break;
  }
  case kCheck:
    options.check = true;
    break;
  case kBench:
    options.bench = true;
    break;
  case kSeed: {
    Result<uint64_t> seed = parseNumber("--seed", value, 0, std::numeric_limits<uint64_t>::max());
    if (!seed)
      return seed.takeError();
    options.seed = *seed;
    options.seedGiven = true;
    break;
  }
  case kThreads: {
    Result<uint64_t> threads = parseNumber("--threads", value, 1, 1024);
    if (!threads)
      return threads.takeError();
    options.threads = static_cast<unsigned>(*threads);
    break;
  }
  case kSimPolicy: {
    Result<sim::Policy> policy = sim::parsePolicy(value);
    if (!policy)
      return Error{"--sim-policy: " + policy.message()};
    options.policy = *policy;
    options.policyText = value;
    options.policyGiven = true;
    break;
  }
  case kTune:
    options.tune = true;
    break;
  case kSimSteps: {
    Result<uint64_t> steps = parseNumber("--sim-steps", value, 1, uint64_t(1) << 62);
    if (!steps)
      return steps.takeError();
    options.simSteps = *steps;
    break;
  }
  }
  return {};
}

} // namespace

Result<Options> run::parseOptions(int argc, char **argv) {
  Options options;
  opterr = 0;
  for (;;) {
    const int id = getopt_long(argc, argv, ":", kLongOptions, nullptr);
    if (id == -1)
      break;
    if (id == '?')
      return Error{"unknown option '" + std::string(argv[optind - 1]) + "'; see --help"};
    if (id == ':')
      return Error{"option '" + std::string(argv[optind - 1]) + "' needs a value; see --help"};
    if (optarg && !*optarg)
      return Error{"--" + std::string(kLongOptions[id - kHelp].name) +
                   ": expected a value, got ''"};
    if (Status status = apply(id, optarg, options); !status)
      return Error{status.message()};
  }
  if (options.help || options.version)
    return options;
  if (optind == argc)
    return Error{"no artifact given; see --help"};
  options.artifact = argv[optind++];
  if (optind != argc)
    return Error{"unexpected argument '" + std::string(argv[optind]) + "'; see --help"};
  if (options.batch.empty())
    return Error{"no batch given (--batch); see --help"};
  if (options.output == "-")
    return Error{"--output: '-' would mix the results with the report on standard output, expected "
                 "a file (./- for one of that name)"};
  if (options.threads && options.device == Device::Reference)
    return Error{"--threads: device 'reference' has one thread, expected device 'cpu' or 'sim'"};
  if (options.threads && options.device == Device::Cuda)
    return Error{"--threads: device 'cuda' has its own threads, expected device 'cpu' or 'sim'"};
  if (options.policyGiven && options.device != Device::Sim)
    return Error{std::string("--sim-policy: device '") + toString(options.device) +
                 "' has no policy, expected device 'sim'"};
  if (options.simSteps && options.device != Device::Sim)
    return Error{std::string("--sim-steps: device '") + toString(options.device) +
                 "' counts no instructions, expected device 'sim'"};
  if (options.tune && options.device != Device::Cuda)
    return Error{std::string("--tune: device '") + toString(options.device) +
                 "' has no shapes to choose from, expected device 'cuda'"};
  if (options.tune && (options.bench || !options.output.empty() || !options.kernel.empty()))
    return Error{"--tune: times all kernels and writes nothing, expected none of --bench, --output "
                 "and --kernel"};
  if (options.bench && options.device == Device::Sim)
    return Error{"--bench: device 'sim' says nothing about the time a GPU takes, expected another "
                 "device"};
  if (options.check && options.device == Device::Reference)
    return Error{"--check: device 'reference' is the judge and cannot judge itself; choose another "
                 "device"};
  return options;
}
