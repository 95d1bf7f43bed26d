// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An exchange of buffers among ranks, each of which has a part of the same
// batch: on NCCL, or among threads of one process, for memory of the host or of
// one device.

#ifndef GDNRT_EXCHANGE_H
#define GDNRT_EXCHANGE_H

#include "gdnrt/device.h"
#include "gdnrt/nccl_library.h"
#include "gdnrt/status.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace gdnrt {

/// How long a host that waits for a device sleeps between two questions.
constexpr std::chrono::microseconds kExchangePause{50};

class Exchange {
public:
  virtual ~Exchange();
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether buffers are memory of the host, and streams null.
  virtual bool isOfHost() const = 0;
  /// `receive` has the `bytes` bytes of each rank's `send`, in the order of
  /// ranks, when what was launched on `stream` so far has ended. All ranks make
  /// the same calls in the same order. `send` may be the own part of `receive`.
  virtual Status allGather(const void *send, void *receive, uint64_t bytes,
                           void *stream) = 0;
  /// Returns when `stream` has done what was launched on it, or IO_ERROR if
  /// another rank failed or did not come in time.
  virtual Status wait(void *stream) = 0;
  /// Makes every call that waits for this rank fail, now or after its time-out.
  virtual void abort() = 0;
};

/// Fails if there is no such rank, or no time to wait.
Status checkRanks(int rank, int size, std::chrono::milliseconds timeout);

/// The same for exchanges among threads, of which there is memory for each.
Status checkThreads(int size, std::chrono::milliseconds timeout);

struct NcclExchangeOptions {
  /// A name or path for dlopen.
  std::string library = nccl::kLibrary;
  /// Of the caller, or null.
  nccl::Comm communicator = nullptr;
  /// Where there is no communicator: of all ranks, from makeNcclId.
  nccl::UniqueId id = {};
  int rank = 0, size = 1;
  std::chrono::milliseconds timeout{60000};
};

/// An id for one communicator, which one rank gives to all others.
Result<nccl::UniqueId> makeNcclId(const std::string &library);

/// With an id the communicator is made for the CUDA device that is current, and
/// aborted when a rank fails; the function returns when all ranks have called
/// it, or IO_ERROR after the time-out. A communicator of the caller stays the
/// caller's.
Result<std::unique_ptr<Exchange>>
makeNcclExchange(std::shared_ptr<Device> device,
                 const NcclExchangeOptions &options);

/// One exchange for each of `size` threads, for memory of the host. Streams are
/// null.
Result<std::vector<std::unique_ptr<Exchange>>>
makeThreadExchanges(int size, std::chrono::milliseconds timeout);

/// The same for memory of a device, on streams of it.
Result<std::vector<std::unique_ptr<Exchange>>>
makeStreamExchanges(std::shared_ptr<Device> device, int size,
                    std::chrono::milliseconds timeout);

} // namespace gdnrt

#endif // GDNRT_EXCHANGE_H
