// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks have to know of each other's parts of a batch, and how a rank cuts
// its own.

#include "gdnrt/context_plan.h"

#include <algorithm>
#include <utility>

using namespace gdnrt;

namespace {

/// Segments are multiples of it: a chunk.
constexpr int64_t kChunk = 64;

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
  ~Buffer() { (void)device_.free(data_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  char *data() { return static_cast<char *>(data_); }

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
  if (Status s = exchange.allGather(send, receive, bytes, nullptr); !s.isOk())
    return s;
  if (Status s = exchange.wait(nullptr); !s.isOk())
    return s;
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

namespace {
/// A state that is asked for, after so many tokens of its sequence.
struct Checkpoint {
  int64_t tokens, slot;
};
} // namespace

/// Those of sequence n, of `total` tokens, that are written.
static std::vector<Checkpoint> checkpointsOf(const ContextBatch &batch,
                                             int64_t n, int64_t total) {
  std::vector<Checkpoint> found;
  if (batch.checkpointStarts.empty())
    return found;
  int64_t most = 0;
  for (int64_t i = batch.checkpointStarts[n]; i < batch.checkpointStarts[n + 1];
       ++i) {
    const Checkpoint one = {batch.checkpointTokens[i],
                            batch.checkpointSlots[i]};
    if (one.tokens <= most || one.tokens % kChunk != 0 || one.tokens > total)
      continue;
    most = one.tokens;
    if (batch.isSlot(one.slot))
      found.push_back(one);
  }
  return found;
}

int64_t ContextSegments::checkpoints() const {
  size_t most = 0;
  for (const auto &ofRank : checkpointSlots)
    most = std::max(most, ofRank.size());
  return static_cast<int64_t>(most);
}

/// The first slot that a sequence writes and another one begins with; -1 if
/// there is none.
static int64_t findReadByAnother(const std::vector<int64_t> &readSlots,
                                 const std::vector<int64_t> &writeSlots) {
  std::vector<std::pair<int64_t, size_t>> read;
  for (size_t n = 0; n < readSlots.size(); ++n)
    if (readSlots[n] >= 0)
      read.emplace_back(readSlots[n], n);
  std::sort(read.begin(), read.end());
  for (size_t n = 0; n < writeSlots.size(); ++n)
    for (auto of = std::lower_bound(read.begin(), read.end(),
                                    std::pair(writeSlots[n], size_t{0}));
         of != read.end() && of->first == writeSlots[n]; ++of)
      if (of->second != n)
        return writeSlots[n];
  return -1;
}

Status ContextSegments::check() const {
  if (const int64_t slot = findReadByAnother(readSlots, writeSlots); slot >= 0)
    return invalid("write_slots: expected slots that no other sequence begins "
                   "with, got ",
                   slot);
  std::vector<int64_t> written;
  for (int64_t slot : writeSlots)
    if (slot >= 0)
      written.push_back(slot);
  for (const auto &ofRank : checkpointSlots)
    written.insert(written.end(), ofRank.begin(), ofRank.end());
  std::sort(written.begin(), written.end());
  auto twice = std::adjacent_find(written.begin(), written.end());
  if (twice == written.end())
    return {};
  return invalid("checkpoint_slots: expected slots that nothing else writes, "
                 "got ",
                 *twice, " twice");
}

ContextSegments
gdnrt::cutSegments(const ContextBatch &batch, size_t rank,
                   const std::vector<std::vector<int64_t>> &lengths) {
  ContextSegments made;
  made.checkpointSlots.resize(lengths.size());
  std::vector<bool> isLive(static_cast<size_t>(batch.count()));
  std::vector<int64_t> allOf(isLive.size());
  int64_t total = 0;
  for (int64_t n = 0; n < batch.count(); ++n) {
    int64_t all = 0;
    for (const std::vector<int64_t> &ofRank : lengths)
      all += ofRank[n];
    allOf[n] = all;
    isLive[n] = all > 0 && batch.isSlot(batch.readSlots[n]);
    if (isLive[n])
      total += batch.starts[n + 1] - batch.starts[n];
  }
  const int64_t share = kChunk * batch.segments;
  const int64_t tokens =
      std::max<int64_t>((total + share - 1) / share, 1) * kChunk;
  made.starts.push_back(static_cast<int32_t>(batch.starts[0]));
  auto add = [&](int64_t end, bool hasState) {
    made.places.push_back(hasState ? static_cast<int32_t>(made.places.size())
                                   : -1);
    made.starts.push_back(static_cast<int32_t>(end));
  };
  for (int64_t n = 0; n < batch.count(); ++n) {
    const int64_t begin = batch.starts[n], end = batch.starts[n + 1];
    const auto first = static_cast<int32_t>(made.places.size());
    if (!isLive[n]) {
      if (begin != end)
        add(end, false);
      continue;
    }
    // Rows of this rank that segments have to end ahead of.
    std::vector<int64_t> stops;
    for (const Checkpoint &one : checkpointsOf(batch, n, allOf[n])) {
      int64_t before = 0;
      size_t owner = 0;
      while (before + lengths[owner][n] < one.tokens)
        before += lengths[owner++][n];
      made.checkpointSlots[owner].push_back(one.slot);
      if (owner == rank)
        stops.push_back(begin + one.tokens - before);
    }
    auto stop = stops.begin();
    for (int64_t at = begin; at < end;) {
      at = std::min(at + tokens, end);
      if (stop != stops.end() && *stop <= at) {
        at = *stop++;
        made.checkpointSegments.push_back(
            static_cast<int32_t>(made.places.size()));
      }
      add(at, true);
    }
    made.first.push_back(first);
    made.count.push_back(static_cast<int32_t>(made.places.size()) - first);
    made.readSlots.push_back(batch.hasInitial[n] ? batch.readSlots[n] : -1);
    made.writeSlots.push_back(
        batch.isSlot(batch.writeSlots[n]) ? batch.writeSlots[n] : -1);
  }
  if (made.places.empty())
    add(made.starts.front(), false);
  return made;
}
