// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// User objects of graphs that hold modules and workspaces.

#include "gdnrt/cuda_graph.h"

#include <mutex>
#include <utility>

using namespace gdnrt;
using namespace gdnrt::cuda;

namespace {

/// What a graph holds, and behind it in a list what others held.
struct Held {
  std::shared_ptr<const void> object;
  Held *next = nullptr;
};

/// What graphs held that are gone, of all devices of the process.
struct Aside {
  std::mutex lock;
  /// Graphs are not for two threads at once, and streams of several may be
  /// captured into one.
  std::mutex retain;
  Held *first = nullptr;
};

} // namespace

/// Never destroyed: the driver's threads may outlive everything else.
static Aside &aside() {
  static auto *made = new Aside;
  return *made;
}

/// On a thread of the driver's, where its functions may not be called, and
/// where nothing is thrown: it allocates nothing.
static void putAside(void *data) {
  auto *held = static_cast<Held *>(data);
  std::lock_guard<std::mutex> guard(aside().lock);
  held->next = aside().first;
  aside().first = held;
}

Status cuda::keepForGraph(const Driver &driver, Stream stream,
                          const std::shared_ptr<const void> &object,
                          std::string_view what) {
  // The legacy default stream is never captured.
  if (!stream || !driver.streamCaptureInfo || !driver.userObjectCreate ||
      !driver.userObjectRelease || !driver.graphRetain)
    return {};
  int status = 0;
  Graph graph = nullptr;
  if (Status s =
          driver.check(driver.streamCaptureInfo(stream, &status, nullptr,
                                                &graph, nullptr, nullptr),
                       "cuStreamGetCaptureInfo", what);
      !s.isOk())
    return s;
  if (status != kCaptureActive)
    return {};
  auto held = std::make_unique<Held>();
  held->object = object;
  UserObject made = nullptr;
  if (Status s =
          driver.check(driver.userObjectCreate(&made, held.get(), putAside, 1,
                                               kUserObjectNoDestructorSync),
                       "cuUserObjectCreate", what);
      !s.isOk())
    return s;
  (void)held.release(); // the user object's, whose destructor deletes it
  const std::lock_guard<std::mutex> guard(aside().retain);
  Status s =
      driver.check(driver.graphRetain(graph, made, 1, kGraphUserObjectMove),
                   "cuGraphRetainUserObject", what);
  if (!s.isOk())
    (void)driver.userObjectRelease(made, 1);
  return s;
}

void cuda::releaseOfGraphs(const Driver &driver) {
  Held *first = nullptr;
  {
    std::lock_guard<std::mutex> guard(aside().lock);
    first = std::exchange(aside().first, nullptr);
  }
  if (!first)
    return;
  RelaxedCapture relaxed(driver);
  // Destructors may come here again.
  while (first)
    delete std::exchange(first, first->next);
}
