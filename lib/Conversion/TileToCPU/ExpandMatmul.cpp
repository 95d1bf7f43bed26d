// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products on the CPU. A block of the result lives in registers while one loop
// runs over the inner dimension: a few vectors of a row of `rhs`, times single
// elements of `lhs` that are broadcast from memory. Columns go in panels of
// such blocks; what is left of them after whole vectors, in narrower ones.
// Tiles fit the second-level cache, so nothing is packed.
//
//   for each panel of columns j:
//     for each block of rows i:          from the diagonal on, lower_result
//       sums = acc[i, j] or 0
//       for k in 0 .. inner:             to the diagonal, lower_lhs
//         sums += lhs[i, k] * rhs[k, j]
//       result[i, j] = sums
#include "ExpandMatrixOps.h"
#include "MatrixLoops.h"

using namespace mlir;
using namespace gdn;

namespace {

/// Columns `begin` to `end`, in blocks of `vectors` vectors of `lanes`.
struct Panel {
  int64_t begin, end, vectors, lanes;
};

class Product {
public:
  Product(OpBuilder &b, tile::MatmulOp matmul, const MatmulBuffers &buffers,
          int64_t lanes)
      : b(b), l{b, matmul.getLoc()}, matmul(matmul), buffers(buffers) {
    VectorType type = matmul.getResult().getType();
    rows = type.getDimSize(0);
    columns = type.getDimSize(1);
    inner = matmul.getRhs().getType().getDimSize(0);
    // 16 registers (lanes of 8) hold 4 x 2 sums, 32 registers 8 x 3.
    blockRows = lanes == 16 ? 8 : 4;
    while (rows % blockRows != 0)
      blockRows /= 2;
  }

  void emit(const Panel &panel);
  int64_t numColumns() const { return columns; }

private:
  OpBuilder &b;
  MatrixLoops l;
  tile::MatmulOp matmul;
  const MatmulBuffers &buffers;
  int64_t rows, columns, inner, blockRows;
};

} // namespace

void Product::emit(const Panel &panel) {
  if (panel.begin == panel.end)
    return;
  OpBuilder::InsertionGuard guard(b);
  Location loc = l.loc;
  auto vector = VectorType::get({panel.lanes}, b.getF32Type());
  Value j = l.enter(l.index(panel.begin), l.index(panel.end),
                    panel.vectors * panel.lanes)
                .getInductionVar();
  Value first = l.index(0);
  if (matmul.getLowerResult()) {
    Value size = l.index(blockRows);
    first = arith::MulIOp::create(
        b, loc, arith::DivUIOp::create(b, loc, j, size), size);
  }
  Value i = l.enter(first, l.index(rows), blockRows).getInductionVar();
  SmallVector<Value> sums;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
  for (int64_t r = 0; r < blockRows; ++r)
    for (int64_t v = 0; v < panel.vectors; ++v)
      sums.push_back(buffers.acc ? l.read(vector, buffers.acc, l.add(i, r),
                                          l.add(j, v * panel.lanes))
                                 : zero);
  Value last = l.index(inner);
  if (matmul.getLowerLhs())
    last = arith::MinUIOp::create(b, loc, l.add(i, blockRows), last);
  scf::ForOp loop = l.enter(l.index(0), last, 1, sums);
  Value k = loop.getInductionVar();
  SmallVector<Value> right, next(loop.getRegionIterArgs());
  for (int64_t v = 0; v < panel.vectors; ++v)
    right.push_back(l.read(vector, buffers.rhs, k, l.add(j, v * panel.lanes)));
  for (int64_t r = 0; r < blockRows; ++r) {
    Value row = l.add(i, r);
    Value x = matmul.getTransposeLhs() ? l.element(buffers.lhs, k, row)
                                       : l.element(buffers.lhs, row, k);
    Value left = vector::BroadcastOp::create(b, loc, vector, x);
    for (int64_t v = 0; v < panel.vectors; ++v) {
      Value &sum = next[r * panel.vectors + v];
      sum = vector::FMAOp::create(b, loc, left, right[v], sum);
    }
  }
  scf::YieldOp::create(b, loc, next);
  b.setInsertionPointAfter(loop);
  for (int64_t r = 0; r < blockRows; ++r)
    for (int64_t v = 0; v < panel.vectors; ++v)
      l.write(loop.getResult(r * panel.vectors + v), buffers.result,
              l.add(i, r), l.add(j, v * panel.lanes));
}

void gdn::expandMatmul(OpBuilder &b, tile::MatmulOp matmul,
                       const MatmulBuffers &buffers, int64_t lanes) {
  Product product(b, matmul, buffers, lanes);
  int64_t columns = product.numColumns();
  // 32 registers: blocks of 3 vectors where they come out even, else of 2 and
  // one of 3 or 1. 16 registers would spill with 3.
  int64_t vectors = columns / lanes, end = vectors * lanes;
  bool isWide = lanes == 16;
  int64_t block = isWide && vectors % 3 == 0 ? 3 : 2;
  int64_t odd = vectors % block == 0 ? 0 : isWide && vectors > 3 ? 3 : 1;
  product.emit({0, odd * lanes, odd, lanes});
  product.emit({odd * lanes, end, block, lanes});
  for (int64_t width = lanes / 2; end < columns; width /= 2)
    if (columns - end >= width) {
      product.emit({end, end + width, 1, width});
      end += width;
    }
}
