// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens of one long sequence on the host, the same from run to run: keys and
// queries of length 1, and heads that keep what they had or forget it.
#ifndef GDN_RUNTIME_BENCH_CONTEXT_INPUTS_H
#define GDN_RUNTIME_BENCH_CONTEXT_INPUTS_H

#include <cstdint>
#include <functional>
#include <vector>

namespace gdnbench {

constexpr int64_t kContextKeyHeads = 16, kContextHeads = 32, kContextDim = 128;

struct ContextInputs {
  int64_t tokens = 0;
  std::vector<uint16_t> q, k, v;     // bf16, [tokens, heads, dim]
  std::vector<float> logDecay, beta; // [tokens, heads]
  std::vector<float> state;          // [heads, dim, dim]
};

ContextInputs makeContextInputs(int64_t tokens);

float widened(uint16_t bits);

/// Calls `body(i)` for 0 to `count` - 1 on all threads of this machine.
void inParallel(int64_t count, const std::function<void(int64_t)> &body);

} // namespace gdnbench

#endif // GDN_RUNTIME_BENCH_CONTEXT_INPUTS_H
