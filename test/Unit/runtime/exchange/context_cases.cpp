// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule token by token, from its formula.
#include "context_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace gdnrt::test;

namespace {
/// Around a chunk, and around nothing.
constexpr int64_t kLengths[] = {0, 0, 1, 2, 17, 63, 64, 65, 90, 131};

/// The number of bf16 that is nearest.
float rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}
} // namespace

int64_t ContextCase::length(int64_t n) const {
  int64_t all = 0;
  for (const auto &ofRank : lengths)
    all += ofRank[n];
  return all;
}

std::vector<int64_t> ContextCase::rows(int64_t rank) const {
  std::vector<int64_t> rows;
  int64_t begin = 0;
  for (int64_t n = 0; n < count(); ++n) {
    int64_t own = begin;
    for (int64_t r = 0; r < rank; ++r)
      own += lengths[r][n];
    for (int64_t t = 0; t < lengths[rank][n]; ++t)
      rows.push_back(own + t);
    begin += length(n);
  }
  return rows;
}

int64_t ContextCase::checkpointAt(int64_t n, int64_t tokens) const {
  for (int64_t i = checkpointStarts[n]; i < checkpointStarts[n + 1]; ++i)
    if (checkpointTokens[i] == tokens && tokens % 64 == 0)
      return isSlot(checkpointSlots[i]) ? checkpointSlots[i] : -1;
  return -1;
}

ContextCase gdnrt::test::drawContextCase(uint32_t seed, bool perChannel,
                                         const ContextSizes &sizes) {
  const int64_t dim = sizes.dim, heads = sizes.heads;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0, 1);
  ContextCase made;
  made.sizes = sizes;
  made.perChannel = perChannel;
  made.ranks = 1 + random() % 4;
  const int64_t count = random() % 4;
  made.lengths.assign(made.ranks, std::vector<int64_t>(count));
  int64_t tokens = 0;
  for (auto &ofRank : made.lengths)
    for (int64_t &length : ofRank) {
      length = kLengths[random() % std::size(kLengths)];
      tokens += length;
    }
  std::vector<int64_t> ids(contextSlots);
  std::iota(ids.begin(), ids.end(), int64_t{0});
  std::shuffle(ids.begin(), ids.end(), random);
  if (random() % 2)
    made.nullSlot = ids.back();
  for (int64_t n = 0; n < count; ++n) {
    made.slots.push_back(ids[n]);
    made.writeSlots.push_back(random() % 2 ? ids[n] : ids[4 + n]);
    made.hasInitial.push_back(random() % 3 != 0);
    const int64_t none[] = {-1, contextSlots, made.nullSlot};
    if (random() % 5 == 0)
      made.slots[n] = none[random() % 3];
    if (random() % 5 == 0)
      made.writeSlots[n] = none[random() % 3];
  }
  // The first is at no multiple of 64, and the last behind the end: neither is
  // written.
  made.checkpointStarts = {0};
  size_t free = 8;
  for (int64_t n = 0; n < count; ++n) {
    std::vector<int64_t> wanted = {40};
    for (int64_t at = 64; at < made.length(n) + 65; at += 64)
      wanted.push_back(at);
    for (int64_t at : wanted) {
      made.checkpointTokens.push_back(at);
      made.checkpointSlots.push_back(
          free + 1 < ids.size() && random() % 2 ? ids[free++] : -1);
    }
    made.checkpointStarts.push_back(
        static_cast<int64_t>(made.checkpointTokens.size()));
  }
  auto fill = [&](std::vector<float> &array, int64_t size, auto draw) {
    array.resize(size);
    for (float &value : array)
      value = draw();
  };
  auto gaussian = [&] { return normal(random); };
  for (auto *array : {&made.q, &made.k}) {
    fill(*array, tokens * sizes.keyHeads * dim, gaussian);
    for (int64_t row = 0; row < tokens * sizes.keyHeads; ++row) {
      float sum = 0, *own = array->data() + row * dim;
      for (int64_t i = 0; i < dim; ++i)
        sum += own[i] * own[i];
      const float length =
          sizes.isNormed ? 1 / (0.5f + uniform(random)) : std::sqrt(sum);
      for (int64_t i = 0; i < dim; ++i)
        own[i] /= length;
    }
  }
  const float rate = random() % 2 ? 0.1f : 1e-3f;
  fill(made.v, tokens * heads * dim, gaussian);
  fill(made.logDecay, tokens * heads * made.gate(),
       [&] { return -rate * uniform(random); });
  fill(made.beta, tokens * heads, [&] { return uniform(random); });
  fill(made.states, contextSlots * made.stateSize(), gaussian);
  if (sizes.isRounded)
    for (auto *array : {&made.q, &made.k, &made.v})
      for (float &value : *array)
        value = rounded(value);
  return made;
}

