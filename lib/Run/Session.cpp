// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's C ABI as C++ objects; see Session.h.
#include "gdn/Run/Session.h"

#include "gdn/Run/MemoryOrder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace gdn;
using namespace gdn::run;

static_assert(int(data::DType::f32) == GDNRT_F32 &&
                  int(data::DType::bf16) == GDNRT_BF16 &&
                  int(data::DType::f16) == GDNRT_F16 &&
                  int(data::DType::i32) == GDNRT_I32 &&
                  int(data::DType::i64) == GDNRT_I64 &&
                  int(data::DType::i1) == GDNRT_I1 &&
                  int(data::DType::f64) == GDNRT_F64 &&
                  int(data::DType::u8) == GDNRT_U8,
              "element types have the same numbers on both sides");

static llvm::Error toError(const gdnrt_error &error) {
  return llvm::createStringError(error.message);
}

std::string Parameter::typeString() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << data::name(dtype) << '[';
  llvm::interleaveComma(dims, stream,
                        [&](const LinearForm &form) { form.print(stream); });
  stream << ']';
  return text;
}

llvm::Error Binding::launch() {
  gdnrt_error error;
  if (gdnrt_launch(handle.get(), nullptr, &error) != GDNRT_OK ||
      gdnrt_device_synchronize(device.get(), nullptr, &error) != GDNRT_OK)
    return toError(error);
  return llvm::Error::success();
}

llvm::Error Binding::readResults(Arrays &arrays) const {
  for (const auto &[name, copy] : written) {
    data::Array &array = arrays.at(name);
    if (copy.innermost == 0) {
      if (llvm::Error error = copy.memory.readTo(array.bytes))
        return error;
      continue;
    }
    std::vector<char> bytes(array.bytes.size());
    if (llvm::Error error = copy.memory.readTo(bytes))
      return error;
    fromMemoryOrder(bytes, copy.innermost, array);
  }
  return llvm::Error::success();
}

/// Memory of the size that the binding asks for. It starts as NaN, which shows
/// in results if a kernel reads what it has not written.
llvm::Error Binding::makeWorkspace() {
  gdnrt_error error;
  uint64_t bytes = 0;
  if (gdnrt_binding_workspace_bytes(handle.get(), &bytes, &error) != GDNRT_OK)
    return toError(error);
  if (bytes == 0)
    return llvm::Error::success();
  llvm::Expected<DeviceMemory> memory =
      DeviceMemory::copyOf(device, std::vector<char>(bytes, char(0xff)));
  if (!memory)
    return memory.takeError();
  workspace = std::move(*memory);
  if (gdnrt_binding_set_workspace(handle.get(), workspace.get(), bytes, nullptr,
                                  &error) != GDNRT_OK)
    return toError(error);
  return llvm::Error::success();
}

const Parameter *Kernel::find(llvm::StringRef parameter) const {
  for (const Parameter &candidate : parameters)
    if (candidate.name == parameter)
      return &candidate;
  return nullptr;
}

std::string Kernel::getAttribute(llvm::StringRef key) const {
  const char *value = gdnrt_entry_attribute(gdnrt_kernel_entry(handle.get()),
                                            key.str().c_str());
  return value ? value : "";
}

std::string Kernel::getFeatures() const {
  gdnrt_code_info info = gdnrt_code_info_default();
  if (gdnrt_entry_code(gdnrt_kernel_entry(handle.get()),
                       gdnrt_kernel_code(handle.get()), &info,
                       nullptr) != GDNRT_OK)
    return "";
  if (info.features[0] == 0)
    return std::string(info.target) + ", " + info.format;
  return info.features;
}

std::vector<gdnrt_variant_info> Kernel::getVariants() const {
  const gdnrt_entry *entry = gdnrt_kernel_entry(handle.get());
  size_t code = gdnrt_kernel_code(handle.get());
  std::vector<gdnrt_variant_info> variants(
      gdnrt_entry_variant_count(entry, code), gdnrt_variant_info_default());
  for (auto [i, info] : llvm::enumerate(variants))
    (void)gdnrt_entry_variant(entry, code, i, &info, nullptr);
  return variants;
}

void Kernel::layWindowsByPosition() {
  for (Parameter &parameter : parameters)
    if (parameter.isPool &&
        llvm::StringRef(parameter.name).ends_with("conv_pool"))
      parameter.innermost = 1;
}

llvm::Expected<Binding> Kernel::bind(const Arrays &arrays, int64_t nullSlot,
                                     llvm::StringRef variant) const {
  Binding binding;
  binding.device = device;
  std::vector<gdnrt_arg> args;
  // Binding reads strides during the call.
  std::vector<std::vector<int64_t>> strides;
  strides.reserve(parameters.size());
  for (const Parameter &parameter : parameters) {
    auto found = arrays.find(parameter.name);
    if (found == arrays.end())
      return llvm::createStringError(name + ": expects an argument for '" +
                                     parameter.name + "'");
    const data::Array &array = found->second;
    const int innermost = parameter.innermost;
    llvm::Expected<DeviceMemory> copy = DeviceMemory::copyOf(
        device, innermost == 0
                    ? llvm::ArrayRef<char>(array.bytes)
                    : llvm::ArrayRef<char>(toMemoryOrder(array, innermost)));
    if (!copy)
      return copy.takeError();
    gdnrt_arg arg = {};
    arg.data = copy->get();
    arg.dtype = int32_t(array.dtype);
    arg.rank = array.shape.size();
    arg.sizes = array.shape.data();
    if (innermost != 0)
      arg.strides =
          strides.emplace_back(stridesOf(array.shape, innermost)).data();
    arg.null_slot = parameter.isPool ? nullSlot : 0;
    args.push_back(arg);
    if (parameter.isWritten)
      binding.written[parameter.name] = {std::move(*copy), innermost};
    else
      binding.others.push_back(std::move(*copy));
  }
  gdnrt_error error;
  gdnrt_binding *handle = nullptr;
  if (gdnrt_kernel_bind(this->handle.get(), args.data(), args.size(), &handle,
                        &error) != GDNRT_OK)
    return toError(error);
  binding.handle.reset(handle);
  if (!variant.empty()) {
    std::vector<gdnrt_variant_info> known = getVariants();
    auto found = llvm::find_if(known, [&](const gdnrt_variant_info &info) {
      return variant == info.name;
    });
    if (found == known.end()) {
      std::string names;
      for (const gdnrt_variant_info &info : known)
        names += (names.empty() ? "" : ", ") + std::string(info.name);
      return llvm::createStringError(name + ": has no variant '" + variant +
                                     "'; it has: " + names);
    }
    if (gdnrt_binding_force_variant(handle, found - known.begin(), &error) !=
        GDNRT_OK)
      return toError(error);
  }
  if (llvm::Error failed = binding.makeWorkspace())
    return std::move(failed);
  return binding;
}

