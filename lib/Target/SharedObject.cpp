// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs lld as a library. lld reads and writes files, so the object passes
// through two temporary ones, which are gone when the function returns.
#include "SharedObject.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

LLD_HAS_DRIVER(elf)

using namespace gdn;

#if __has_feature(address_sanitizer)
// lld's archive is not instrumented. Where it shares inline functions of LLVM's
// allocators with our code, one half of them would poison memory that the other
// half uses.
extern "C" const char *__asan_default_options(); // NOLINT: the sanitizer's name
extern "C" const char *__asan_default_options() { // NOLINT
  return "allow_user_poisoning=0";
}
#endif

namespace {
/// A temporary file that is removed with the object.
class TemporaryFile {
public:
  llvm::Error create(llvm::StringRef suffix) {
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("gdn", suffix, descriptor, path))
      return llvm::createStringError(error, "cannot make a temporary file: " +
                                                error.message());
    remover.setFile(path);
    return llvm::Error::success();
  }
  llvm::Error write(llvm::ArrayRef<char> bytes) {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream.write(bytes.data(), bytes.size());
    stream.close();
    if (std::error_code error = stream.error()) {
      stream.clear_error();
      return llvm::createStringError(
          error, path + ": cannot be written: " + error.message());
    }
    return llvm::Error::success();
  }
  /// Closes the file without writing; the linker will.
  void close() { llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true); }

  const char *getPath() { return path.c_str(); }

private:
  int descriptor = -1;
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};
} // namespace

/// Fails if the object refers to symbols that it does not define.
static llvm::Error checkDefined(llvm::ArrayRef<char> bytes) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()),
                               "object");
  auto object = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!object)
    return object.takeError();
  llvm::SmallVector<std::string> undefined;
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined) ||
        (*flags & llvm::object::SymbolRef::SF_FormatSpecific))
      continue;
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!name->empty() && *name != "_GLOBAL_OFFSET_TABLE_")
      undefined.push_back(("'" + *name + "'").str());
  }
  if (undefined.empty())
    return llvm::Error::success();
  llvm::sort(undefined);
  return llvm::createStringError(llvm::formatv(
      "the code calls {0}, but an image has no library to take it from",
      llvm::join(undefined, ", ")));
}

llvm::Expected<Bytes> gdn::linkSharedObject(llvm::ArrayRef<char> object) {
  if (llvm::Error error = checkDefined(object))
    return std::move(error);
  TemporaryFile input, output;
  if (llvm::Error error = input.create("o"))
    return std::move(error);
  if (llvm::Error error = output.create("so"))
    return std::move(error);
  if (llvm::Error error = input.write(object))
    return std::move(error);
  output.close();

  const char *arguments[] = {
      "ld.lld",           "-shared",        input.getPath(), "-o",
      output.getPath(),   "--gc-sections",  "--strip-all",   "--build-id=none",
      "--hash-style=gnu", "--no-undefined", "-znow",         "-znoexecstack",
      "--threads=1"};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError("the linker failed: " +
                                   llvm::StringRef(messages).trim());
  auto buffer = llvm::MemoryBuffer::getFile(output.getPath(), /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  if (!buffer)
    return llvm::createStringError(
        buffer.getError(),
        llvm::Twine(output.getPath()) +
            ": cannot be read: " + buffer.getError().message());
  llvm::StringRef bytes = (*buffer)->getBuffer();
  return Bytes(bytes.begin(), bytes.end());
}
