// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs lld as a library. lld reads and writes files, so the object passes
// through two temporary ones, which are gone when the function returns.
#include "SharedObject.h"

#include "gdn/Target/TemporaryFile.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FormatVariadic.h"

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
  if (llvm::Error error =
          input.create("o", llvm::StringRef(object.data(), object.size())))
    return std::move(error);
  if (llvm::Error error = output.create("so", ""))
    return std::move(error);

  const char *arguments[] = {"ld.lld",
                             "-shared",
                             input.getPath().c_str(),
                             "-o",
                             output.getPath().c_str(),
                             "--gc-sections",
                             "--strip-all",
                             "--build-id=none",
                             "--hash-style=gnu",
                             "--no-undefined",
                             "-znow",
                             "-znoexecstack",
                             "--threads=1"};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return llvm::createStringError("the linker failed: " +
                                   llvm::StringRef(messages).trim());
  llvm::Expected<std::string> bytes = output.read();
  if (!bytes)
    return bytes.takeError();
  return Bytes(bytes->begin(), bytes->end());
}
