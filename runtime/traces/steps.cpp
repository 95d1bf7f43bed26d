// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of batches: which rows, and what the model makes of them.

#include "draw.h"
#include "failed.h"
#include "state.h"

#include <algorithm>

using namespace gdnrt::traces;

static std::string nameOf(int name) { return "s" + std::to_string(name); }

static void addPadding(State &state, std::vector<Planned> &plan,
                       const Step &step, bool isDecode) {
  const auto past =
      static_cast<int32_t>(1 + state.trace.numRequests + state.trace.numTrack);
  const int32_t ids[] = {0, -1, past, past + 5, -7};
  const size_t rows = draw(step, -1, 1, 3);
  state.coverage.skippedRows += rows;
  for (size_t i = 0; i < rows; ++i) {
    Planned planned;
    const size_t tokens = isDecode ? 1 : draw(step, -1, 10 + i, 4);
    for (size_t t = 0; t < tokens; ++t)
      planned.row.tokens.push_back(mix(step.seed, i, 100 + t));
    planned.row.slot = planned.row.writeSlot = ids[draw(step, -1, 20 + i, 5)];
    plan.push_back(std::move(planned));
  }
  for (size_t i = plan.size(); i > 1; --i)
    std::swap(plan[i - 1], plan[draw(step, -1, 30 + i, i)]);
}

/// The sequences that rows are of.
template <typename Plan> static auto sequencesOf(const Plan &plan) {
  std::vector<decltype(plan[0].sequence)> sequences;
  for (const auto &planned : plan)
    if (planned.sequence)
      sequences.push_back(planned.sequence);
  return sequences;
}

static std::vector<Row> rowsOf(const std::vector<Planned> &plan) {
  std::vector<Row> rows;
  for (const Planned &planned : plan)
    rows.push_back(planned.row);
  return rows;
}

void gdnrt::traces::advanceRow(State &state, Sequence &sequence,
                               const std::vector<uint64_t> &tokens,
                               size_t token,
                               const std::vector<Outputs> &outputs) {
  Known &known = sequence.known;
  for (uint64_t id : tokens) {
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      const auto index = static_cast<size_t>(layer);
      std::vector<double> expected = traces::step(
          state.engine.sizes(), state.engine.weights(layer),
          TokenInputs(state.engine.sizes(), id, layer), known.layers[index]);
      expectOutput(state,
                   nameOf(sequence.name) + ", token " +
                       std::to_string(known.done) + ", layer " +
                       std::to_string(layer),
                   expected, known.layers[index], outputs[index], token);
    }
    ++known.done;
    ++token;
    ++state.coverage.tokens;
  }
  // A row without tokens writes nothing, so that its state stays.
  if (tokens.empty())
    return;
  known.isFresh = false;
  known.pending = 0;
  sequence.accepted = 1;
  hasMoved(state, sequence);
}

/// From checkpoint to checkpoint, whose states go to the cache.
static void advancePieces(State &state, Sequence &sequence, const Row &row,
                          size_t token, const std::vector<Outputs> &outputs) {
  auto from = row.tokens.begin();
  auto advanceTo = [&](std::vector<uint64_t>::const_iterator end) {
    advanceRow(state, sequence, {from, end}, token, outputs);
    token += static_cast<size_t>(end - from);
    from = end;
  };
  for (auto [after, slot] : row.checkpoints) {
    advanceTo(row.tokens.begin() + after);
    keepCheckpoint(state, sequence.known, slot);
  }
  advanceTo(row.tokens.end());
}

static void advance(State &state, const std::vector<Planned> &plan,
                    const std::vector<Outputs> &outputs) {
  size_t token = 0;
  for (const Planned &planned : plan) {
    const std::vector<uint64_t> &tokens = planned.row.tokens;
    if (planned.sequence)
      advancePieces(state, *planned.sequence, planned.row, token, outputs);
    else
      for (size_t t = 0; t < tokens.size(); ++t)
        expectZeros(state, outputs, token + t);
    token += tokens.size();
  }
}

