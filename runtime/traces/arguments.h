// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch is given, in memory of the device.

#ifndef GDNRT_TRACES_ARGUMENTS_H
#define GDNRT_TRACES_ARGUMENTS_H

#include "device_array.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gdnrt::traces {

/// The arguments of a launch with the sizes that they point at.
class Arguments {
public:
  template <typename T>
  void add(const char *name, DeviceArray &array, int32_t dtype,
           const std::vector<T> &values, std::vector<int64_t> sizes) {
    array.write(values.data(), values.size() * sizeof(T));
    addArg(name, array.data(), dtype, std::move(sizes));
  }
  void addArg(const char *name, void *data, int32_t dtype,
              std::vector<int64_t> sizes) {
    sizes_.push_back(std::move(sizes));
    const std::vector<int64_t> &kept = sizes_.back();
    gdnrt_arg arg = {data,        dtype,   static_cast<int32_t>(kept.size()),
                     kept.data(), nullptr, 0};
    named_.push_back({name, arg});
  }
  void addPool(const char *name, const gdnrt_arg &arg) {
    named_.push_back({name, arg});
  }
  const std::vector<gdnrt_named_arg> &named() const { return named_; }
  /// Launches with as much workspace as the kernel cannot do without on a GPU.
  void launch(gdnrt_kernel *kernel, gdnrt_device *device) const {
    gdnrt_error error;
    gdnrt_binding *binding = nullptr;
    check(gdnrt_kernel_bind_named(kernel, named_.data(), named_.size(),
                                  &binding, &error),
          error);
    gdnrt_device_info info = gdnrt_device_info_default();
    check(gdnrt_device_describe(device, &info, &error), error);
    void *workspace = nullptr;
    uint64_t bytes = 0;
    if (std::string(info.kind) == "cuda")
      check(gdnrt_binding_workspace_bytes(binding, &bytes, &error), error);
    if (bytes > 0) {
      check(gdnrt_device_allocate(device, bytes, &workspace, &error), error);
      check(gdnrt_binding_set_workspace(binding, workspace, bytes, nullptr,
                                        &error),
            error);
    }
    gdnrt_status status = gdnrt_launch(binding, nullptr, &error);
    gdnrt_binding_destroy(binding);
    gdnrt_error freed;
    check(gdnrt_device_free(device, workspace, &freed), freed);
    check(status, error);
  }

private:
  std::vector<std::vector<int64_t>> sizes_;
  std::vector<gdnrt_named_arg> named_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_ARGUMENTS_H
