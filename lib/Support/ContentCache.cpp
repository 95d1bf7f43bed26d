// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files named by hashes; see ContentCache.h. A file holds the SHA-256 of what
// follows, the size of the content, and the content, compressed where zstd is
// there. The names are those that llvm::pruneCache clears away.
#include "gdn/Support/ContentCache.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>

using namespace gdn;
namespace fs = llvm::sys::fs;
namespace zstd = llvm::compression::zstd;

static constexpr size_t hashBytes = 32, headBytes = hashBytes + 8;
static constexpr size_t mostContent = size_t(1) << 30;

ContentKey &ContentKey::add(llvm::StringRef part) {
  hash.update(std::to_string(part.size()) + ":");
  hash.update(part);
  return *this;
}

std::string ContentKey::getDigest() const {
  return llvm::toHex(hash.result(), /*LowerCase=*/true);
}

llvm::Expected<ContentCache> ContentCache::open(llvm::StringRef folder) {
  std::error_code error = fs::create_directories(folder);
  if (!error && !fs::is_directory(folder))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    return llvm::createStringError(
        error, folder + ": cannot be made: " + error.message());
  llvm::CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  policy.MaxSizeBytes = uint64_t(4) << 30;
  llvm::pruneCache(folder, policy);
  return ContentCache(folder);
}

std::string ContentCache::pathOf(const ContentKey &key) const {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, "llvmcache-" + key.getDigest());
  return path.str().str();
}

/// The content of a file, or none if any byte of it is another.
static std::optional<std::string> unpack(llvm::StringRef file) {
  if (file.size() < headBytes)
    return std::nullopt;
  llvm::StringRef rest = file.drop_front(hashBytes);
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(rest));
  if (llvm::toStringRef(hash) != file.take_front(hashBytes))
    return std::nullopt;
  uint64_t size = llvm::support::endian::read64le(rest.data());
  rest = rest.drop_front(8);
  if (rest.size() == size)
    return rest.str();
  if (size > mostContent || !zstd::isAvailable())
    return std::nullopt;
  llvm::SmallVector<uint8_t, 0> content;
  if (llvm::Error error =
          zstd::decompress(llvm::arrayRefFromStringRef(rest), content, size)) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  return llvm::toStringRef(content).str();
}

std::optional<std::string> ContentCache::find(const ContentKey &key) const {
  std::string path = pathOf(key);
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return std::nullopt;
  std::optional<std::string> content = unpack((*buffer)->getBuffer());
  if (!content)
    (void)fs::remove(path);
  return content;
}

bool ContentCache::has(const ContentKey &key) const {
  return fs::exists(pathOf(key));
}

void ContentCache::store(const ContentKey &key, llvm::StringRef content) const {
  if (content.size() > mostContent)
    return;
  llvm::SmallVector<uint8_t, 0> packed;
  llvm::StringRef body = content;
  if (zstd::isAvailable()) {
    zstd::compress(llvm::arrayRefFromStringRef(content), packed);
    if (packed.size() < content.size())
      body = llvm::toStringRef(packed);
  }
  std::string rest(8, '\0');
  llvm::support::endian::write64le(rest.data(), content.size());
  rest += body;
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(rest));

  llvm::SmallString<256> pattern(folder);
  llvm::sys::path::append(pattern, "llvmcache-new-%%%%%%%%");
  llvm::Expected<fs::TempFile> file = fs::TempFile::create(pattern);
  if (!file)
    return llvm::consumeError(file.takeError());
  llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  stream << llvm::toStringRef(hash) << rest;
  stream.flush();
  bool isWritten = !stream.has_error();
  stream.clear_error();
  llvm::consumeError(isWritten ? file->keep(pathOf(key)) : file->discard());
}

/// Name, size and time of the file that holds the code at `address`.
static std::string fileOf(void *address) {
  Dl_info info;
  fs::file_status status;
  if (!dladdr(address, &info) || fs::status(info.dli_fname, status))
    return "unknown";
  auto time = status.getLastModificationTime().time_since_epoch().count();
  return llvm::sys::path::filename(info.dli_fname).str() + " " +
         std::to_string(status.getSize()) + " " + std::to_string(time);
}

std::string gdn::identityOfLlvm() {
  return LLVM_VERSION_STRING " " +
         fileOf(reinterpret_cast<void *>(&llvm::pruneCache));
}

const std::string &gdn::identityOfThisProgram() {
  static const std::string identity = [] {
    ContentKey key("program");
    key.add(identityOfLlvm());
    key.add(
        fileOf(reinterpret_cast<void *>(&mlir::registerMLIRContextCLOptions)));
    auto program = llvm::MemoryBuffer::getFile(
        fs::getMainExecutable(nullptr, nullptr), /*IsText=*/false,
        /*RequiresNullTerminator=*/false);
    if (program)
      key.add((*program)->getBuffer());
    return key.getDigest();
  }();
  return identity;
}
