// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SemanticsSupport.h"

#include <algorithm>

namespace attn::sim::test {

std::string moduleText(const std::string &body) {
  std::string text = R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 in, .param .u64 out, .param .align 64 .b8 map[128]) {
.reg .b64 %in, %out, %o, %map, %d<64>;
.reg .b32 %t, %a<64>, %r<512>;
.reg .b16 %h<16>;
.reg .pred %p<16>;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
mov.b64 %map, map;
cvta.param.u64 %map, %map;
mov.u32 %t, %tid.x;
mul.wide.u32 %o, %t, 8;
add.s64 %o, %out, %o;
)";
  return text + body + "\nret;\n}\n";
}

static std::vector<uint8_t> bytesOf(const void *data, size_t size) {
  auto *first = static_cast<const uint8_t *>(data);
  return {first, first + size};
}

core::Result<Outcome> launch(const TinyKernel &kernel, const Policy &policy,
                             std::vector<uint64_t> &out) {
  core::Result<PtxModule> module = parsePtx(moduleText(kernel.body));
  if (!module.ok())
    return module.takeError();
  std::vector<uint64_t> in = kernel.in;
  in.resize(std::max<size_t>(in.size(), 1));
  out.assign(std::max<size_t>(kernel.outWords, 1), 0);
  const uint64_t *inAt = in.data();
  uint64_t *outAt = out.data();
  std::array<uint8_t, 128> map{};
  if (kernel.map) {
    core::Result<std::array<uint8_t, 128>> encoded = encode(*kernel.map);
    if (!encoded)
      return encoded.takeError();
    map = *encoded;
  }
  Launch launch;
  launch.module = &*module;
  launch.kernel = "k";
  launch.grid = {kernel.ctas, 1, 1};
  launch.block = {kernel.threads, 1, 1};
  launch.dynamicShared = kernel.sharedBytes;
  launch.params = {bytesOf(&inAt, 8), bytesOf(&outAt, 8), bytesOf(map.data(), map.size())};
  launch.buffers = kernel.buffers;
  launch.buffers.push_back({"in", in.data(), in.size() * 8, false});
  launch.buffers.push_back({"out", out.data(), out.size() * 8, true});
  launch.policy = policy;
  launch.maxSteps = 1 << 22;
  return run(launch);
}

std::vector<uint64_t> runClean(const TinyKernel &kernel) {
  std::vector<uint64_t> first;
  const Policy policies[] = {{Policy::Kind::Earliest, 0},
                             {Policy::Kind::Latest, 0},
                             {Policy::Kind::Random, 1},
                             {Policy::Kind::Random, 2}};
  for (const Policy &policy : policies) {
    std::vector<uint64_t> out;
    core::Result<Outcome> outcome = launch(kernel, policy, out);
    if (!outcome.ok()) {
      ADD_FAILURE() << outcome.message();
      return out;
    }
    for (const Report &report : outcome->reports)
      ADD_FAILURE() << toString(report.kind) << ": " << report.text;
    EXPECT_TRUE(outcome->finished);
    if (&policy == policies)
      first = out;
    else
      EXPECT_EQ(out, first) << "policy " << (&policy - policies);
    if (::testing::Test::HasFailure())
      return first;
  }
  return first;
}

static void replaceAll(std::string &text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Register of operand `i` (0: the result).
static std::string registerOf(char type, size_t i) {
  const char *names = type == 'h' ? "%h" : type == 'd' ? "%d" : type == 'p' ? "%p" : "%r";
  return names + std::to_string(i + 8);
}

std::vector<uint64_t> apply(const std::string &statement, const std::string &signature,
                            const std::vector<Vector> &vectors) {
  static const char *const kPlaces[] = {"$d", "$a", "$b", "$c", "$e"};
  constexpr size_t kWords = 4;
  TinyKernel kernel;
  kernel.body = "mul.wide.u32 %d0, %t, 32;\nadd.s64 %d0, %in, %d0;\n";
  for (size_t i = 1; i < signature.size(); ++i) {
    std::string at = ", [%d0+" + std::to_string(8 * (i - 1)) + "];\n";
    std::string to = registerOf(signature[i], i);
    if (signature[i] == 'p')
      kernel.body += "ld.global.b32 %r0" + at + "setp.ne.b32 " + to + ", %r0, 0;\n";
    else
      kernel.body += std::string("ld.global.b") +
                     (signature[i] == 'h'   ? "16 "
                      : signature[i] == 'd' ? "64 "
                                            : "32 ") +
                     to + at;
  }
  std::string text = statement;
  for (size_t i = 0; i < signature.size(); ++i)
    replaceAll(text, kPlaces[i], registerOf(signature[i], i));
  kernel.body += text + "\n";
  std::string result = registerOf(signature[0], 0);
  if (signature[0] == 'p')
    kernel.body += "selp.b64 %d1, 1, 0, " + result + ";\nst.global.b64 [%o], %d1;";
  else
    kernel.body += std::string("st.global.b") +
                   (signature[0] == 'h'   ? "16"
                    : signature[0] == 'd' ? "64"
                                          : "32") +
                   " [%o], " + result + ";";
  // Whole warps; the lanes past the end repeat the last vector.
  size_t lanes = (vectors.size() + 31) / 32 * 32;
  for (size_t lane = 0; lane < lanes; ++lane) {
    std::vector<uint64_t> in = vectors[std::min(lane, vectors.size() - 1)].in;
    in.resize(kWords);
    kernel.in.insert(kernel.in.end(), in.begin(), in.end());
  }
  kernel.threads = static_cast<uint32_t>(lanes);
  kernel.outWords = lanes;
  kernel.sharedBytes = static_cast<uint32_t>(32 * lanes);
  std::vector<uint64_t> out = runClean(kernel);
  out.resize(vectors.size());
  return out;
}

void expectStatement(const std::string &statement, const std::string &signature,
                     const std::vector<Vector> &vectors) {
  SCOPED_TRACE(statement);
  std::vector<uint64_t> out = apply(statement, signature, vectors);
  for (size_t i = 0; i < vectors.size(); ++i)
    EXPECT_EQ(out[i], vectors[i].out)
        << std::hex << "operands " << ::testing::PrintToString(vectors[i].in) << ": got 0x"
        << out[i] << ", expected 0x" << vectors[i].out;
}

void expectOp(const std::string &op, const std::string &signature,
              const std::vector<Vector> &vectors) {
  static const char *const kOperands[] = {"$d", ", $a", ", $b", ", $c", ", $e"};
  std::string statement = op + " ";
  for (size_t i = 0; i < signature.size(); ++i)
    statement += kOperands[i];
  expectStatement(statement + ";", signature, vectors);
}

} // namespace attn::sim::test
