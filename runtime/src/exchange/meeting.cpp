// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A barrier before and behind what threads take from each other, with a
// time-out before it.

#include "gdnrt/meeting.h"

using namespace gdnrt;

GatherSteps::~GatherSteps() = default;

Status Meeting::gather(int rank, const void *send, void *receive,
                       uint64_t bytes, GatherSteps &steps) {
  {
    const std::lock_guard lock(mutex_);
    if (!broken_.isOk())
      return broken_; // others may still read what is given
    given_[static_cast<size_t>(rank)] = {send, bytes};
  }
  if (Status s = steps.give(); !s.isOk())
    return breakUp(std::move(s));
  if (Status s = meet(rank); !s.isOk())
    return s;
  // All ranks find the same one that differs.
  for (size_t other = 1; other < given_.size(); ++other)
    if (given_[other].bytes != given_[0].bytes)
      return breakUp(invalid("exchange: bytes: expected ", given_[0].bytes,
                             ", those of rank 0, got ", given_[other].bytes,
                             " of rank ", other));
  Status own = takeAll(rank, receive, bytes, steps);
  if (own.isOk())
    own = steps.taken();
  if (!own.isOk())
    (void)breakUp(own);
  part();
  // Others hear of a failure in their next call.
  if (!own.isOk())
    return own;
  own = steps.part();
  return own.isOk() ? own : breakUp(std::move(own));
}

Status Meeting::takeAll(int rank, void *receive, uint64_t bytes,
                        GatherSteps &steps) {
  // A rank begins behind itself, so that not all read the same one.
  for (int i = 0; bytes != 0 && i < size(); ++i) {
    const int other = (rank + i) % size();
    const void *from = given_[static_cast<size_t>(other)].data;
    char *to =
        static_cast<char *>(receive) + static_cast<uint64_t>(other) * bytes;
    if (to != from)
      if (Status s = steps.take(other, to, from, bytes); !s.isOk())
        return s;
  }
  return {};
}

Status Meeting::breakUp(Status why) {
  const std::lock_guard lock(mutex_);
  if (broken_.isOk())
    broken_ = std::move(why);
  all_.notify_all();
  return broken_;
}

Status Meeting::broken() {
  const std::lock_guard lock(mutex_);
  return broken_;
}

/// Returns when all ranks are here.
Status Meeting::meet(int rank) {
  std::unique_lock lock(mutex_);
  if (!broken_.isOk())
    return broken_;
  const uint64_t turn = turn_;
  if (++count_ == size()) {
    count_ = 0;
    ++turn_;
    all_.notify_all();
    return {};
  }
  const bool came = all_.wait_for(
      lock, timeout_, [&] { return turn_ != turn || !broken_.isOk(); });
  if (turn_ != turn)
    return {};
  if (!came && broken_.isOk()) {
    broken_ = failure(StatusCode::ioError, "exchange: rank ", rank, " of ",
                      size(), ": expected all ranks within ", timeout_.count(),
                      " ms, got ", count_);
    all_.notify_all();
  }
  return broken_;
}

/// Returns when no rank takes what another gave. All of them are taking, so
/// nobody is late, and a rank that is aborted waits as well.
void Meeting::part() {
  std::unique_lock lock(mutex_);
  const uint64_t turn = turn_;
  if (++count_ == size()) {
    count_ = 0;
    ++turn_;
    all_.notify_all();
    return;
  }
  all_.wait(lock, [&] { return turn_ != turn; });
}
