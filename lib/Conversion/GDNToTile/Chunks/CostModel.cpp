// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule weighs one chunk against its tokens with a model of both. A token
// goes through dv rows of the state, a few instructions for each vector of dk
// and some for the row; a chunk is products, work on C x C and C x d tiles, and
// the state transposed. The costs are the target's.
#include "Chunks/CostModel.h"

#include <algorithm>
#include <cmath>

using namespace gdn;

ChunkRule gdn::chooseChunkRule(RuleShape shape, int64_t chunk, int64_t lanes,
                               const FormCosts &cost) {
  // With a decay per channel, scores are no products.
  if (shape.perChannel)
    return {-1, -1};
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
