// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers by their place, so that all threads of the host make them.

#include "context_inputs.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

using namespace gdnbench;

namespace {

/// A number of 64 bits that depends on all bits of `x`.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Two numbers of a normal distribution, those of a place of an array.
void normals(uint64_t array, uint64_t place, float *two) {
  const uint64_t bits = mixed(place ^ mixed(array));
  const float first = float((bits >> 40) + 1) * 0x1p-24f,
              angle = float(bits & 0xffffff) * (6.2831853f * 0x1p-24f);
  const float length = std::sqrt(-2 * std::log(first));
  two[0] = length * std::cos(angle);
  two[1] = length * std::sin(angle);
}

uint16_t rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

} // namespace

float gdnbench::widened(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

void gdnbench::inParallel(int64_t count,
                          const std::function<void(int64_t)> &body) {
  std::atomic<int64_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency());
       ++i)
    threads.emplace_back([&] {
      for (int64_t at; (at = next++) < count;)
        body(at);
    });
  for (std::thread &thread : threads)
    thread.join();
}

ContextInputs gdnbench::makeContextInputs(int64_t tokens) {
  constexpr int64_t kDim = kContextDim, kHeads = kContextHeads;
  ContextInputs made;
  made.tokens = tokens;
  made.q.resize(tokens * kContextKeyHeads * kDim);
  made.k.resize(made.q.size());
  made.v.resize(tokens * kHeads * kDim);
  made.logDecay.resize(tokens * kHeads);
  made.beta.resize(tokens * kHeads);
  made.state.resize(kHeads * kDim * kDim);
  auto row = [&](uint64_t array, std::vector<uint16_t> &to, int64_t number,
                 bool isNormed) {
    float values[kDim], sum = 0;
    for (int64_t i = 0; i < kDim; i += 2)
      normals(array, (number * kDim + i) / 2, values + i);
    for (float value : values)
      sum += value * value;
    const float factor = isNormed ? 1 / std::sqrt(sum) : 1;
    for (int64_t i = 0; i < kDim; ++i)
      to[number * kDim + i] = rounded(factor * values[i]);
  };
  inParallel(tokens / 64, [&](int64_t chunk) {
    for (int64_t t = 64 * chunk; t < 64 * (chunk + 1); ++t) {
      for (int64_t h = 0; h < kContextKeyHeads; ++h) {
        row(1, made.q, t * kContextKeyHeads + h, true);
        row(2, made.k, t * kContextKeyHeads + h, true);
      }
      for (int64_t h = 0; h < kHeads; ++h) {
        row(3, made.v, t * kHeads + h, false);
        float two[2];
        normals(4, t * kHeads + h, two);
        const float rate =
            std::pow(10.0f, -5 + 4.5f * float(h) / float(kHeads - 1));
        made.logDecay[t * kHeads + h] = -rate * sigmoid(two[0]);
        made.beta[t * kHeads + h] = sigmoid(two[1]);
      }
    }
  });
  for (size_t i = 0; i < made.state.size(); i += 2)
    normals(5, i / 2, made.state.data() + i);
  return made;
}
