// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gather on the null stream, for which the host waits.

#include "rank_buffer.h"

#include <algorithm>

using namespace gdnrt;

::gdnrt::Result<std::unique_ptr<RankBuffer>>
RankBuffer::make(std::shared_ptr<Device> device, Exchange &exchange,
                 size_t bytes) {
  std::unique_ptr<RankBuffer> buffer(
      new RankBuffer(std::move(device), exchange, bytes));
  const auto parts = static_cast<size_t>(exchange.size()) + 1;
  auto data = buffer->device_->allocate(std::max<size_t>(parts * bytes, 1));
  if (!data.isOk())
    return data.status();
  buffer->data_ = static_cast<char *>(*data);
  return buffer;
}

RankBuffer::~RankBuffer() {
  if (data_)
    (void)device_->free(data_);
}

Status RankBuffer::write(const void *own) {
  // An exchange that has failed says so in the gather.
  return data_ ? device_->write(data_, own, bytes_) : Status();
}

Status RankBuffer::gather(void *all) {
  char *receive = data_ + bytes_;
  Status status = exchange_.allGather(data_, receive, bytes_, nullptr);
  if (status.isOk())
    status = exchange_.wait(nullptr);
  if (status.isOk())
    return device_->read(all, receive,
                         bytes_ * static_cast<size_t>(exchange_.size()));
  // A kernel of a communicator of the caller may wait for a rank that never
  // comes, and to free memory is to wait for the kernel.
  if (!exchange_.isOfHost())
    data_ = nullptr;
  return status;
}
