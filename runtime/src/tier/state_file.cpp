// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The header is a table of numbers, each of which has to be that of the tier;
// sizes follow from the tier. Nothing of a part is believed before its hash is
// right, but for what the next read takes.

#include "gdnrt/state_file.h"

#include "gdnrt/image_trailer.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace gdnrt;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "records are written as they are in memory");

namespace {

constexpr char kMagic[] = {'G', 'D', 'N', 'S', 'T', 'A', 'T', 'E'};
constexpr uint32_t kVersion = 1;

/// The numbers of a header, in its order.
enum Field {
  numLayers,
  keyHeads,
  valueHeads,
  keyDim,
  valueDim,
  convWidth,
  convExtra,
  pendingTokens,
  decayPerChannel,
  deferredWrites,
  stateFormat,
  convDType,
  pendingDType,
  tpSize,
  tpRank,
  numTokens,
  nameSpace,
  tokenHash,
  contentBytes,
  numFields
};

constexpr const char *kFieldNames[] = {
    "num_layers",        "num_key_heads",   "num_value_heads", "key_dim",
    "value_dim",         "conv_width",      "conv_extra",      "pending_tokens",
    "decay_per_channel", "deferred_writes", "state format",    "conv_dtype",
    "pending_dtype",     "tp_size",         "tp_rank",         "num_tokens",
    "name_space",        "token_hash",      "contents"};
static_assert(std::size(kFieldNames) == numFields);

using Fields = std::array<uint64_t, numFields>;

constexpr uint32_t kHeaderBytes = 16 + 8 * numFields + 8;

void putNumber(uint8_t *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    to[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t getNumber(const uint8_t *from, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;)
    value = value << 8 | from[i];
  return value;
}

template <typename... Pieces> Status corrupt(const Pieces &...pieces) {
  return failure(StatusCode::corrupt, "state file: ", pieces...);
}

/// Hashes what goes through it.
class Hash {
public:
  Hash() { XXH3_64bits_reset(&state_); }
  void add(const void *data, uint64_t bytes) {
    XXH3_64bits_update(&state_, data, bytes);
  }
  uint64_t get() const { return XXH3_64bits_digest(&state_); }

private:
  XXH3_state_t state_;
};

/// Reads exactly so many bytes.
Status readAll(ByteReader &reader, void *data, uint64_t bytes,
               const char *what) {
  auto got = reader.read(data, bytes);
  if (!got.isOk())
    return got.status();
  if (*got != bytes)
    return corrupt("truncated: expected ", bytes, " bytes of ", what, ", got ",
                   *got);
  return {};
}

/// One section of the first axis: heads that both ranks have, and where their
/// rows begin in each.
struct Shared {
  int64_t from, to, count;
};

std::pair<int64_t, int64_t> headsOf(const RankShare &share, bool isOfKeys) {
  return isOfKeys ? share.keys() : share.values();
}

int64_t rowsOf(const RecordBuffer &buffer, const RankShare &share) {
  int64_t rows = 0;
  for (const RowSection &section : buffer.sections)
    rows += headsOf(share, section.isOfKeys).second * section.rowsPerHead;
  return rows;
}

uint64_t layerBytesOf(const RecordBuffer &buffer, const RankShare &share) {
  return static_cast<uint64_t>(rowsOf(buffer, share) * buffer.rowElements() *
                               buffer.elementBytes());
}

uint64_t contentBytesOf(const StateRecord &record, const RankShare &share) {
  uint64_t bytes = 0;
  for (const RecordBuffer &buffer : record.buffers)
    bytes += layerBytesOf(buffer, share) * static_cast<uint64_t>(record.layers);
  return bytes;
}

/// The rows of a buffer that two ranks share.
std::vector<Shared> shareRows(const RecordBuffer &buffer, const RankShare &from,
                              const RankShare &to) {
  std::vector<Shared> all;
  int64_t fromRow = 0, toRow = 0;
  for (const RowSection &section : buffer.sections) {
    const auto [fromHead, fromHeads] = headsOf(from, section.isOfKeys);
    const auto [toHead, toHeads] = headsOf(to, section.isOfKeys);
    const int64_t first = std::max(fromHead, toHead);
    const int64_t end = std::min(fromHead + fromHeads, toHead + toHeads);
    if (first < end)
      all.push_back({fromRow + (first - fromHead) * section.rowsPerHead,
                     toRow + (first - toHead) * section.rowsPerHead,
                     (end - first) * section.rowsPerHead});
    fromRow += fromHeads * section.rowsPerHead;
    toRow += toHeads * section.rowsPerHead;
  }
  return all;
}

Fields fieldsOf(const RecordOwner &owner, const RankShare &share,
                const StateTags &tags) {
  const StatePoolShape &shape = owner.shape;
  auto number = [](auto value) { return static_cast<uint64_t>(value); };
  Fields fields = {};
  fields[numLayers] = number(shape.numLayers);
  fields[keyHeads] = number(share.keyHeads);
  fields[valueHeads] = number(share.valueHeads);
  fields[keyDim] = number(shape.keyDim);
  fields[valueDim] = number(shape.valueDim);
  fields[convWidth] = number(shape.convWidth);
  fields[convExtra] = number(shape.convExtra);
  fields[pendingTokens] = number(shape.pendingTokens);
  fields[decayPerChannel] = shape.decayPerChannel && shape.pendingTokens > 0;
  fields[deferredWrites] = shape.deferredWrites;
  fields[stateFormat] = number(owner.record.format);
  fields[convDType] = number(shape.convDType);
  fields[pendingDType] = number(shape.pendingDType);
  fields[tpSize] = number(share.tpSize);
  fields[tpRank] = number(share.tpRank);
  fields[numTokens] = number(tags.numTokens);
  fields[nameSpace] = tags.nameSpace;
  fields[tokenHash] = tags.tokenHash;
  fields[contentBytes] = contentBytesOf(owner.record, share);
  return fields;
}

/// A number as messages have it.
std::string textOf(int field, uint64_t value) {
  if (field == stateFormat && value <= static_cast<int>(StateFormat::i8))
    return toString(static_cast<StateFormat>(value));
  if ((field == convDType || field == pendingDType) &&
      value <= static_cast<uint64_t>(DType::f64))
    return toString(static_cast<DType>(value));
  return std::to_string(value);
}

Result<Fields> readHeader(ByteReader &reader, Hash &hash) {
  uint8_t bytes[kHeaderBytes];
  if (Status s = readAll(reader, bytes, kHeaderBytes, "a header"); !s.isOk())
    return s;
  if (std::memcmp(bytes, kMagic, sizeof(kMagic)) != 0)
    return corrupt("expected GDNSTATE at the beginning, got other bytes");
  if (const uint64_t version = getNumber(bytes + 8, 4); version != kVersion)
    return failure(StatusCode::unsupported, "state file: expected version ",
                   kVersion, ", got ", version);
  if (const uint64_t size = getNumber(bytes + 12, 4); size != kHeaderBytes)
    return corrupt("expected a header of ", kHeaderBytes, " bytes, got ", size);
  if (getNumber(bytes + kHeaderBytes - 8, 8) !=
      XXH3_64bits(bytes, kHeaderBytes - 8))
    return corrupt("the hash of the header does not match it");
  hash.add(bytes, kHeaderBytes);
  Fields fields;
  for (int field = 0; field < numFields; ++field)
    fields[field] = getNumber(bytes + 16 + 8 * field, 8);
  return fields;
}

Status checkFields(const RecordOwner &owner, const Fields &fields,
                   const StateTags &tags, RankShare &share) {
  // Large numbers are refused here; below, all are those of the tier.
  constexpr uint64_t most = 1 << 20;
  share = owner.share;
  for (Field field : {tpSize, tpRank})
    if (fields[field] > most)
      return invalid("state file: ", kFieldNames[field], ": expected at most ",
                     most, ", got ", fields[field]);
  share.tpSize = static_cast<int64_t>(fields[tpSize]);
  share.tpRank = static_cast<int64_t>(fields[tpRank]);
  if (Status s = checkShare("state file", share); !s.isOk())
    return s;
  const Fields expected = fieldsOf(owner, share, tags);
  for (int field = 0; field < numFields; ++field)
    if (fields[field] != expected[field])
      return invalid("state file: ", kFieldNames[field], ": expected ",
                     textOf(field, expected[field]), ", got ",
                     textOf(field, fields[field]));
  return {};
}

/// Reads the contents of a part, and takes the rows that this rank has, too.
Status readContents(const RecordOwner &owner, uint8_t *base,
                    const RankShare &part, ByteReader &reader, Hash &hash) {
  std::vector<uint8_t> rows;
  for (const RecordBuffer &buffer : owner.record.buffers) {
    const uint64_t bytes = layerBytesOf(buffer, part);
    const int64_t rowBytes = buffer.rowElements() * buffer.elementBytes();
    rows.resize(bytes);
    const std::vector<Shared> shared = shareRows(buffer, part, owner.share);
    for (int64_t layer = 0; layer < owner.record.layers; ++layer) {
      if (Status s = readAll(reader, rows.data(), bytes, "contents"); !s.isOk())
        return s;
      hash.add(rows.data(), bytes);
      for (const Shared &each : shared)
        unpackRows(buffer, rows.data() + each.from * rowBytes, each.to,
                   each.count, base + buffer.at(layer));
    }
  }
  uint8_t trailer[8];
  if (Status s = readAll(reader, trailer, sizeof(trailer), "a hash"); !s.isOk())
    return s;
  if (getNumber(trailer, 8) != hash.get())
    return corrupt("the hash of the contents does not match them");
  return {};
}

/// The heads that parts have had so far.
class Heads {
public:
  Heads(const RankShare &share, bool isOfKeys)
      : own_(headsOf(share, isOfKeys)), isOfKeys_(isOfKeys),
        found_(static_cast<size_t>(own_.second)) {}
  /// Whether the part has one of them.
  bool add(const RankShare &part) {
    const auto [first, count] = headsOf(part, isOfKeys_);
    bool any = false;
    for (int64_t i = 0; i < own_.second; ++i)
      if (const int64_t head = own_.first + i;
          head >= first && head < first + count)
        any = found_[static_cast<size_t>(i)] = true;
    return any;
  }
  Status check(size_t parts) const {
    for (int64_t i = 0; i < own_.second; ++i)
      if (!found_[static_cast<size_t>(i)])
        return failure(StatusCode::notFound, "state file: expected ",
                       isOfKeys_ ? "key" : "value", " head ", own_.first + i,
                       " of the model in one of the parts, got ", parts,
                       " parts without it");
    return {};
  }

private:
  std::pair<int64_t, int64_t> own_;
  bool isOfKeys_;
  std::vector<bool> found_;
};

} // namespace

Status gdnrt::writeRecord(const RecordOwner &owner, const uint8_t *base,
                          const StateTags &tags, ByteWriter &writer) {
  const Fields fields = fieldsOf(owner, owner.share, tags);
  uint8_t header[kHeaderBytes];
  std::memcpy(header, kMagic, sizeof(kMagic));
  putNumber(header + 8, kVersion, 4);
  putNumber(header + 12, kHeaderBytes, 4);
  for (int field = 0; field < numFields; ++field)
    putNumber(header + 16 + 8 * field, fields[field], 8);
  putNumber(header + kHeaderBytes - 8, XXH3_64bits(header, kHeaderBytes - 8),
            8);
  Hash hash;
  auto put = [&](const void *data, uint64_t bytes) {
    hash.add(data, bytes);
    return writer.write(data, bytes);
  };
  if (Status s = put(header, kHeaderBytes); !s.isOk())
    return s;
  std::vector<uint8_t> rows;
  for (const RecordBuffer &buffer : owner.record.buffers)
    for (int64_t layer = 0; layer < owner.record.layers; ++layer) {
      const uint8_t *memory = base + buffer.at(layer);
      if (!buffer.isRowMajor()) {
        rows.resize(buffer.layerBytes);
        packRows(buffer, memory, 0, buffer.sizes[0], rows.data());
        memory = rows.data();
      }
      if (Status s = put(memory, buffer.layerBytes); !s.isOk())
        return s;
    }
  uint8_t trailer[8];
  putNumber(trailer, hash.get(), 8);
  return writer.write(trailer, sizeof(trailer));
}

Status gdnrt::readRecord(const RecordOwner &owner, uint8_t *base,
                         ByteReader *const *parts, size_t count,
                         const StateTags *expected, StateTags *found) {
  StateTags tags = expected ? *expected : StateTags();
  Heads keys(owner.share, true), values(owner.share, false);
  for (size_t i = 0; i < count; ++i) {
    Hash hash;
    auto fields = readHeader(*parts[i], hash);
    if (!fields.isOk())
      return fields.status();
    // The first part says what the others have to have.
    if (!expected && i == 0)
      tags = {static_cast<int64_t>((*fields)[numTokens]), (*fields)[nameSpace],
              (*fields)[tokenHash]};
    RankShare part;
    if (Status s = checkFields(owner, *fields, tags, part); !s.isOk())
      return s;
    const bool hasKeys = keys.add(part), hasValues = values.add(part);
    if (!hasKeys && !hasValues)
      continue;
    if (Status s = readContents(owner, base, part, *parts[i], hash); !s.isOk())
      return s;
  }
  if (Status s = keys.check(count); !s.isOk())
    return s;
  if (Status s = values.check(count); !s.isOk())
    return s;
  if (found)
    *found = tags;
  return {};
}
