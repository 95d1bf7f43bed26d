// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of host tiers.

#include "serving_handles.h"

#include "gdn-c/host_tier.h"
#include "gdnrt/host_tier.h"

using namespace gdnrt;

namespace {

/// INVALID_ARGUMENT if there is no tier, or no ids although there are some.
Status checkIds(const gdnrt_host_tier *tier, const char *what,
                const void *slots, size_t count) {
  if (!tier)
    return nullPointer("tier");
  if (!slots && count != 0)
    return nullPointer(what);
  return {};
}

Result<HostTierOptions> toOptions(const gdnrt_host_tier_options *given) {
  gdnrt_host_tier_options known;
  if (Status s = readStruct("options", given, known); !s.isOk())
    return s;
  if (known.format < GDNRT_HOST_AS_POOL || known.format > GDNRT_HOST_I8)
    return invalid("host_tier: format: expected ", int(GDNRT_HOST_AS_POOL),
                   " to ", int(GDNRT_HOST_I8), ", got ", known.format);
  for (auto [name, heads] :
       {std::pair("total_key_heads", known.total_key_heads),
        {"total_value_heads", known.total_value_heads}})
    if (heads < 0)
      return invalid("host_tier: ", name, ": expected 0 or more, got ", heads);
  HostTierOptions options;
  options.numSlots = known.num_slots;
  if (known.format != GDNRT_HOST_AS_POOL)
    options.format = static_cast<StateFormat>(known.format);
  if (known.has_copy_stream != 0)
    options.copyStream = known.copy_stream;
  options.share.tpSize = known.tp_size == 0 ? 1 : known.tp_size;
  options.share.tpRank = known.tp_rank;
  options.share.keyHeads = known.total_key_heads;
  options.share.valueHeads = known.total_value_heads;
  options.roundingThreads =
      known.rounding_threads == 0 ? 1 : known.rounding_threads;
  return options;
}

Result<StateTags> toTags(const char *what, const gdnrt_state_tags *given) {
  gdnrt_state_tags known;
  if (Status s = readStruct(what, given, known); !s.isOk())
    return s;
  return StateTags{known.num_tokens, known.name_space, known.token_hash};
}

class CallerWriter final : public ByteWriter {
public:
  explicit CallerWriter(const gdnrt_byte_writer &writer) : writer_(writer) {}
  Status write(const void *data, uint64_t bytes) override {
    const int32_t failed = writer_.write(writer_.user, data, bytes);
    return failed == 0
               ? Status()
               : gdnrt::failure(StatusCode::ioError, "writer: expected 0 for ",
                                bytes, " bytes, got ", failed);
  }

private:
  const gdnrt_byte_writer &writer_;
};

class CallerReader final : public ByteReader {
public:
  explicit CallerReader(const gdnrt_byte_reader &reader) : reader_(reader) {}
  Result<uint64_t> read(void *data, uint64_t bytes) override {
    const int64_t got = reader_.read(reader_.user, data, bytes);
    if (got < 0 || static_cast<uint64_t>(got) > bytes)
      return gdnrt::failure(StatusCode::ioError, "reader: expected 0 to ",
                            bytes, " bytes, got ", got);
    return static_cast<uint64_t>(got);
  }

private:
  const gdnrt_byte_reader &reader_;
};

/// Reads parts of any kind, with the tags of the caller.
template <typename Reader>
Status readParts(gdnrt_host_tier *tier, int32_t slot,
                 std::vector<Reader> &readers, const gdnrt_state_tags *expected,
                 gdnrt_state_tags *found) {
  StateTags wanted, got;
  if (expected) {
    auto tags = toTags("expected", expected);
    if (!tags.isOk())
      return tags.status();
    wanted = *tags;
  }
  if (found)
    if (Status s = checkStruct("found", found); !s.isOk())
      return s;
  std::vector<ByteReader *> parts;
  for (Reader &reader : readers)
    parts.push_back(&reader);
  if (Status s = tier->tier->read(slot, parts.data(), parts.size(),
                                  expected ? &wanted : nullptr, &got);
      !s.isOk())
    return s;
  if (found) {
    gdnrt_state_tags filled = gdnrt_state_tags_default();
    filled.num_tokens = got.numTokens;
    filled.name_space = got.nameSpace;
    filled.token_hash = got.tokenHash;
    writeStruct(filled, found);
  }
  return {};
}

} // namespace

gdnrt_status gdnrt_host_tier_create(gdnrt_state_pool *pool,
                                    const gdnrt_host_tier_options *options,
                                    gdnrt_host_tier **tier,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (!tier)
      return nullPointer("tier");
    auto known = toOptions(options);
    if (!known.isOk())
      return known.status();
    auto made = HostTier::make(pool->pool, *known);
    if (made.isOk())
      *tier = new gdnrt_host_tier{std::move(*made)};
    return made.status();
  });
}

void gdnrt_host_tier_destroy(gdnrt_host_tier *tier) { delete tier; }

gdnrt_status gdnrt_host_tier_describe(const gdnrt_host_tier *tier,
                                      gdnrt_host_tier_info *info,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!tier)
      return nullPointer("tier");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    gdnrt_host_tier_info filled = gdnrt_host_tier_info_default();
    filled.num_slots = tier->tier->numSlots();
    filled.free_slots = tier->tier->numFree();
    filled.slot_bytes = tier->tier->slotBytes();
    filled.bytes = tier->tier->memoryBytes();
    writeStruct(filled, info);
    return {};
  });
}

gdnrt_status gdnrt_host_tier_allocate(gdnrt_host_tier *tier, size_t count,
                                      int32_t *slots, int32_t *taken,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "slots", slots, count); !s.isOk())
      return s;
    if (!taken)
      return nullPointer("taken");
    auto got = tier->tier->allocate(count, slots);
    if (got.isOk())
      *taken = *got ? 1 : 0;
    return got.status();
  });
}

