// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Records of slots in files, or in whatever is behind a writer and a reader,
// and between ranks of different tensor parallelism. The format is in
// docs/design/20261128-host-tier.md.

#ifndef GDNRT_STATE_FILE_H
#define GDNRT_STATE_FILE_H

#include "gdnrt/state_record.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace gdnrt {

class ByteWriter {
public:
  virtual ~ByteWriter();
  virtual Status write(const void *data, uint64_t bytes) = 0;
};

class ByteReader {
public:
  virtual ~ByteReader();
  /// The bytes that were read: fewer than `bytes` at the end only.
  virtual Result<uint64_t> read(void *data, uint64_t bytes) = 0;
};

/// A new file, which has its name once it is complete, and another one before.
/// A device or a pipe of that name is written as it is.
class FileWriter final : public ByteWriter {
public:
  explicit FileWriter(std::string path) : path_(std::move(path)) {}
  ~FileWriter() override;
  Status open();
  Status write(const void *data, uint64_t bytes) override;
  /// Gives the file its name.
  Status finish();

private:
  std::string path_, partial_;
  std::FILE *file_ = nullptr;
  bool isInPlace_ = false;
};

class FileReader final : public ByteReader {
public:
  explicit FileReader(std::string path) : path_(std::move(path)) {}
  FileReader(FileReader &&other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, {})) {}
  ~FileReader() override;
  Status open();
  Result<uint64_t> read(void *data, uint64_t bytes) override;

private:
  std::string path_;
  std::FILE *file_ = nullptr;
};

/// What the caller says of a state.
struct StateTags {
  int64_t numTokens = 0;
  uint64_t nameSpace = 0, tokenHash = 0;

  bool operator==(const StateTags &other) const {
    return numTokens == other.numTokens && nameSpace == other.nameSpace &&
           tokenHash == other.tokenHash;
  }
};

/// What records of a tier are like. `shape` is that of the pool.
struct RecordOwner {
  const StatePoolShape &shape;
  const StateRecord &record;
  const RankShare &share;
};

/// Writes the record at `base`.
Status writeRecord(const RecordOwner &owner, const uint8_t *base,
                   const StateTags &tags, ByteWriter &writer);

/// Reads the record of a rank into `base` from the parts that ranks wrote. Of a
/// part that has no head of this rank only the header is read. All parts have
/// the same tags, which are `expected` unless that is null, and go to `found`.
/// CORRUPT if bytes are missing or damaged, INVALID_ARGUMENT for a part of
/// another model or with other tags, NOT_FOUND if no part has one of the heads.
/// After a failure the contents of `base` are undefined.
Status readRecord(const RecordOwner &owner, uint8_t *base,
                  ByteReader *const *parts, size_t count,
                  const StateTags *expected, StateTags *found);

} // namespace gdnrt

#endif // GDNRT_STATE_FILE_H
