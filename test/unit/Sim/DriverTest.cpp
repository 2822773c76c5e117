// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver over the simulator: what it must refuse rather than guess.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace {

class Driver : public testing::Test {
protected:
  void SetUp() override {
    library = dlopen(ATTN_SIM_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
  }
  void TearDown() override {
    unsetenv("ATTN_SIM_POLICY");
    dlclose(library);
  }
  template <class F>
  F *find(const char *name) {
    F *function = reinterpret_cast<F *>(dlsym(library, name));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

  void *library = nullptr;
};

using Load = int(void **, const void *, unsigned, int *, void **);
using GetFunction = int(void **, void *, const char *);
using Unload = int(void *);
using LaunchKernel = int(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **);
using Encode = int(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *,
                   const uint32_t *, const uint32_t *, int, int, int, int);

} // namespace

TEST_F(Driver, UnknownPoliciesFailTheLaunch) {
  const char ptx[] =
      ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {\nret;\n}\n";
  void *module = nullptr, *function = nullptr;
  ASSERT_EQ(find<Load>("cuModuleLoadDataEx")(&module, ptx, 0, nullptr, nullptr), 0);
  ASSERT_EQ(find<GetFunction>("cuModuleGetFunction")(&function, module, "k"), 0);
  auto launch = [&](const char *policy) {
    setenv("ATTN_SIM_POLICY", policy, 1);
    return find<LaunchKernel>("cuLaunchKernel")(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr,
                                                nullptr);
  };
  for (const char *policy : {"earliest", "latest", "random:7"})
    EXPECT_EQ(launch(policy), 0) << policy;
  for (const char *policy : {"", "fast", "Latest", "random", "random:", "random:seven"})
    EXPECT_NE(launch(policy), 0) << policy;
  find<Unload>("cuModuleUnload")(module);
}

TEST_F(Driver, TensorMapsThatDoNotFit) {
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
