// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule weighs one chunk against its tokens with a model of both. A token
// walks through dv rows of the state, a few instructions for each vector of dk
// and some for the row; a chunk is products, work on C x C and C x d tiles, and
// the state turned around. The model's numbers are fitted to measurements of
// tools/scripts/bench_forms.py; runtime/bench/results has how well the rule
// does.
#include "ChunkRule.h"

#include <cmath>

using namespace gdn;

namespace {
/// Nanoseconds on one core of the machine that was measured; only their ratios
/// matter.
struct FormCosts {
  double row, rowVector;                 // of the state, per token
  double flop, scoreElement, rowElement; // of a chunk
  double stateElement;                   // per run of chunks
};
} // namespace

/// By the length of vectors, with which the number of registers goes.
static FormCosts costsOf(int64_t lanes) {
  if (lanes >= 16)
    return {3.34, 0.891, 0.0050, 1.3, 0.5, 0.5};
  return {2.13, 0.683, 0.0097, 1.35, 0.15, 0.5};
}

int64_t gdn::chooseChunkFrom(RuleShape shape, int64_t chunk, int64_t lanes) {
  // With a decay per channel, scores are no products.
  if (lanes == 0 || shape.perChannel)
    return -1;
  FormCosts cost = costsOf(lanes);
  double dk = shape.dk, dv = shape.dv, size = chunk;
  double vectors = std::ceil(dk / lanes);
  double token = dv * (cost.row + cost.rowVector * vectors);
  // Three products with the state; two between tokens of width dk and two of
  // dv, of which a triangle is left out.
  double flops = 6 * size * dk * dv + 2.6 * size * size * (dk + dv);
  double later = cost.flop * flops + cost.scoreElement * size * size +
                 cost.rowElement * size * (dk + dv);
  // The first chunk of a row also turns the state around. Between the two
  // break-even points neither choice is far off; the rule takes the middle.
  double first = later + cost.stateElement * dk * dv;
  auto least = static_cast<int64_t>(std::ceil((first + later) / (2 * token)));
  return least <= chunk ? least : -1;
}
