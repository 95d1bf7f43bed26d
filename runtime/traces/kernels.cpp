// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an image is: its parameters say how verify keeps states, whether writes
// are deferred, and what states are stored as.

#include "kernels.h"

#include "device_array.h"

#include <cstdlib>
#include <string_view>

using namespace gdnrt::traces;

Kernels::Kernels(const std::string &image, const std::string &device,
                 bool debugChecks)
    : isHost_(device == "cpu"), debugChecks_(debugChecks) {
  gdnrt_error error;
  check(gdnrt_image_load_file(image.c_str(), &image_, &error), error);
  if (device == "cpu") {
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = 1;
    options.debug_checks = debugChecks;
    check(gdnrt_device_create_cpu(&options, &device_, &error), error);
  } else {
    gdnrt_cuda_options options = gdnrt_cuda_options_default();
    options.debug_checks = debugChecks;
    check(gdnrt_device_create_cuda(&options, &device_, &error), error);
  }
  prefill = find("prefill");
  decode = find("decode");
  verify = find("verify");
  commit = find("commit");
  copySlots = find("copy_slots");
  zeroSlots = find("zero_slots");
  plan = find("plan");
  if (!decode || (isHost_ && !prefill))
    throw RuntimeError(image + ": expected entries prefill and decode");
  auto verifyHas = [&](const char *name) {
    size_t param;
    return gdnrt_entry_find_param(gdnrt_kernel_entry(verify), name, &param,
                                  nullptr) == GDNRT_OK;
  };
  isMixed_ = verify && verifyHas("is_prefill");
  if (verify)
    verifyKind_ = verifyHas("parents")            ? VerifyKind::tree
                  : verifyHas("pending_keys")     ? VerifyKind::lazy
                  : verifyHas("token_state_pool") ? VerifyKind::buffer
                                                  : VerifyKind::slots;
  auto decodeHas = [&](const char *name) {
    size_t param;
    return gdnrt_entry_find_param(gdnrt_kernel_entry(decode), name, &param,
                                  nullptr) == GDNRT_OK;
  };
  moveStates_ = decodeHas("write_slots");
  size_t found = 0;
  takeCheckpoints_ =
      prefill &&
      gdnrt_entry_find_param(gdnrt_kernel_entry(prefill), "cu_checkpoints",
                             &found, nullptr) == GDNRT_OK;
  if (decodeHas("pending_counts"))
    pendingRoom_ = -1;
  isPendingNarrow_ = decodeHas("pending_scales");
  statePlanes_ = decodeHas("state_low") ? 2 : decodeHas("state_scales") ? 1 : 0;
  // An element of one plane is off by 1/2 of a scale, 1/127 of its row's
  // largest, each time; so is what decode sees of two if it reads the upper
  // one. A token may take from the row what it was largest in. Of two planes
  // all that is below what f32 may be off by.
  const char *state =
      gdnrt_entry_attribute(gdnrt_kernel_entry(decode), "state");
  if (statePlanes_ == 1 || (state && state == std::string_view("i8x2_upper")))
    tolerance = 2e-2;
  else if (isPendingNarrow_)
    tolerance = 2e-3; // f16 has ten bits of a key's or delta's element
  if ((hasCommits() || pendingRoom_ != 0) && !commit)
    throw RuntimeError(image + ": expected an entry commit");
  readSizes();
}

Kernels::~Kernels() {
  for (gdnrt_kernel *kernel :
       {prefill, decode, verify, commit, copySlots, zeroSlots, plan})
    gdnrt_kernel_destroy(kernel);
  gdnrt_device_destroy(device_);
  gdnrt_image_destroy(image_);
}

gdnrt_kernel *Kernels::find(const char *name) {
  gdnrt_kernel *kernel = nullptr;
  gdnrt_error error;
  gdnrt_status status =
      gdnrt_kernel_create(device_, image_, name, &kernel, &error);
  if (status != GDNRT_NOT_FOUND && status != GDNRT_UNSUPPORTED)
    check(status, error);
  return kernel;
}

void Kernels::readSizes() {
  const gdnrt_entry *entry = gdnrt_kernel_entry(decode);
  gdnrt_error error;
  auto dims = [&](const char *name, int32_t dtype = GDNRT_F32) {
    size_t index = 0;
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_find_param(entry, name, &index, &error), error);
    check(gdnrt_entry_param(entry, index, &info, &error), error);
    if (info.dtype != dtype)
      throw RuntimeError(std::string(name) +
                         ": expected an image of f32, with "
                         "states of f32 or in planes, got another type");
    return info;
  };
  gdnrt_param_info state =
      dims("state_pool", statePlanes_ > 0 ? GDNRT_U8 : GDNRT_F32);
  gdnrt_param_info weight = dims("conv_weight");
  dims("q");
  if (pendingRoom_ != 0)
    pendingRoom_ = std::strtoll(
        dims("pending_keys", isPendingNarrow_ ? GDNRT_F16 : GDNRT_F32).dims[2],
        nullptr, 10);
  sizes_.valueDim = std::strtoll(state.dims[2], nullptr, 10);
  sizes_.keyDim = std::strtoll(state.dims[3], nullptr, 10);
  sizes_.width = std::strtoll(weight.dims[1], nullptr, 10);
  sizes_.decayPerChannel = dims("dt_bias").rank == 2;
  if (const char *bound = gdnrt_entry_attribute(entry, "decay_bound"))
    sizes_.decayBound = std::strtod(bound, nullptr);
}

LayerSizes Kernels::sizesOf(const Trace &trace) const {
  LayerSizes sizes = sizes_;
  sizes.keyHeads = trace.keyHeads;
  sizes.valueHeads = trace.valueHeads;
  return sizes;
}