static int32_t writeSlotOf(const State &state, const Sequence &sequence) {
  const bool isErring = state.bug == Bug::writesShared && sequence.readSlot;
  return isErring ? sequence.readSlot : sequence.slots[0];
}

void gdnrt::traces::extend(State &state, const Step &step) {
  std::vector<Planned> plan;
  std::string text;
  for (size_t place = 0; place < state.sequences.size(); ++place) {
    Sequence &sequence = state.sequences[place];
    Known &known = sequence.known;
    if (!isNamed(step, place))
      continue;
    // A decode row among prefills, if the prompt is through.
    if (sequence.left() == 0)
      known.tokens.push_back(
          mix(step.seed, static_cast<uint64_t>(sequence.name), 3));
    // A piece now and then has no tokens.
    size_t count = draw(step, sequence.name, 1, sequence.left() + 1);
    if (draw(step, sequence.name, 2, 2))
      count = sequence.left();
    Planned planned;
    planned.sequence = &sequence;
    auto first = known.tokens.begin() + static_cast<std::ptrdiff_t>(known.done);
    planned.row.tokens.assign(first,
                              first + static_cast<std::ptrdiff_t>(count));
    planned.row.slot = sequence.stateSlot();
    planned.row.writeSlot = writeSlotOf(state, sequence);
    planned.row.hasInitial =
        !known.isFresh || state.trace.zeroes || state.bug == Bug::keepsState;
    addCheckpoints(state, sequence, planned.row);
    plan.push_back(std::move(planned));
    text += " " + nameOf(sequence.name) + " by " + std::to_string(count);
  }
  state.say("extend" + text);
  commit(state, sequencesOf(plan), /*states=*/true);
  addPadding(state, plan, step, /*isDecode=*/false);
  const auto padding = static_cast<int64_t>(draw(step, -1, 40, 4));
  std::vector<Outputs> outputs = state.engine.prefill(rowsOf(plan), padding);
  advance(state, plan, outputs);
  size_t tokens = 0;
  for (const Planned &planned : plan)
    tokens += planned.row.tokens.size();
  for (int64_t t = 0; t < padding; ++t)
    expectZeros(state, outputs, tokens + static_cast<size_t>(t));
}

void gdnrt::traces::decode(State &state, const Step &step) {
  std::vector<Planned> plan;
  std::string text;
  for (size_t place = 0; place < state.sequences.size(); ++place) {
    Sequence &sequence = state.sequences[place];
    if (!isNamed(step, place) || sequence.left() > 0 || sequence.known.isFresh)
      continue;
    sequence.known.tokens.push_back(
        mix(step.seed, static_cast<uint64_t>(sequence.name), 4));
    Planned planned;
    planned.sequence = &sequence;
    planned.row.tokens = {sequence.known.tokens.back()};
    planned.row.slot = sequence.stateSlot();
    planned.row.writeSlot = writeSlotOf(state, sequence);
    plan.push_back(std::move(planned));
    text += " " + nameOf(sequence.name);
  }
  state.say("decode" + text);
  commit(state, sequencesOf(plan));
  addPadding(state, plan, step, /*isDecode=*/true);
  advance(state, plan, state.engine.decode(rowsOf(plan)));
}

static Row guess(const State &state, const Sequence &sequence, const Step &step,
                 const std::vector<int32_t> &buffer) {
  const VerifyKind kind = state.kernels.verifyKind();
  const bool isErring = state.bug == Bug::wrongRollback;
  Row row;
  row.slot = sequence.stateSlot();
  auto most = static_cast<size_t>(state.trace.verifyTokens);
  if (kind == VerifyKind::lazy) {
    row.accepted = sequence.known.pending;
    row.accepted -= isErring && row.accepted > 0;
  } else if (kind == VerifyKind::buffer) {
    row.tokenSlots = bufferOf(state, sequence);
  } else if (kind == VerifyKind::slots) {
    row.accepted = sequence.accepted;
    row.accepted -= isErring && row.accepted > 1;
    row.tokenSlots = sequence.slots;
  } else if (state.trace.usesBuffer) {
    row.tokenSlots = buffer;
  } else {
    row.tokenSlots.assign(sequence.slots.begin() + 1, sequence.slots.end());
  }
  const size_t count = draw(step, sequence.name, 5, most + 1);
  for (size_t t = 0; t < count; ++t)
    row.tokens.push_back(
        mix(step.seed, static_cast<uint64_t>(sequence.name), 50 + t));
  row.parents = drawParents(sequence, step, count);
  return row;
}

