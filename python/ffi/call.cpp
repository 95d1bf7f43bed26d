// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads DLPack tensors into arguments of the runtime and launches. What a call
// costs the host is here: no allocation after the first launch, and a check of
// the arguments only when one of them differs from the last time.

#include "call.h"

#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <stdexcept>

using namespace gdn::ffi;

namespace {

bool fail(Failure &failure, const char *kind, std::string message) {
  failure.kind = kind;
  failure.message = std::move(message);
  return false;
}

bool fail(Failure &failure, gdnrt_status status, const gdnrt_error &error) {
  return fail(failure, gdnrt_status_name(status), error.message);
}

/// The runtime's type, or -1.
int32_t dtypeOf(DLDataType type) {
  if (type.lanes != 1)
    return -1;
  switch (type.code << 8 | type.bits) {
  case kDLFloat << 8 | 32:
    return GDNRT_F32;
  case kDLBfloat << 8 | 16:
    return GDNRT_BF16;
  case kDLFloat << 8 | 16:
    return GDNRT_F16;
  case kDLInt << 8 | 32:
    return GDNRT_I32;
  case kDLInt << 8 | 64:
    return GDNRT_I64;
  case kDLBool << 8 | 8:
    return GDNRT_I1;
  case kDLFloat << 8 | 64:
    return GDNRT_F64;
  case kDLUInt << 8 | 8:
    return GDNRT_U8;
  default:
    return -1;
  }
}

/// Null if the value is no tensor.
const DLTensor *tensorOf(const TVMFFIAny &value) {
  if (value.type_index == kTVMFFIDLTensorPtr)
    return static_cast<const DLTensor *>(value.v_ptr);
  if (value.type_index == kTVMFFITensor)
    return TVMFFITensorGetDLTensorPtr(value.v_ptr);
  return nullptr;
}

int64_t elementCount(const DLTensor &tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i)
    count *= tensor.shape[i];
  return count;
}

} // namespace

bool Call::Bound::operator==(const Bound &other) const {
  return arg.data == other.arg.data && arg.dtype == other.arg.dtype &&
         arg.rank == other.arg.rank && hasStrides == other.hasStrides &&
         std::equal(sizes, sizes + arg.rank, other.sizes) &&
         (!hasStrides ||
          std::equal(strides, strides + arg.rank, other.strides));
}

Call::Call(gdnrt_device *device, gdnrt_kernel *kernel, int32_t deviceType,
           int32_t deviceId, int64_t nullSlot, bool mayOverlap,
           bool batchInvariant)
    : kernel(kernel), deviceType(deviceType), deviceId(deviceId),
      nullSlot(nullSlot), mayOverlap(mayOverlap),
      batchInvariant(batchInvariant) {
  gdnrt_error error;
  if (gdnrt_device_duplicate(device, &this->device, &error) != GDNRT_OK)
    throw std::runtime_error(error.message);
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernel);
  size_t count = gdnrt_entry_param_count(entry);
  for (size_t i = 0; i < count; ++i) {
    gdnrt_param_info info = gdnrt_param_info_default();
    if (gdnrt_entry_param(entry, i, &info, nullptr) == GDNRT_OK)
      params.push_back({info.name, info.kind == GDNRT_POOL});
  }
  bound.resize(params.size());
  next.resize(params.size());
}

Call::~Call() {
  gdnrt_binding_destroy(binding);
  if (!isInGraph)
    gdnrt_device_free(device, workspace, nullptr);
  gdnrt_device_destroy(device);
}

bool Call::launch(const TVMFFIAny *args, int32_t count, Failure &failure) {
  if (static_cast<size_t>(count) != params.size())
    return fail(failure, "TypeError",
                "expected " + std::to_string(params.size()) +
                    " arguments, got " + std::to_string(count));
  if (isInUse.exchange(true, std::memory_order_acquire))
    return fail(failure, GDNRT_INVALID_ARGUMENT,
                gdnrt_error{GDNRT_INVALID_ARGUMENT,
                            "INVALID_ARGUMENT: call: expected one thread at a "
                            "time, got a call while another one launches"});
  struct Release {
    std::atomic<bool> &flag;
    ~Release() { flag.store(false, std::memory_order_release); }
  } release{isInUse};
  return launchAlone(args, count, failure);
}

bool Call::launchAlone(const TVMFFIAny *args, int32_t count, Failure &failure) {
  for (size_t i = 0; i < params.size(); ++i)
    if (!read(args[i], params[i], next[i], failure))
      return false;
  gdnrt_error error;
  if (!bind(failure))
    return false;
  if (workspace && !isInGraph && !isCapturing(failure, isInGraph))
    return false;
  if (gdnrt_status status = gdnrt_launch(binding, stream(), &error))
    return fail(failure, status, error);
  return true;
}

