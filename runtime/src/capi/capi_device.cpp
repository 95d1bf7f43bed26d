// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of devices and kernels.

#include "gdnrt/cpu_device.h"
#include "gdnrt/cuda_device.h"
#include "gdnrt/null_device.h"
#include "handles.h"
#include "sized_struct.h"

using namespace gdnrt;

static gdnrt_device *wrapDevice(std::shared_ptr<Device> device,
                                int32_t debugChecks, Log log = {}) {
  auto handle = std::make_unique<gdnrt_device>();
  handle->device = std::move(device);
  handle->features = joinNames(handle->device->properties().features);
  handle->debugChecks = debugChecks != 0;
  handle->log = log;
  log(GDNRT_LOG_INFO, "device: ", handle->device->properties().name);
  return handle.release();
}

gdnrt_status gdnrt_device_create_cpu(const gdnrt_cpu_options *options,
                                     gdnrt_device **device,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    gdnrt_cpu_options chosen = gdnrt_cpu_options_default();
    if (options)
      if (Status s = readStruct("options", options, chosen); !s.isOk())
        return s;
    auto created = createCpuDevice(chosen.num_workers);
    if (!created.isOk())
      return created.status();
    *device = wrapDevice(std::move(*created), chosen.debug_checks,
                         {chosen.log, chosen.log_user});
    return {};
  });
}

gdnrt_status gdnrt_device_create_cuda(const gdnrt_cuda_options *options,
                                      gdnrt_device **device,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    gdnrt_cuda_options chosen = gdnrt_cuda_options_default();
    if (options)
      if (Status s = readStruct("options", options, chosen); !s.isOk())
        return s;
    CudaOptions cuda;
    cuda.ordinal = chosen.ordinal;
    cuda.driver = chosen.driver;
    auto created = createCudaDevice(cuda);
    if (!created.isOk())
      return created.status();
    *device = wrapDevice(std::move(*created), chosen.debug_checks,
                         {chosen.log, chosen.log_user});
    return {};
  });
}

gdnrt_status gdnrt_device_create_null(gdnrt_device **device,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    *device = wrapDevice(createNullDevice(), /*debugChecks=*/0);
    return {};
  });
}

gdnrt_status gdnrt_device_duplicate(const gdnrt_device *device,
                                    gdnrt_device **duplicate,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!duplicate)
      return nullPointer("duplicate");
    *duplicate = new gdnrt_device(*device);
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
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    const DeviceProperties &properties = device->device->properties();
    gdnrt_device_info filled = gdnrt_device_info_default();
    filled.kind = properties.kind.c_str();
    filled.name = properties.name.c_str();
    filled.features = device->features.c_str();
    filled.num_workers = properties.numWorkers;
    writeStruct(filled, info);
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

gdnrt_status gdnrt_device_is_capturing(gdnrt_device *device, void *stream,
                                       int32_t *capturing, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!capturing)
      return nullPointer("capturing");
    auto found = device->device->isCapturing(stream);
    if (found.isOk())
      *capturing = *found ? 1 : 0;
    return found.isOk() ? Status() : found.status();
  });
}

gdnrt_status gdnrt_device_allocate(gdnrt_device *device, size_t bytes,
                                   void **data, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!data)
      return nullPointer("data");
    auto allocated = device->device->allocate(bytes);
    if (allocated.isOk())
      *data = *allocated;
    return allocated.status();
  });
}

gdnrt_status gdnrt_device_free(gdnrt_device *device, void *data,
                               gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    return data ? device->device->free(data) : Status();
  });
}

gdnrt_status gdnrt_device_write(gdnrt_device *device, void *to,
                                const void *from, size_t bytes,
                                gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!to && bytes != 0)
      return nullPointer("to");
    if (!from && bytes != 0)
      return nullPointer("from");
    return device->device->write(to, from, bytes);
  });
}

gdnrt_status gdnrt_device_read(gdnrt_device *device, void *to, const void *from,
                               size_t bytes, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!to && bytes != 0)
      return nullPointer("to");
    if (!from && bytes != 0)
      return nullPointer("from");
    return device->device->read(to, from, bytes);
  });
}

gdnrt_status gdnrt_device_set_ranges(gdnrt_device *device,
                                     const gdnrt_ranges *ranges,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    gdnrt_ranges given = gdnrt_ranges_default();
    if (ranges) {
      if (Status s = readStruct("ranges", ranges, given); !s.isOk())
        return s;
      if (!given.push)
        return nullPointer("push");
      if (!given.pop)
        return nullPointer("pop");
    }
    device->device->setRanges({given.push, given.pop, given.user});
    return {};
  });
}

static void logLoaded(const Log &log, const LoadedKernel &loaded,
                      const std::string &milliseconds) {
  const CodeSchema &code = loaded.code->schema();
  const bool isPtx = code.format == CodeFormat::ptx;
  log(isPtx ? GDNRT_LOG_WARNING : GDNRT_LOG_INFO, loaded.entry->name, ": ",
      toString(code.format), " for ", code.target, ", loaded in ", milliseconds,
      isPtx ? " ms: the driver assembled it; a cubin would only be copied"
            : " ms");
}

Result<std::shared_ptr<LoadedKernel>>
gdnrt::loadKernel(const gdnrt_device &device, const Image &image, size_t entry,
                  std::optional<size_t> code) {
  const Stopwatch watch;
  auto loadedCode = device.device->load(image, entry, code);
  if (!loadedCode.isOk())
    return loadedCode.status();
  auto loaded = std::make_shared<LoadedKernel>();
  loaded->device = device.device;
  loaded->entry = image.entries()[entry];
  loaded->code = std::move(*loadedCode);
  loaded->debugChecks = device.debugChecks;
  logLoaded(device.log, *loaded, watch.milliseconds());
  return loaded;
}

static Status createKernel(gdnrt_device *device, const gdnrt_image *image,
                           const char *entryName, std::optional<size_t> code,
                           gdnrt_kernel **kernel) {
  if (!device)
    return nullPointer("device");
  if (!image)
    return nullPointer("image");
  if (!entryName)
    return nullPointer("entry_name");
  if (!kernel)
    return nullPointer("kernel");
  auto index = image->image->findEntry(entryName);
  if (!index.isOk())
    return index.status();
  auto loaded = loadKernel(*device, *image->image, *index, code);
  if (loaded.isOk())
    *kernel = new gdnrt_kernel{std::move(*loaded)};
  return loaded.status();
}

gdnrt_status gdnrt_kernel_create(gdnrt_device *device, const gdnrt_image *image,
                                 const char *entry_name, gdnrt_kernel **kernel,
                                 gdnrt_error *error) {
  return guarded(error, [&] {
    return createKernel(device, image, entry_name, std::nullopt, kernel);
  });
}

gdnrt_status gdnrt_kernel_create_from_code(gdnrt_device *device,
                                           const gdnrt_image *image,
                                           const char *entry_name, size_t code,
                                           gdnrt_kernel **kernel,
                                           gdnrt_error *error) {
  return guarded(error, [&] {
    return createKernel(device, image, entry_name, code, kernel);
  });
}

void gdnrt_kernel_destroy(gdnrt_kernel *kernel) { delete kernel; }

const gdnrt_entry *gdnrt_kernel_entry(const gdnrt_kernel *kernel) {
  return kernel ? wrap(kernel->loaded->entry.get()) : nullptr;
}

size_t gdnrt_kernel_code(const gdnrt_kernel *kernel) {
  return kernel ? kernel->loaded->code->codeIndex() : 0;
}