std::vector<int32_t> gdnrt::traces::drawParents(const Sequence &sequence,
                                                const Step &step,
                                                size_t count) {
  std::vector<int32_t> parents;
  for (size_t t = 0; t < count; ++t) {
    // The first token has no parent; few others have none, or one that does
    // not count.
    const size_t drawn = draw(step, sequence.name, 70 + t, t + 2);
    parents.push_back(t == 0 ? -1 : static_cast<int32_t>(drawn) - 1);
  }
  return parents;
}

std::vector<int32_t> gdnrt::traces::bufferOf(const State &state,
                                             const Sequence &sequence) {
  std::vector<int32_t> slots;
  const auto most = static_cast<int32_t>(state.trace.verifyTokens);
  for (int32_t t = 0; t < most; ++t)
    slots.push_back(1 + (sequence.slots[0] - 1) * most + t);
  return slots;
}

void gdnrt::traces::commit(State &state,
                           const std::vector<Sequence *> &sequences,
                           bool states) {
  states &= state.kernels.pendingRoom() > 0;
  std::vector<Row> rows;
  for (Sequence *sequence : sequences) {
    Known &known = sequence->known;
    if (known.pending == 0 && (!states || known.isFresh))
      continue;
    Row row;
    row.slot = sequence->stateSlot();
    row.accepted = known.pending;
    row.accepted -= state.bug == Bug::wrongRollback && row.accepted > 0;
    row.tokenSlots = bufferOf(state, *sequence);
    rows.push_back(std::move(row));
    known.pending = 0;
  }
  if (rows.empty())
    return;
  state.say("commit " + std::to_string(rows.size()) + " rows");
  // Rows that are skipped: no slot, and counts out of range of a live one.
  rows.push_back({{}, -1, 0, true, {}, {}, 1, {}});
  state.engine.commit(rows);
  for (const Row &row : rows)
    if (row.slot > 0 && state.engine.pools().hasPending(row.slot))
      throw Failed("tokens are pending in slot " + std::to_string(row.slot) +
                   " behind a commit");
}

