// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks have to know of each other's parts of a batch.

#include "gdnrt/context_plan.h"

#include <algorithm>

using namespace gdnrt;

namespace {

/// What all ranks send first. Its size is known.
struct Head {
  int64_t failed = 0, count = 0, heads = 0, slots = 0, nullSlot = 0;
  int64_t checkpoints = 0;
};

/// A value that all ranks have to have.
struct Agreed {
  const char *name;
  int64_t Head::*value;
};
constexpr Agreed kAgreed[] = {{"num_sequences", &Head::count},
                              {"num_heads", &Head::heads},
                              {"num_slots", &Head::slots},
                              {"null_slot", &Head::nullSlot},
                              {"checkpoint_tokens", &Head::checkpoints}};

/// Memory of the device, or of the host where that is the same.
class Buffer {
public:
  static Result<std::unique_ptr<Buffer>> make(Device &device, size_t bytes) {
    auto data = device.allocate(std::max<size_t>(bytes, 1));
    if (!data.isOk())
      return data.status();
    return std::unique_ptr<Buffer>(new Buffer(device, *data));
  }
  ~Buffer() {
    if (data_)
      (void)device_.free(data_);
  }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  char *data() { return static_cast<char *>(data_); }
  /// Leaves the memory to what still uses it.
  void abandon() { data_ = nullptr; }

private:
  Buffer(Device &device, void *data) : device_(device), data_(data) {}
  Device &device_;
  void *data_;
};

/// What each rank gave, one behind the other.
Status gather(Device &device, Exchange &exchange, const void *own, size_t bytes,
              void *all) {
  const auto ranks = static_cast<size_t>(exchange.size());
  auto buffer = Buffer::make(device, bytes * (ranks + 1));
  if (!buffer.isOk())
    return buffer.status();
  char *send = (*buffer)->data(), *receive = send + bytes;
  if (Status s = device.write(send, own, bytes); !s.isOk())
    return s;
  Status status = exchange.allGather(send, receive, bytes, nullptr);
  if (status.isOk())
    status = exchange.wait(nullptr);
  if (!status.isOk()) {
    // A kernel of a communicator of the caller may wait for a rank that never
    // comes, and to free memory is to wait for the kernel.
    if (!exchange.isOfHost())
      (*buffer)->abandon();
    return status;
  }
  return device.read(all, receive, bytes * ranks);
}

} // namespace

Status ContextBatch::check() const {
  if (heads < 1)
    return invalid("num_heads: expected at least 1, got ", heads);
  if (slots < 0)
    return invalid("num_slots: expected 0 or more, got ", slots);
  if (segments < 1)
    return invalid("num_segments: expected at least 1, got ", segments);
  if (tokens < 0 || tokens > INT32_MAX)
    return invalid("num_tokens: expected 0 to ", INT32_MAX, ", got ", tokens);
  int64_t before = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    if (starts[n] < before || starts[n] > tokens)
      return invalid("starts: expected ", before, " to ", tokens,
                     " as element ", n, ", got ", starts[n]);
    before = starts[n];
  }
  before = 0;
  for (size_t n = 0; n < checkpointStarts.size(); ++n) {
    if (checkpointStarts[n] < before)
      return invalid("cu_checkpoints: expected at least ", before,
                     " as element ", n, ", got ", checkpointStarts[n]);
    before = checkpointStarts[n];
  }
  std::vector<int64_t> written;
  for (int64_t n = 0; n < count(); ++n)
    if (isSlot(readSlots[n]) && isSlot(writeSlots[n]))
      written.push_back(writeSlots[n]);
  std::sort(written.begin(), written.end());
  auto twice = std::adjacent_find(written.begin(), written.end());
  if (twice != written.end())
    return invalid("write_slots: expected each slot once, got ", *twice,
                   " twice");
  return {};
}

Result<std::vector<std::vector<int64_t>>>
gdnrt::agreeOnBatch(Device &device, Exchange &exchange,
                    const ContextBatch &batch, const Status &status) {
  const auto ranks = static_cast<size_t>(exchange.size());
  Head head;
  head.failed = status.isOk() ? 0 : 1;
  head.count = batch.count();
  head.heads = batch.heads;
  head.slots = batch.slots;
  head.nullSlot = batch.nullSlot;
  head.checkpoints = static_cast<int64_t>(batch.checkpointTokens.size());
  std::vector<Head> heads(ranks);
  if (Status s = gather(device, exchange, &head, sizeof(head), heads.data());
      !s.isOk())
    return status.isOk() ? s : status;
  if (!status.isOk())
    return status;
  for (size_t r = 0; r < ranks; ++r)
    if (heads[r].failed)
      return invalid("context plan: expected arguments that go together on all "
                     "ranks, got others on rank ",
                     r);
  for (const Agreed &agreed : kAgreed)
    for (size_t r = 0; r < ranks; ++r)
      if (heads[r].*agreed.value != heads[0].*agreed.value)
        return invalid(agreed.name, ": expected ", heads[0].*agreed.value,
                       ", which rank 0 has, got ", heads[r].*agreed.value,
                       " on rank ", r);
  // Lengths, then what has to be the same.
  const auto count = static_cast<size_t>(batch.count());
  const std::vector<int64_t> none(count + 1); // without checkpoints
  const struct {
    const char *name, *of;
    const std::vector<int64_t> &values;
  } same[] = {{"slots", "sequence", batch.readSlots},
              {"write_slots", "sequence", batch.writeSlots},
              {"has_initial", "sequence", batch.hasInitial},
              {"cu_checkpoints", "sequence",
               batch.checkpointStarts.empty() ? none : batch.checkpointStarts},
              {"checkpoint_tokens", "checkpoint", batch.checkpointTokens},
              {"checkpoint_slots", "checkpoint", batch.checkpointSlots}};
  std::vector<int64_t> mine;
  for (size_t n = 0; n < count; ++n)
    mine.push_back(batch.starts[n + 1] - batch.starts[n]);
  for (const auto &each : same)
    mine.insert(mine.end(), each.values.begin(), each.values.end());
  std::vector<int64_t> all(ranks * mine.size());
  if (count != 0)
    if (Status s = gather(device, exchange, mine.data(),
                          mine.size() * sizeof(int64_t), all.data());
        !s.isOk())
      return s;
  std::vector<std::vector<int64_t>> lengths;
  for (size_t r = 0; r < ranks; ++r) {
    const int64_t *of = all.data() + r * mine.size();
    lengths.emplace_back(of, of + count);
    size_t at = count;
    for (const auto &each : same)
      for (size_t i = 0; count != 0 && i < each.values.size(); ++i, ++at)
        if (of[at] != all[at])
          return invalid(each.name, ": expected ", all[at], " of ", each.of,
                         " ", i, ", which rank 0 has, got ", of[at],
                         " on rank ", r);
  }
  return lengths;
}
