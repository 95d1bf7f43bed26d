// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which code of an entry a GPU runs.

#ifndef GDNRT_CUDA_CODE_CHOICE_H
#define GDNRT_CUDA_CODE_CHOICE_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/status.h"

#include <optional>

namespace gdnrt::cuda {

/// A compute capability, 9.0 for sm_90.
struct Capability {
  int major = 0, minor = 0;
};

/// Whether a GPU of `capability` runs `code`. A cubin runs on its own major
/// version from its minor version on, PTX from its version on; both only on
/// exactly their version if the target ends with "a".
bool canRun(const CodeSchema &code, Capability capability);

/// The index of the first code that a GPU of `capability` runs, or `forced`
/// if it runs that. UNSUPPORTED lists what the entry has.
::gdnrt::Result<size_t> chooseCode(const EntrySchema &entry,
                                   Capability capability,
                                   std::optional<size_t> forced);

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_CODE_CHOICE_H
