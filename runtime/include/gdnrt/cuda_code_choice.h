// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice of the code of an entry that a GPU runs.

#ifndef GDNRT_CUDA_CODE_CHOICE_H
#define GDNRT_CUDA_CODE_CHOICE_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/status.h"

#include <optional>

namespace gdnrt::cuda {

/// A compute capability, such as 9.0 for sm_90.
struct Capability {
  int major = 0, minor = 0;
};

/// Whether a GPU of `capability` can run `code`. A cubin for version X.Y runs
/// on GPUs of major version X and of minor version Y or higher. PTX for X.Y
/// runs on version X.Y or higher. Both run only on exactly version X.Y if the
/// name of the target ends with "a".
bool canRun(const CodeSchema &code, Capability capability);

/// The index of the first code that a GPU of `capability` can run, or `forced`
/// if it can run that one. Otherwise UNSUPPORTED, and the message lists the
/// codes of the entry.
::gdnrt::Result<size_t> chooseCode(const EntrySchema &entry,
                                   Capability capability,
                                   std::optional<size_t> forced);

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_CODE_CHOICE_H
