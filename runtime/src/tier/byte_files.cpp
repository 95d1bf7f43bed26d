// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that are written under another name until they are complete.

#include "gdnrt/state_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

using namespace gdnrt;

ByteWriter::~ByteWriter() = default;
ByteReader::~ByteReader() = default;

static Status ioError(const std::string &path, const char *call) {
  return failure(StatusCode::ioError, "state file: ", path, ": ", call, ": ",
                 std::strerror(errno));
}

/// Whether `path` is a device, a pipe or a directory: what a file must not take
/// the place of.
static bool isSpecial(const std::string &path) {
  std::error_code unknown; // no file, then
  std::filesystem::file_status status = std::filesystem::status(path, unknown);
  return std::filesystem::exists(status) &&
         !std::filesystem::is_regular_file(status);
}

FileWriter::~FileWriter() {
  if (!file_)
    return;
  (void)std::fclose(file_);
  if (!isInPlace_)
    (void)std::remove(partial_.c_str());
}

Status FileWriter::open() {
  isInPlace_ = isSpecial(path_);
  if (isInPlace_) {
    partial_ = path_;
    file_ = std::fopen(path_.c_str(), "wb");
    return file_ ? Status() : ioError(path_, "open");
  }
  // One that nobody else has: several may write a file of this name at once.
  constexpr int most = 1000;
  for (int number = 0; number < most && !file_; ++number) {
    partial_ = path_ + ".partial" + std::to_string(number);
    file_ = std::fopen(partial_.c_str(), "wbx");
    if (!file_ && errno != EEXIST)
      break;
  }
  return file_ ? Status() : ioError(partial_, "open");
}

Status FileWriter::write(const void *data, uint64_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) != bytes)
    return ioError(partial_, "write");
  return {};
}

Status FileWriter::finish() {
  std::FILE *file = file_;
  file_ = nullptr;
  Status status;
  if (std::fclose(file) != 0)
    status = ioError(partial_, "close");
  else if (!isInPlace_ && std::rename(partial_.c_str(), path_.c_str()) != 0)
    status = ioError(path_, "rename");
  if (!status.isOk() && !isInPlace_)
    (void)std::remove(partial_.c_str());
  return status;
}

FileReader::~FileReader() {
  if (file_)
    (void)std::fclose(file_);
}

Status FileReader::open() {
  file_ = std::fopen(path_.c_str(), "rb");
  return file_ ? Status() : ioError(path_, "open");
}

Result<uint64_t> FileReader::read(void *data, uint64_t bytes) {
  const uint64_t got = std::fread(data, 1, bytes, file_);
  if (got != bytes && std::ferror(file_))
    return ioError(path_, "read");
  return got;
}
