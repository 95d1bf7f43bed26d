// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads each blob once per context, makes kernels of it, and passes launches
// on. The caller's context is current again after every call.

#include "gdnrt/cuda_device.h"

#include "gdnrt/cuda_code_choice.h"
#include "gdnrt/cuda_driver.h"
#include "gdnrt/cuda_graph.h"
#include "gdnrt/cuda_host_link.h"
#include "gdnrt/cuda_kernel.h"
#include "gdnrt/cuda_tensor_map.h"

#include <algorithm>
#include <map>
#include <mutex>

using namespace gdnrt;

namespace {

class CudaCode final : public LoadedCode {
public:
  CudaCode(CodeSchema schema, size_t index,
           std::shared_ptr<const cuda::DeviceContext> context,
           const std::string &what)
      : schema_(std::move(schema)), index_(index), context_(std::move(context)),
        hasTensorMaps_(schema_.hasTensorMaps()), encoder_(context_, what) {}

  /// Prepares the kernels of all stages; the context is current.
  Status makeKernels(const std::shared_ptr<cuda::LoadedModule> &module,
                     const EntrySchema &entry, int multiprocessors);

  const CodeSchema &schema() const override { return schema_; }
  size_t codeIndex() const override { return index_; }
  const TensorMapEncoder *tensorMapEncoder() const override {
    return hasTensorMaps_ ? &encoder_ : nullptr;
  }
  using LoadedCode::launch;
  Status launch(const Binding &binding, void *stream, bool capturing) override;

private:
  CodeSchema schema_;
  size_t index_;
  std::shared_ptr<const cuda::DeviceContext> context_;
  std::shared_ptr<cuda::LoadedModule> module_;
  bool hasTensorMaps_;
  cuda::CudaTensorMapEncoder encoder_;
  /// By variant and stage.
  std::vector<std::vector<cuda::Kernel>> kernels_;
};

class CudaDevice final : public Device {
public:
  CudaDevice(std::shared_ptr<cuda::DeviceContext> context,
             cuda::Capability capability, DeviceProperties properties)
      : context_(std::move(context)), capability_(capability),
        properties_(std::move(properties)) {}

  ~CudaDevice() override { cuda::releaseOfGraphs(context_->driver()); }

