// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the fake driver share: how calls are noted, and what is enqueued on streams.
#ifndef ATTN_TEST_DEVICE_FAKE_FAKEQUEUE_H
#define ATTN_TEST_DEVICE_FAKE_FAKEQUEUE_H

#include "FakeCuda.h"

#include <cstring>
#include <mutex>

namespace fake {

enum : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kCaptureUnsupported = 900,
};

State &state();
/// Of everything here. Held by a call of the driver's while it lasts.
std::recursive_mutex &mutex();
/// Notes a call; what it must return already, if anything.
int enter(const char *symbol, bool needsContext = true);
int misuse(const std::string &what, int code = kInvalidValue);

using Work = std::function<int()>;
/// Whether enqueue() does the work at once.
bool isImmediate(void *stream);
/// Adds work to what waits, or to the graph that is captured.
int defer(void *stream, Work work);
template <class Call>
int enqueue(void *stream, Call call) {
  return isImmediate(stream) ? call() : defer(stream, Work(std::move(call)));
}
/// Does everything that waits.
void drain();
/// Whether some stream is captured.
bool isCapturing();

/// A copy of the parameters of a launch.
class Parameters {
public:
  Parameters(const attn::core::Artifact &artifact, void **parameters) {
    const attn::core::Kernel &kernel = artifact.kernels[0];
    for (int i = 0; i < attn::core::kCudaMaps; ++i)
      std::memcpy(&maps[i], parameters[i], sizeof(TensorMap));
    const int64_t *from = static_cast<const int64_t *>(parameters[attn::core::kCudaMaps]);
    words.assign(from, from + attn::core::kNumCudaArgs + kernel.spec.program.params.size() +
                           attn::core::kNativeTableWords * kernel.binaries[0].tables.size());
  }
  void **pointers() {
    for (int i = 0; i < attn::core::kCudaMaps; ++i)
      addresses[i] = &maps[i];
    addresses[attn::core::kCudaMaps] = words.data();
    return addresses;
  }

private:
  TensorMap maps[attn::core::kCudaMaps];
  std::vector<int64_t> words;
  void *addresses[attn::core::kCudaMaps + 1];
};

} // namespace fake

#define FAKE(name) extern "C" __attribute__((visibility("default"))) int name
#define ENTER(symbol, ...)                                                                         \
  const std::lock_guard<std::recursive_mutex> lock(mutex());                                       \
  if (int code = enter(symbol, ##__VA_ARGS__); code != kOk)                                        \
  return code
/// Calls that end a capture in the mode that is the default.
#define NOT_CAPTURED()                                                                             \
  if (isCapturing())                                                                               \
  return misuse("a call that a capture forbids", kCaptureUnsupported)

#endif // ATTN_TEST_DEVICE_FAKE_FAKEQUEUE_H
