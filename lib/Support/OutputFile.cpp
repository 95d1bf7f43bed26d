// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file is replaced by a rename, which is whole or does not happen. Before it
// comes fsync: a rename may reach the disk ahead of what it renames.

#include "gdn/Support/OutputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

using namespace gdn;
namespace fs = llvm::sys::fs;

/// Writes to an open file. A stream that still has an error when it goes
/// aborts.
static std::error_code writeAll(llvm::raw_fd_ostream &stream,
                                llvm::StringRef bytes) {
  stream << bytes;
  stream.flush();
  std::error_code code = stream.error();
  stream.clear_error();
  return code;
}

static std::error_code writeInPlace(llvm::StringRef path,
                                    llvm::StringRef bytes) {
  std::error_code code;
  llvm::raw_fd_ostream stream(path, code, fs::CD_OpenExisting);
  return code ? code : writeAll(stream, bytes);
}

static llvm::Error replace(llvm::StringRef path, llvm::StringRef bytes) {
  llvm::Expected<fs::TempFile> temporary = fs::TempFile::create(
      path + ".%%%%%%%%.tmp", fs::all_read | fs::all_write);
  if (!temporary)
    return temporary.takeError();
  std::error_code code;
  {
    llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
    code = writeAll(stream, bytes);
  }
  if (!code && ::fsync(temporary->FD) != 0)
    code = std::error_code(errno, std::generic_category());
  // Whoever could read the old file can read the new one.
  fs::file_status old;
  if (!code && !fs::status(path, old))
    code = fs::setPermissions(temporary->FD, old.permissions());
  if (code)
    return llvm::joinErrors(llvm::errorCodeToError(code), temporary->discard());
  // keep(path) would fall back to copying onto the old file, byte by byte.
  const std::string name = temporary->TmpName;
  if (llvm::Error error = temporary->keep())
    return error;
  if (std::error_code renamed = fs::rename(name, path))
    return llvm::joinErrors(llvm::errorCodeToError(renamed),
                            llvm::errorCodeToError(fs::remove(name)));
  return llvm::Error::success();
}

llvm::Error gdn::writeOutputFile(llvm::StringRef path, llvm::StringRef bytes) {
  auto named = [&](llvm::Error error) {
    return llvm::createStringError(
        path + ": cannot be written: " + llvm::toString(std::move(error)));
  };
  if (path == "-") {
    if (std::error_code code = writeAll(llvm::outs(), bytes))
      return llvm::createStringError("the standard output cannot be written: " +
                                     code.message());
    return llvm::Error::success();
  }
  fs::file_status status;
  if (std::error_code code = fs::status(path, status);
      code && code != std::errc::no_such_file_or_directory)
    return named(llvm::errorCodeToError(code));
  if (fs::exists(status) && status.type() != fs::file_type::regular_file) {
    if (std::error_code code = writeInPlace(path, bytes))
      return named(llvm::errorCodeToError(code));
    return llvm::Error::success();
  }
  // Of a link the target is replaced, and may not be there yet.
  llvm::SmallString<128> real(path), target;
  for (int hops = 0; fs::is_symlink_file(real) && hops < 40; ++hops) {
    char text[4096];
    ssize_t size = ::readlink(real.c_str(), text, sizeof(text));
    if (size < 0)
      return named(llvm::errorCodeToError(
          std::error_code(errno, std::generic_category())));
    target.assign(llvm::StringRef(text, static_cast<size_t>(size)));
    if (llvm::sys::path::is_relative(target)) {
      llvm::SmallString<128> folder = llvm::sys::path::parent_path(real);
      llvm::sys::path::append(folder, target);
      target = folder;
    }
    real = target;
  }
  if (llvm::Error error = replace(real, bytes))
    return named(std::move(error));
  return llvm::Error::success();
}
