// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Comparisons: outputs and states with the model, slots with their owners.

#include "failed.h"
#include "prefix_cache.h"
#include "state.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace gdnrt::traces;

static double largestOf(const std::vector<double> &values) {
  double largest = 0.1;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  return largest;
}

/// Within `tolerance` of the largest, or of `least` if that is more.
template <typename Number>
static void expectNear(const std::string &who,
                       const std::vector<double> &expected, const Number *got,
                       double tolerance, double least = 0) {
  const double largest = std::max(least, largestOf(expected));
  for (size_t i = 0; i < expected.size(); ++i)
    // NaN is not near anything.
    if (!(std::abs(static_cast<double>(got[i]) - expected[i]) <=
          tolerance * largest))
      throw Failed(who + ": element " + std::to_string(i) + ": expected " +
                   std::to_string(expected[i]) + ", got " +
                   std::to_string(got[i]));
}

void gdnrt::traces::expectOutput(const State &state, const std::string &who,
                                 const std::vector<double> &expected,
                                 const LayerState &after,
                                 const Outputs &outputs, size_t token) {
  // A query of norm 1 brings what elements of a state are off by into outputs,
  // however small these are.
  const double least =
      state.kernels.statePlanes() > 0 ? largestOf(after.state) : 0;
  expectNear("output of " + who, expected,
             outputs.data() + token * expected.size(), state.kernels.tolerance,
             least);
}

void gdnrt::traces::expectZeros(const State &state,
                                const std::vector<Outputs> &outputs,
                                size_t token) {
  const auto count = static_cast<size_t>(state.engine.sizes().outputs());
  for (const Outputs &layer : outputs)
    for (size_t i = 0; i < count; ++i)
      if (layer[token * count + i] != 0)
        throw Failed("output of token " + std::to_string(token) +
                     ", which is skipped: expected 0, got " +
                     std::to_string(layer[token * count + i]));
}

/// Makes the model go on from what a slot holds, so that what planes round off
/// is seen one step at a time; tokens that wait for a commit come on top.
static void goOnFrom(const Engine &engine, Known &known, int64_t layer,
                     LayerState got) {
  const auto index = static_cast<size_t>(layer);
  if (known.pending > 0)
    known.base[index] = got;
  const LayerSizes &sizes = engine.sizes();
  for (size_t t = known.done - static_cast<size_t>(known.pending);
       t < known.done; ++t)
    step(sizes, engine.weights(layer),
         TokenInputs(sizes, known.tokens[t], layer), got);
  known.layers[index] = std::move(got);
}

static void expectState(State &state, const std::string &who, Known &known,
                        int32_t slot, double rounded = 0) {
  for (int64_t layer = 0; layer < kNumLayers; ++layer) {
    const auto &layers = known.pending > 0 ? known.base : known.layers;
    const LayerState &expected = layers[static_cast<size_t>(layer)];
    LayerState got = state.engine.pools().read(layer, slot);
    std::string where = " of " + who + " in slot " + std::to_string(slot) +
                        ", layer " + std::to_string(layer);
    expectNear("state" + where, expected.state, got.state.data(),
               state.kernels.tolerance + rounded);
    expectNear("window" + where, expected.window, got.window.data(),
               state.kernels.tolerance);
    if (state.kernels.statePlanes() > 0 || rounded > 0)
      goOnFrom(state.engine, known, layer, std::move(got));
  }
}

void gdnrt::traces::expectRounded(State &state, Known &known, int32_t slot) {
  if (state.hosts.error() > 0)
    expectState(state, "a state from the host", known, slot,
                state.hosts.error());
}

void gdnrt::traces::audit(State &state) {
  gdnrt_error error;
  gdnrt_state_pool_info info = gdnrt_state_pool_info_default();
  check(gdnrt_state_pool_describe(state.engine.pool(), &info, &error), error);
  std::vector<int32_t> owned = state.buffer;
  for (const Sequence &sequence : state.sequences)
    owned.insert(owned.end(), sequence.slots.begin(), sequence.slots.end());
  auto addKept = [&] {
    for (const auto &[node, kept] : state.cache->kept())
      if (kept.slot != 0)
        owned.push_back(kept.slot);
  };
  if (state.cache && state.cache->ownsRequests())
    addKept();
  const auto requests = static_cast<int64_t>(owned.size());
  for (const Kept &kept : state.kept)
    owned.push_back(kept.slot);
  if (state.cache && !state.cache->ownsRequests())
    addKept();
  const auto all = static_cast<int64_t>(owned.size());
  if (std::set<int32_t>(owned.begin(), owned.end()).size() != owned.size())
    throw Failed("a slot has two owners");
  for (int64_t i = 0; i < all; ++i) {
    const int32_t slot = owned[static_cast<size_t>(i)];
    if (slot <= 0 || (slot > state.trace.numRequests) != (i >= requests))
      throw Failed("slot " + std::to_string(slot) + " is not of its kind");
  }
  check(gdnrt_state_pool_check_batch(state.engine.pool(), owned.data(),
                                     owned.size(), &error),
        error);
  if (info.used_requests != requests || info.used_track != all - requests ||
      info.free_requests != state.trace.numRequests - requests ||
      info.free_track != state.trace.numTrack - (all - requests))
    throw Failed("a leak: the pool has " + std::to_string(info.used_requests) +
                 " and " + std::to_string(info.used_track) +
                 " slots in use, the scheduler " + std::to_string(requests) +
                 " and " + std::to_string(all - requests));
  const auto stored =
      std::count_if(state.waiting.begin(), state.waiting.end(),
                    [](const Waiting &each) { return each.host >= 0; }) +
      (state.cache ? state.cache->numHostCopies() : 0);
  if (state.hosts.numUsed() != stored)
    throw Failed("a leak: the host tier has " +
                 std::to_string(state.hosts.numUsed()) +
                 " slots in use, the scheduler " + std::to_string(stored));
  for (Sequence &sequence : state.sequences)
    if (!sequence.known.isFresh)
      expectState(state, "s" + std::to_string(sequence.name), sequence.known,
                  sequence.stateSlot());
  for (Kept &kept : state.kept)
    expectState(state, "a kept state", kept.known, kept.slot);
  if (!state.cache)
    return;
  state.cache->audit();
  for (auto &[node, kept] : state.cache->kept())
    if (kept.slot != 0)
      expectState(state, "a state of the cache", kept.known, kept.slot);
}
