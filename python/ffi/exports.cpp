// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of libgdn_tvm_ffi, which tvm_ffi.load_module finds by name. A
// call is an opaque integer that Python creates, launches and destroys.

#include "call.h"

#include <exception>
#include <memory>

using gdn::ffi::Call;
using gdn::ffi::Failure;

namespace {

/// An error of tvm-ffi; Python raises it.
int raise(const Failure &failure) {
  TVMFFIErrorSetRaisedFromCStr(failure.kind, failure.message.c_str());
  return -1;
}

int raiseArguments(const char *expected) {
  return raise({"TypeError", expected});
}

bool areIntegers(const TVMFFIAny *args, int32_t count) {
  for (int32_t i = 0; i < count; ++i)
    if (args[i].type_index != kTVMFFIInt && args[i].type_index != kTVMFFIBool)
      return false;
  return true;
}

Call *callOf(const TVMFFIAny &value) {
  return reinterpret_cast<Call *>(value.v_int64);
}

void setInteger(TVMFFIAny *result, int64_t value) {
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = value;
}

} // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): names that TVM FFI looks for.
extern "C" {

/// create(device, kernel, device type, device id, null slot, may overlap, batch
/// invariant) -> call
TVM_FFI_DLL_EXPORT int __tvm_ffi_create(void *, const TVMFFIAny *args,
                                        int32_t count, TVMFFIAny *result) {
  if (count != 7 || !areIntegers(args, 7))
    return raiseArguments("create: expected seven integers");
  try {
    auto call = std::make_unique<Call>(
        reinterpret_cast<gdnrt_device *>(args[0].v_int64),
        reinterpret_cast<gdnrt_kernel *>(args[1].v_int64), args[2].v_int64,
        args[3].v_int64, args[4].v_int64, args[5].v_int64 != 0,
        args[6].v_int64 != 0);
    setInteger(result, reinterpret_cast<int64_t>(call.release()));
    return 0;
  } catch (const std::exception &error) {
    return raise({"MemoryError", error.what()});
  }
}

/// destroy(call)
TVM_FFI_DLL_EXPORT int __tvm_ffi_destroy(void *, const TVMFFIAny *args,
                                         int32_t count, TVMFFIAny *) {
  if (count != 1 || !areIntegers(args, 1))
    return raiseArguments("destroy: expected a call");
  delete callOf(args[0]);
  return 0;
}

/// launch(call, tensor or None..)
TVM_FFI_DLL_EXPORT int __tvm_ffi_launch(void *, const TVMFFIAny *args,
                                        int32_t count, TVMFFIAny *) {
  if (count < 1 || !areIntegers(args, 1))
    return raiseArguments("launch: expected a call and tensors");
  Failure failure;
  try {
    return callOf(args[0])->launch(args + 1, count - 1, failure)
               ? 0
               : raise(failure);
  } catch (const std::exception &error) {
    return raise({"MemoryError", error.what()});
  }
}

/// workspace_bytes(call) -> bytes
TVM_FFI_DLL_EXPORT int __tvm_ffi_workspace_bytes(void *, const TVMFFIAny *args,
                                                 int32_t count,
                                                 TVMFFIAny *result) {
  if (count != 1 || !areIntegers(args, 1))
    return raiseArguments("workspace_bytes: expected a call");
  setInteger(result, callOf(args[0])->workspaceBytes());
  return 0;
}
}
// NOLINTEND(bugprone-reserved-identifier)