  const DeviceProperties &properties() const override { return properties_; }
  Result<std::unique_ptr<LoadedCode>>
  load(const Image &image, size_t entry,
       std::optional<size_t> forcedCode) override;
  Status synchronize(void *stream) override;
  Result<bool> isCapturing(void *stream) override;
  Status keepForGraph(void *stream,
                      const std::shared_ptr<const void> &object) override;
  Status fill(void *data, uint8_t value, uint64_t bytes, void *stream) override;
  Status fillRows(void *data, uint8_t value, uint64_t bytes, uint64_t rows,
                  uint64_t distance, void *stream) override;
  Status copyRows(void *to, const void *from, uint64_t bytes, uint64_t rows,
                  uint64_t distance, void *stream) override;
  Status copy(void *to, const void *from, uint64_t bytes,
              void *stream) override;
  Status upload(void *to, const void *from, uint64_t bytes,
                void *stream) override;
  Result<void *> allocate(size_t bytes) override;
  Status free(void *data) override;
  Status write(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;
  Result<std::unique_ptr<HostLink>> makeHostLink() override {
    return cuda::makeHostLink(context_);
  }

private:
  Result<std::shared_ptr<cuda::LoadedModule>>
  loadModule(const Image &image, const CodeSchema &code,
             const std::string &what);

  std::shared_ptr<cuda::DeviceContext> context_;
  cuda::Capability capability_;
  DeviceProperties properties_;
  std::mutex modulesLock_;
  /// Blobs that some kernel still uses, by image id and blob index.
  std::map<std::pair<uint64_t, uint32_t>, std::weak_ptr<cuda::LoadedModule>>
      modules_;
};

} // namespace

static cuda::Stream toStream(void *stream) {
  return static_cast<cuda::Stream>(stream);
}

static cuda::Address toAddress(const void *data) {
  return reinterpret_cast<uintptr_t>(data);
}

Status CudaCode::makeKernels(const std::shared_ptr<cuda::LoadedModule> &module,
                             const EntrySchema &entry, int multiprocessors) {
  if (hasTensorMaps_ && !context_->driver().tensorMapEncode)
    return failure(StatusCode::unsupported, entry.name,
                   ": expected a driver that makes tensor maps; this one "
                   "lacks cuTensorMapEncodeTiled");
  module_ = module;
  size_t numWords =
      entry.numWords() + schema_.mostRegions() + cuda::kExtraWords;
  for (const VariantSchema &variant : schema_.variants) {
    kernels_.emplace_back();
    for (const StageSchema &stage : variant.stages) {
      auto kernel = cuda::Kernel::make(module, stage.symbol, *stage.launch,
                                       numWords, multiprocessors, entry.name);
      if (!kernel.isOk())
        return kernel.status();
      kernels_.back().push_back(std::move(*kernel));
    }
  }
  return {};
}

Status CudaCode::launch(const Binding &binding, void *stream, bool capturing) {
  if (binding.units() == 0)
    return {};
  if (Status status = binding.checkVariant(); !status.isOk())
    return status;
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  if (capturing)
    if (Status status = cuda::keepForGraph(context_->driver(), toStream(stream),
                                           module_, binding.entry().name);
        !status.isOk())
      return status;
  // makeKernels has checked that they fit.
  int64_t words[cuda::kMostWords];
  int64_t *end =
      std::copy(binding.words().begin(), binding.words().end(), words);
  end[0] =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(binding.workspace()));
  // The stream is the barrier between stages. The first follows a kernel that
  // the caller knows about; a later one may begin early where its code waits
  // for the stage ahead of it.
  bool dependent = binding.allowsDependentLaunch();
  const std::vector<cuda::Kernel> &stages = kernels_[binding.variant()];
  const VariantSchema &variant = schema_.variants[binding.variant()];
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    int64_t units = binding.stageUnits(stage);
    if (units == 0)
      continue;
    end[1] = units;
    if (size_t boxes = variant.stages[stage].launch->tensorMaps.size()) {
      if (!binding.hasMaps())
        return invalid(binding.entry().name,
                       ": expected a binding made with the encoder of its "
                       "code, got one without");
      int64_t *behind = end + cuda::kExtraWords;
      int64_t *maps =
          words + cuda::firstMapWord(static_cast<size_t>(behind - words));
      std::fill(behind, maps, 0);
      std::copy_n(binding.maps(stage), boxes * kMapWords, maps);
    }
    if (Status status =
            stages[stage].launch(words, units, toStream(stream), dependent);
        !status.isOk())
      return status;
    dependent = true;
  }
  return {};
}

Result<std::shared_ptr<cuda::LoadedModule>>
CudaDevice::loadModule(const Image &image, const CodeSchema &code,
                       const std::string &what) {
  // The lock is held while loading, so that two threads do not load one blob.
  std::lock_guard<std::mutex> lock(modulesLock_);
  for (auto it = modules_.begin(); it != modules_.end();)
    it = it->second.expired() ? modules_.erase(it) : std::next(it);
  std::weak_ptr<cuda::LoadedModule> &known = modules_[{image.id(), code.blob}];
  if (auto module = known.lock())
    return module;
  auto module = cuda::LoadedModule::load(context_, image.blobs()[code.blob],
                                         code.format, what);
  if (module.isOk())
    known = *module;
  return module;
}

Result<std::unique_ptr<LoadedCode>>
CudaDevice::load(const Image &image, size_t index,
                 std::optional<size_t> forcedCode) {
  const EntrySchema &entry = *image.entries()[index];
  auto chosen = cuda::chooseCode(entry, capability_, forcedCode);
  if (!chosen.isOk())
    return chosen.status();
  const CodeSchema &code = entry.codes[*chosen];
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  cuda::RelaxedCapture relaxed(context_->driver());
  cuda::releaseOfGraphs(context_->driver());
  auto module = loadModule(image, code, entry.name);
  if (!module.isOk())
    return module.status();
  auto loaded = std::make_unique<CudaCode>(code, *chosen, context_, entry.name);
  if (Status status =
          loaded->makeKernels(*module, entry, properties_.numWorkers);
      !status.isOk())
    return status;
  return std::unique_ptr<LoadedCode>(std::move(loaded));
}

