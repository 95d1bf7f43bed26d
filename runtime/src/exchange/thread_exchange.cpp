// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange among threads of one process, for memory of the host.

#include "gdnrt/exchange.h"
#include "gdnrt/meeting.h"

#include <cstring>

using namespace gdnrt;

namespace {

class HostCopies final : public GatherSteps {
  Status take(int, void *to, const void *from, uint64_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
};

class ThreadExchange final : public Exchange {
public:
  ThreadExchange(int rank, std::shared_ptr<Meeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  bool isOfHost() const override { return true; }
  Status allGather(const void *send, void *receive, uint64_t bytes,
                   void *) override {
    HostCopies copies;
    return meeting_->gather(rank_, send, receive, bytes, copies);
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

Status gdnrt::checkThreads(int size, std::chrono::milliseconds timeout) {
  constexpr int most = 1 << 16;
  if (size > most)
    return invalid("exchange: num_ranks: expected 1 to ", most,
                   ", as each is a thread, got ", size);
  return checkRanks(0, size, timeout);
}

::gdnrt::Result<std::vector<std::unique_ptr<Exchange>>>
gdnrt::makeThreadExchanges(int size, std::chrono::milliseconds timeout) {
  if (Status s = checkThreads(size, timeout); !s.isOk())
    return s;
  auto meeting = std::make_shared<Meeting>(size, timeout);
  std::vector<std::unique_ptr<Exchange>> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<ThreadExchange>(rank, meeting));
  return ranks;
}