gdnrt_status gdnrt_host_tier_free(gdnrt_host_tier *tier, const int32_t *slots,
                                  size_t count, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "slots", slots, count); !s.isOk())
      return s;
    return tier->tier->free(slots, count);
  });
}

gdnrt_status gdnrt_host_tier_is_over(gdnrt_host_tier *tier,
                                     const int32_t *slots, size_t count,
                                     uint8_t *over, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "slots", slots, count); !s.isOk())
      return s;
    if (Status s = checkIds(tier, "over", over, count); !s.isOk())
      return s;
    return tier->tier->isOver(slots, count, over);
  });
}

gdnrt_status gdnrt_host_tier_synchronize(gdnrt_host_tier *tier,
                                         const int32_t *slots, size_t count,
                                         gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "slots", slots, count); !s.isOk())
      return s;
    return tier->tier->synchronize(slots, count);
  });
}

gdnrt_status gdnrt_host_tier_store(gdnrt_host_tier *tier, const int32_t *from,
                                   const int32_t *to, size_t count,
                                   void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "from", from, count); !s.isOk())
      return s;
    if (Status s = checkIds(tier, "to", to, count); !s.isOk())
      return s;
    return tier->tier->store(from, to, count, stream);
  });
}

gdnrt_status gdnrt_host_tier_load(gdnrt_host_tier *tier, const int32_t *from,
                                  const int32_t *to, size_t count, void *stream,
                                  gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "from", from, count); !s.isOk())
      return s;
    if (Status s = checkIds(tier, "to", to, count); !s.isOk())
      return s;
    return tier->tier->load(from, to, count, stream);
  });
}

gdnrt_status gdnrt_host_tier_wait(gdnrt_host_tier *tier,
                                  const int32_t *pool_slots, size_t count,
                                  void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "pool_slots", pool_slots, count); !s.isOk())
      return s;
    return tier->tier->wait(pool_slots, count, stream);
  });
}

gdnrt_status gdnrt_host_tier_swap_out(gdnrt_host_tier *tier,
                                      const int32_t *pool_slots, size_t count,
                                      void *stream, int32_t *host_slots,
                                      int32_t *taken, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "pool_slots", pool_slots, count); !s.isOk())
      return s;
    if (Status s = checkIds(tier, "host_slots", host_slots, count); !s.isOk())
      return s;
    if (!taken)
      return nullPointer("taken");
    auto got = tier->tier->swapOut(pool_slots, count, stream, host_slots);
    if (got.isOk())
      *taken = *got ? 1 : 0;
    return got.status();
  });
}

gdnrt_status gdnrt_host_tier_swap_in(gdnrt_host_tier *tier,
                                     const int32_t *host_slots, size_t count,
                                     void *stream, int32_t *pool_slots,
                                     int32_t *taken, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "host_slots", host_slots, count); !s.isOk())
      return s;
    if (Status s = checkIds(tier, "pool_slots", pool_slots, count); !s.isOk())
      return s;
    if (!taken)
      return nullPointer("taken");
    auto got = tier->tier->swapIn(host_slots, count, stream, pool_slots);
    if (got.isOk())
      *taken = *got ? 1 : 0;
    return got.status();
  });
}

gdnrt_status gdnrt_host_tier_write(gdnrt_host_tier *tier, int32_t slot,
                                   const gdnrt_state_tags *tags,
                                   const gdnrt_byte_writer *writer,
                                   gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!tier)
      return nullPointer("tier");
    if (!writer || !writer->write)
      return nullPointer("writer");
    auto known = toTags("tags", tags);
    if (!known.isOk())
      return known.status();
    CallerWriter caller(*writer);
    return tier->tier->write(slot, *known, caller);
  });
}

gdnrt_status gdnrt_host_tier_read(gdnrt_host_tier *tier, int32_t slot,
                                  const gdnrt_byte_reader *parts, size_t count,
                                  const gdnrt_state_tags *expected,
                                  gdnrt_state_tags *found, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkIds(tier, "parts", parts, count); !s.isOk())
      return s;
    std::vector<CallerReader> readers;
    for (size_t i = 0; i < count; ++i) {
      if (!parts[i].read)
        return nullPointer("parts");
      readers.emplace_back(parts[i]);
    }
    return readParts(tier, slot, readers, expected, found);
  });
}

gdnrt_status gdnrt_host_tier_write_file(gdnrt_host_tier *tier, int32_t slot,
                                        const gdnrt_state_tags *tags,
                                        const char *path, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!tier)
      return nullPointer("tier");
    if (!path)
      return nullPointer("path");
    auto known = toTags("tags", tags);
    if (!known.isOk())
      return known.status();
    FileWriter file(path);
    if (Status s = file.open(); !s.isOk())
      return s;
    if (Status s = tier->tier->write(slot, *known, file); !s.isOk())
      return s;
    return file.finish();
  });
}

gdnrt_status gdnrt_host_tier_read_files(gdnrt_host_tier *tier, int32_t slot,
                                        const char *const *paths, size_t count,
                                        const gdnrt_state_tags *expected,
                                        gdnrt_state_tags *found,
                                        gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s =
            checkIds(tier, "paths", static_cast<const void *>(paths), count);
        !s.isOk())
      return s;
    std::vector<FileReader> readers;
    readers.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      if (!paths[i])
        return nullPointer("paths");
      readers.emplace_back(paths[i]);
      if (Status s = readers.back().open(); !s.isOk())
        return s;
    }
    return readParts(tier, slot, readers, expected, found);
  });
}
