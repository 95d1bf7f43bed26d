// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks of words, by epochs where one agent is enough to know: the
// scheme of Flanagan and Freund's FastTrack.
#include "Races.h"

#include <algorithm>

using namespace ptx;

static uint64_t bitOf(size_t agent) { return uint64_t(1) << (agent % 64); }

void Races::reset(size_t bytes, size_t agents) {
  size_t words = (bytes + 3) / 4;
  agents_ = agents;
  if (words_.size() < words)
    words_.resize(words);
  ++round_;
  if (reads_.size() < words * agents)
    reads_.resize(words * agents);
}

int Races::read(size_t offset, size_t bytes, size_t agent, const Clock &clock,
                int line) {
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    Word &word = this->word(i);
    if (word.time > clock[word.agent])
      return word.writeLine;
    word.readLine = line;
    if (word.reader == agent || word.reader == kNobody) {
      word.reader = static_cast<uint32_t>(agent);
      word.readTime = clock[agent];
      continue;
    }
    uint32_t *reads = &reads_[i * agents_];
    if (word.reader != kSeveral) {
      if (agents_ > 64)
        std::fill_n(reads, agents_, 0);
      reads[word.reader] = word.readTime;
      word.readers = bitOf(word.reader);
      word.reader = kSeveral;
    }
    reads[agent] = clock[agent];
    word.readers |= bitOf(agent);
  }
  return 0;
}

int Races::write(size_t offset, size_t bytes, size_t agent, const Clock &clock,
                 int line) {
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    Word &word = this->word(i);
    if (word.time > clock[word.agent])
      return word.writeLine;
    // What was read before the last write is in order with that, which is in
    // order with this.
    bool isOrdered = true;
    if (word.reader == kSeveral) {
      const uint32_t *reads = &reads_[i * agents_];
      for (size_t other = 0; other < agents_; ++other)
        isOrdered &=
            !(word.readers & bitOf(other)) || reads[other] <= clock[other];
    } else if (word.reader != kNobody) {
      isOrdered = word.readTime <= clock[word.reader];
    }
    if (!isOrdered)
      return word.readLine;
    word.time = clock[agent];
    word.agent = static_cast<uint32_t>(agent);
    word.writeLine = line;
    word.reader = kNobody;
  }
  return 0;
}
