// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a rank cuts its part of a batch into segments, which end at checkpoints,
// and which states go where.

#include "gdnrt/context_plan.h"

#include <algorithm>
#include <utility>

using namespace gdnrt;

/// Segments are multiples of it: a chunk.
static constexpr int64_t kChunk = 64;

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
