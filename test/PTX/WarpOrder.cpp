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
  const Cluster &cluster = *block->cluster;
  for (Knowledge *mine : {&knowledge, knowing ? &known : nullptr})
    if (mine)
      mine->all[self.agent] = mine->all[cluster.readsOf(self.agent)] =
          mine->all[cluster.writesOf(self.agent)] = self.time;
}

/// The last times of which `lanes` can tell: others may have written since all
/// met, or read.
OwnTimes Warp::releasable(Mask lanes) const {
  Mask others = alive & ~lanes;
  return {wrote & others  ? self.meetTime
          : read & others ? self.exchangeTime
                          : self.time,
          global.read & others ? global.exchangeTime : self.time,
          global.wrote & others ? global.meetTime : self.time};
}

/// The warp's own times in a clock.
OwnTimes Warp::timesIn(const Clock &clock) const {
  const Cluster &cluster = *block->cluster;
  auto at = [&](size_t agent) {
    return agent < clock.size() ? clock[agent] : 0;
  };
  return {at(self.agent), at(cluster.readsOf(self.agent)),
          at(cluster.writesOf(self.agent))};
}

void Warp::setTimes(Clock &clock, const OwnTimes &times) const {
  const Cluster &cluster = *block->cluster;
  clock[self.agent] = times.shared;
  clock[cluster.readsOf(self.agent)] = times.reads;
  clock[cluster.writesOf(self.agent)] = times.writes;
}

void Warp::release(Knowledge &to, Mask lanes) {
  pendingReads().tell();
  // Some of the lanes may know more, which is told then, too.
  Knowledge &from = knowing & lanes ? known : knowledge;
  const OwnTimes times = releasable(lanes);
  const OwnTimes async = timesIn(from.async);
  setTimes(from.all, times);
  setTimes(from.async, {std::min(async.shared, times.shared),
                        std::min(async.reads, times.reads),
                        std::min(async.writes, times.writes)});
  if (Paths *paths = Paths::current)
    paths->isOfLanes = lanes != alive;
  to.add(from);
  if (Paths *paths = Paths::current)
    paths->isOfLanes = false;
  setTimes(from.async, async);
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
  if ((lanes & alive) == alive && self.agent < from.all.size()) {
    const OwnTimes told = timesIn(from.all);
    setMeetTime(told.shared, told.shared);
    setGlobalMeetTime(told.writes, told.reads);
  }
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

void Warp::fence(Mask lanes, bool ofShared, bool ofGlobal) {
  // One for global memory alone waits for no load of shared memory.
  if (ofShared)
    pendingReads().finish(self.time);
  const OwnTimes times = releasable(lanes), now = timesIn(knowledge.all);
  const size_t shared = block->cluster->numAgents();
  learn(lanes, [&](Knowledge &to) {
    setTimes(to.all, times);
    to.fence(ofShared ? 0 : shared, ofGlobal ? SIZE_MAX : shared, ofGlobal);
    setTimes(to.all, now);
  });
  tick();
}

void Warp::endLaunchAhead(uint32_t launches, Mask lanes) {
  learn(lanes, [&](Knowledge &to) {
    to.launches = std::max(to.launches, launches);
    to.isAheadOver = true;
    if (Paths::current)
      raise(to.all, block->cluster->launchAgent(), 1);
  });
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

void Warp::setGlobalMeetTime(uint32_t time, uint32_t exchangeTime) {
  global.meetTime = std::max(global.meetTime, time);
  global.exchangeTime = std::max(global.exchangeTime, exchangeTime);
  if (Paths *paths = Paths::current) {
    const Cluster &cluster = *block->cluster;
    for (size_t agent :
         {cluster.readsOf(self.agent), cluster.writesOf(self.agent)})
      paths->meet(agent, global.meetTime, global.exchangeTime);
  }
  if (global.wroteTime <= global.meetTime)
    global.wrote = 0;
  if (global.readTime <= global.exchangeTime)
    global.read = 0;
}

void Warp::meet() {
  if (knowing) {
    knowledge.add(known);
    knowing = 0;
  }
  setMeetTime(self.time, self.time);
  setGlobalMeetTime(self.time, self.time);
  tick();
}

void Warp::exchange() {
  if (global.readsSeen.others) {
    acquire(global.readsSeen, alive);
    global.readsSeen.clear();
  }
  // Nothing was read that would have to be told apart.
  if (!(read | global.read))
    return;
  setMeetTime(self.meetTime, self.time);
  setGlobalMeetTime(global.meetTime, self.time);
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
