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
  struct Word {
    uint32_t time = 0;
    uint32_t agent = 0;
    int writeLine = 0;
    int readLine = 0;
  };
  size_t agents_ = 0;
  std::vector<Word> words_;
  /// By word and agent: when it was read last.
  std::vector<uint32_t> reads_;
};

} // namespace ptx

#endif // GDN_TEST_PTX_RACES_H
