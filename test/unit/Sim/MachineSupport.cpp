// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MachineSupport.h"

#include <algorithm>

namespace attn::sim::machine {

const std::string kInit = R"(
@%p0 mbarrier.init.shared::cta.b64 [%bar], 1;
@%p0 fence.mbarrier_init.release.cluster;
bar.sync 0;
)";

const std::string kLoad = R"(
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 1024, [%bar];
)";

std::string wait(int parity, const std::string &barrier) {
  return "{\n.reg .pred P;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 P, [" + barrier +
         "], " + std::to_string(parity) + ";\n@P bra DONE;\nbra AGAIN;\nDONE:\n}\n";
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string moduleText(const Kernel &kernel) {
  std::string text = R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 in, .param .u64 out)";
  for (size_t i = 0; i < kernel.maps.size(); ++i)
    text += ", .param .align 64 .b8 m" + std::to_string(i) + "[128]";
  text += ")\n" + kernel.directives + R"({
.reg .b64 %in, %out, %o, %d<20>;
.reg .b32 %t, %w, %s, %a, %bar, %bar2, %r<100>;
.reg .f32 %f<256>;
.reg .pred %p<10>;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
mov.u32 %t, %tid.x;
shr.u32 %w, %t, 5;
setp.eq.u32 %p0, %t, 0;
mul.wide.u32 %o, %t, 4;
add.s64 %o, %out, %o;
mov.b32 %s, smem;
shl.b32 %a, %t, 2;
add.s32 %a, %s, %a;
add.s32 %bar, %s, 16384;
add.s32 %bar2, %s, 16392;
)";
  return text + kernel.body + "\nret;\n}\n";
}

int lineOf(const Kernel &kernel, const std::string &text) {
  const std::string all = moduleText(kernel);
  const size_t at = all.find(text, all.find("%bar2, %s"));
  if (at == std::string::npos)
    return -1;
  return 1 +
         static_cast<int>(std::count(all.begin(), all.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

std::vector<Policy> policies() {
  using K = Policy::Kind;
  return {{K::Earliest, 0}, {K::Latest, 0}, {K::Random, 1}, {K::Random, 2}, {K::Random, 3}};
}

bool Result::has(Report::Kind kind) const {
  for (const Report &report : reports)
    if (report.kind == kind)
      return true;
  return false;
}

std::string Result::text() const {
  std::string all = error;
  for (const Report &report : reports)
    all += std::string(toString(report.kind)) + ": " + report.text + "\n";
  return all;
}

Result run(const Kernel &kernel, const Policy &policy) {
  Result result;
  core::Result<PtxModule> module = parsePtx(moduleText(kernel));
  if (!module) {
    result.error = module.message();
    return result;
  }
  result.out.assign(kernel.outWords ? kernel.outWords : kernel.threads * kernel.ctas, 0);
  // Copies want 16-byte alignment.
  std::vector<uint32_t> outMemory(result.out.size() + 4);
  uint32_t *out = outMemory.data();
  while (reinterpret_cast<uintptr_t>(out) % 16)
    ++out;
  std::vector<uint32_t> aligned(kernel.in.size() + 4);
  uint32_t *first = aligned.data();
  while (reinterpret_cast<uintptr_t>(first) % 16)
    ++first;
  std::copy(kernel.in.begin(), kernel.in.end(), first);
  const uint64_t addresses[2] = {reinterpret_cast<uint64_t>(first),
                                 reinterpret_cast<uint64_t>(out)};
  Launch launch;
  launch.module = &*module;
  launch.kernel = "k";
  launch.grid = {kernel.ctas, 1, 1};
  launch.block = {kernel.threads, 1, 1};
  launch.cluster = kernel.cluster;
  launch.dynamicShared = kernel.shared;
  for (const uint64_t &address : addresses) {
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&address);
    launch.params.emplace_back(bytes, bytes + 8);
  }
  for (size_t i = 0; i < kernel.maps.size(); ++i) {
    TensorMap map = kernel.maps[i];
    map.data = reinterpret_cast<uint8_t *>(first) +
               (i < kernel.mapOffsets.size() ? kernel.mapOffsets[i] : 0);
    if (kernel.mapsToOut)
      map.data = out;
    const auto bytes = encode(map);
    if (!bytes) {
      result.error = bytes.message();
      return result;
    }
    launch.params.emplace_back(bytes->begin(), bytes->end());
  }
  launch.buffers = {{"in", first, kernel.in.size() * 4, false},
                    {"out", out, result.out.size() * 4, true}};
  launch.policy = policy;
  launch.maxSteps = kernel.maxSteps;
  launch.threads = kernel.hostThreads;
  core::Result<Outcome> outcome = sim::run(launch);
  if (!outcome) {
    result.error = outcome.message();
    return result;
  }
  std::copy(out, out + result.out.size(), result.out.begin());
  result.reports = outcome->reports;
  result.counters = outcome->counters;
  result.finished = outcome->finished;
  return result;
}

static std::string nameOf(const Policy &policy) {
  return "policy " + std::to_string(static_cast<int>(policy.kind)) + ", seed " +
         std::to_string(policy.seed);
}

std::vector<uint32_t> expectClean(const Kernel &kernel) {
  std::vector<uint32_t> out;
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_EQ(result.text(), "") << nameOf(policy) << "\n" << kernel.body;
    EXPECT_TRUE(result.finished) << nameOf(policy);
    if (out.empty())
      out = result.out;
    EXPECT_EQ(out, result.out) << nameOf(policy);
  }
  return out;
}

void expectReport(const Kernel &kernel, Report::Kind kind, const std::string &at) {
  const int line = lineOf(kernel, at);
  EXPECT_GT(line, 0) << at;
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_EQ(result.error, "");
    bool found = false;
    for (const Report &report : result.reports)
      found |= report.kind == kind && (report.line == line || report.otherLine == line);
    EXPECT_TRUE(found) << nameOf(policy) << ": expected " << toString(kind) << " at line " << line
                       << ", got:\n"
                       << result.text() << kernel.body;
  }
}

void expectAny(const Kernel &kernel, const std::vector<Report::Kind> &kinds) {
  for (const Policy &policy : policies()) {
    const Result result = run(kernel, policy);
    EXPECT_EQ(result.error, "");
    bool found = false;
    for (Report::Kind kind : kinds)
      found |= result.has(kind);
    EXPECT_TRUE(found) << nameOf(policy) << ":\n" << result.text() << kernel.body;
  }
}

} // namespace attn::sim::machine
