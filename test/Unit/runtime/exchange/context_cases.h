// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random batches whose sequences are spread over ranks, and what one call of
// the rule gives of them in float64.
#ifndef GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_CASES_H
#define GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_CASES_H

#include <cstdint>
#include <random>
#include <vector>

namespace gdnrt::test {

constexpr int64_t contextKeyHeads = 2, contextHeads = 4, contextDim = 16;
constexpr int64_t contextSlots = 16;

struct ContextSizes {
  int64_t keyHeads = contextKeyHeads, heads = contextHeads, dim = contextDim;
  /// Whether queries, keys and values are those of bf16.
  bool isRounded = false;
  /// Whether the rule is to norm queries and keys, which have any length then.
  bool isNormed = false;
};

/// Arrays of all tokens, sequence behind sequence.
struct ContextCase {
  ContextSizes sizes;
  int64_t ranks = 1, nullSlot = -1;
  bool perChannel = false;
  /// Tokens of sequence n on rank r: lengths[r][n].
  std::vector<std::vector<int64_t>> lengths;
  std::vector<int64_t> slots, writeSlots;
  std::vector<uint8_t> hasInitial;
  /// N + 1, and the tokens and slots of checkpoints.
  std::vector<int64_t> checkpointStarts, checkpointTokens, checkpointSlots;
  std::vector<float> q, k, v, logDecay, beta, states;

  int64_t count() const { return static_cast<int64_t>(slots.size()); }
  int64_t gate() const { return perChannel ? sizes.dim : 1; }
  int64_t stateSize() const { return sizes.heads * sizes.dim * sizes.dim; }
  bool isSlot(int64_t slot) const {
    return slot >= 0 && slot < contextSlots && slot != nullSlot;
  }
  /// The rows of the whole call that a rank has, sequence by sequence.
  std::vector<int64_t> rows(int64_t rank) const;
  int64_t length(int64_t n) const;
  /// The slot for the state after so many tokens; -1 for none.
  int64_t checkpointAt(int64_t n, int64_t tokens) const;
};

/// Outputs of all tokens, and all slots afterwards.
struct ContextResult {
  std::vector<double> out, states;
};

ContextCase drawContextCase(uint32_t seed, bool perChannel,
                            const ContextSizes &sizes = {});
ContextResult expectedOf(const ContextCase &drawn);

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_CASES_H
