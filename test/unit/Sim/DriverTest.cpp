// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver over the simulator: what it must refuse rather than guess.
#include "../../../tools/attn-run/SimDriver.h"

#include <gtest/gtest.h>

using namespace attn;

namespace {

template <class F>
F *find(const char *name) {
  F *function = reinterpret_cast<F *>(simdriver::find(name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}

using Load = int(void **, const void *, unsigned, int *, void **);
using GetFunction = int(void **, void *, const char *);
using Unload = int(void *);
using LaunchKernel = int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **);
using Encode = int(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                   const uint32_t *, const uint32_t *, int, int, int, int);

/// What a launch of one warp of a kernel with this body returns.
int launch(const std::string &body) {
  const std::string ptx = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
                          ".reg .b64 %d;\n.reg .b32 %r;\n" +
                          body + "ret;\n}\n";
  void *module = nullptr, *function = nullptr;
  EXPECT_EQ(find<Load>("cuModuleLoadDataEx")(&module, ptx.c_str(), 0, nullptr, nullptr), 0);
  EXPECT_NE(find<GetFunction>("cuModuleGetFunction")(&function, module, "other"), 0);
  EXPECT_EQ(find<GetFunction>("cuModuleGetFunction")(&function, module, "k"), 0);
  const int code = find<LaunchKernel>("cuLaunchKernel")(function, 1, 1, 1, 32, 1, 1, 0, nullptr,
                                                        nullptr, nullptr);
  EXPECT_EQ(find<Unload>("cuModuleUnload")(module), 0);
  return code;
}

} // namespace

TEST(SimDriver, AReportFailsTheLaunch) {
  EXPECT_EQ(launch(""), 0);
  EXPECT_NE(launch("mov.b64 %d, 0;\nmov.b32 %r, 0;\nst.global.b32 [%d], %r;\n"), 0);
  EXPECT_EQ(simdriver::state().error, "see the simulator's reports");
}

TEST(SimDriver, CubinsAndOtherTextAreRefused) {
  void *module = nullptr;
  EXPECT_NE(find<Load>("cuModuleLoadDataEx")(&module, "\177ELF", 0, nullptr, nullptr), 0);
  EXPECT_EQ(simdriver::state().error, "the simulator runs PTX, no cubin");
  EXPECT_NE(find<Load>("cuModuleLoadDataEx")(&module, "no PTX", 0, nullptr, nullptr), 0);
  EXPECT_EQ(module, nullptr);
}

TEST(SimDriver, FunctionsItLacksAreNull) { EXPECT_EQ(simdriver::find("cuGraphLaunch"), nullptr); }

TEST(SimDriver, TensorMapsThatDoNotFit) {
  alignas(64) uint8_t map[128], data[1024];
  const uint64_t dims[8] = {16, 4, 1, 1, 1, 1, 1, 1}, strides[8] = {32, 64, 64, 64, 64, 64, 64, 64};
  const uint32_t box[8] = {16, 4, 1, 1, 1, 1, 1, 1}, steps[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  auto encode = [&](uint32_t rank, int swizzle, const uint32_t *extents) {
    return find<Encode>("cuTensorMapEncodeTiled")(map, 0, rank, data, dims, strides, extents, steps,
                                                  0, swizzle, 0, 0);
  };
  EXPECT_EQ(encode(2, 0, box), 0);
  EXPECT_NE(encode(0, 0, box), 0);
  EXPECT_NE(encode(7, 0, box), 0);
  EXPECT_NE(encode(2, 4, box), 0);
  const uint32_t wide[2] = {65536 + 16, 4};
  EXPECT_NE(encode(2, 0, wide), 0);
}
