// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events and pinned memory of the stand-in. Work is a list in the
// order of launches; an event is a number of it.

#include "fake_streams.h"

#include "fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <memory>

using namespace gdnrt::cuda;
using gdnrt::test::fakeCuda;

namespace gdnrt::cuda {
struct OpaqueStream {};
struct OpaqueEvent {
  /// One behind the work that it was recorded as; 0: never.
  size_t recorded = 0;
  /// Of which list of work.
  uint64_t list = 0;
};
} // namespace gdnrt::cuda

namespace {

struct Work {
  Stream stream;
  std::function<void()> run;
  bool isDone = false;
};

struct Streams {
  bool isLazy = false;
  std::vector<Work> work;
  /// How many lists there were before.
  uint64_t list = 0;
};

Streams &streams() {
  static Streams *all = new Streams;
  return *all;
}

/// Runs what a stream has, up to work `end`.
void runThrough(Stream stream, size_t end) {
  for (size_t i = 0; i < end; ++i)
    if (streams().work[i].stream == stream && !streams().work[i].isDone) {
      streams().work[i].isDone = true;
      // Running may run others; nothing is added meanwhile.
      streams().work[i].run();
    }
}

/// As `recorded`; work of a list that is gone has ended.
size_t recordedOf(Event event) {
  return event->list == streams().list ? event->recorded : 0;
}

} // namespace

void gdnrt::test::setFakeStreamsLazy(bool isLazy) {
  streams().work.clear();
  ++streams().list;
  streams().isLazy = isLazy;
}

void gdnrt::test::runOnFakeStream(Stream stream, std::function<void()> work) {
  if (!streams().isLazy)
    return work();
  streams().work.push_back({stream, std::move(work)});
}

void gdnrt::test::finishFakeStream(Stream stream) {
  runThrough(stream, streams().work.size());
}

size_t gdnrt::test::fakeWorkLeft() {
  size_t left = 0;
  for (const Work &work : streams().work)
    left += !work.isDone;
  return left;
}

#define EXPORT extern "C" __attribute__((visibility("default")))

#define NOTE_CALL(NAME)                                                        \
  if (Result failed = gdnrt::test::noteFakeCall(NAME); failed != kSuccess)     \
  return failed

EXPORT Result cuStreamCreate(Stream *stream, unsigned) {
  NOTE_CALL("cuStreamCreate");
  *stream = new OpaqueStream;
  return kSuccess;
}

EXPORT Result cuStreamDestroy_v2(Stream stream) {
  NOTE_CALL("cuStreamDestroy");
  delete stream;
  return kSuccess;
}

EXPORT Result cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  NOTE_CALL("cuStreamWaitEvent");
  const size_t recorded = recordedOf(event);
  if (recorded != 0)
    gdnrt::test::runOnFakeStream(stream, [recorded] {
      runThrough(streams().work[recorded - 1].stream, recorded);
    });
  return kSuccess;
}

EXPORT Result cuEventCreate(Event *event, unsigned) {
  NOTE_CALL("cuEventCreate");
  *event = new OpaqueEvent;
  std::lock_guard<std::mutex> guard(fakeCuda().lock);
  ++fakeCuda().events;
  return kSuccess;
}

EXPORT Result cuEventDestroy_v2(Event event) {
  NOTE_CALL("cuEventDestroy");
  delete event;
  std::lock_guard<std::mutex> guard(fakeCuda().lock);
  --fakeCuda().events;
  return kSuccess;
}

EXPORT Result cuEventRecord(Event event, Stream stream) {
  NOTE_CALL("cuEventRecord");
  gdnrt::test::runOnFakeStream(stream, [] {});
  event->recorded = streams().work.size();
  event->list = streams().list;
  return kSuccess;
}

EXPORT Result cuEventQuery(Event event) {
  NOTE_CALL("cuEventQuery");
  const size_t recorded = recordedOf(event);
  return recorded == 0 || streams().work[recorded - 1].isDone ? kSuccess
                                                              : kNotReady;
}

EXPORT Result cuEventSynchronize(Event event) {
  NOTE_CALL("cuEventSynchronize");
  if (const size_t recorded = recordedOf(event))
    runThrough(streams().work[recorded - 1].stream, recorded);
  return kSuccess;
}

EXPORT Result cuLaunchHostFunc(Stream stream, void (*function)(void *),
                               void *data) {
  NOTE_CALL("cuLaunchHostFunc");
  gdnrt::test::runOnFakeStream(stream, [=] { function(data); });
  return kSuccess;
}

EXPORT Result cuMemcpy2DAsync_v2(const RowCopy *copy, Stream stream) {
  NOTE_CALL("cuMemcpy2DAsync");
  auto check = [&](const CopySide &side) {
    return side.pitch >= copy->widthInBytes && side.pitch < size_t{1} << 31 &&
           side.xInBytes == 0 && side.y == 0 &&
           (side.type == kMemoryHost || side.type == kMemoryDevice);
  };
  if (!check(copy->from) || !check(copy->to))
    return 1;
  gdnrt::test::runOnFakeStream(stream, [copy = *copy] {
    auto at = [](const CopySide &side) {
      return side.type == kMemoryHost ? static_cast<char *>(side.host)
                                      : reinterpret_cast<char *>(side.device);
    };
    for (size_t row = 0; row < copy.height; ++row)
      std::memcpy(at(copy.to) + row * copy.to.pitch,
                  at(copy.from) + row * copy.from.pitch, copy.widthInBytes);
  });
  return kSuccess;
}

EXPORT Result cuMemHostAlloc(void **data, size_t bytes, unsigned) {
  NOTE_CALL("cuMemHostAlloc");
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::lock_guard<std::mutex> guard(fakeCuda().lock);
  ++fakeCuda().pinned;
  fakeCuda().lastPinned = *data;
  return *data ? kSuccess : kOutOfMemory;
}

EXPORT Result cuMemFreeHost(void *data) {
  NOTE_CALL("cuMemFreeHost");
  std::free(data);
  std::lock_guard<std::mutex> guard(fakeCuda().lock);
  --fakeCuda().pinned;
  return kSuccess;
}
