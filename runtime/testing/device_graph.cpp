// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The few calls of the CUDA driver that engines make for graphs.

#include "device_graph.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <exception>
#include <stdexcept>
#include <string>

using namespace gdnrt;

namespace {

/// A function of the driver that checks its result.
template <typename... Args> class Call {
public:
  void find(void *library, const char *name) {
    name_ = name;
    function_ = library
                    ? reinterpret_cast<int (*)(Args...)>(dlsym(library, name))
                    : nullptr;
    if (!function_)
      throw std::runtime_error(name_ + ": libcuda.so.1 has no such function");
  }
  void operator()(Args... args) const {
    if (int result = function_(args...))
      throw std::runtime_error(message(result));
  }
  /// For destructors: ends the program, unless that is on its way.
  void orAbort(Args... args) const {
    const int result = function_(args...);
    if (result == 0 || std::uncaught_exceptions() > 0)
      return;
    std::fprintf(stderr, "%s\n", message(result).c_str());
    std::abort();
  }

private:
  std::string message(int result) const {
    return name_ + ": expected CUDA_SUCCESS, got " + std::to_string(result);
  }
  std::string name_;
  int (*function_)(Args...) = nullptr;
};

struct Driver {
  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    init.find(library, "cuInit");
    count.find(library, "cuDeviceGetCount");
    retain.find(library, "cuDevicePrimaryCtxRetain");
    setCurrent.find(library, "cuCtxSetCurrent");
    create.find(library, "cuStreamCreate");
    destroy.find(library, "cuStreamDestroy_v2");
    synchronize.find(library, "cuStreamSynchronize");
    createEvent.find(library, "cuEventCreate");
    record.find(library, "cuEventRecord");
    wait.find(library, "cuStreamWaitEvent");
    destroyEvent.find(library, "cuEventDestroy_v2");
    elapsed.find(library, "cuEventElapsedTime");
    begin.find(library, "cuStreamBeginCapture_v2");
    end.find(library, "cuStreamEndCapture");
    instantiate.find(library, "cuGraphInstantiateWithFlags");
    launch.find(library, "cuGraphLaunch");
    destroyGraph.find(library, "cuGraphDestroy");
    destroyExecutable.find(library, "cuGraphExecDestroy");
  }
  Call<unsigned> init;
  Call<int *> count;
  Call<void **, int> retain;
  Call<void *> setCurrent;
  Call<void **, unsigned> create;
  Call<void *> destroy;
  Call<void *> synchronize;
  Call<void **, unsigned> createEvent;
  Call<void *, void *> record;
  Call<void *, void *, unsigned> wait;
  Call<void *> destroyEvent;
  Call<float *, void *, void *> elapsed;
  Call<void *, int> begin;
  Call<void *, void **> end;
  Call<void **, void *, unsigned long long> instantiate;
  Call<void *, void *> launch;
  Call<void *> destroyGraph;
  Call<void *> destroyExecutable;
};

const Driver &driver() {
  static const Driver it;
  return it;
}

} // namespace

DeviceGraph::DeviceGraph(int ordinal, Order order) {
  driver().retain(&context_, ordinal);
  makeCurrent();
  constexpr unsigned kDefault = 0, kNonBlocking = 1;
  driver().create(&stream_,
                  order == Order::independent ? kNonBlocking : kDefault);
}

DeviceGraph::~DeviceGraph() {
  if (graph_)
    driver().destroyExecutable.orAbort(graph_);
  driver().destroy.orAbort(stream_);
}

void DeviceGraph::makeCurrent() const { driver().setCurrent(context_); }

void DeviceGraph::waitFor(const DeviceGraph &other) {
  constexpr unsigned kWithoutTiming = 2;
  void *event = nullptr;
  driver().createEvent(&event, kWithoutTiming);
  driver().record(event, other.stream_);
  driver().wait(stream_, event, 0);
  driver().destroyEvent(event);
}

void DeviceGraph::beginCapture(Capture capture) {
  constexpr int kGlobal = 0, kThreadLocal = 1;
  driver().begin(stream_,
                 capture == Capture::ofThread ? kThreadLocal : kGlobal);
}

void DeviceGraph::endCapture() {
  void *recorded = nullptr;
  driver().end(stream_, &recorded);
  if (graph_)
    driver().destroyExecutable(graph_);
  graph_ = nullptr;
  driver().instantiate(&graph_, recorded, 0);
  driver().destroyGraph(recorded);
}

void DeviceGraph::replay() {
  launch();
  synchronize();
}

void DeviceGraph::launch() { driver().launch(graph_, stream_); }

void DeviceGraph::synchronize() { driver().synchronize(stream_); }

double DeviceGraph::timeOf(const std::function<void()> &body) {
  void *events[2] = {};
  for (void *&event : events)
    driver().createEvent(&event, 0);
  driver().record(events[0], stream_);
  body();
  driver().record(events[1], stream_);
  synchronize();
  float milliseconds = 0;
  driver().elapsed(&milliseconds, events[0], events[1]);
  for (void *event : events)
    driver().destroyEvent(event);
  return 1e3 * double(milliseconds);
}

int gdnrt::numGpus() {
  int count = 0;
  try {
    driver().init(0);
    driver().count(&count);
  } catch (const std::runtime_error &) {
    return 0;
  }
  return count;
}
