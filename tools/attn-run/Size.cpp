// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Size.h"

#include "attn/Core/Tensor.h"
#include "attn/Runtime/Launch.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <unistd.h>

using namespace attn;
using namespace attn::core;
using namespace attn::run;

/// Multiplications that each device does a second, over the rectangle of queries and keys. Measured
/// on two cores with examples/gemma4_mixed.json, whose 9.3e6 pairs, 8 heads and 2 * 256 dimensions
/// make 3.8e10: 2.3 s on the cpu, 9 s by the reference, the check between them 11 to 14 s.
static constexpr double kCpuRate = 1.6e10, kReferenceRate = 4e9;
/// The simulator: 600 causal tokens, 4 heads, 2 * 128 dimensions, 1.8e8 of them, in 0.3 s.
static constexpr double kSimRate = 6e8;
/// Finding out whether a pair is kept takes about as long as this many multiplications: a predicate
/// of a product and a remainder took the reference 3 s over 5e7 pairs.
static constexpr double kMaskCost = 240;
/// A benchmark runs at least this often.
static constexpr double kBenchRuns = 6;

/// Bytes of K and V in pages that hold keys; free pages are never touched.
static double pageBytes(const rt::BatchInput &input, const BatchShape &shape, double keyBytes) {
  if (!input.pageSize)
    return 0;
  double pages = 0;
  for (int64_t length : shape.seqLen)
    pages += static_cast<double>(rt::livePages(length, *input.pageSize));
  return pages * static_cast<double>(*input.pageSize) * keyBytes;
}

Size run::sizeOf(const Options &options, const Kernel &kernel, const rt::BatchInput &input,
                 const rt::BoundBatch &bound) {
  const KernelSpec &spec = kernel.spec;
  const BatchShape &shape = bound.batch.shape;
  const double tokens = static_cast<double>(shape.numTokens());
  const double keys = static_cast<double>(bound.kvStart.back());
  const double heads = static_cast<double>(spec.numHeads);
  const double dims = static_cast<double>(spec.dimQk) + static_cast<double>(spec.dimV);
  const double kvHeads = static_cast<double>(spec.numKvHeads);
  const double keyBytes = kvHeads * dims * static_cast<double>(byteSize(spec.kvType));

  Size size;
  size.bytes = tokens * heads * static_cast<double>(spec.dimQk * byteSize(spec.qType)) +
               keys * keyBytes + pageBytes(input, shape, keyBytes);
  const double results = tokens * heads * (static_cast<double>(spec.dimV) + 1);
  const bool onCpu = options.device == Device::Cpu;
  const bool byReference = options.device == Device::Reference;
  const bool bySimulator = options.device == Device::Sim;
  // Device memory of the simulator is this machine's.
  if (bySimulator)
    size.bytes *= 2;
  if (!byReference)
    size.bytes += results * sizeof(float);
  if (onCpu) {
    if (const KernelBinary *binary = kernel.find("cpu"))
      size.bytes +=
          tokens * sizeof(Range) * static_cast<double>(rt::NativeTables::rowsNeeded(*binary, 1));
  }
  if (byReference || options.check) {
    // The reference widens the keys of one request at a time.
    const double longest =
        shape.seqLen.empty() ? 0 : *std::max_element(shape.seqLen.begin(), shape.seqLen.end());
    size.bytes += results * sizeof(double) + longest * kvHeads * dims * sizeof(float);
  }

  double visited = 0; // where the device alone knows a length, lists are of the largest
  for (int64_t b = 0; b < shape.numReqs(); ++b) {
    const double queries = static_cast<double>(shape.queryLen(RequestIndex(b)));
    const int64_t end = shape.isBound(b) ? shape.longest(b) : shape.keyEnd[b];
    size.pairs += queries * static_cast<double>(shape.keyEnd[b] - shape.keyBegin[b]);
    visited += queries * static_cast<double>(end - shape.keyBegin[b]);
    // For every block the products of a whole row group are computed, few rows as there are.
    if (bySimulator && shape.isBound(b))
      visited += static_cast<double>(kGroupRows) * static_cast<double>(end - shape.keyEnd[b]);
  }
  const double work = size.pairs * (heads * dims + kMaskCost);
  const double simulated = visited * (heads * dims + kMaskCost);
  if (bySimulator)
    size.pairs = visited;
  // A GPU takes no time worth a word.
  const double once = onCpu         ? work / kCpuRate
                      : bySimulator ? simulated / kSimRate
                      : byReference ? work / kReferenceRate
                                    : 0;
  size.seconds = once * (options.bench ? kBenchRuns : 1) +
                 (!byReference && options.check ? work / kReferenceRate : 0);
  return size;
}

double run::physicalMemory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0)
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(pages) * static_cast<double>(bytes);
}

std::string run::gibibytes(double bytes) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.1f GiB", bytes / (1 << 30));
  return text;
}