Status CudaDevice::synchronize(void *stream) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  cuda::releaseOfGraphs(context_->driver());
  const cuda::Driver &driver = context_->driver();
  return driver.check(driver.streamSynchronize(toStream(stream)),
                      "cuStreamSynchronize", "synchronize");
}

Status CudaDevice::fill(void *data, uint8_t value, uint64_t bytes,
                        void *stream) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0)
    return current.status();
  const cuda::Driver &driver = context_->driver();
  return driver.check(
      driver.memorySet(toAddress(data), value, bytes, toStream(stream)),
      "cuMemsetD8Async", "fill");
}

Status CudaDevice::fillRows(void *data, uint8_t value, uint64_t bytes,
                            uint64_t rows, uint64_t distance, void *stream) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0 || rows == 0)
    return current.status();
  const cuda::Driver &driver = context_->driver();
  return driver.check(driver.memorySetRows(toAddress(data), distance, value,
                                           bytes, rows, toStream(stream)),
                      "cuMemsetD2D8Async", "fill");
}

Status CudaDevice::copy(void *to, const void *from, uint64_t bytes,
                        void *stream) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0)
    return current.status();
  const cuda::Driver &driver = context_->driver();
  return driver.check(driver.copyOnDevice(toAddress(to), toAddress(from), bytes,
                                          toStream(stream)),
                      "cuMemcpyDtoDAsync", "copy");
}

Status CudaDevice::copyRows(void *to, const void *from, uint64_t bytes,
                            uint64_t rows, uint64_t distance, void *stream) {
  const cuda::Driver &driver = context_->driver();
  if (rows < 2 || !driver.takesRows(distance))
    return Device::copyRows(to, from, bytes, rows, distance, stream);
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0)
    return current.status();
  cuda::RowCopy copy;
  for (auto [side, data] : {std::pair(&copy.from, from), {&copy.to, to}}) {
    side->type = cuda::kMemoryDevice;
    side->device = reinterpret_cast<uintptr_t>(data);
    side->pitch = distance;
  }
  copy.widthInBytes = bytes;
  copy.height = rows;
  return driver.check(driver.copyRows(&copy, toStream(stream)),
                      "cuMemcpy2DAsync", "copy");
}

Result<bool> CudaDevice::isCapturing(void *stream) {
  const cuda::Driver &driver = context_->driver();
  // The legacy default stream is never captured.
  if (!stream || !driver.streamIsCapturing)
    return false;
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  int status = 0;
  if (Status s =
          driver.check(driver.streamIsCapturing(toStream(stream), &status),
                       "cuStreamIsCapturing", "stream");
      !s.isOk())
    return s;
  return status != 0;
}

Status CudaDevice::upload(void *to, const void *from, uint64_t bytes,
                          void *stream) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0)
    return current.status();
  // A graph would keep the address of what the host has now.
  const cuda::Driver &driver = context_->driver();
  if (stream && driver.streamIsCapturing) {
    int status = 0;
    if (Status s =
            driver.check(driver.streamIsCapturing(toStream(stream), &status),
                         "cuStreamIsCapturing", "upload");
        !s.isOk())
      return s;
    if (status != 0)
      return captureRefused("upload");
  }
  // The driver stages memory that is not pinned before it returns.
  return driver.check(
      driver.copyToDevice(toAddress(to), from, bytes, toStream(stream)),
      "cuMemcpyHtoDAsync", "upload");
}

Status CudaDevice::keepForGraph(void *stream,
                                const std::shared_ptr<const void> &object) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  return cuda::keepForGraph(context_->driver(), toStream(stream), object,
                            "workspace");
}

