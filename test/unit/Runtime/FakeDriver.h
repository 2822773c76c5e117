// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the tests of the GPU path share: the fake driver, and a device of it that nothing outlives.
#ifndef ATTN_TEST_UNIT_RUNTIME_FAKEDRIVER_H
#define ATTN_TEST_UNIT_RUNTIME_FAKEDRIVER_H

#include "../../Device/Fake/FakeCuda.h"

#include "attn/Runtime/CudaDriver.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

namespace testing_rt {

constexpr const char *kFake = ATTN_FAKE_CUDA;

inline fake::State &fakeState() {
  void *library = dlopen(kFake, RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return *reinterpret_cast<fake::State *(*)()>(dlsym(library, "attnFakeCuda"))();
}

class FakeDriverTest : public testing::Test {
protected:
  void SetUp() override {
    fakeState() = fake::State();
    device = open(0);
    ASSERT_NE(device, nullptr);
  }
  void TearDown() override {
    device = nullptr;
    const fake::State &state = fakeState();
    EXPECT_EQ(state.fault, "");
    EXPECT_EQ(state.contexts, 0);
    EXPECT_TRUE(state.contextStack.empty());
    EXPECT_TRUE(state.memory.empty());
    EXPECT_TRUE(state.pinned.empty());
    EXPECT_EQ(state.modules, 0);
    EXPECT_EQ(state.streams, 0);
    EXPECT_EQ(state.events, 0);
    EXPECT_EQ(state.graphs, 0);
  }

  static std::shared_ptr<const attn::rt::CudaDevice> open(int ordinal) {
    auto driver = attn::rt::CudaDriver::load(kFake);
    EXPECT_TRUE(driver.ok()) << driver.message();
    if (!driver)
      return nullptr;
    auto opened = attn::rt::CudaDevice::open(*driver, ordinal);
    EXPECT_TRUE(opened.ok()) << opened.message();
    return opened ? *opened : nullptr;
  }

  std::shared_ptr<const attn::rt::CudaDevice> device;
};

} // namespace testing_rt

#endif // ATTN_TEST_UNIT_RUNTIME_FAKEDRIVER_H
