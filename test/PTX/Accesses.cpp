// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ld, st and prefetch, one value or a vector.

#include "LaneOps.h"

using namespace ptx;

static Space spaceOf(const Parts &parts) {
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::string &part = parts[i];
    if (part == "global" || part == "const")
      return Space::global;
    if (part.compare(0, 6, "shared") == 0)
      return Space::shared;
    if (part == "local")
      return Space::local;
    if (part.compare(0, 5, "param") == 0)
      return Space::parameter;
  }
  return Space::generic;
}

static uint64_t addressOf(Warp &warp, const Operand &operand, Space space,
                          unsigned lane) {
  uint64_t address =
      warp.at(operand)[lane] + static_cast<uint64_t>(operand.offset);
  return space == Space::shared ? address & 0xffffffff : address;
}

/// Calls f(), and if the access is strong, to global memory, told(its word).
template <typename F, typename G>
static void accessWord(Warp &warp, const Instruction &i, const char *data,
                       uint64_t address, F f, G told) {
  if (!(i.detail & kStrong) || reinterpret_cast<uint64_t>(data) != address)
    return f();
  warp.block->cluster->memory.races().withTold(address, [&](Told &word) {
    f();
    told(word, static_cast<Scope>(i.detail / kScope));
  });
}

template <Space space, unsigned count, typename T>
static Step load(Warp &warp, const Instruction &i, Mask mask) {
  const Operand &from = i.operands[count];
  if constexpr (space == Space::shared || space == Space::generic)
    warp.beginLoad(i, count);
  Lanes addresses;
  // The address may be one of the values that are loaded.
  forLanes(mask,
           [&](unsigned l) { addresses[l] = addressOf(warp, from, space, l); });
  const Use use = i.detail & kStrong     ? Use::strongRead
                  : i.detail & kConstant ? Use::readOnly
                                         : Use::read;
  forLanes(mask, [&](unsigned l) {
    const char *data = warp.resolve(space, addresses[l], count * sizeof(T),
                                    static_cast<int>(l), use);
    accessWord(
        warp, i, data, addresses[l],
        [&] {
          for (unsigned k = 0; k < count; ++k) {
            T value;
            std::memcpy(&value, data + k * sizeof(T), sizeof(T));
            if (i.operands[k].value >= 0)
              warp.at(i.operands[k])[l] = static_cast<uint64_t>(
                  std::is_signed_v<T> ? static_cast<int64_t>(value)
                                      : static_cast<int64_t>(uint64_t(value)));
          }
        },
        [&](Told &word, Scope scope) {
          learnByAtomic(warp, word, l, scope, i.detail & kAcquires);
        });
  });
  return Step::next;
}

template <Space space, unsigned count, typename T>
static Step store(Warp &warp, const Instruction &i, Mask mask) {
  const Use use = i.detail & kStrong ? Use::strongWrite : Use::write;
  forLanes(mask, [&](unsigned l) {
    const uint64_t address = addressOf(warp, i.operands[0], space, l);
    char *data = warp.resolve(space, address, count * sizeof(T),
                              static_cast<int>(l), use);
    accessWord(
        warp, i, data, address,
        [&] {
          for (unsigned k = 0; k < count; ++k) {
            T value = static_cast<T>(warp.at(i.operands[1 + k])[l]);
            std::memcpy(data + k * sizeof(T), &value, sizeof(T));
          }
        },
        [&](Told &word, Scope scope) {
          // What atomics before it have told ends here.
          word = {};
          tellByAtomic(warp, word, l, scope, i.detail & kReleases);
        });
  });
  return Step::next;
}

template <Space space, typename T>
static Execute ofCount(bool stores, unsigned count) {
  if (count == 1)
    return stores ? store<space, 1, T> : load<space, 1, T>;
  if (count == 2)
    return stores ? store<space, 2, T> : load<space, 2, T>;
  if (count == 4)
    return stores ? store<space, 4, T> : load<space, 4, T>;
  if (count == 8)
    return stores ? store<space, 8, T> : load<space, 8, T>;
  return nullptr;
}

template <Space space>
static Execute ofType(const std::string &type, bool stores, unsigned count) {
  if (type == "b8" || type == "u8")
    return ofCount<space, uint8_t>(stores, count);
  if (type == "s8")
    return ofCount<space, int8_t>(stores, count);
  if (type == "b16" || type == "u16" || type == "f16" || type == "bf16")
    return ofCount<space, uint16_t>(stores, count);
  if (type == "s16")
    return ofCount<space, int16_t>(stores, count);
  if (type == "b32" || type == "u32" || type == "f32")
    return ofCount<space, uint32_t>(stores, count);
  if (type == "s32")
    return ofCount<space, int32_t>(stores, count);
  if (type == "b64" || type == "u64" || type == "s64" || type == "f64")
    return ofCount<space, uint64_t>(stores, count);
  return nullptr;
}

Execute ptx::findAccess(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0];
  if (op == "prefetch" || op == "prefetchu" || op == "discard" ||
      op == "applypriority")
    return nothing;
  if (op != "ld" && op != "st")
    return nullptr;
  bool stores = op == "st";
  instruction.detail = orderOf(parts);
  unsigned count = has(parts, "v8")   ? 8
                   : has(parts, "v4") ? 4
                   : has(parts, "v2") ? 2
                                      : 1;
  switch (spaceOf(parts)) {
  case Space::generic:
    return ofType<Space::generic>(parts.back(), stores, count);
  case Space::global:
    return ofType<Space::global>(parts.back(), stores, count);
  case Space::shared:
    return ofType<Space::shared>(parts.back(), stores, count);
  case Space::local:
    return ofType<Space::local>(parts.back(), stores, count);
  case Space::parameter:
    return ofType<Space::parameter>(parts.back(), stores, count);
  }
  return nullptr;
}
