// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of rows of all kinds, as engines make them: decode-like rows first,
// and behind them rows of padding that still name live slots.

#include "draw.h"
#include "failed.h"
#include "state.h"

#include <algorithm>

using namespace gdnrt::traces;

void gdnrt::traces::serve(State &state, const Step &step) {
  const VerifyKind kind = state.kernels.verifyKind();
  // Layers move no state back from slots that all sequences share, and expect
  // no guessed tokens to wait for a commit where metadata has none.
  const bool isPlain =
      kind == VerifyKind::none ||
      (state.kernels.hasCommits() && state.trace.verifyTokens == 1);
  if (!state.buffer.empty() || (isPlain && state.kernels.pendingRoom() == 0))
    return extend(state, step);
  if (isPlain) {
    std::vector<Sequence *> all;
    for (Sequence &sequence : state.sequences)
      all.push_back(&sequence);
    commit(state, all);
  }
  // Without a prefill kernel a step is of decodes or of verified rows alone.
  const bool mayPrefill = state.kernels.prefill != nullptr;
  const bool mayVerify = mayPrefill || draw(step, -1, 90, 2);
  struct Served {
    ServedRow row;
    Sequence *sequence;
  };
  std::vector<Served> plan;
  std::vector<ServedRow> stale;
  std::string text;
  for (size_t place = 0; place < state.sequences.size(); ++place) {
    Sequence &sequence = state.sequences[place];
    Known &known = sequence.known;
    ServedRow row;
    row.context = known.done;
    row.slots = sequence.slots;
    if (kind == VerifyKind::tree)
      row.tokenSlots.assign(sequence.slots.begin() + 1, sequence.slots.end());
    if (kind == VerifyKind::buffer)
      row.tokenSlots = bufferOf(state, sequence);
    const int32_t least = state.kernels.hasCommits() ? 0 : 1;
    row.accepted =
        state.kernels.hasCommits() ? known.pending : sequence.accepted;
    if (state.bug == Bug::wrongRollback && row.accepted > least)
      --row.accepted;
    size_t count = sequence.left();
    if (!isNamed(step, place) ||
        (!mayPrefill && (count > 0 || known.isFresh))) {
      stale.push_back(std::move(row));
      continue;
    }
    // Metadata has one slot of a row to read and to write.
    takeCopy(state, sequence);
    const auto most = static_cast<size_t>(state.trace.verifyTokens);
    if (count > 0) {
      count = 1 + draw(step, sequence.name, 1, count);
      auto first =
          known.tokens.begin() + static_cast<std::ptrdiff_t>(known.done);
      row.tokens.assign(first, first + static_cast<std::ptrdiff_t>(count));
    } else if (known.isFresh || kind == VerifyKind::none ||
               (mayPrefill ? draw(step, sequence.name, 2, 3) == 0
                           : !mayVerify)) {
      // A plain decode; among others that are verified it is a prefill.
      known.tokens.push_back(
          mix(step.seed, static_cast<uint64_t>(sequence.name), 3));
      row.tokens = {known.tokens.back()};
    } else {
      count = 1 + draw(step, sequence.name, 5, most);
      for (size_t t = 0; t < count; ++t)
        row.tokens.push_back(
            mix(step.seed, static_cast<uint64_t>(sequence.name), 50 + t));
      row.drafts = static_cast<int32_t>(count) - 1;
      row.parents = drawParents(sequence, step, count);
    }
    text += " s" + std::to_string(sequence.name) + " by " +
            std::to_string(row.tokens.size()) +
            (row.drafts >= 0 ? " guessed" : "");
    plan.push_back({std::move(row), &sequence});
  }
  state.say("serve" + text);
  auto rank = [](const Served &served) {
    return served.row.drafts >= 0 ? 0 : served.row.tokens.size() == 1 ? 1 : 2;
  };
  // Rows of a mixed batch may come in any order.
  if (!state.kernels.isMixed())
    std::sort(plan.begin(), plan.end(), [&](const Served &a, const Served &b) {
      return std::pair(rank(a), a.sequence) < std::pair(rank(b), b.sequence);
    });
  std::vector<ServedRow> rows;
  for (const Served &served : plan)
    rows.push_back(served.row);
  for (size_t i = 0; i < stale.size(); ++i)
    if (draw(step, -1, 60 + i, 2) == 0)
      rows.push_back(stale[i]);
  const size_t staleRows = rows.size() - plan.size();
  state.coverage.skippedRows += staleRows;
  state.coverage.idleSteps += plan.empty();
  for (const Served &served : plan)
    state.coverage.firstTokens +=
        served.row.context == 0 && served.row.tokens.size() == 1;
  // A graph has a token for each of its rows.
  const auto padding = static_cast<int64_t>(staleRows + draw(step, -1, 40, 4));
  std::vector<Outputs> outputs = state.engine.serve(rows, padding);
  state.coverage.replayed = state.engine.numReplayed();
  state.coverage.planned = state.engine.numPlanned();
  // A row without drafts is verified like others; with slots it is decoded if
  // no row of the step has any.
  const bool verifies =
      ((kind != VerifyKind::slots || state.kernels.isMixed()) &&
       state.trace.verifyTokens > 1) ||
      std::any_of(plan.begin(), plan.end(),
                  [](const Served &served) { return served.row.drafts > 0; });
  size_t token = 0;
  for (const Served &served : plan) {
    Sequence &sequence = *served.sequence;
    const size_t count = served.row.tokens.size();
    if (served.row.drafts < 0 || !verifies) {
      if (served.row.drafts >= 0)
        sequence.known.tokens.push_back(served.row.tokens[0]);
      advanceRow(state, sequence, served.row.tokens, token, outputs);
    } else {
      Row row;
      row.tokens = served.row.tokens;
      row.parents = served.row.parents;
      size_t accepted = advanceGuesses(state, sequence, row, token, outputs,
                                       draw(step, sequence.name, 8, 1 << 20));
      if (state.bug == Bug::wrongRollback && kind == VerifyKind::tree)
        accepted = std::min<size_t>(1, sequence.slots.size() - 1);
      if (kind == VerifyKind::slots)
        sequence.accepted = static_cast<int32_t>(accepted);
      if (kind == VerifyKind::tree)
        std::swap(sequence.slots[0], sequence.slots[accepted]);
    }
    token += count;
  }
  const size_t numTokens =
      outputs[0].size() / static_cast<size_t>(state.engine.sizes().outputs());
  for (; token < numTokens; ++token)
    expectZeros(state, outputs, token);
}
