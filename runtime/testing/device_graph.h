// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream of a GPU and a graph of what is launched on it, as engines make
// them: with the driver's calls, past the runtime. A call that fails throws a
// std::runtime_error with its name and its result.

#ifndef GDNRT_TESTING_DEVICE_GRAPH_H
#define GDNRT_TESTING_DEVICE_GRAPH_H

namespace gdnrt {

class DeviceGraph {
public:
  /// How the stream and the default stream wait for each other.
  enum class Order { independent, withDefaultStream };

  /// Of the GPU's primary context, which becomes current on this thread.
  explicit DeviceGraph(int ordinal, Order order = Order::independent);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph &) = delete;
  DeviceGraph &operator=(const DeviceGraph &) = delete;

  void *stream() const { return stream_; }
  /// What is launched on the stream from now on begins when what is on the
  /// other one has ended. If that is being captured, so is this one.
  void waitFor(const DeviceGraph &other);
  void beginCapture();
  /// Makes what was recorded a graph, in place of the one before.
  void endCapture();
  /// Runs the graph, and waits for it.
  void replay();

private:
  void *stream_ = nullptr, *graph_ = nullptr;
};

} // namespace gdnrt

#endif // GDNRT_TESTING_DEVICE_GRAPH_H
