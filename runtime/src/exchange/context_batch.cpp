// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks have to know of each other's parts of a batch.

#include "gdnrt/context_plan.h"

#include "rank_buffer.h"

#include <algorithm>
#include <utility>

using namespace gdnrt;

namespace {

/// A value that all ranks have to have.
struct Agreed {
  const char *name;
  int64_t ContextHead::*value;
};
constexpr Agreed kAgreed[] = {{"num_sequences", &ContextHead::count},
                              {"num_heads", &ContextHead::heads},
                              {"num_slots", &ContextHead::slots},
                              {"null_slot", &ContextHead::nullSlot},
                              {"checkpoint_tokens", &ContextHead::checkpoints}};

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

ContextHead ContextBatch::head() const {
  ContextHead head;
  head.count = count();
  head.heads = heads;
  head.slots = slots;
  head.nullSlot = nullSlot;
  head.checkpoints = static_cast<int64_t>(checkpointTokens.size());
  return head;
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

ContextHeads::ContextHeads(std::unique_ptr<RankBuffer> buffer, size_t ranks)
    : buffer_(std::move(buffer)), all_(ranks) {}

ContextHeads::~ContextHeads() = default;

Result<std::shared_ptr<ContextHeads>>
ContextHeads::make(std::shared_ptr<Device> device, Exchange &exchange) {
  auto buffer =
      RankBuffer::make(std::move(device), exchange, sizeof(ContextHead));
  if (!buffer.isOk())
    return buffer.status();
  return std::shared_ptr<ContextHeads>(new ContextHeads(
      std::move(*buffer), static_cast<size_t>(exchange.size())));
}

Status ContextHeads::agree(ContextHead own, Status status) {
  own.failure = static_cast<int64_t>(status.code());
  Status told = buffer_->write(&own);
  if (told.isOk())
    told = buffer_->gather(all_.data());
  if (!status.isOk() || !told.isOk())
    return status.isOk() ? told : status;
  for (size_t r = 0; r < all_.size(); ++r) {
    const auto code = static_cast<StatusCode>(all_[r].failure);
    if (code == StatusCode::invalidArgument)
      return invalid("context plan: expected arguments that go together on all "
                     "ranks, got others on rank ",
                     r);
    if (code != StatusCode::ok)
      return failure(code, "context plan: expected a plan on all ranks, got ",
                     toString(code), " on rank ", r);
  }
  for (const Agreed &agreed : kAgreed)
    for (size_t r = 0; r < all_.size(); ++r)
      if (all_[r].*agreed.value != all_[0].*agreed.value)
        return invalid(agreed.name, ": expected ", all_[0].*agreed.value,
                       ", which rank 0 has, got ", all_[r].*agreed.value,
                       " on rank ", r);
  return {};
}

//===----------------------------------------------------------------------===//
// What has to be the same
//===----------------------------------------------------------------------===//

ContextAgreement::ContextAgreement(const ContextBatch &batch) : batch_(batch) {}

ContextAgreement::~ContextAgreement() = default;

Status ContextAgreement::prepare(std::shared_ptr<Device> device,
                                 Exchange &exchange) {
  const auto count = static_cast<size_t>(batch_.count());
  none_.resize(count + 1);
  for (size_t n = 0; n < count; ++n)
    mine_.push_back(batch_.starts[n + 1] - batch_.starts[n]);
  for (const Same &each : same())
    mine_.insert(mine_.end(), each.values->begin(), each.values->end());
  all_.resize(static_cast<size_t>(exchange.size()) * mine_.size());
  if (count == 0)
    return {};
  auto buffer = RankBuffer::make(std::move(device), exchange,
                                 mine_.size() * sizeof(int64_t));
  if (!buffer.isOk())
    return buffer.status();
  buffer_ = std::move(*buffer);
  return buffer_->write(mine_.data());
}

std::array<ContextAgreement::Same, 6> ContextAgreement::same() const {
  return {
      {{"slots", "sequence", &batch_.readSlots},
       {"write_slots", "sequence", &batch_.writeSlots},
       {"has_initial", "sequence", &batch_.hasInitial},
       {"cu_checkpoints", "sequence",
        batch_.checkpointStarts.empty() ? &none_ : &batch_.checkpointStarts},
       {"checkpoint_tokens", "checkpoint", &batch_.checkpointTokens},
       {"checkpoint_slots", "checkpoint", &batch_.checkpointSlots}}};
}

Status ContextAgreement::gather() {
  return buffer_ ? buffer_->gather(all_.data()) : Status();
}

Result<std::vector<std::vector<int64_t>>> ContextAgreement::lengths() const {
  const auto count = static_cast<size_t>(batch_.count());
  const size_t ranks = mine_.empty() ? 0 : all_.size() / mine_.size();
  std::vector<std::vector<int64_t>> lengths;
  for (size_t r = 0; r < ranks; ++r) {
    const int64_t *of = all_.data() + r * mine_.size();
    lengths.emplace_back(of, of + count);
    size_t at = count;
    for (const Same &each : same())
      for (size_t i = 0; count != 0 && i < each.values->size(); ++i, ++at)
        if (of[at] != all_[at])
          return invalid(each.name, ": expected ", all_[at], " of ", each.of,
                         " ", i, ", which rank 0 has, got ", of[at],
                         " on rank ", r);
  }
  return lengths;
}
