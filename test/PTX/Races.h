// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Races in shared memory, by vector clocks: bytes that one agent writes and
// another one reads or writes with nothing between the two that orders them,
// lanes of one warp without a bar.warp between them, and reads of bytes that
// nobody has written.

#ifndef GDN_TEST_PTX_RACES_H
#define GDN_TEST_PTX_RACES_H

#include "Knowledge.h"
#include "PendingReads.h"

#include <array>
#include <cstdlib>
#include <memory>

namespace ptx {

/// A lane, or all of a warp's.
constexpr unsigned kWholeWarp = 32;

inline bool areOthers(unsigned lane, unsigned other) {
  return lane != other || lane == kWholeWarp;
}

/// Who accesses memory: an agent at one of its times.
struct Access {
  size_t agent = 0;
  uint32_t time = 0;
  /// The reads that the agent may overwrite, and the writes that it finds.
  const Clock *reads = nullptr, *writes = nullptr;
  int line = 0;
  unsigned lane = kWholeWarp;
  /// Up to which of its times the lanes of the warp are in order, and what they
  /// have read is. Agents that have no lanes are always.
  uint32_t meetTime = ~0u, exchangeTime = ~0u;
  /// Of a write by the asynchronous proxy, by warp, the loads that it may
  /// overtake.
  const std::vector<PendingReads> *loads = nullptr;

  /// Whether a read of `reader` is not over when this access writes.
  bool overtakes(size_t reader, uint32_t readTime) const {
    const uint32_t known = (*reads)[reader];
    return readTime > known || (loads && reader < loads->size() &&
                                (*loads)[reader].isUnderWay(readTime, known));
  }
};

/// The other side of an access that is not in order.
struct Conflict {
  enum Kind : uint8_t { none, readsWrite, writesWrite, writesRead, unwritten };
  Kind kind = none;
  int line = 0;
  size_t agent = 0;
  uint32_t time = 0;
  unsigned lane = kWholeWarp;
  /// Where, from the beginning of the memory.
  size_t offset = 0;
  /// Whether lanes of one warp are the two sides.
  bool isOfLanes = false;
};

class Races {
public:
  /// Memory that nobody has written, and who may use it.
  void reset(size_t bytes, size_t agents, bool findsUnwritten);
  /// An access, and what it is in conflict with first.
  Conflict read(size_t offset, size_t bytes, const Access &access);
  Conflict write(size_t offset, size_t bytes, const Access &access);
  /// What counts as written without an order, such as atomics.
  void mark(size_t offset, size_t bytes);

private:
  static constexpr uint16_t kNobody = 0xffff, kSeveral = 0xfffe;
  /// Readers with a bit of their own; beyond, agents share bits.
  static constexpr size_t kBits = 128;
  /// 4 bytes; masks are of these bytes.
  struct Word {
    uint32_t time = 0;
    int writeLine = 0;
    uint32_t readTime = 0; // of the one
    int readLine = 0;
    std::array<uint64_t, kBits / 64> readers{}; // of several
    /// What is older than the last reset counts for nothing.
    uint32_t round = 0;
    uint16_t agent = 0;
    /// Who has read it since it was written last: nobody, one agent, or
    /// several.
    uint16_t reader = kNobody;
    uint8_t writeLane = 0, readLane = 0;
    /// What was ever written, by the last writer, and read since.
    uint8_t written = 0, writeMask = 0, readMask = 0;
  };
  /// When an agent has read a word last, of words that several have read.
  struct Read {
    uint32_t time;
    int line;
  };
  Word &word(size_t index) {
    Word &found = words_[index];
    if (found.round != round_) {
      found = Word();
      found.round = round_;
    }
    return found;
  }
  void setBit(Word &word, size_t agent) {
    word.readers[agent % kBits / 64] |= uint64_t(1) << (agent % 64);
  }
  void addRead(Word &word, size_t index, uint8_t mask, const Access &access);
  static void noteWrite(const Word &word, const Access &access);
  void noteReads(const Word &word, size_t index, const Access &access) const;
  bool findReader(const Word &word, size_t index, const Access &access,
                  Conflict &found) const;

  size_t agents_ = 0, numReads_ = 0;
  bool findsUnwritten_ = true;
  uint32_t round_ = 0;
  std::vector<Word> words_;
  struct Free {
    void operator()(Read *reads) const { std::free(reads); }
  };
  /// By word and agent; pages that nobody uses cost nothing.
  std::unique_ptr<Read[], Free> reads_;
};

} // namespace ptx

#endif // GDN_TEST_PTX_RACES_H
