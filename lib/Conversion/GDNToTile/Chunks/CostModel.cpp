// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule weighs one chunk against its tokens with a model of both. A token
// goes through dv rows of the state, a few instructions for each vector of dk
// and some for the row; a chunk is products, work on C x C and C x d tiles, and
// the state transposed. The model's numbers are fitted to measurements of
// tools/scripts/bench_forms.py; runtime/bench/results has how well the rule
// does.
#include "Chunks/CostModel.h"

#include <algorithm>
#include <cmath>

using namespace gdn;

namespace {
/// Nanoseconds on one core of the machine that was measured; only their ratios
/// matter.
struct FormCosts {
  /// A row of the state per token: by itself, for each vector of it, and for
  /// each vector for whose key and query there is no register.
  double row, rowVector, spilledVector;
  double registerVectors;
  /// How much longer a token takes right behind a chunk: products of the widest
  /// vectors lower the processor's frequency, and it takes a while to rise.
  double behindChunk;
  /// A chunk: its products, where blocks of 2 vectors of columns come out even;
  /// how much of that it takes with blocks of 3, and with columns left over;
  /// and each element of a C x C tile.
  double flop, blocksOf3, leftOver, scoreElement;
  /// Turning the state around and back, once per run of chunks.
  double stateElement;
};
} // namespace

/// By the length of vectors, with which the number of registers goes.
static FormCosts costsOf(int64_t lanes) {
  if (lanes >= 16)
    return {3.9, 0.77, 1.1, 12, 1.18, 0.00648, 0.92, 1.16, 1.1, 0.34};
  return {2.9, 0.51, 0.34, 10, 1.01, 0.01083, 1, 1, 1.93, 0.25};
}

ChunkRule gdn::chooseChunkRule(RuleShape shape, int64_t chunk, int64_t lanes) {
  // With a decay per channel, scores are no products.
  if (lanes <= 0 || shape.perChannel)
    return {-1, -1};
  FormCosts cost = costsOf(lanes);
  double dk = shape.dk, dv = shape.dv, size = chunk;
  double vectors = dk / lanes;
  double token =
      dv * (cost.row + cost.rowVector * vectors +
            cost.spilledVector * std::max(0.0, vectors - cost.registerVectors));
  // Three products with the state, and four between tokens of which a triangle
  // is left out; without a delta term two of each. Tokens of such a rule were
  // not measured by themselves.
  double flops = shape.hasDelta
                     ? 6 * size * dk * dv + 2.2 * size * size * (dk + dv)
                     : 4 * size * dk * dv + 1.1 * size * size * (dk + dv);
  int64_t columns = shape.dv / lanes;
  if (columns % 3 == 0)
    flops *= cost.blocksOf3;
  else if (columns % 2 != 0)
    flops *= (1 + cost.blocksOf3) / 2;
  if (shape.dv % lanes != 0)
    flops *= cost.leftOver;
  double later = cost.flop * flops + cost.scoreElement * size * size;
  // The first chunk of a sequence also turns the state around. Where that alone
  // makes it the slower form, long sequences take chunks still if they are not
  // far off in the mean.
  double first = later + cost.stateElement * dk * dv;
  if ((first + later) / 2 > token * size)
    return {-1, -1};
  auto least = [](double tokens) {
    return static_cast<int64_t>(std::ceil(tokens));
  };
  int64_t from = std::min(least(first / token), chunk);
  return {from, std::min(least(later / (cost.behindChunk * token)), from)};
}
