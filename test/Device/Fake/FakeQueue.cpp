// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events and graphs of the fake driver. Work of all streams is done in the order in which
// it was enqueued, which is one of the orders that a GPU may take; with State::lazyWork it is late,
// so that whoever reuses memory too early meets work that has not read it yet.
#include "FakeQueue.h"

#include <deque>

using namespace fake;

namespace {

struct Event {
  double time = -1;
  int waiting = 0; ///< records that have not been reached
};
struct Graph {
  std::vector<Work> works;
};

std::deque<Work> waiting;
std::map<void *, Graph> captures; ///< by stream
double now = 0;

} // namespace

bool fake::isCapturing() { return !captures.empty(); }

bool fake::isImmediate(void *stream) {
  return state().lazyWork == 0 && (captures.empty() || captures.count(stream) == 0);
}

int fake::defer(void *stream, Work work) {
  if (auto it = captures.find(stream); it != captures.end()) {
    it->second.works.push_back(std::move(work));
    return kOk;
  }
  waiting.push_back(std::move(work));
  while (waiting.size() > state().lazyWork) {
    Work first = std::move(waiting.front());
    waiting.pop_front();
    first();
  }
  return kOk;
}

void fake::drain() {
  while (!waiting.empty()) {
    Work first = std::move(waiting.front());
    waiting.pop_front();
    first();
  }
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

FAKE(cuStreamSynchronize)(void *) {
  ENTER("cuStreamSynchronize");
  NOT_CAPTURED();
  drain();
  return kOk;
}

FAKE(cuStreamIsCapturing)(void *stream, int *status) {
  ENTER("cuStreamIsCapturing");
  *status = captures.count(stream) ? 1 : 0;
  return kOk;
}

FAKE(cuEventCreate)(void **event, unsigned flags) {
  ENTER("cuEventCreate");
  *event = new Event();
  ++state().events;
  return flags == 0 || flags == 2 ? kOk : kInvalidValue;
}

FAKE(cuEventDestroy_v2)(void *event) {
  ENTER("cuEventDestroy_v2");
  drain();
  delete static_cast<Event *>(event);
  --state().events;
  return kOk;
}

FAKE(cuEventRecord)(void *event, void *stream) {
  ENTER("cuEventRecord");
  auto *recorded = static_cast<Event *>(event);
  ++recorded->waiting;
  return enqueue(stream, [recorded] {
    --recorded->waiting;
    recorded->time = now += 0.5;
    return int(kOk);
  });
}

FAKE(cuEventQuery)(void *event) {
  ENTER("cuEventQuery");
  NOT_CAPTURED();
  const Event &asked = *static_cast<Event *>(event);
  if (asked.waiting)
    return kNotReady;
  return asked.time < 0 ? misuse("asks for an event that was not recorded") : kOk;
}

FAKE(cuEventSynchronize)(void *event) {
  ENTER("cuEventSynchronize");
  NOT_CAPTURED();
  drain();
  return static_cast<Event *>(event)->time < 0 ? misuse("waits for an event that was not recorded")
                                               : kOk;
}

FAKE(cuEventElapsedTime)(float *milliseconds, void *start, void *end) {
  ENTER("cuEventElapsedTime");
  const Event &first = *static_cast<Event *>(start), &last = *static_cast<Event *>(end);
  if (first.time < 0 || last.time < first.time)
    return misuse("the time between events out of order", kInvalidHandle);
  *milliseconds = static_cast<float>(last.time - first.time);
  return kOk;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

FAKE(cuStreamBeginCapture_v2)(void *stream, int mode) {
  ENTER("cuStreamBeginCapture_v2", false);
  if (!stream || mode != 0 || !captures.emplace(stream, Graph()).second)
    return misuse("a capture of the default stream, in another mode, or of a captured stream");
  return kOk;
}

FAKE(cuStreamEndCapture)(void *stream, void **graph) {
  ENTER("cuStreamEndCapture", false);
  auto it = captures.find(stream);
  if (it == captures.end())
    return misuse("the end of no capture");
  *graph = new Graph(std::move(it->second));
  captures.erase(it);
  ++state().graphs;
  return kOk;
}

FAKE(cuGraphInstantiateWithFlags)(void **exec, void *graph, unsigned long long flags) {
  ENTER("cuGraphInstantiateWithFlags", false);
  *exec = new Graph(*static_cast<Graph *>(graph));
  ++state().graphs;
  return flags ? kInvalidValue : kOk;
}

FAKE(cuGraphLaunch)(void *exec, void *stream) {
  ENTER("cuGraphLaunch", false);
  int result = kOk;
  for (const Work &work : static_cast<Graph *>(exec)->works)
    if (int code = enqueue(stream, work); code != kOk)
      result = code;
  return result;
}

static int destroy(void *graph) {
  drain();
  delete static_cast<Graph *>(graph);
  --state().graphs;
  return kOk;
}

FAKE(cuGraphExecDestroy)(void *exec) {
  ENTER("cuGraphExecDestroy", false);
  return destroy(exec);
}

FAKE(cuGraphDestroy)(void *graph) {
  ENTER("cuGraphDestroy", false);
  return destroy(graph);
}
