// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a device, or of the host where that is the same, in which ranks
// exchange a few numbers that the host has.

#ifndef GDNRT_SRC_EXCHANGE_RANK_BUFFER_H
#define GDNRT_SRC_EXCHANGE_RANK_BUFFER_H

#include "gdnrt/exchange.h"

#include <cstddef>
#include <memory>

namespace gdnrt {

class RankBuffer {
public:
  /// Room for `bytes` bytes of each rank. The exchange outlives it.
  static Result<std::unique_ptr<RankBuffer>>
  make(std::shared_ptr<Device> device, Exchange &exchange, size_t bytes);
  ~RankBuffer();
  RankBuffer(const RankBuffer &) = delete;
  RankBuffer &operator=(const RankBuffer &) = delete;

  /// What this rank gives in the next gather.
  Status write(const void *own);
  /// What each rank gave, one behind the other. All ranks call it, and it takes
  /// no memory but for errors.
  Status gather(void *all);

private:
  RankBuffer(std::shared_ptr<Device> device, Exchange &exchange, size_t bytes)
      : device_(std::move(device)), exchange_(exchange), bytes_(bytes) {}

  std::shared_ptr<Device> device_;
  Exchange &exchange_;
  size_t bytes_;
  /// What this rank gives, and behind it what all gave; null: left to what
  /// still uses it.
  char *data_ = nullptr;
};

} // namespace gdnrt

#endif // GDNRT_SRC_EXCHANGE_RANK_BUFFER_H
