// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses code by the CPU's features, loads each blob once, and runs the units
// of each stage on the worker pool with scratch that was allocated at load.

#include "gdnrt/cpu_device.h"

#include "gdnrt/aligned_bytes.h"
#include "gdnrt/cpu_features.h"
#include "gdnrt/shared_object.h"
#include "gdnrt/worker_pool.h"

#include "subnormals.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

using namespace gdnrt;

namespace {

constexpr int kMaxWorkers = 1024;

/// The C interface of CPU code; see the design of entries and images.
using KernelFunction = void (*)(const int64_t *words, int64_t begin,
                                int64_t end, void *scratch);

class CpuCode final : public LoadedCode {
public:
  CpuCode(CodeSchema schema, size_t index, std::shared_ptr<SharedObject> object,
          std::shared_ptr<WorkerPool> workers)
      : schema_(std::move(schema)), index_(index), object_(std::move(object)),
        workers_(std::move(workers)) {}

  /// Finds the functions of all stages in the object.
  Status findFunctions(const std::string &entry);
  /// One scratch block per worker, each on cache lines of its own.
  Status allocateScratch(const std::string &entry);

  const CodeSchema &schema() const override { return schema_; }
  size_t codeIndex() const override { return index_; }
  using LoadedCode::launch;
  Status launch(const Binding &binding, void *stream, bool capturing) override;

private:
  struct Launch {
    const CpuCode *code;
    const int64_t *words;
    KernelFunction function;
  };
  static void runRange(void *context, int64_t begin, int64_t end, int worker);

  CodeSchema schema_;
  size_t index_;
  std::shared_ptr<SharedObject> object_;
  /// By variant and stage.
  std::vector<std::vector<KernelFunction>> functions_;
  std::shared_ptr<WorkerPool> workers_;
  AlignedBytes scratch_;
  size_t scratchStride_ = 0;
};

class CpuDevice final : public Device {
public:
  explicit CpuDevice(int numWorkers);
  const DeviceProperties &properties() const override { return properties_; }
  Result<std::unique_ptr<LoadedCode>>
  load(const Image &image, size_t entry,
       std::optional<size_t> forcedCode) override;
  Status synchronize(void *stream) override;
  Status fill(void *data, uint8_t value, uint64_t bytes, void *stream) override;
  Status copy(void *to, const void *from, uint64_t bytes,
              void *stream) override;
  Status upload(void *to, const void *from, uint64_t bytes,
                void *stream) override;
  Result<void *> allocate(size_t bytes) override;
  Status free(void *data) override;
  Status write(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;

private:
  Result<const CodeSchema *> choose(const EntrySchema &entry,
                                    std::optional<size_t> forcedCode) const;
  Result<std::shared_ptr<SharedObject>>
  loadBlob(const Image &image, uint32_t blob, const std::string &entry);

  DeviceProperties properties_;
  std::shared_ptr<WorkerPool> workers_;
  std::mutex objectsLock_;
  /// Blobs that some kernel still uses, by image id and blob index.
  std::map<std::pair<uint64_t, uint32_t>, std::weak_ptr<SharedObject>> objects_;
};

} // namespace

static Status checkStream(void *stream) {
  if (stream)
    return invalid("stream: expected null, as a CPU has one queue");
  return {};
}

Status CpuCode::findFunctions(const std::string &entry) {
  for (const VariantSchema &variant : schema_.variants) {
    functions_.emplace_back();
    for (const StageSchema &stage : variant.stages) {
      void *address = object_->find(stage.symbol.c_str());
      if (!address)
        return failure(StatusCode::corrupt, entry,
                       ": the code does not export ", stage.symbol);
      functions_.back().push_back(reinterpret_cast<KernelFunction>(address));
    }
  }
  return {};
}

Status CpuCode::allocateScratch(const std::string &entry) {
  const uint64_t bytes = schema_.scratchBytes();
  if (bytes == 0)
    return {};
  size_t count = static_cast<size_t>(workers_->numWorkers());
  // No machine has that much; the bound keeps the product in range.
  constexpr uint64_t kMostBytes = uint64_t{1} << 40;
  if (bytes <= kMostBytes) {
    scratchStride_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    scratch_ = allocateAligned(scratchStride_ * count);
  }
  if (!scratch_)
    return failure(StatusCode::outOfMemory, entry, ": no memory for ", count,
                   " scratch blocks of ", bytes, " bytes");
  return {};
}

void CpuCode::runRange(void *context, int64_t begin, int64_t end, int worker) {
  const Launch &launch = *static_cast<Launch *>(context);
  const CpuCode &code = *launch.code;
  uint8_t *scratch = nullptr;
  if (code.scratch_)
    scratch = code.scratch_.get() + code.scratchStride_ * worker;
  const NoSubnormals mode;
  launch.function(launch.words, begin, end, scratch);
}

Status CpuCode::launch(const Binding &binding, void *stream,
                       bool /*capturing*/) {
  if (Status status = checkStream(stream); !status.isOk())
    return status;
  if (Status status = binding.checkVariant(); !status.isOk())
    return status;
  // Each run returns when all of its units are done: the barrier.
  const std::vector<KernelFunction> &stages = functions_[binding.variant()];
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    Launch context{this, binding.words().data(), stages[stage]};
    workers_->run(binding.stageUnits(stage), runRange, &context);
  }
  return {};
}

