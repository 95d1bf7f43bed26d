// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The few calls of the CUDA driver that engines make for graphs.

#include "device_graph.h"
#include "suite.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace gdnrt::cts;

namespace {
struct Driver {
  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    auto find = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(
          dlsym(library, name));
      EXPECT_NE(function, nullptr) << name;
    };
    find(retain, "cuDevicePrimaryCtxRetain");
    find(setCurrent, "cuCtxSetCurrent");
    find(create, "cuStreamCreate");
    find(destroy, "cuStreamDestroy_v2");
    find(synchronize, "cuStreamSynchronize");
    find(begin, "cuStreamBeginCapture_v2");
    find(end, "cuStreamEndCapture");
    find(instantiate, "cuGraphInstantiateWithFlags");
    find(launch, "cuGraphLaunch");
    find(destroyGraph, "cuGraphDestroy");
    find(destroyExecutable, "cuGraphExecDestroy");
  }
  int (*retain)(void **, int);
  int (*setCurrent)(void *);
  int (*create)(void **, unsigned);
  int (*destroy)(void *);
  int (*synchronize)(void *);
  int (*begin)(void *, int);
  int (*end)(void *, void **);
  int (*instantiate)(void **, void *, unsigned long long);
  int (*launch)(void *, void *);
  int (*destroyGraph)(void *);
  int (*destroyExecutable)(void *);
};

const Driver &driver() {
  static const Driver it;
  return it;
}
} // namespace

bool DeviceGraph::exist() { return suiteOptions.device != "cpu"; }

DeviceGraph::DeviceGraph() {
  void *context = nullptr;
  const std::string &name = suiteOptions.device;
  int ordinal =
      name == "cuda" ? 0 : int(std::strtol(name.c_str() + 5, nullptr, 10));
  EXPECT_EQ(driver().retain(&context, ordinal), 0);
  EXPECT_EQ(driver().setCurrent(context), 0);
  constexpr unsigned kNonBlocking = 1;
  EXPECT_EQ(driver().create(&stream_, kNonBlocking), 0);
}

DeviceGraph::~DeviceGraph() {
  if (graph_)
    EXPECT_EQ(driver().destroyExecutable(graph_), 0);
  EXPECT_EQ(driver().destroy(stream_), 0);
}

void DeviceGraph::beginCapture() {
  constexpr int kGlobal = 0;
  ASSERT_EQ(driver().begin(stream_, kGlobal), 0);
}

void DeviceGraph::endCapture() {
  void *recorded = nullptr;
  ASSERT_EQ(driver().end(stream_, &recorded), 0);
  if (graph_)
    EXPECT_EQ(driver().destroyExecutable(graph_), 0);
  ASSERT_EQ(driver().instantiate(&graph_, recorded, 0), 0);
  EXPECT_EQ(driver().destroyGraph(recorded), 0);
}

void DeviceGraph::replay() {
  EXPECT_EQ(driver().launch(graph_, stream_), 0);
  EXPECT_EQ(driver().synchronize(stream_), 0);
}
