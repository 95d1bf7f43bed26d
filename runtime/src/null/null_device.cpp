// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory is real, so that uploads cost what a copy costs; launches check what
// every device checks, and end there.

#include "gdnrt/null_device.h"

#include "gdnrt/aligned_bytes.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;

namespace {

class NullCode final : public LoadedCode {
public:
  NullCode(CodeSchema schema, size_t index)
      : schema_(std::move(schema)), index_(index) {}
  const CodeSchema &schema() const override { return schema_; }
  size_t codeIndex() const override { return index_; }
  using LoadedCode::launch;
  Status launch(const Binding &binding, void *, bool) override {
    return binding.checkVariant();
  }

private:
  CodeSchema schema_;
  size_t index_;
};

class NullDevice final : public Device {
public:
  NullDevice() {
    properties_.kind = "null";
    properties_.name = "null device, runs nothing";
    properties_.numWorkers = 1;
  }
  const DeviceProperties &properties() const override { return properties_; }
  Result<std::unique_ptr<LoadedCode>>
  load(const Image &image, size_t entry,
       std::optional<size_t> forcedCode) override {
    const EntrySchema &schema = *image.entries()[entry];
    const size_t code = forcedCode.value_or(0);
    if (code >= schema.codes.size())
      return invalid(schema.name, ": code index ", code, " is past the ",
                     schema.codes.size(), " codes");
    return std::unique_ptr<LoadedCode>(
        std::make_unique<NullCode>(schema.codes[code], code));
  }
  Status synchronize(void *) override { return {}; }
  Status fill(void *data, uint8_t value, uint64_t bytes, void *) override {
    if (bytes != 0)
      std::memset(data, value, bytes);
    return {};
  }
  Status copy(void *to, const void *from, uint64_t bytes, void *) override {
    return write(to, from, bytes);
  }
  Status upload(void *to, const void *from, uint64_t bytes, void *) override {
    return write(to, from, bytes);
  }
  Result<void *> allocate(size_t bytes) override {
    void *data = allocateAligned(std::max<size_t>(bytes, 1)).release();
    if (!data)
      return failure(StatusCode::outOfMemory, "no memory for ", bytes,
                     " bytes");
    return data;
  }
  Status free(void *data) override {
    AlignedBytes owner(static_cast<uint8_t *>(data));
    return {};
  }
  Status write(void *to, const void *from, size_t bytes) override {
    if (bytes != 0)
      std::memcpy(to, from, bytes);
    return {};
  }
  Status read(void *to, const void *from, size_t bytes) override {
    return write(to, from, bytes);
  }

private:
  DeviceProperties properties_;
};

} // namespace

std::shared_ptr<Device> gdnrt::createNullDevice() {
  return std::make_shared<NullDevice>();
}
