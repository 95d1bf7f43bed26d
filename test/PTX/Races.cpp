// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Races.h"

#include <algorithm>

using namespace ptx;

void Races::reset(size_t bytes, size_t agents) {
  size_t words = (bytes + 3) / 4;
  agents_ = agents;
  words_.assign(words, {});
  reads_.assign(words * agents, 0);
}

int Races::read(size_t offset, size_t bytes, size_t agent, const Clock &clock,
                int line) {
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    Word &word = words_[i];
    if (word.time > clock[word.agent])
      return word.writeLine;
    word.readLine = line;
    reads_[i * agents_ + agent] = clock[agent];
  }
  return 0;
}

int Races::write(size_t offset, size_t bytes, size_t agent, const Clock &clock,
                 int line) {
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    Word &word = words_[i];
    if (word.time > clock[word.agent])
      return word.writeLine;
    const uint32_t *reads = &reads_[i * agents_];
    bool isOrdered = true;
    for (size_t other = 0; other < agents_; ++other)
      isOrdered &= reads[other] <= clock[other];
    if (!isOrdered)
      return word.readLine;
    word = {clock[agent], static_cast<uint32_t>(agent), line, word.readLine};
  }
  return 0;
}
