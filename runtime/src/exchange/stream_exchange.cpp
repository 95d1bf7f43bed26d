// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange among threads of one process, each with a stream of the same
// device: streams wait for each other by events, and copy on the device.

#include "gdnrt/exchange.h"
#include "gdnrt/meeting.h"

#include <thread>

using namespace gdnrt;

namespace {

/// The events of a rank. Others order their streams behind them between the
/// meetings of a gather, and the rank records them again in the next.
struct RankEvents {
  std::shared_ptr<StreamEvent> given, taken, waited;
};

/// What the ranks share.
struct Group {
  Group(std::shared_ptr<Device> device, int size,
        std::chrono::milliseconds timeout)
      : device(std::move(device)), meeting(size, timeout) {}
  std::shared_ptr<Device> device;
  std::unique_ptr<HostLink> link;
  std::vector<RankEvents> events; // of the link
  Meeting meeting;
};

class StreamCopies final : public GatherSteps {
public:
  StreamCopies(Group &group, int rank, void *stream)
      : group_(group), rank_(rank), stream_(stream) {}
  Status give() override { return own().given->record(stream_); }
  Status take(int other, void *to, const void *from, uint64_t bytes) override {
    if (other != rank_)
      if (Status s = of(other).given->orderAfter(stream_); !s.isOk())
        return s;
    return group_.device->copy(to, from, bytes, stream_);
  }
  Status taken() override { return own().taken->record(stream_); }
  /// What a rank gave may change when all have taken it.
  Status part() override {
    for (int other = 0; other < group_.meeting.size(); ++other)
      if (other != rank_)
        if (Status s = of(other).taken->orderAfter(stream_); !s.isOk())
          return s;
    return {};
  }

private:
  RankEvents &of(int rank) { return group_.events[static_cast<size_t>(rank)]; }
  RankEvents &own() { return of(rank_); }

  Group &group_;
  const int rank_;
  void *stream_;
};

class StreamExchange final : public Exchange {
public:
  StreamExchange(int rank, std::shared_ptr<Group> group)
      : rank_(rank), group_(std::move(group)) {}
  int rank() const override { return rank_; }
  int size() const override { return group_->meeting.size(); }
  bool isOfHost() const override {
    return group_->device->properties().hostReadable;
  }
  Status allGather(const void *send, void *receive, uint64_t bytes,
                   void *stream) override {
    StreamCopies copies(*group_, rank_, stream);
    return group_->meeting.gather(rank_, send, receive, bytes, copies);
  }
  Status wait(void *stream) override {
    if (Status s = group_->meeting.broken(); !s.isOk())
      return s;
    if (Status s = refuseCapture(*group_->device, stream, "exchange: wait");
        !s.isOk())
      return s;
    StreamEvent &event = *group_->events[static_cast<size_t>(rank_)].waited;
    if (Status s = event.record(stream); !s.isOk())
      return s;
    const auto deadline =
        std::chrono::steady_clock::now() + group_->meeting.timeout();
    for (;;) {
      auto over = event.isOver();
      if (!over.isOk())
        return group_->meeting.breakUp(over.status());
      if (*over)
        return {};
      if (std::chrono::steady_clock::now() >= deadline)
        return group_->meeting.breakUp(
            failure(StatusCode::ioError, "exchange: rank ", rank_, " of ",
                    size(), ": expected the stream to end within ",
                    group_->meeting.timeout().count(), " ms"));
      std::this_thread::sleep_for(kExchangePause);
    }
  }
  void abort() override {
    (void)group_->meeting.breakUp(
        failure(StatusCode::ioError, "exchange: rank ", rank_, " was aborted"));
  }

private:
  const int rank_;
  std::shared_ptr<Group> group_;
};

} // namespace

::gdnrt::Result<std::vector<std::unique_ptr<Exchange>>>
gdnrt::makeStreamExchanges(std::shared_ptr<Device> device, int size,
                           std::chrono::milliseconds timeout) {
  if (Status s = checkThreads(size, timeout); !s.isOk())
    return s;
  auto link = device->makeHostLink();
  if (!link.isOk())
    return link.status();
  auto group = std::make_shared<Group>(std::move(device), size, timeout);
  group->link = std::move(*link);
  std::vector<std::unique_ptr<Exchange>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    RankEvents events;
    for (auto *event : {&events.given, &events.taken, &events.waited}) {
      auto made = group->link->makeEvent();
      if (!made.isOk())
        return made.status();
      *event = std::move(*made);
    }
    group->events.push_back(std::move(events));
    ranks.push_back(std::make_unique<StreamExchange>(rank, group));
  }
  return ranks;
}
