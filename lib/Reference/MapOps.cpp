// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps of tokens: a matrix with rows of its own times P, and H added to the
// first of its rows.
#include "Ops.h"

using namespace mlir;
using namespace gdn::reference;

namespace {
/// A map: `constant` has as many rows as a state, `linear` is square.
struct Map {
  ArrayRef<double> constant, linear;
};
} // namespace

/// matrix * map.linear, with map.constant added to the first rows. Rows have
/// `width` elements.
static std::vector<double> advance(ArrayRef<double> matrix, const Map &map,
                                   int64_t width) {
  std::vector<double> next(matrix.size(), 0.0);
  for (size_t at = 0; at < matrix.size(); ++at) {
    const double factor = matrix[at];
    ArrayRef<double> row = map.linear.slice(int64_t(at) % width * width, width);
    double *to = next.data() + int64_t(at) / width * width;
    for (int64_t j = 0; j < width; ++j)
      to[j] += factor * row[j];
  }
  for (size_t at = 0; at < map.constant.size(); ++at)
    next[at] += map.constant[at];
  return next;
}

/// The map of head `head` of segment `segment`.
static Map segmentMap(const Tensor &constant, const Tensor &linear,
                      int64_t segment, int64_t head) {
  auto part = [&](const Tensor &tensor) {
    const int64_t size = tensor.dim(2) * tensor.dim(3);
    return tensor.row(segment).slice(head * size, size);
  };
  return {part(constant), part(linear)};
}

/// Checks the sizes of segments, and that sequences have such as there are.
static LogicalResult checkSegments(Operation *op, const Tensor &constant,
                                   const Tensor &linear, const Tensor &first,
                                   const Tensor &count) {
  if (failed(expectShape(op, "linear", linear.shape,
                         {constant.dim(0), constant.dim(1), constant.dim(3),
                          constant.dim(3)})) ||
      failed(expectShape(op, "num_segments", count.shape, first.shape)))
    return failure();
  for (auto [from, number] : llvm::zip(first.data, count.data))
    if (number < 0 ||
        (number > 0 && (from < 0 || from + number > double(constant.dim(0)))))
      return op->emitOpError("expects segments below ")
             << constant.dim(0) << ", but got " << int64_t(number) << " from "
             << int64_t(from);
  return success();
}

LogicalResult gdn::reference::evaluateOp(gdn::CombineMapsOp op,
                                         Environment &env) {
  const Tensor &constant = env.tensor(op.getConstant());
  const Tensor &linear = env.tensor(op.getLinear());
  const Tensor &first = env.tensor(op.getFirstSegments());
  const Tensor &count = env.tensor(op.getNumSegments());
  if (failed(checkSegments(op, constant, linear, first, count)))
    return failure();
  const int64_t heads = constant.dim(1), dv = constant.dim(2),
                dk = constant.dim(3);
  Tensor result = Tensor::zeros({first.dim(0), heads, dv + dk, dk});
  for (int64_t n = 0; n < first.dim(0); ++n)
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> map((dv + dk) * dk, 0.0);
      for (int64_t i = 0; i < dk; ++i)
        map[(dv + i) * dk + i] = 1;
      for (int64_t m = 0; m < int64_t(count.data[n]); ++m)
        map = advance(
            map, segmentMap(constant, linear, int64_t(first.data[n]) + m, h),
            dk);
      llvm::copy(map, result.row(n).slice(h * (dv + dk) * dk).begin());
    }
  return env.defineResult(op->getResult(0), std::move(result));
}

LogicalResult gdn::reference::evaluateOp(gdn::ApplyMapsOp op,
                                         Environment &env) {
  Pool &pool = env.pool(op.getPool());
  const Tensor &slots = env.tensor(op.getSlots());
  const Tensor &targets = env.tensor(op.getWriteSlots());
  const Tensor &maps = env.tensor(op.getMaps());
  const Tensor &rank = env.tensor(op.getRank());
  const Tensor &constant = env.tensor(op.getConstant());
  const Tensor &linear = env.tensor(op.getLinear());
  const Tensor &first = env.tensor(op.getFirstSegments());
  const Tensor &count = env.tensor(op.getNumSegments());
  const int64_t heads = constant.dim(1), dv = constant.dim(2),
                dk = constant.dim(3);
  if (failed(checkSegments(op, constant, linear, first, count)) ||
      failed(expectShape(op, "slots", slots.shape, first.shape)) ||
      failed(expectShape(op, "write_slots", targets.shape, first.shape)) ||
      failed(expectShape(op, "pool", pool.data.shape, {-1, heads, dv, dk})) ||
      failed(expectShape(op, "maps", maps.shape,
                         {-1, slots.dim(0), heads, dv + dk, dk})) ||
      failed(expectShape(op, "rank", rank.shape, {1})))
    return failure();
  const int64_t ranks = maps.dim(0), own = int64_t(rank.data[0]);
  if (own < 0 || own >= ranks)
    return op.emitOpError("expects a rank below ")
           << ranks << ", but got " << own;
  Tensor result = Tensor::zeros(constant.shape);
  const Tensor before = pool.data;
  const int64_t size = dv * dk, mapSize = (dv + dk) * dk;
  for (int64_t n = 0; n < slots.dim(0); ++n)
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<double> state(size, 0.0), ahead;
      if (!pool.skips(slots.data[n]))
        state = before.row(int64_t(slots.data[n])).slice(h * size, size).vec();
      for (int64_t r = 0; r < ranks; ++r) {
        if (r == own)
          ahead = state;
        ArrayRef<double> map =
            maps.row(r).slice((n * heads + h) * mapSize, mapSize);
        state =
            advance(state, {map.take_front(size), map.drop_front(size)}, dk);
      }
      if (!pool.skips(targets.data[n]))
        llvm::copy(
            state,
            pool.data.row(int64_t(targets.data[n])).slice(h * size).begin());
      for (int64_t i = 0; i < int64_t(count.data[n]); ++i) {
        const int64_t m = int64_t(first.data[n]) + i;
        llvm::copy(ahead, result.row(m).slice(h * size).begin());
        ahead = advance(ahead, segmentMap(constant, linear, m, h), dk);
      }
    }
  return env.defineResult(op->getResult(0), std::move(result));
}