bool Call::read(const TVMFFIAny &value, const Param &param, Bound &bound,
                Failure &failure) const {
  bound.arg = {};
  bound.hasStrides = false;
  if (value.type_index == kTVMFFINone)
    return true;
  const DLTensor *tensor = tensorOf(value);
  if (!tensor)
    return fail(failure, "TypeError", param.name + ": expected a tensor");
  int32_t dtype = dtypeOf(tensor->dtype);
  if (dtype < 0)
    return fail(failure, "TypeError",
                param.name + ": no kernel takes the type code " +
                    std::to_string(tensor->dtype.code) + " of " +
                    std::to_string(tensor->dtype.bits) + " bits");
  if (tensor->ndim > GDNRT_MAX_RANK)
    return fail(failure, "TypeError",
                param.name + ": expected at most " +
                    std::to_string(GDNRT_MAX_RANK) + " dimensions, got " +
                    std::to_string(tensor->ndim));
  // An array without elements has no memory, wherever it says it is.
  if ((tensor->device.device_type != deviceType ||
       tensor->device.device_id != deviceId) &&
      elementCount(*tensor) != 0)
    return fail(failure, "ValueError",
                param.name + ": expected memory of DLPack's device " +
                    std::to_string(deviceType) + ":" +
                    std::to_string(deviceId) + ", got " +
                    std::to_string(tensor->device.device_type) + ":" +
                    std::to_string(tensor->device.device_id));
  bound.arg.data = static_cast<char *>(tensor->data) + tensor->byte_offset;
  bound.arg.dtype = dtype;
  bound.arg.rank = tensor->ndim;
  bound.arg.null_slot = param.isPool ? nullSlot : 0;
  std::copy_n(tensor->shape, tensor->ndim, bound.sizes);
  if (tensor->strides) {
    bound.hasStrides = true;
    std::copy_n(tensor->strides, tensor->ndim, bound.strides);
  }
  return true;
}

bool Call::bind(Failure &failure) {
  size_t changed[64];
  gdnrt_arg args[64];
  size_t count = 0;
  if (params.size() > std::size(args))
    return fail(failure, GDNRT_UNSUPPORTED,
                gdnrt_error{GDNRT_UNSUPPORTED, "an entry of over 64 "
                                               "parameters"});
  for (size_t i = 0; i < params.size(); ++i) {
    Bound &arg = next[i];
    if (binding && arg == bound[i])
      continue;
    changed[count] = i;
    args[count] = arg.arg;
    args[count].sizes = arg.sizes;
    args[count].strides = arg.hasStrides ? arg.strides : nullptr;
    ++count;
  }
  gdnrt_error error;
  gdnrt_status status = GDNRT_OK;
  if (!binding) {
    status = gdnrt_kernel_bind(kernel, args, count, &binding, &error);
    if (status == GDNRT_OK)
      status =
          gdnrt_binding_allow_dependent_launch(binding, mayOverlap, &error);
    if (status == GDNRT_OK)
      status =
          gdnrt_binding_set_batch_invariant(binding, batchInvariant, &error);
  } else if (count > 0) {
    status = gdnrt_binding_rebind(binding, changed, args, count, &error);
  }
  if (status != GDNRT_OK)
    return fail(failure, status, error);
  if (count == 0)
    return true;
  bound = next;
  if (provideWorkspace(failure))
    return true;
  bound.assign(params.size(), {}); // the next call comes here again
  return false;
}

void *Call::stream() const {
  return deviceType == kDLCPU ? nullptr
                              : TVMFFIEnvGetStream(deviceType, deviceId);
}

bool Call::isCapturing(Failure &failure, bool &capturing) const {
  gdnrt_error error;
  int32_t found = 0;
  if (deviceType != kDLCPU)
    if (auto status =
            gdnrt_device_is_capturing(device, stream(), &found, &error))
      return fail(failure, status, error);
  capturing = found != 0;
  return true;
}

bool Call::provideWorkspace(Failure &failure) {
  gdnrt_error error;
  uint64_t bytes = 0;
  if (auto status = gdnrt_binding_workspace_bytes(binding, &bytes, &error))
    return fail(failure, status, error);
  if (bytes <= workspaceSize)
    return true;
  bool capturing = false;
  if (!isCapturing(failure, capturing))
    return false;
  if (capturing)
    return fail(failure, GDNRT_UNSUPPORTED,
                gdnrt_error{GDNRT_UNSUPPORTED,
                            "UNSUPPORTED: workspace: expected a call of these "
                            "sizes ahead of the capture, which takes the "
                            "memory, got none"});
  // Room to grow, so that slowly growing batches do not come here each time.
  bytes = std::max(bytes, 2 * workspaceSize);
  void *memory = nullptr;
  if (auto status = gdnrt_device_allocate(device, bytes, &memory, &error))
    return fail(failure, status, error);
  gdnrt_status status =
      gdnrt_binding_set_workspace(binding, memory, bytes, stream(), &error);
  // It is zeroed on this stream; the next launch may be on another one. And
  // launches that still run have the old memory.
  if (status == GDNRT_OK)
    status = gdnrt_device_synchronize(device, stream(), &error);
  if (status != GDNRT_OK) {
    gdnrt_binding_set_workspace(binding, workspace, workspaceSize, stream(),
                                nullptr);
    gdnrt_device_free(device, memory, nullptr);
    return fail(failure, status, error);
  }
  if (!isInGraph)
    gdnrt_device_free(device, workspace, nullptr);
  isInGraph = false;
  workspace = memory;
  workspaceSize = bytes;
  return true;
}