void gdnrt::traces::verify(State &state, const Step &step) {
  const VerifyKind kind = state.kernels.verifyKind();
  if (kind == VerifyKind::none)
    return;
  const auto most = static_cast<size_t>(state.trace.verifyTokens);
  std::vector<Planned> plan;
  // Rows of the buffer that are left.
  std::vector<std::vector<int32_t>> buffers;
  for (size_t first = 0; first < state.buffer.size(); first += most)
    buffers.emplace_back(
        state.buffer.begin() + static_cast<std::ptrdiff_t>(first),
        state.buffer.begin() + static_cast<std::ptrdiff_t>(first + most));
  const bool usesBuffer = kind == VerifyKind::tree && state.trace.usesBuffer;
  for (size_t place = 0; place < state.sequences.size(); ++place) {
    Sequence &sequence = state.sequences[place];
    if (sequence.left() > 0 || sequence.known.isFresh ||
        (usesBuffer && buffers.empty()))
      continue;
    takeCopy(state, sequence);
    Planned planned;
    planned.row = guess(state, sequence, step,
                        usesBuffer ? buffers.back() : std::vector<int32_t>());
    if (isNamed(step, place)) {
      planned.sequence = &sequence;
      if (usesBuffer)
        buffers.pop_back();
    } else if (kind != VerifyKind::tree && kind != VerifyKind::buffer &&
               draw(step, sequence.name, 6, 3) == 0) {
      // A count out of range: its row is skipped, its slots stay.
      const int32_t least = kind == VerifyKind::lazy ? -1 : 0;
      planned.row.accepted = draw(step, sequence.name, 7, 2)
                                 ? static_cast<int32_t>(most) + 1
                                 : least;
    } else {
      continue;
    }
    plan.push_back(std::move(planned));
  }
  if (kind == VerifyKind::buffer)
    commit(state, sequencesOf(plan));
  addPadding(state, plan, step, /*isDecode=*/false);
  std::vector<Outputs> outputs = state.engine.verify(rowsOf(plan));
  size_t token = 0;
  std::string text;
  for (const Planned &planned : plan) {
    const size_t count = planned.row.tokens.size();
    if (planned.sequence && count > 0) {
      Sequence &sequence = *planned.sequence;
      size_t accepted =
          advanceGuesses(state, sequence, planned.row, token, outputs,
                         draw(step, sequence.name, 8, 1 << 20));
      if (state.bug == Bug::wrongRollback && kind == VerifyKind::tree)
        accepted = 1;
      if (usesBuffer)
        state.copySlot(planned.row.tokenSlots[accepted - 1], sequence.slots[0]);
      else if (kind == VerifyKind::tree)
        std::swap(sequence.slots[0], sequence.slots[accepted]);
      else if (kind == VerifyKind::slots)
        sequence.accepted = static_cast<int32_t>(accepted);
      text += " " + nameOf(sequence.name) + " " + std::to_string(accepted) +
              " of " + std::to_string(count);
    } else if (!planned.sequence) {
      for (size_t t = 0; t < count; ++t)
        expectZeros(state, outputs, token + t);
    }
    token += count;
  }
  state.say("verify, accepted:" + text);
}

size_t gdnrt::traces::advanceGuesses(State &state, Sequence &sequence,
                                     const Row &row, size_t firstToken,
                                     const std::vector<Outputs> &outputs,
                                     uint64_t seed) {
  const bool isTree = state.kernels.verifyKind() == VerifyKind::tree;
  Known &known = sequence.known;
  // States after each token; those before it are its parent's, or the row's.
  std::vector<std::vector<LayerState>> after;
  std::vector<std::ptrdiff_t> parents;
  for (size_t t = 0; t < row.tokens.size(); ++t) {
    std::ptrdiff_t parent = static_cast<std::ptrdiff_t>(t) - 1;
    if (isTree)
      parent = row.parents[t] < static_cast<int32_t>(t) ? row.parents[t] : -1;
    parents.push_back(parent);
    after.push_back(parent < 0 ? known.layers
                               : after[static_cast<size_t>(parent)]);
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      const auto index = static_cast<size_t>(layer);
      std::vector<double> expected =
          traces::step(state.engine.sizes(), state.engine.weights(layer),
                       TokenInputs(state.engine.sizes(), row.tokens[t], layer),
                       after[t][index]);
      expectOutput(state,
                   nameOf(sequence.name) + ", guess " + std::to_string(t) +
                       ", layer " + std::to_string(layer),
                   expected, after[t][index], outputs[index], firstToken + t);
    }
  }
  // Where tokens wait for a commit, it may be that none was right.
  const bool waits = state.kernels.hasCommits();
  const size_t accepted =
      waits ? seed % (row.tokens.size() + 1) : 1 + seed % row.tokens.size();
  state.coverage.guesses += row.tokens.size();
  state.coverage.rolledBack += accepted < row.tokens.size();
  std::vector<uint64_t> way;
  for (auto t = static_cast<std::ptrdiff_t>(accepted) - 1; t >= 0;
       t = parents[static_cast<size_t>(t)])
    way.push_back(row.tokens[static_cast<size_t>(t)]);
  known.base = known.layers;
  known.pending = waits ? static_cast<int32_t>(accepted) : 0;
  known.tokens.insert(known.tokens.end(), way.rbegin(), way.rend());
  known.done = known.tokens.size();
  if (accepted > 0)
    known.layers = after[accepted - 1];
  return accepted;
}
