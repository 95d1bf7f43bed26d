// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NVIDIA's command-line programs (ptxas, nvdisasm): where they are and how they
// are run.
#ifndef GDN_TARGET_CUDAPROGRAM_H
#define GDN_TARGET_CUDAPROGRAM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace gdn {

/// The path of the program: on PATH, or else where PyPI's packages have it
/// (`site-packages/nvidia/cu13/bin`) in a `.venv` beside this executable or
/// beside one of the folders above it. None if it is in neither.
std::optional<std::string> findCudaProgram(llvm::StringRef name);

/// What a program wrote, and how it ended.
struct ProgramOutput {
  int exitCode = 0;
  std::string text; // standard output and error, in order
};

/// Runs the program at `path`. Fails if it cannot be started, is ended by a
/// signal, or takes longer than `seconds`; an exit code is no failure.
llvm::Expected<ProgramOutput>
runProgram(llvm::StringRef path, llvm::ArrayRef<llvm::StringRef> arguments,
           unsigned seconds);

} // namespace gdn

#endif // GDN_TARGET_CUDAPROGRAM_H
