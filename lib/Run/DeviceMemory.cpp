// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices by name, and their memory; see DeviceMemory.h.
#include "gdn/Run/DeviceMemory.h"

using namespace gdn;
using namespace gdn::run;

static llvm::Error toError(const gdnrt_error &error) {
  return llvm::createStringError(error.message);
}

llvm::Expected<DeviceHandle> run::createDevice(llvm::StringRef text,
                                               int workers) {
  gdnrt_error error;
  gdnrt_device *device = nullptr;
  gdnrt_status status;
  llvm::StringRef number = text;
  if (text == "cpu") {
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = workers;
    status = gdnrt_device_create_cpu(&options, &device, &error);
  } else if (number.consume_front("cuda")) {
    gdnrt_cuda_options options = gdnrt_cuda_options_default();
    if (!number.empty() && (!number.consume_front(":") ||
                            number.getAsInteger(10, options.ordinal)))
      return llvm::createStringError(
          "--device: expects cuda or cuda:<number>, but got " + text);
    status = gdnrt_device_create_cuda(&options, &device, &error);
  } else {
    return llvm::createStringError(
        "--device: expects cpu, cuda, cuda:<number> or any, but got " + text);
  }
  if (status != GDNRT_OK)
    return toError(error);
  return DeviceHandle(device, gdnrt_device_destroy);
}

llvm::Expected<DeviceMemory> DeviceMemory::copyOf(const DeviceHandle &device,
                                                  llvm::ArrayRef<char> bytes) {
  gdnrt_error error;
  void *data = nullptr;
  if (gdnrt_device_allocate(device.get(), bytes.size(), &data, &error) !=
      GDNRT_OK)
    return toError(error);
  DeviceMemory memory;
  memory.data = {data, Free{device}};
  memory.numBytes = bytes.size();
  if (gdnrt_device_write(device.get(), data, bytes.data(), bytes.size(),
                         &error) != GDNRT_OK)
    return toError(error);
  return memory;
}

llvm::Error DeviceMemory::readTo(llvm::MutableArrayRef<char> bytes) const {
  gdnrt_error error;
  if (gdnrt_device_read(data.get_deleter().device.get(), bytes.data(),
                        data.get(), bytes.size(), &error) != GDNRT_OK)
    return toError(error);
  return llvm::Error::success();
}