llvm::Expected<Program> Program::load(llvm::StringRef path, int workers,
                                      llvm::StringRef deviceName) {
  Program program;
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  if (gdnrt_image_load_file(path.str().c_str(), &image, &error) != GDNRT_OK)
    return toError(error);
  program.image.reset(image);
  bool isAny = deviceName == "any";
  llvm::Expected<DeviceHandle> device =
      createDevice(isAny ? "cuda" : deviceName, workers);
  if (!device && isAny) {
    llvm::consumeError(device.takeError()); // there is no GPU
    device = createDevice("cpu", workers);
  } else if (isAny) {
    llvm::Expected<DeviceHandle> other = createDevice("cpu", workers);
    if (!other)
      return other.takeError();
    program.other = std::move(*other);
  }
  if (!device)
    return device.takeError();
  program.device = std::move(*device);
  return program;
}

std::vector<std::string> Program::entryNames() const {
  std::vector<std::string> names;
  for (size_t i = 0, e = gdnrt_image_entry_count(image.get()); i < e; ++i)
    names.push_back(gdnrt_entry_name(gdnrt_image_entry(image.get(), i)));
  return names;
}

static std::string nameOf(const DeviceHandle &device) {
  gdnrt_device_info info = gdnrt_device_info_default();
  if (gdnrt_device_describe(device.get(), &info, nullptr) != GDNRT_OK)
    return "";
  return info.name;
}

std::string Program::deviceName() const { return nameOf(device); }

std::string Kernel::getDeviceName() const { return nameOf(device); }

/// Describes parameter `index` of `entry`.
static llvm::Expected<Parameter> describe(const gdnrt_entry *entry,
                                          size_t index) {
  gdnrt_param_info info = gdnrt_param_info_default();
  gdnrt_error error;
  if (gdnrt_entry_param(entry, index, &info, &error) != GDNRT_OK)
    return toError(error);
  Parameter parameter;
  parameter.name = info.name;
  parameter.isPool = info.kind == GDNRT_POOL;
  parameter.isRead = info.access != GDNRT_WRITE;
  parameter.isWritten = info.access != GDNRT_READ;
  parameter.dtype = data::DType(info.dtype);
  parameter.innermost = info.unit_stride_dim;
  for (int32_t i = 0; i < info.rank; ++i) {
    llvm::Expected<LinearForm> form = LinearForm::parse(info.dims[i]);
    if (!form)
      return form.takeError();
    parameter.dims.push_back(std::move(*form));
  }
  return parameter;
}

/// What an entry may be off by that goes on from states that it has rounded. Of
/// a tree states do so as well: each is made of one that was rounded.
static double roundedLimitOf(const Parameter &states) {
  return states.dtype == data::DType::bf16  ? 4e-3
         : states.dtype == data::DType::f16 ? 5e-4
                                            : 0;
}

llvm::Expected<Kernel> Program::kernel(llvm::StringRef entryName) const {
  gdnrt_error error;
  gdnrt_kernel *handle = nullptr;
  DeviceHandle chosen = device;
  auto create = [&] {
    return gdnrt_kernel_create(chosen.get(), image.get(),
                               entryName.str().c_str(), &handle, &error);
  };
  gdnrt_status status = create();
  if (status == GDNRT_UNSUPPORTED && other) {
    chosen = other;
    status = create();
  }
  if (status != GDNRT_OK)
    return toError(error);
  Kernel kernel;
  kernel.device = chosen;
  kernel.handle.reset(handle);
  const gdnrt_entry *entry = gdnrt_kernel_entry(handle);
  kernel.name = gdnrt_entry_name(entry);
  for (size_t i = 0, e = gdnrt_entry_param_count(entry); i < e; ++i) {
    llvm::Expected<Parameter> parameter = describe(entry, i);
    if (!parameter)
      return parameter.takeError();
    kernel.parameters.push_back(std::move(*parameter));
    kernel.parameters.back().precision = kernel.getAttribute("precision");
    kernel.parameters.back().io = kernel.getAttribute("io");
  }
  const Parameter *states = kernel.find("state_pool");
  const bool isTree = kernel.find("parents") != nullptr;
  if (states && (isTree || kernel.find("pending_keys")))
    for (Parameter &parameter : kernel.parameters)
      if (isTree || !parameter.isPool)
        parameter.roundedLimit = roundedLimitOf(*states);
  for (size_t i = 0, e = gdnrt_entry_symbol_count(entry); i < e; ++i)
    kernel.symbols.push_back(gdnrt_entry_symbol(entry, i));
  return kernel;
}
