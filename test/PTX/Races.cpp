// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vector clocks of words, by epochs where one agent is enough to know: the
// scheme of Flanagan and Freund's FastTrack.
#include "Races.h"
#include "Paths.h"

#include <algorithm>
#include <new>

using namespace ptx;

void Races::reset(size_t bytes, size_t agents, bool findsUnwritten) {
  findsUnwritten_ = findsUnwritten;
  size_t words = (bytes + 3) / 4;
  agents_ = agents;
  if (words_.size() < words)
    words_.resize(words);
  ++round_;
  if (numReads_ >= words * agents)
    return;
  numReads_ = words * agents;
  reads_.reset(static_cast<Read *>(std::calloc(numReads_, sizeof(Read))));
  if (!reads_)
    throw std::bad_alloc();
}

/// Which bytes of word `index` an access has.
static uint8_t maskOf(size_t index, size_t offset, size_t bytes) {
  size_t begin = std::max(offset, index * 4) - index * 4,
         end = std::min(offset + bytes, index * 4 + 4) - index * 4;
  return static_cast<uint8_t>((1u << end) - (1u << begin));
}

void Races::mark(size_t offset, size_t bytes) {
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i)
    word(i).written |= maskOf(i, offset, bytes);
}

void Races::addRead(Word &word, size_t index, uint8_t mask,
                    const Access &access) {
  uint16_t agent = static_cast<uint16_t>(access.agent);
  word.readLine = access.line;
  if (word.reader == agent || word.reader == kNobody) {
    bool isOneMore =
        word.reader == agent && word.readTime > access.exchangeTime;
    word.readLane = static_cast<uint8_t>(
        isOneMore && word.readLane != access.lane ? kWholeWarp : access.lane);
    word.readMask = word.reader == agent ? word.readMask | mask : mask;
    word.reader = agent;
    word.readTime = access.time;
    return;
  }
  Read *reads = &reads_[index * agents_];
  if (word.reader != kSeveral) {
    if (agents_ > kBits)
      std::fill_n(reads, agents_, Read{0, 0});
    reads[word.reader] = {word.readTime, word.readLine};
    word.readers = {};
    setBit(word, word.reader);
    word.reader = kSeveral;
  }
  reads[access.agent] = {access.time, access.line};
  word.readMask |= mask;
  setBit(word, access.agent);
}

/// Keeps what orders an access behind the last write.
void Races::noteWrite(const Word &word, const Access &access) {
  Paths &paths = *Paths::current;
  if (word.agent != access.agent)
    paths.note(word.writeLine, word.agent, word.time, access.line,
               *access.writes);
  else if (areOthers(word.writeLane, access.lane))
    paths.noteLanes(word.writeLine, word.agent, word.time, access.line,
                    /*isRead=*/false);
}

/// The same with reads since then.
void Races::noteReads(const Word &word, size_t index,
                      const Access &access) const {
  Paths &paths = *Paths::current;
  if (word.reader == kNobody)
    return;
  if (word.reader != kSeveral) {
    if (word.reader != access.agent)
      paths.note(word.readLine, word.reader, word.readTime, access.line,
                 *access.reads, /*isRead=*/true);
    else if (areOthers(word.readLane, access.lane))
      paths.noteLanes(word.readLine, word.reader, word.readTime, access.line,
                      /*isRead=*/true);
    return;
  }
  const Read *reads = &reads_[index * agents_];
  for (size_t agent = 0; agent < agents_; ++agent)
    if (word.readers[agent % kBits / 64] >> (agent % 64) & 1 &&
        reads[agent].time && agent != access.agent)
      paths.note(reads[agent].line, agent, reads[agent].time, access.line,
                 *access.reads, /*isRead=*/true);
}

