// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream of a GPU and a graph of what is launched on it, as engines make
// them: with the driver's calls, past the runtime. A call that fails throws a
// std::runtime_error with its name and its result.

#ifndef GDNRT_TESTING_DEVICE_GRAPH_H
#define GDNRT_TESTING_DEVICE_GRAPH_H

#include <functional>

namespace gdnrt {

class DeviceGraph {
public:
  /// How the stream and the default stream wait for each other.
  enum class Order { independent, withDefaultStream };
  /// Whose calls end a capture if they cannot be captured: those of all
  /// threads, or of the one that begins it.
  enum class Capture { ofProcess, ofThread };

  /// Of the GPU's primary context, which becomes current on this thread.
  explicit DeviceGraph(int ordinal, Order order = Order::independent);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph &) = delete;
  DeviceGraph &operator=(const DeviceGraph &) = delete;

  void *stream() const { return stream_; }
  /// Makes the GPU's context current on the calling thread.
  void makeCurrent() const;
  /// What is launched on the stream from now on begins when what is on the
  /// other one has ended. If that is being captured, so is this one.
  void waitFor(const DeviceGraph &other);
  void beginCapture(Capture capture = Capture::ofProcess);
  /// Makes what was recorded a graph, in place of the one before.
  void endCapture();
  /// Runs the graph, and waits for it.
  void replay();
  /// Runs the graph, and does not wait.
  void launch();
  void synchronize();
  /// Microseconds that the stream takes for what `body` launches; waits for it.
  double timeOf(const std::function<void()> &body);

private:
  void *context_ = nullptr, *stream_ = nullptr, *graph_ = nullptr;
};

/// GPUs that the driver has; 0 without a driver.
int numGpus();

} // namespace gdnrt

#endif // GDNRT_TESTING_DEVICE_GRAPH_H
