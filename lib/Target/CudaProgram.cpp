// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds and runs programs; see CudaProgram.h.
#include "gdn/Target/CudaProgram.h"

#include "gdn/Target/TemporaryFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace gdn;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

/// The program in a virtual environment, whatever its version of Python.
static std::optional<std::string> findInVenv(llvm::StringRef venv,
                                             llvm::StringRef name) {
  llvm::SmallString<256> lib(venv);
  path::append(lib, "lib");
  std::error_code error;
  for (fs::directory_iterator at(lib, error), end; !error && at != end;
       at.increment(error)) {
    llvm::SmallString<256> program(at->path());
    path::append(program, "site-packages", "nvidia", "cu13");
    path::append(program, "bin", name);
    if (fs::can_execute(program))
      return program.str().str();
  }
  return std::nullopt;
}

std::optional<std::string> gdn::findCudaProgram(llvm::StringRef name) {
  if (auto onPath = llvm::sys::findProgramByName(name))
    return *onPath;
  static int anchor;
  std::string self = fs::getMainExecutable(nullptr, &anchor);
  for (llvm::StringRef above = path::parent_path(self); !above.empty();
       above = path::parent_path(above)) {
    llvm::SmallString<256> venv(above);
    path::append(venv, ".venv");
    if (auto program = findInVenv(venv, name))
      return program;
  }
  return std::nullopt;
}

llvm::Expected<ProgramOutput>
gdn::runProgram(llvm::StringRef program,
                llvm::ArrayRef<llvm::StringRef> arguments, unsigned seconds) {
  TemporaryFile output;
  if (llvm::Error error = output.create("txt", ""))
    return std::move(error);
  llvm::SmallVector<llvm::StringRef> all{program};
  all.append(arguments.begin(), arguments.end());
  std::optional<llvm::StringRef> redirects[] = {
      llvm::StringRef(), llvm::StringRef(output.getPath()),
      llvm::StringRef(output.getPath())};
  std::string message;
  bool couldNotStart = false;
  int code =
      llvm::sys::ExecuteAndWait(program, all, std::nullopt, redirects, seconds,
                                /*MemoryLimit=*/0, &message, &couldNotStart);
  if (couldNotStart)
    return llvm::createStringError(program + ": cannot be started: " + message);
  // Below 0: ended by a signal, or -2 by the time limit as well.
  if (code < 0)
    return llvm::createStringError(
        llvm::formatv("{0}: did not end by itself within {1} s: {2}", program,
                      seconds, llvm::StringRef(message).trim()));
  llvm::Expected<std::string> text = output.read();
  if (!text)
    return text.takeError();
  return ProgramOutput{code, std::move(*text)};
}
