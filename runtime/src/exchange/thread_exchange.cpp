// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange among threads of one process, for memory of the host.

#include "gdnrt/exchange.h"

#include <condition_variable>
#include <cstring>
#include <mutex>

using namespace gdnrt;

namespace {

/// What the threads share: what each gave, and how many have come.
class Meeting {
public:
  Meeting(int size, std::chrono::milliseconds timeout)
      : given_(size), timeout_(timeout) {}

  int size() const { return static_cast<int>(given_.size()); }

  Status gather(int rank, const void *send, void *receive, uint64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (!broken_.isOk())
        return broken_; // others may still read what is given
      given_[rank] = {send, bytes};
    }
    if (Status s = meet(rank); !s.isOk())
      return s;
    // All ranks find the same one that differs.
    for (int other = 1; other < size(); ++other)
      if (given_[other].bytes != given_[0].bytes)
        return breakUp(invalid("exchange: bytes: expected ", given_[0].bytes,
                               ", those of rank 0, got ", given_[other].bytes,
                               " of rank ", other));
    for (int other = 0; other < size(); ++other) {
      char *to = static_cast<char *>(receive) + other * bytes;
      if (bytes != 0 && to != given_[other].data)
        std::memcpy(to, given_[other].data, bytes);
    }
    part();
    return {};
  }

  Status breakUp(Status why) {
    const std::lock_guard lock(mutex_);
    if (broken_.isOk())
      broken_ = std::move(why);
    all_.notify_all();
    return broken_;
  }

  Status broken() {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

private:
  struct Given {
    const void *data = nullptr;
    uint64_t bytes = 0;
  };

  /// Returns when all ranks are here.
  Status meet(int rank) {
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
                        size(), ": expected all ranks within ",
                        timeout_.count(), " ms, got ", count_);
      all_.notify_all();
    }
    return broken_;
  }

  /// Returns when no rank reads what another gave. All of them are copying, so
  /// nobody is late, and a rank that is aborted waits as well.
  void part() {
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

  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<Given> given_;
  const std::chrono::milliseconds timeout_;
  int count_ = 0;
  uint64_t turn_ = 0;
  Status broken_;
};

class ThreadExchange final : public Exchange {
public:
  ThreadExchange(int rank, std::shared_ptr<Meeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  Status allGather(const void *send, void *receive, uint64_t bytes,
                   void *) override {
    return meeting_->gather(rank_, send, receive, bytes);
  }
  Status wait(void *) override { return meeting_->broken(); }
  void abort() override {
    (void)meeting_->breakUp(
        failure(StatusCode::ioError, "exchange: rank ", rank_, " was aborted"));
  }

private:
  const int rank_;
  std::shared_ptr<Meeting> meeting_;
};

} // namespace

::gdnrt::Result<std::vector<std::unique_ptr<Exchange>>>
gdnrt::makeThreadExchanges(int size, std::chrono::milliseconds timeout) {
  if (size < 1)
    return invalid("exchange: num_ranks: expected 1 or more, got ", size);
  if (timeout.count() < 1)
    return invalid("exchange: timeout_ms: expected 1 or more, got ",
                   timeout.count());
  auto meeting = std::make_shared<Meeting>(size, timeout);
  std::vector<std::unique_ptr<Exchange>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<ThreadExchange>(rank, meeting));
  return ranks;
}