Result<void *> CudaDevice::allocate(size_t bytes) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  const cuda::Driver &driver = context_->driver();
  cuda::RelaxedCapture relaxed(driver);
  cuda::releaseOfGraphs(context_->driver());
  cuda::Address address = 0;
  // The driver refuses to allocate nothing.
  if (Status s = driver.check(
          driver.memoryAllocate(&address, std::max<size_t>(bytes, 1)),
          "cuMemAlloc", std::to_string(bytes) + " bytes");
      !s.isOk())
    return s;
  return reinterpret_cast<void *>(address);
}

Status CudaDevice::free(void *data) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk())
    return current.status();
  const cuda::Driver &driver = context_->driver();
  cuda::RelaxedCapture relaxed(driver);
  return driver.check(driver.memoryFree(toAddress(data)), "cuMemFree", "free");
}

Status CudaDevice::write(void *to, const void *from, size_t bytes) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0)
    return current.status();
  const cuda::Driver &driver = context_->driver();
  if (Status s =
          driver.check(driver.copyToDevice(toAddress(to), from, bytes, nullptr),
                       "cuMemcpyHtoDAsync", "write");
      !s.isOk())
    return s;
  return driver.check(driver.streamSynchronize(nullptr), "cuStreamSynchronize",
                      "write");
}

Status CudaDevice::read(void *to, const void *from, size_t bytes) {
  cuda::CurrentContext current(*context_);
  if (!current.status().isOk() || bytes == 0)
    return current.status();
  const cuda::Driver &driver = context_->driver();
  if (Status s =
          driver.check(driver.copyToHost(to, toAddress(from), bytes, nullptr),
                       "cuMemcpyDtoHAsync", "read");
      !s.isOk())
    return s;
  return driver.check(driver.streamSynchronize(nullptr), "cuStreamSynchronize",
                      "read");
}

Result<std::shared_ptr<Device>>
gdnrt::createCudaDevice(const CudaOptions &options) {
  auto driver = cuda::Driver::load(options.driver ? options.driver
                                                  : cuda::kDriverLibrary);
  if (!driver.isOk())
    return driver.status();
  const cuda::Driver &cu = **driver;
  int count = 0;
  if (Status s = cu.check(cu.deviceCount(&count), "cuDeviceGetCount", "cuda");
      !s.isOk())
    return s;
  if (count == 0)
    return failure(StatusCode::unsupported, "cuda: the driver has no GPU");
  if (options.ordinal < 0 || options.ordinal >= count)
    return invalid("ordinal: expected 0 to ", count - 1, ", got ",
                   options.ordinal);
  cuda::Device device = 0;
  if (Status s = cu.check(cu.deviceGet(&device, options.ordinal), "cuDeviceGet",
                          "cuda");
      !s.isOk())
    return s;
  char name[256] = {};
  if (Status s = cu.check(cu.deviceName(name, sizeof(name) - 1, device),
                          "cuDeviceGetName", "cuda");
      !s.isOk())
    return s;
  cuda::Capability capability;
  int multiprocessors = 0;
  for (auto [attribute, value] :
       {std::pair(cuda::kMajor, &capability.major),
        std::pair(cuda::kMinor, &capability.minor),
        std::pair(cuda::kMultiprocessorCount, &multiprocessors)})
    if (Status s = cu.check(cu.deviceAttribute(value, attribute, device),
                            "cuDeviceGetAttribute", "cuda");
        !s.isOk())
      return s;

  DeviceProperties properties;
  properties.kind = "cuda";
  std::string chip = "sm_" + std::to_string(capability.major) +
                     std::to_string(capability.minor);
  properties.name = std::string(name) + ", " + chip + ", " +
                    std::to_string(multiprocessors) + " multiprocessors";
  properties.targets = {chip};
  properties.numWorkers = multiprocessors;
  auto context = cuda::DeviceContext::find(*driver, device);
  if (!context.isOk())
    return context.status();
  return std::shared_ptr<Device>(std::make_shared<CudaDevice>(
      std::move(*context), capability, std::move(properties)));
}