Conflict Races::read(size_t offset, size_t bytes, const Access &access) {
  Conflict found;
  const Clock &writes = *access.writes;
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    Word &word = this->word(i);
    uint8_t mask = maskOf(i, offset, bytes);
    bool isOfLanes = false;
    if (found.kind == Conflict::none) {
      Conflict::Kind kind = Conflict::none;
      if (word.writeMask & mask) {
        isOfLanes = word.agent == access.agent && word.time > access.meetTime &&
                    areOthers(word.writeLane, access.lane);
        // Of a part of a word that several lanes wrote, one may be its own.
        isOfLanes &= word.writeLane != kWholeWarp || mask == 0xf;
        if (isOfLanes || word.time > writes[word.agent])
          kind = Conflict::readsWrite;
        else if (Paths::current)
          noteWrite(word, access);
      }
      if (kind == Conflict::none && findsUnwritten_ &&
          (word.written & mask) != mask)
        kind = Conflict::unwritten;
      if (kind != Conflict::none)
        found = {kind,           word.writeLine, word.agent, word.time,
                 word.writeLane, i * 4,          isOfLanes};
    }
    addRead(word, i, mask, access);
  }
  return found;
}

/// Whether someone who has read the word is not known to be over.
bool Races::findReader(const Word &word, size_t index, const Access &access,
                       Conflict &found) const {
  auto set = [&](size_t agent, uint32_t time, int line, bool isOfLanes) {
    found = {Conflict::writesRead, line,      agent,    time,
             word.readLane,        index * 4, isOfLanes};
    return true;
  };
  if (word.reader == kNobody)
    return false;
  if (word.reader != kSeveral) {
    bool isOfLanes =
        word.reader == access.agent && word.readTime > access.exchangeTime &&
        areOthers(word.readLane, access.lane) && word.readLine != access.line;
    return (isOfLanes || access.overtakes(word.reader, word.readTime)) &&
           set(word.reader, word.readTime, word.readLine, isOfLanes);
  }
  const Read *reads = &reads_[index * agents_];
  for (size_t part = 0; part < word.readers.size(); ++part)
    for (uint64_t bits = word.readers[part]; bits; bits &= bits - 1)
      for (size_t agent =
               part * 64 + static_cast<size_t>(__builtin_ctzll(bits));
           agent < agents_; agent += kBits)
        if (access.overtakes(agent, reads[agent].time))
          return set(agent, reads[agent].time, reads[agent].line, false);
  return false;
}

Conflict Races::write(size_t offset, size_t bytes, const Access &access) {
  Conflict found;
  const Clock &writes = *access.writes;
  for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4; ++i) {
    Word &word = this->word(i);
    uint8_t mask = maskOf(i, offset, bytes);
    bool isSame = word.agent == access.agent && word.time > access.meetTime;
    if (found.kind == Conflict::none && word.writeMask & mask) {
      bool isOfLanes = isSame && areOthers(word.writeLane, access.lane) &&
                       word.writeLane != kWholeWarp &&
                       word.writeLine != access.line;
      if (isOfLanes || word.time > writes[word.agent])
        found = {Conflict::writesWrite, word.writeLine, word.agent, word.time,
                 word.writeLane,        i * 4,          isOfLanes};
      else if (Paths::current)
        noteWrite(word, access);
    }
    // What was read before the last write is in order with that, which is in
    // order with this.
    if (found.kind == Conflict::none && word.readMask & mask &&
        !findReader(word, i, access, found) && Paths::current)
      noteReads(word, i, access);
    // Lanes of a warp may write parts of a word each.
    bool isPart = isSame && mask != 0xf && word.writeMask;
    word.writeLane = static_cast<uint8_t>(
        isPart && word.writeLane != access.lane ? kWholeWarp : access.lane);
    word.writeMask = isPart ? word.writeMask | mask : mask;
    word.written |= mask;
    word.time = access.time;
    word.agent = static_cast<uint16_t>(access.agent);
    word.writeLine = access.line;
    word.readMask &= static_cast<uint8_t>(~mask);
    if (!word.readMask)
      word.reader = kNobody;
  }
  return found;
}
