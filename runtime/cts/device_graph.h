// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream of the device under test and a graph of what is launched on it, as
// engines make them: with the driver's calls, past the runtime.

#ifndef GDNRT_CTS_DEVICE_GRAPH_H
#define GDNRT_CTS_DEVICE_GRAPH_H

namespace gdnrt::cts {

class DeviceGraph {
public:
  /// Of the GPU's primary context, which becomes current on this thread.
  DeviceGraph();
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph &) = delete;
  DeviceGraph &operator=(const DeviceGraph &) = delete;

  /// Whether the device under test has graphs.
  static bool exist();

  void *stream() const { return stream_; }
  void beginCapture();
  /// Makes what was recorded a graph, in place of the one before.
  void endCapture();
  /// Runs the graph, and waits for it.
  void replay();

private:
  void *stream_ = nullptr, *graph_ = nullptr;
};

} // namespace gdnrt::cts

#endif // GDNRT_CTS_DEVICE_GRAPH_H
