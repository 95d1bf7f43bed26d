// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange on a communicator of NCCL, on the stream of the caller. The host
// waits in no call of NCCL: it asks again until a deadline.

#include "gdnrt/exchange.h"

#include <exception>
#include <future>
#include <limits>
#include <thread>

using namespace gdnrt;

Exchange::~Exchange() = default;

namespace {

/// How long a host waits for a communicator that is aborted.
constexpr std::chrono::seconds kAbortTime{1};

/// NCCL tells its kernels to end at once, but returns only when no graph has
/// any of them: the thread that it is called on may go on after this function.
void abortCommunicator(const std::shared_ptr<const nccl::Library> &library,
                       nccl::Comm comm) {
  std::future<void> over;
  try {
    auto isOver = std::make_shared<std::promise<void>>();
    over = isOver->get_future();
    std::thread([library, comm, isOver] {
      (void)library->commAbort(comm);
      isOver->set_value();
    }).detach();
  } catch (const std::exception &) {
    // There is no memory for a thread, or there are too many of them.
    (void)library->commAbort(comm);
    return;
  }
  (void)over.wait_for(kAbortTime);
}

class NcclExchange final : public Exchange {
public:
  NcclExchange(std::shared_ptr<const nccl::Library> library,
               std::shared_ptr<Device> device, std::unique_ptr<HostLink> link,
               std::shared_ptr<StreamEvent> event,
               const NcclExchangeOptions &options)
      : library_(std::move(library)), device_(std::move(device)),
        link_(std::move(link)), event_(std::move(event)),
        comm_(options.communicator), isOwn_(!options.communicator),
        rank_(options.rank), size_(options.size), timeout_(options.timeout) {}
  ~NcclExchange() override {
    if (!isOwn_ || !comm_)
      return;
    // What a communicator still has to do ends first, and graphs that have its
    // kernels are destroyed.
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    nccl::Result state = library_->commFinalize(comm_);
    while ((state == nccl::kSuccess || state == nccl::kInProgress) &&
           library_->commGetAsyncError(comm_, &state) == nccl::kSuccess &&
           state == nccl::kInProgress &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(kExchangePause);
    if (state == nccl::kSuccess)
      (void)library_->commDestroy(comm_);
    else
      abortCommunicator(library_, comm_);
  }

  Status connect(const nccl::UniqueId &id) {
    nccl::Config config;
    config.blocking = 0;
    return settle(
        library_->commInitRankConfig(&comm_, size_, id, rank_, &config),
        "ncclCommInitRankConfig");
  }
  /// The caller's communicator has the ranks that the caller names.
  Status compare() {
    int size = 0, rank = 0;
    if (Status s =
            library_->check(library_->commCount(comm_, &size), "ncclCommCount");
        !s.isOk())
      return s;
    if (Status s = library_->check(library_->commUserRank(comm_, &rank),
                                   "ncclCommUserRank");
        !s.isOk())
      return s;
    if (size != size_)
      return invalid("exchange: num_ranks: expected ", size,
                     ", those of the communicator, got ", size_);
    if (rank != rank_)
      return invalid("exchange: rank: expected ", rank,
                     ", that of the communicator, got ", rank_);
    return {};
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool isOfHost() const override { return device_->properties().hostReadable; }

  Status allGather(const void *send, void *receive, uint64_t bytes,
                   void *stream) override {
    if (!failed_.isOk())
      return failed_;
    return settle(
        library_->allGather(send, receive, bytes, nccl::kInt8, comm_, stream),
        "ncclAllGather");
  }

  Status wait(void *stream) override {
    if (!failed_.isOk())
      return failed_;
    if (Status s = refuseCapture(*device_, stream, "exchange: wait"); !s.isOk())
      return s;
    if (Status s = event_->record(stream); !s.isOk())
      return s;
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    for (;;) {
      auto over = event_->isOver();
      if (!over.isOk())
        return fail(over.status());
      if (*over)
        return {};
      nccl::Result state = nccl::kSuccess;
      if (Status s = library_->check(library_->commGetAsyncError(comm_, &state),
                                     "ncclCommGetAsyncError");
          !s.isOk())
        return fail(s);
      if (state != nccl::kSuccess && state != nccl::kInProgress)
        return fail(library_->check(state, "another rank or the network"));
      if (std::chrono::steady_clock::now() >= deadline)
        return fail(late("the stream to end"));
      std::this_thread::sleep_for(kExchangePause);
    }
  }

  void abort() override { (void)fail(failure(StatusCode::ioError, aborted)); }

private:
  static constexpr const char *aborted = "exchange: this rank was aborted";

  Status late(const char *what) const {
    return failure(StatusCode::ioError, "exchange: rank ", rank_, " of ", size_,
                   ": expected ", what, " within ", timeout_.count(),
                   " ms; another rank may have failed");
  }

  /// Keeps the failure: a communicator of which a call failed is of no more
  /// use.
  Status fail(Status status) {
    if (failed_.isOk())
      failed_ = std::move(status);
    if (isOwn_ && comm_) {
      abortCommunicator(library_, comm_);
      comm_ = nullptr;
    }
    return failed_;
  }

  /// OK when what a call has begun is on its way.
  Status settle(nccl::Result result, const char *call) {
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    while (result == nccl::kInProgress) {
      if (std::chrono::steady_clock::now() >= deadline)
        return fail(late(call));
      std::this_thread::sleep_for(kExchangePause);
      nccl::Result state = nccl::kSuccess;
      if (Status s = library_->check(library_->commGetAsyncError(comm_, &state),
                                     "ncclCommGetAsyncError");
          !s.isOk())
        return fail(s);
      result = state;
    }
    Status status = library_->check(result, call);
    return status.isOk() ? status : fail(std::move(status));
  }

  std::shared_ptr<const nccl::Library> library_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<HostLink> link_;
  std::shared_ptr<StreamEvent> event_; // of the link
  nccl::Comm comm_;
  const bool isOwn_;
  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  Status failed_;
};

} // namespace

Status gdnrt::checkRanks(int rank, int size,
                         std::chrono::milliseconds timeout) {
  if (size < 1)
    return invalid("exchange: num_ranks: expected 1 or more, got ", size);
  if (rank < 0 || rank >= size)
    return invalid("exchange: rank: expected 0 to ", size - 1, ", got ", rank);
  // Clocks count in nanoseconds, of which a longer one would be too many.
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (timeout.count() < 1 || timeout.count() > most)
    return invalid("exchange: timeout_ms: expected 1 to ", most, ", got ",
                   timeout.count());
  return {};
}

::gdnrt::Result<nccl::UniqueId> gdnrt::makeNcclId(const std::string &name) {
  auto library = nccl::Library::load(name);
  if (!library.isOk())
    return library.status();
  nccl::UniqueId id;
  if (Status s =
          (*library)->check((*library)->getUniqueId(&id), "ncclGetUniqueId");
      !s.isOk())
    return s;
  return id;
}

::gdnrt::Result<std::unique_ptr<Exchange>>
gdnrt::makeNcclExchange(std::shared_ptr<Device> device,
                        const NcclExchangeOptions &options) {
  if (Status s = checkRanks(options.rank, options.size, options.timeout);
      !s.isOk())
    return s;
  auto library = nccl::Library::load(options.library);
  if (!library.isOk())
    return library.status();
  auto link = device->makeHostLink();
  if (!link.isOk())
    return link.status();
  auto event = (*link)->makeEvent();
  if (!event.isOk())
    return event.status();
  auto exchange = std::make_unique<NcclExchange>(
      *library, std::move(device), std::move(*link), *event, options);
  Status ready = options.communicator ? exchange->compare()
                                      : exchange->connect(options.id);
  if (!ready.isOk())
    return ready;
  return std::unique_ptr<Exchange>(std::move(exchange));
}