CpuDevice::CpuDevice(int numWorkers)
    : workers_(std::make_shared<WorkerPool>(numWorkers)) {
  properties_.kind = "cpu";
  properties_.numWorkers = workers_->numWorkers();
  properties_.features = cpuFeatures();
  properties_.hostReadable = true;
#if defined(__x86_64__)
  properties_.targets = {"x86-64"};
#elif defined(__aarch64__)
  properties_.targets = {"aarch64"};
#endif
  properties_.name = joinNames(properties_.targets) + " CPU, " +
                     std::to_string(workers_->numWorkers()) +
                     (workers_->numWorkers() == 1 ? " worker" : " workers");
}

Result<const CodeSchema *>
CpuDevice::choose(const EntrySchema &entry,
                  std::optional<size_t> forcedCode) const {
  if (forcedCode && *forcedCode >= entry.codes.size())
    return invalid(entry.name, ": code index ", *forcedCode, " is past the ",
                   entry.codes.size(), " codes");
  std::string needs;
  for (const CodeSchema &code : entry.codes) {
    if (forcedCode && &code != &entry.codes[*forcedCode])
      continue;
    if (std::count(properties_.targets.begin(), properties_.targets.end(),
                   code.target) == 0 ||
        code.format != CodeFormat::sharedObject)
      continue;
    std::vector<std::string> missing;
    for (const std::string &feature : code.features)
      if (!cpuHasFeature(feature))
        missing.push_back(feature);
    if (missing.empty())
      return &code;
    needs += (needs.empty() ? "[" : " or [") + joinNames(code.features) + "]";
  }
  std::string targets = joinNames(properties_.targets);
  if (!needs.empty())
    return failure(StatusCode::unsupported, entry.name,
                   ": the code needs the CPU features ", needs,
                   ", and this CPU has [", joinNames(properties_.features),
                   "]");
  std::vector<std::string> others;
  for (const CodeSchema &code : entry.codes)
    others.push_back(code.target);
  return failure(StatusCode::unsupported, entry.name,
                 ": the image has no code for ", targets, "; it has code for: ",
                 others.empty() ? "none" : joinNames(others));
}

Result<std::shared_ptr<SharedObject>>
CpuDevice::loadBlob(const Image &image, uint32_t blob,
                    const std::string &entry) {
  std::lock_guard<std::mutex> lock(objectsLock_);
  // Forget blobs whose kernels are gone, so that the map does not grow.
  for (auto it = objects_.begin(); it != objects_.end();)
    it = it->second.expired() ? objects_.erase(it) : std::next(it);
  std::weak_ptr<SharedObject> &known = objects_[{image.id(), blob}];
  if (auto object = known.lock())
    return object;
  const ImageContents::Blob &bytes = image.blobs()[blob];
  auto object = SharedObject::load(bytes.data, bytes.size, entry.c_str());
  if (object.isOk())
    known = *object;
  return object;
}

Result<std::unique_ptr<LoadedCode>>
CpuDevice::load(const Image &image, size_t index,
                std::optional<size_t> forcedCode) {
  const EntrySchema &entry = *image.entries()[index];
  Result<const CodeSchema *> chosen = choose(entry, forcedCode);
  if (!chosen.isOk())
    return chosen.status();
  const CodeSchema &schema = **chosen;
  auto object = loadBlob(image, schema.blob, entry.name);
  if (!object.isOk())
    return object.status();
  auto code = std::make_unique<CpuCode>(
      schema, static_cast<size_t>(&schema - entry.codes.data()), *object,
      workers_);
  if (Status status = code->findFunctions(entry.name); !status.isOk())
    return status;
  if (Status status = code->allocateScratch(entry.name); !status.isOk())
    return status;
  return std::unique_ptr<LoadedCode>(std::move(code));
}

Status CpuDevice::synchronize(void *stream) { return checkStream(stream); }

Status CpuDevice::fill(void *data, uint8_t value, uint64_t bytes,
                       void *stream) {
  if (Status status = checkStream(stream); !status.isOk())
    return status;
  if (bytes != 0)
    std::memset(data, value, bytes);
  return {};
}

Status CpuDevice::copy(void *to, const void *from, uint64_t bytes,
                       void *stream) {
  if (Status status = checkStream(stream); !status.isOk())
    return status;
  if (bytes != 0)
    std::memcpy(to, from, bytes);
  return {};
}

Status CpuDevice::upload(void *to, const void *from, uint64_t bytes,
                         void *stream) {
  if (Status s = checkStream(stream); !s.isOk())
    return s;
  if (bytes > 0)
    std::memcpy(to, from, bytes);
  return {};
}

Result<void *> CpuDevice::allocate(size_t bytes) {
  // Nothing gets an address too, which can be freed.
  void *data = allocateAligned(std::max<size_t>(bytes, 1)).release();
  if (!data)
    return failure(StatusCode::outOfMemory, "no memory for ", bytes, " bytes");
  return data;
}

Status CpuDevice::free(void *data) {
  // The owner frees it.
  AlignedBytes owner(static_cast<uint8_t *>(data));
  return {};
}

Status CpuDevice::write(void *to, const void *from, size_t bytes) {
  if (bytes != 0)
    std::memcpy(to, from, bytes);
  return {};
}

Status CpuDevice::read(void *to, const void *from, size_t bytes) {
  return write(to, from, bytes);
}

Result<std::shared_ptr<Device>> gdnrt::createCpuDevice(int numWorkers) {
  if (numWorkers < 0 || numWorkers > kMaxWorkers)
    return invalid("num_workers: expected 0 to ", kMaxWorkers, ", got ",
                   numWorkers);
  return std::shared_ptr<Device>(std::make_shared<CpuDevice>(numWorkers));
}
