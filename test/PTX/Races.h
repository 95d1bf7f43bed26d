// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Races in shared memory, by vector clocks: a place that one warp writes and
// another one reads or writes with no barrier between the two. Copies that a
// warp starts on the side are made by an agent of their own.

#ifndef GDN_TEST_PTX_RACES_H
#define GDN_TEST_PTX_RACES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptx {

/// What is known of each agent's time: its own entry is its time.
using Clock = std::vector<uint32_t>;

inline void join(Clock &clock, const Clock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = clock[i] < other[i] ? other[i] : clock[i];
}

class Races {
public:
  /// Words of 4 bytes, and who may use them.
  void reset(size_t bytes, size_t agents);
  /// An access; the instruction (PTX line) of the other side if the two are
  /// not in order, otherwise 0.
  int read(size_t offset, size_t bytes, size_t agent, const Clock &clock,
           int line);
  int write(size_t offset, size_t bytes, size_t agent, const Clock &clock,
            int line);

private:
  static constexpr uint32_t kNobody = ~0u, kSeveral = ~0u - 1;
  struct Word {
    uint32_t time = 0;
    uint32_t agent = 0;
    int writeLine = 0;
    int readLine = 0;
    /// Who has read it since it was written last: nobody, one agent, or
    /// several.
    uint32_t reader = kNobody;
    uint32_t readTime = 0; // of the one
    uint64_t readers = 0;  // of several: a bit for each
    /// What is older than the last reset counts for nothing.
    uint32_t round = 0;
  };
  Word &word(size_t index) {
    Word &found = words_[index];
    if (found.round != round_) {
      found = Word();
      found.round = round_;
    }
    return found;
  }
  size_t agents_ = 0;
  uint32_t round_ = 0;
  std::vector<Word> words_;
  /// By word and agent: when it was read last, of words that several have read.
  /// Beyond 64 agents, agents share bits, and times of all are there.
  std::vector<uint32_t> reads_;
};

} // namespace ptx

#endif // GDN_TEST_PTX_RACES_H
