// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule token by token, from its formula.
#include "context_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace gdnrt::test;

namespace {
constexpr int64_t kDim = contextDim, kHeads = contextHeads;
constexpr int64_t kState = kHeads * kDim * kDim;
/// Around a chunk, and around nothing.
constexpr int64_t kLengths[] = {0, 0, 1, 2, 17, 63, 64, 65, 90, 131};
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

ContextCase gdnrt::test::drawContextCase(uint32_t seed, bool perChannel) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0, 1);
  ContextCase made;
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
  auto fill = [&](std::vector<float> &array, int64_t size, auto draw) {
    array.resize(size);
    for (float &value : array)
      value = draw();
  };
  auto gaussian = [&] { return normal(random); };
  for (auto *array : {&made.q, &made.k}) {
    fill(*array, tokens * contextKeyHeads * kDim, gaussian);
    for (int64_t row = 0; row < tokens * contextKeyHeads; ++row) {
      float sum = 0, *own = array->data() + row * kDim;
      for (int64_t i = 0; i < kDim; ++i)
        sum += own[i] * own[i];
      for (int64_t i = 0; i < kDim; ++i)
        own[i] /= std::sqrt(sum);
    }
  }
  const float rate = random() % 2 ? 0.1f : 1e-3f;
  fill(made.v, tokens * kHeads * kDim, gaussian);
  fill(made.logDecay, tokens * kHeads * made.gate(),
       [&] { return -rate * uniform(random); });
  fill(made.beta, tokens * kHeads, [&] { return uniform(random); });
  fill(made.states, contextSlots * kState, gaussian);
  return made;
}

ContextResult gdnrt::test::expectedOf(const ContextCase &drawn) {
  ContextResult made;
  made.out.assign(drawn.v.size(), 0.0);
  made.states.assign(drawn.states.begin(), drawn.states.end());
  const double scale = 1 / std::sqrt(double(kDim));
  int64_t begin = 0;
  for (int64_t n = 0; n < drawn.count(); ++n) {
    const int64_t end = begin + drawn.length(n), slot = drawn.slots[n];
    const bool isLive = drawn.isSlot(slot) && begin != end;
    for (int64_t h = 0; isLive && h < kHeads; ++h) {
      std::vector<double> state(kDim * kDim, 0.0);
      if (drawn.hasInitial[n])
        for (int64_t i = 0; i < kDim * kDim; ++i)
          state[i] = drawn.states[slot * kState + h * kDim * kDim + i];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t keyHead = h / (kHeads / contextKeyHeads);
        const int64_t key = (t * contextKeyHeads + keyHead) * kDim;
        const int64_t gate = (t * kHeads + h) * drawn.gate();
        const double beta = drawn.beta[t * kHeads + h];
        double decays[kDim];
        for (int64_t j = 0; j < kDim; ++j)
          decays[j] = std::exp(
              double(drawn.logDecay[gate + (drawn.perChannel ? j : 0)]));
        for (int64_t i = 0; i < kDim; ++i) {
          double *row = state.data() + i * kDim, wrong = 0, out = 0;
          for (int64_t j = 0; j < kDim; ++j) {
            row[j] *= decays[j];
            wrong -= row[j] * drawn.k[key + j];
          }
          const int64_t value = (t * kHeads + h) * kDim + i;
          wrong += drawn.v[value];
          for (int64_t j = 0; j < kDim; ++j) {
            row[j] += beta * wrong * drawn.k[key + j];
            out += row[j] * drawn.q[key + j];
          }
          made.out[value] = scale * out;
        }
      }
      if (drawn.isSlot(drawn.writeSlots[n]))
        std::copy(state.begin(), state.end(),
                  made.states.begin() + drawn.writeSlots[n] * kState +
                      h * kDim * kDim);
    }
    begin = end;
  }
  return made;
}
