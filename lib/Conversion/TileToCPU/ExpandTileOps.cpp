// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory ops, maps and the convolution as loops over rows of vectors.
#include "ExpandTileOps.h"
#include "ExpandStrided.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace gdn;

static Value index(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

/// Builds a loop from `from` to `to`, or its body alone when it runs once.
static void forRows(OpBuilder &b, Location loc, Value from, Value to,
                    function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(b, loc, 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

static MemRefType typeOf(Value memory) {
  return cast<MemRefType>(memory.getType());
}

/// A whole row of a buffer: a vector for rank 2, an element for rank 1.
static Value readRow(OpBuilder &b, Location loc, Value buffer, Value row) {
  MemRefType type = typeOf(buffer);
  if (type.getRank() == 1)
    return memref::LoadOp::create(b, loc, buffer, row);
  auto vector = VectorType::get({type.getDimSize(1)}, type.getElementType());
  return vector::LoadOp::create(b, loc, vector, buffer,
                                ValueRange{row, index(b, loc, 0)});
}

static void writeRow(OpBuilder &b, Location loc, Value value, Value buffer,
                     Value row) {
  if (typeOf(buffer).getRank() == 1) {
    memref::StoreOp::create(b, loc, value, buffer, row);
    return;
  }
  vector::StoreOp::create(b, loc, value, buffer,
                          ValueRange{row, index(b, loc, 0)});
}

void gdn::expandCopy(OpBuilder &b, Location loc, Value from, Value to) {
  if (typeOf(to).getRank() == 1) {
    // One vector is the whole tile.
    auto type =
        VectorType::get(typeOf(to).getShape(), typeOf(to).getElementType());
    Value zero = index(b, loc, 0);
    Value tile = vector::LoadOp::create(b, loc, type, from, zero);
    vector::StoreOp::create(b, loc, tile, to, zero);
    return;
  }
  forRows(b, loc, index(b, loc, 0), index(b, loc, typeOf(to).getDimSize(0)),
          [&](Value i) { writeRow(b, loc, readRow(b, loc, from, i), to, i); });
}

namespace {
/// Element addresses of a load or store: index `i` is added to dimension
/// dims[0] of the view, `j` to dims[1].
template <typename OpTy> struct Access {
  OpBuilder &b;
  OpTy op;

  SmallVector<Value> at(Value i, Value j) {
    SmallVector<Value> indices(op.getIndices());
    indices[op.getDims()[0]] =
        b.createOrFold<arith::AddIOp>(op.getLoc(), indices[op.getDims()[0]], i);
    if (j)
      indices[op.getDims()[1]] = b.createOrFold<arith::AddIOp>(
          op.getLoc(), indices[op.getDims()[1]], j);
    return indices;
  }
  /// True if a row of the tile is contiguous in the view.
  bool rowsAreContiguous() {
    MemRefType view = typeOf(op.getView());
    SmallVector<int64_t> strides;
    int64_t offset;
    return op.getDims().size() == 2 && op.getDims()[1] == view.getRank() - 1 &&
           succeeded(view.getStridesAndOffset(strides, offset)) &&
           strides.back() == 1;
  }
  int64_t numRows() { return op.getTile().getType().getDimSize(0); }
  int64_t rowSize() {
    return op.getDims().size() == 2 ? op.getTile().getType().getDimSize(1) : 1;
  }
  /// True if the whole of a matrix is accessed whose strides decide how.
  bool isStrided() {
    return op.getDims().size() == 2 && !op.getRows() && !rowsAreContiguous();
  }
  StridedMatrix matrix() {
    return {op.getView(), SmallVector<Value>(op.getIndices()), op.getDims()[0],
            op.getDims()[1]};
  }
  Value validRows() {
    return op.getRows() ? op.getRows() : index(b, op.getLoc(), numRows());
  }
};
} // namespace

void gdn::expandLoad(OpBuilder &b, tile::LoadOp load, Value to, int64_t lanes) {
  Location loc = load.getLoc();
  Access<tile::LoadOp> access{b, load};
  Value zero = index(b, loc, 0);
  Value valid = access.validRows();
  bool matrix = load.getDims().size() == 2;
  if (access.isStrided()) {
    expandStrided(b, loc, access.matrix(), to, /*isLoad=*/true, lanes, [&] {
      forRows(b, loc, zero, valid, [&](Value i) {
        forRows(b, loc, zero, index(b, loc, access.rowSize()), [&](Value j) {
          Value x =
              memref::LoadOp::create(b, loc, load.getView(), access.at(i, j));
          memref::StoreOp::create(b, loc, x, to, ValueRange{i, j});
        });
      });
    });
    return;
  }
  forRows(b, loc, zero, valid, [&](Value i) {
    if (access.rowsAreContiguous()) {
      auto type = VectorType::get({access.rowSize()},
                                  load.getTile().getType().getElementType());
      Value row = vector::LoadOp::create(b, loc, type, load.getView(),
                                         access.at(i, zero));
      writeRow(b, loc, row, to, i);
      return;
    }
    if (!matrix) {
      Value x =
          memref::LoadOp::create(b, loc, load.getView(), access.at(i, Value()));
      memref::StoreOp::create(b, loc, x, to, i);
      return;
    }
    forRows(b, loc, zero, index(b, loc, access.rowSize()), [&](Value j) {
      Value x = memref::LoadOp::create(b, loc, load.getView(), access.at(i, j));
      memref::StoreOp::create(b, loc, x, to, ValueRange{i, j});
    });
  });
  if (!load.getRows())
    return;
  // The rows past the valid ones.
  Type element = load.getTile().getType().getElementType();
  Value blank = arith::ConstantOp::create(b, loc, b.getFloatAttr(element, 0.0));
  forRows(b, loc, valid, index(b, loc, access.numRows()), [&](Value i) {
    Value row = blank;
    if (matrix)
      row = vector::BroadcastOp::create(
          b, loc, VectorType::get({access.rowSize()}, element), blank);
    writeRow(b, loc, row, to, i);
  });
}

void gdn::expandStore(OpBuilder &b, tile::StoreOp store, Value from,
                      int64_t lanes) {
  Location loc = store.getLoc();
  Access<tile::StoreOp> access{b, store};
  Value zero = index(b, loc, 0);
  bool matrix = store.getDims().size() == 2;
  if (access.isStrided()) {
    expandStrided(b, loc, access.matrix(), from, /*isLoad=*/false, lanes, [&] {
      forRows(b, loc, zero, access.validRows(), [&](Value i) {
        forRows(b, loc, zero, index(b, loc, access.rowSize()), [&](Value j) {
          Value x = memref::LoadOp::create(b, loc, from, ValueRange{i, j});
          memref::StoreOp::create(b, loc, x, store.getView(), access.at(i, j));
        });
      });
    });
    return;
  }
  forRows(b, loc, zero, access.validRows(), [&](Value i) {
    if (access.rowsAreContiguous()) {
      vector::StoreOp::create(b, loc, readRow(b, loc, from, i), store.getView(),
                              access.at(i, zero));
      return;
    }
    if (!matrix) {
      Value x = memref::LoadOp::create(b, loc, from, i);
      memref::StoreOp::create(b, loc, x, store.getView(),
                              access.at(i, Value()));
      return;
    }
    forRows(b, loc, zero, index(b, loc, access.rowSize()), [&](Value j) {
      Value x = memref::LoadOp::create(b, loc, from, ValueRange{i, j});
      memref::StoreOp::create(b, loc, x, store.getView(), access.at(i, j));
    });
  });
}

void gdn::expandFill(OpBuilder &b, tile::FillOp fill, Value to) {
  Location loc = fill.getLoc();
  VectorType type = fill.getTile().getType();
  Value row = fill.getValue();
  if (type.getRank() == 2)
    row = vector::BroadcastOp::create(b, loc, tile::getRowType(type), row);
  forRows(b, loc, index(b, loc, 0), index(b, loc, type.getDimSize(0)),
          [&](Value i) { writeRow(b, loc, row, to, i); });
}

void gdn::expandWholeRows(OpBuilder &b, tile::MapRowsOp map,
                          ArrayRef<Value> inputs, ArrayRef<Value> results,
                          const DenseMap<Value, Value> &captured) {
  Location loc = map.getLoc();
  IRMapping mapping;
  for (auto [tile, buffer] : captured) {
    auto type = cast<VectorType>(tile.getType());
    mapping.map(tile, vector::LoadOp::create(b, loc, type, buffer,
                                             ValueRange{index(b, loc, 0)})
                          .getResult());
  }
  Block &body = map.getBody().front();
  int64_t rows = cast<VectorType>(map.getResult(0).getType()).getDimSize(0);
  forRows(b, loc, index(b, loc, 0), index(b, loc, rows), [&](Value i) {
    mapping.map(body.getArgument(0), i);
    for (auto [arg, buffer] :
         llvm::zip(body.getArguments().drop_front(), inputs))
      mapping.map(arg, readRow(b, loc, buffer, i));
    for (Operation &op : body.without_terminator())
      b.clone(op, mapping);
    for (auto [value, buffer] :
         llvm::zip(body.getTerminator()->getOperands(), results))
      writeRow(b, loc, mapping.lookupOrDefault(value), buffer, i);
  });
}

void gdn::expandConv1d(OpBuilder &b, tile::Conv1dOp conv,
                       const ConvBuffers &buffers, int64_t lanes) {
  Location loc = conv.getLoc();
  Value zero = index(b, loc, 0);
  int64_t channels = conv.getInput().getType().getDimSize(1);
  int64_t width = conv.getWeight().getType().getDimSize(0);
  while (channels % lanes != 0)
    lanes /= 2;
  Value valid = conv.getValid();
  auto vector = VectorType::get({lanes}, b.getF32Type());
  auto read = [&](Value buffer, Value row, Value column) -> Value {
    return vector::LoadOp::create(b, loc, vector, buffer,
                                  ValueRange{row, column});
  };
  // Columns outside, tokens inside: the window of a column block slides
  // through registers.
  auto columns = scf::ForOp::create(b, loc, zero, index(b, loc, channels),
                                    index(b, loc, lanes));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(columns.getBody());
  Value c = columns.getInductionVar();
  SmallVector<Value> weights, window;
  for (int64_t j = 0; j < width; ++j)
    weights.push_back(read(buffers.weight, index(b, loc, j), c));
  for (int64_t j = 0; j + 1 < width; ++j)
    window.push_back(read(buffers.window, index(b, loc, j), c));
  Value bias;
  if (buffers.bias)
    bias = vector::LoadOp::create(b, loc, vector, buffers.bias, ValueRange{c});
  auto tokens =
      scf::ForOp::create(b, loc, zero, valid, index(b, loc, 1), window);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(tokens.getBody());
    Value t = tokens.getInductionVar();
    SmallVector<Value> taps(tokens.getRegionIterArgs());
    taps.push_back(read(buffers.input, t, c));
    Value sum = bias;
    for (auto [weight, tap] : llvm::zip(weights, taps))
      sum = sum ? Value(vector::FMAOp::create(b, loc, weight, tap, sum))
                : Value(arith::MulFOp::create(b, loc, weight, tap));
    vector::StoreOp::create(b, loc, sum, buffers.result, ValueRange{t, c});
    scf::YieldOp::create(b, loc, SmallVector<Value>(llvm::drop_begin(taps)));
  }
  for (int64_t j = 0; j + 1 < width; ++j)
    vector::StoreOp::create(b, loc, tokens.getResult(j), buffers.newWindow,
                            ValueRange{index(b, loc, j), c});
}
