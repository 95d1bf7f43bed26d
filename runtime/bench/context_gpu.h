// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A GPU of gdnrt_context_times: its tokens, and pools and outputs as they are
// before a run.
#ifndef GDN_RUNTIME_BENCH_CONTEXT_GPU_H
#define GDN_RUNTIME_BENCH_CONTEXT_GPU_H

#include "context_inputs.h"
#include "device_graph.h"
#include "row_major.h"

#include "gdn-c/context.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gdnbench {

constexpr int64_t kContextSlots = 2;

/// Throws the message of what failed.
inline void check(gdnrt_status status, const gdnrt_error &error) {
  if (status != GDNRT_OK)
    throw std::runtime_error(error.message);
}

/// An array of a device, of any type.
struct Array {
  gdnrt_device *device = nullptr;
  void *data = nullptr;
  gdnrt_dtype dtype = GDNRT_F32;
  std::vector<int64_t> sizes;

  Array() = default;
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  ~Array() {
    if (data)
      (void)gdnrt_device_free(device, data, nullptr);
  }
  /// From the row `begin` of an array of the host on.
  template <typename T>
  void make(gdnrt_device *on, gdnrt_dtype type, std::vector<int64_t> shape,
            const std::vector<T> &from, int64_t begin = 0) {
    device = on;
    dtype = type;
    sizes = std::move(shape);
    size_t row = sizeof(T), bytes = sizeof(T);
    for (size_t i = 0; i < sizes.size(); ++i) {
      bytes *= static_cast<size_t>(sizes[i]);
      row *= i > 0 ? static_cast<size_t>(sizes[i]) : 1;
    }
    gdnrt_error error;
    check(gdnrt_device_allocate(device, bytes, &data, &error), error);
    check(gdnrt_device_write(device, data,
                             reinterpret_cast<const char *>(from.data()) +
                                 static_cast<size_t>(begin) * row,
                             bytes, &error),
          error);
  }
  /// The first `rows` rows.
  gdnrt_arg arg(int64_t rows) {
    shown_ = sizes;
    if (rows >= 0)
      shown_[0] = rows;
    return gdnrt::toRowMajor(data, dtype, shown_);
  }

private:
  std::vector<int64_t> shown_;
};

/// A GPU and the tokens that it has: the first one all of them.
struct Gpu {
  gdnrt_device *device = nullptr;
  std::unique_ptr<gdnrt::DeviceGraph> stream;
  gdnrt_exchange *exchange = nullptr;
  gdnrt_context *context = nullptr;
  std::unique_ptr<Array> q, k, v, logDecay, beta, out, pool;

  void take(const ContextInputs &inputs, int64_t begin, int64_t rows) {
    auto make = [&](std::unique_ptr<Array> &to, gdnrt_dtype type,
                    std::vector<int64_t> sizes, const auto &from) {
      sizes.insert(sizes.begin(), rows);
      to = std::make_unique<Array>();
      to->make(device, type, sizes, from, begin);
    };
    make(q, GDNRT_BF16, {kContextKeyHeads, kContextDim}, inputs.q);
    make(k, GDNRT_BF16, {kContextKeyHeads, kContextDim}, inputs.k);
    make(v, GDNRT_BF16, {kContextHeads, kContextDim}, inputs.v);
    make(logDecay, GDNRT_F32, {kContextHeads}, inputs.logDecay);
    make(beta, GDNRT_F32, {kContextHeads}, inputs.beta);
    make(out, GDNRT_BF16, {kContextHeads, kContextDim}, inputs.v);
    pool = std::make_unique<Array>();
    std::vector<float> states(kContextSlots * inputs.state.size());
    pool->make(device, GDNRT_F32,
               {kContextSlots, kContextHeads, kContextDim, kContextDim},
               states);
    reset(inputs);
  }
  /// The state in slot 1, and outputs of bits that are no number.
  void reset(const ContextInputs &inputs) {
    gdnrt_error error;
    const size_t bytes = inputs.state.size() * sizeof(float);
    check(gdnrt_device_write(device, static_cast<char *>(pool->data) + bytes,
                             inputs.state.data(), bytes, &error),
          error);
    const std::vector<uint16_t> none(
        static_cast<size_t>(out->sizes[0] * kContextHeads * kContextDim),
        0x7fc0);
    check(gdnrt_device_write(device, out->data, none.data(), 2 * none.size(),
                             &error),
          error);
  }
  std::vector<uint16_t> outputs(int64_t rows) {
    std::vector<uint16_t> made(
        static_cast<size_t>(rows * kContextHeads * kContextDim));
    gdnrt_error error;
    check(gdnrt_device_read(device, made.data(), out->data, 2 * made.size(),
                            &error),
          error);
    return made;
  }
  std::vector<float> states() {
    std::vector<float> made(kContextHeads * kContextDim * kContextDim);
    gdnrt_error error;
    check(gdnrt_device_read(device, made.data(),
                            static_cast<char *>(pool->data) + 4 * made.size(),
                            4 * made.size(), &error),
          error);
    return made;
  }
};

} // namespace gdnbench

#endif // GDN_RUNTIME_BENCH_CONTEXT_GPU_H
