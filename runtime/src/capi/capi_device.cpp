// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of devices and kernels.

#include "gdnrt/cpu_device.h"
#include "handles.h"

using namespace gdnrt;

gdnrt_status gdnrt_device_create_cpu(const gdnrt_cpu_options *options,
                                     gdnrt_device **device,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    gdnrt_cpu_options chosen = {};
    if (options) {
      // The first version of the struct is the smallest there is.
      if (options->struct_size < sizeof(gdnrt_cpu_options))
        return invalid("options: expected struct_size to be at least ",
                       sizeof(gdnrt_cpu_options), ", got ",
                       options->struct_size);
      chosen = *options;
    }
    auto created = createCpuDevice(chosen.num_workers);
    if (!created.isOk())
      return created.status();
    auto handle = std::make_unique<gdnrt_device>();
    handle->device = std::move(*created);
    handle->features = joinNames(handle->device->properties().features);
    handle->debugChecks = chosen.debug_checks != 0;
    *device = handle.release();
    return {};
  });
}

void gdnrt_device_destroy(gdnrt_device *device) { delete device; }

gdnrt_status gdnrt_device_describe(const gdnrt_device *device,
                                   gdnrt_device_info *info,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!info)
      return nullPointer("info");
    const DeviceProperties &properties = device->device->properties();
    info->kind = properties.kind.c_str();
    info->name = properties.name.c_str();
    info->features = device->features.c_str();
    info->num_workers = properties.numWorkers;
    return {};
  });
}

gdnrt_status gdnrt_device_synchronize(gdnrt_device *device, void *stream,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    return device->device->synchronize(stream);
  });
}

gdnrt_status gdnrt_kernel_create(gdnrt_device *device, const gdnrt_image *image,
                                 const char *entry_name, gdnrt_kernel **kernel,
                                 gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!image)
      return nullPointer("image");
    if (!entry_name)
      return nullPointer("entry_name");
    if (!kernel)
      return nullPointer("kernel");
    auto index = image->image->findEntry(entry_name);
    if (!index.isOk())
      return index.status();
    auto code = device->device->load(*image->image, *index);
    if (!code.isOk())
      return code.status();
    auto loaded = std::make_shared<LoadedKernel>();
    loaded->device = device->device;
    loaded->entry = image->image->entries()[*index];
    loaded->code = std::move(*code);
    loaded->debugChecks = device->debugChecks;
    *kernel = new gdnrt_kernel{std::move(loaded)};
    return {};
  });
}

void gdnrt_kernel_destroy(gdnrt_kernel *kernel) { delete kernel; }

const gdnrt_entry *gdnrt_kernel_entry(const gdnrt_kernel *kernel) {
  return kernel ? wrap(kernel->loaded->entry.get()) : nullptr;
}

size_t gdnrt_kernel_code(const gdnrt_kernel *kernel) {
  return kernel ? kernel->loaded->code->codeIndex() : 0;
}
