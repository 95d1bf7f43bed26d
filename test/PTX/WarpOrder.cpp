// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a warp knows, learns and tells others. Lanes that do so alone know more
// than the others until all meet, and tell only what they can know of them.

#include "Machine.h"
#include "Paths.h"

using namespace ptx;

/// A new time: what comes now was not told before.
void Warp::tick() {
  ++self.time;
  knowledge.all[self.agent] = self.time;
  if (knowing)
    known.all[self.agent] = self.time;
}

/// The last time of which `lanes` can tell: others may have written since all
/// met, or read.
uint32_t Warp::releasable(Mask lanes) const {
  Mask others = alive & ~lanes;
  return wrote & others  ? self.meetTime
         : read & others ? self.exchangeTime
                         : self.time;
}

void Warp::release(Knowledge &to, Mask lanes) {
  pendingReads().tell();
  // Some of the lanes may know more, which is told then, too.
  Knowledge &from = knowing & lanes ? known : knowledge;
  const uint32_t time = releasable(lanes);
  const uint32_t async = from.async[self.agent];
  from.all[self.agent] = time;
  from.async[self.agent] = std::min(async, time);
  if (Paths *paths = Paths::current)
    paths->isOfLanes = lanes != alive;
  to.add(from);
  if (Paths *paths = Paths::current)
    paths->isOfLanes = false;
  from.async[self.agent] = async;
  tick();
}

PendingReads &Warp::pendingReads() {
  return block->cluster->pendingReads[self.agent];
}

void Warp::beginLoad(const Instruction &instruction, unsigned count) {
  tick(); // so that no other access is at this time
  pendingReads().begin(instruction, count, self.time, values.size());
}

template <typename F> void Warp::learn(Mask lanes, F f) {
  if ((lanes & alive) == alive) {
    f(knowledge);
    if (knowing)
      f(known);
    return;
  }
  if (!knowing)
    known.add(knowledge);
  knowing |= lanes;
  f(known);
  if ((knowing & alive) != alive)
    return;
  knowledge.add(known);
  knowing = 0;
}

void Warp::acquire(const Knowledge &from, Mask lanes) {
  // Who opens a barrier is not who learns of that.
  Paths *paths = Paths::current;
  const int opener = paths ? std::exchange(paths->edge, edge) : 0;
  learn(lanes, [&](Knowledge &to) { to.add(from); });
  // What a lane has told is in order with what all know now.
  if ((lanes & alive) == alive && self.agent < from.all.size())
    setMeetTime(from.all[self.agent], from.all[self.agent]);
  if (paths)
    paths->edge = opener;
}

void Warp::learnEnd(size_t agent, uint32_t time, bool isAsync, Mask lanes) {
  learn(lanes, [&](Knowledge &to) {
    if (isAsync)
      to.addEnd(agent, time);
    else
      raise(to.all, agent, time);
  });
}

void Warp::fence(Mask lanes) {
  pendingReads().finish(self.time);
  const uint32_t time = releasable(lanes), now = self.time;
  learn(lanes, [&](Knowledge &to) {
    to.all[self.agent] = time;
    to.fence();
    to.all[self.agent] = now;
  });
  tick();
}

void Warp::setMeetTime(uint32_t time, uint32_t exchangeTime) {
  self.meetTime = std::max(self.meetTime, time);
  self.exchangeTime = std::max(self.exchangeTime, exchangeTime);
  if (Paths *paths = Paths::current)
    paths->meet(self.agent, self.meetTime, self.exchangeTime);
  if (wroteTime <= self.meetTime)
    wrote = 0;
  if (readTime <= self.exchangeTime)
    read = 0;
}

void Warp::meet() {
  if (knowing) {
    knowledge.add(known);
    knowing = 0;
  }
  setMeetTime(self.time, self.time);
  tick();
}

void Warp::exchange() {
  // Nothing was read that would have to be told apart.
  if (!read)
    return;
  setMeetTime(self.meetTime, self.time);
  tick();
}

Access Warp::sideOf(size_t agent, uint32_t time, unsigned lane,
                    bool isAsync) const {
  const Knowledge &mine = knowledgeOf(lane);
  Access side;
  side.agent = agent;
  side.time = time;
  side.reads = &mine.all;
  side.writes = isAsync ? &mine.async : &mine.all;
  side.line = self.line;
  if (isAsync)
    side.loads = &block->cluster->pendingReads;
  return side;
}