ContextResult gdnrt::test::expectedOf(const ContextCase &drawn) {
  const int64_t dim = drawn.sizes.dim, heads = drawn.sizes.heads;
  const int64_t keyHeads = drawn.sizes.keyHeads, stateSize = drawn.stateSize();
  ContextResult made;
  made.out.assign(drawn.v.size(), 0.0);
  made.states.assign(drawn.states.begin(), drawn.states.end());
  const double scale = 1 / std::sqrt(double(dim));
  int64_t begin = 0;
  for (int64_t n = 0; n < drawn.count(); ++n) {
    const int64_t end = begin + drawn.length(n), slot = drawn.slots[n];
    const bool isLive = drawn.isSlot(slot) && begin != end;
    for (int64_t h = 0; isLive && h < heads; ++h) {
      std::vector<double> state(dim * dim, 0.0);
      if (drawn.hasInitial[n])
        for (int64_t i = 0; i < dim * dim; ++i)
          state[i] = drawn.states[slot * stateSize + h * dim * dim + i];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t keyHead = h / (heads / keyHeads);
        const int64_t key = (t * keyHeads + keyHead) * dim;
        const int64_t gate = (t * heads + h) * drawn.gate();
        const double beta = drawn.beta[t * heads + h];
        std::vector<double> decays(static_cast<size_t>(dim));
        // What queries and keys are multiplied by.
        auto norm = [&](const std::vector<float> &array) {
          double sum = 1e-6;
          for (int64_t j = 0; j < dim; ++j)
            sum += double(array[key + j]) * array[key + j];
          return drawn.sizes.isNormed ? 1 / std::sqrt(sum) : 1.0;
        };
        const double ofKey = norm(drawn.k), ofQuery = norm(drawn.q);
        for (int64_t j = 0; j < dim; ++j)
          decays[j] = std::exp(
              double(drawn.logDecay[gate + (drawn.perChannel ? j : 0)]));
        for (int64_t i = 0; i < dim; ++i) {
          double *row = state.data() + i * dim, wrong = 0, out = 0;
          for (int64_t j = 0; j < dim; ++j) {
            row[j] *= decays[j];
            wrong -= row[j] * ofKey * drawn.k[key + j];
          }
          const int64_t value = (t * heads + h) * dim + i;
          wrong += drawn.v[value];
          for (int64_t j = 0; j < dim; ++j) {
            row[j] += beta * wrong * ofKey * drawn.k[key + j];
            out += row[j] * ofQuery * drawn.q[key + j];
          }
          made.out[value] = scale * out;
        }
        const int64_t kept = drawn.checkpointAt(n, t + 1 - begin);
        if (kept >= 0)
          std::copy(state.begin(), state.end(),
                    made.states.begin() + kept * stateSize + h * dim * dim);
      }
      if (drawn.isSlot(drawn.writeSlots[n]))
        std::copy(state.begin(), state.end(),
                  made.states.begin() + drawn.writeSlots[n] * stateSize +
                      h * dim * dim);
    }
    begin = end;
  }
  return made;
}
