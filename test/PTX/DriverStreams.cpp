// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events and graphs of the driver without a GPU: all is done when a
// call returns, except what a stream that is captured records.
#include "DriverState.h"

#include <chrono>

using gdnrt::cuda::Graph;
using gdnrt::cuda::kCaptureUnsupported;
using gdnrt::cuda::kInvalidValue;
using gdnrt::cuda::Result;
using gdnrt::cuda::state;
using gdnrt::cuda::Stream;
using gdnrt::cuda::UserObject;

namespace {

struct Event {
  /// The graph that it was recorded in, if any.
  std::shared_ptr<gdnrt::cuda::OpaqueGraph> graph;
  std::chrono::steady_clock::time_point time;
};

} // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of the driver

EXPORT Result cuStreamCreate(Stream *stream, unsigned) {
  *stream = new gdnrt::cuda::OpaqueStream;
  return 0;
}

EXPORT Result cuStreamDestroy_v2(Stream stream) {
  delete stream;
  return 0;
}

EXPORT Result cuStreamSynchronize(Stream stream) {
  const std::lock_guard guard(state().turn);
  state().memory.races().settle();
  return stream && stream->recorded ? kCaptureUnsupported : 0;
}

EXPORT Result cuThreadExchangeStreamCaptureMode(int *) { return 0; }

EXPORT Result cuStreamIsCapturing(Stream stream, int *status) {
  *status = stream && stream->recorded;
  return 0;
}

EXPORT Result cuStreamBeginCapture_v2(Stream stream, int) {
  if (!stream || stream->recorded)
    return kCaptureUnsupported;
  stream->recorded = std::make_shared<gdnrt::cuda::OpaqueGraph>();
  stream->recorded->streams.push_back(stream);
  return 0;
}

EXPORT Result cuStreamEndCapture(Stream stream, Graph *graph) {
  const auto recorded = stream->recorded;
  if (!recorded || recorded->streams.front() != stream)
    return kCaptureUnsupported;
  for (Stream joined : recorded->streams)
    joined->recorded = nullptr;
  recorded->streams.clear();
  *graph = new gdnrt::cuda::OpaqueGraph(*recorded);
  return 0;
}

EXPORT Result cuStreamGetCaptureInfo_v2(Stream stream, int *status, uint64_t *,
                                        Graph *graph, const void **, size_t *) {
  *status = stream && stream->recorded;
  *graph = *status ? stream->recorded.get() : nullptr;
  return 0;
}

EXPORT Result cuUserObjectCreate(UserObject *object, void *data,
                                 void (*destroy)(void *), unsigned, unsigned) {
  *object = new gdnrt::cuda::OpaqueUserObject{{data, destroy}};
  return 0;
}

EXPORT Result cuUserObjectRelease(UserObject object, unsigned) {
  delete object;
  return 0;
}

/// The reference of the caller becomes the graph's: what the runtime asks for.
EXPORT Result cuGraphRetainUserObject(Graph graph, UserObject object, unsigned,
                                      unsigned flags) {
  if (flags != gdnrt::cuda::kGraphUserObjectMove)
    return kInvalidValue;
  const std::lock_guard guard(state().turn);
  graph->held.push_back(std::move(object->held));
  delete object;
  return 0;
}

EXPORT Result cuGraphInstantiateWithFlags(Graph *executable, Graph graph,
                                          unsigned long long) {
  *executable = new gdnrt::cuda::OpaqueGraph(*graph);
  return 0;
}

EXPORT Result cuGraphLaunch(Graph executable, Stream) {
  const std::lock_guard guard(state().turn);
  // All before it is over when it begins, and it is when what follows does.
  state().memory.races().settle();
  Result result = 0;
  for (auto &work : executable->work) {
    result = work();
    if (result)
      break;
  }
  state().memory.races().settle();
  return result;
}

EXPORT Result cuGraphDestroy(Graph graph) {
  delete graph;
  return 0;
}

EXPORT Result cuGraphExecDestroy(Graph executable) {
  delete executable;
  return 0;
}

EXPORT Result cuEventCreate(void **event, unsigned) {
  *event = new Event;
  return 0;
}

EXPORT Result cuEventDestroy_v2(void *event) {
  delete static_cast<Event *>(event);
  return 0;
}

EXPORT Result cuEventRecord(void *event, Stream stream) {
  static_cast<Event *>(event)->time = std::chrono::steady_clock::now();
  static_cast<Event *>(event)->graph = stream ? stream->recorded : nullptr;
  return 0;
}

EXPORT Result cuEventSynchronize(void *) {
  const std::lock_guard guard(state().turn);
  state().memory.races().settle();
  return 0;
}

EXPORT Result cuEventQuery(void *) { return 0; }

/// A stream that waits for what is captured is captured, too.
EXPORT Result cuStreamWaitEvent(Stream stream, void *event, unsigned) {
  const auto &graph = static_cast<Event *>(event)->graph;
  if (!graph || (stream && stream->recorded == graph))
    return 0;
  if (!stream || stream->recorded || graph->streams.empty())
    return kCaptureUnsupported;
  const std::lock_guard guard(state().turn);
  stream->recorded = graph;
  graph->streams.push_back(stream);
  return 0;
}

EXPORT Result cuLaunchHostFunc(Stream stream, void (*function)(void *),
                               void *data) {
  return gdnrt::cuda::submit(stream, [=] {
    function(data);
    return 0;
  });
}

EXPORT Result cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  *milliseconds =
      std::chrono::duration<float, std::milli>(
          static_cast<Event *>(end)->time - static_cast<Event *>(start)->time)
          .count();
  return 0;
}

// NOLINTEND(readability-identifier-naming)
