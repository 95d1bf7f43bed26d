// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tiles are, and how they get there. Barriers are not placed here:
// gdn-gpu-place-barriers puts them where an access has to wait for another.
#include "Products/SharedTiles.h"

#include "Kernel/OperandRoles.h"
#include "Products/ProductForm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// Of a tile that goes to memory by way of shared memory.
static constexpr int64_t maxStagedBytes = 16 * 1024;

static VectorType vectorType(Value tile) {
  return cast<VectorType>(tile.getType());
}
static bool isVector(Value tile) {
  auto type = dyn_cast<VectorType>(tile.getType());
  return type && type.getRank() == 1;
}
static bool isNarrow(VectorType type) {
  return type.getElementTypeBitWidth() == 16;
}

ProductEmitter::ProductEmitter(OpBuilder &b, IRMapping &scalars, Block *entry,
                               int64_t numWarps)
    : b(b), scalars(scalars), entry(entry), numWarps(numWarps),
      matrixRows(gpu::RowsAttr::get(b.getContext(), numWarps, 4, 2)),
      vectorRows(gpu::RowsAttr::get(b.getContext(), 1, 1, 1)) {}

//===----------------------------------------------------------------------===//
// Layouts and buffers
//===----------------------------------------------------------------------===//

/// Rows dealt so that a row lies side by side in few lanes, 16 bytes each if
/// elements have 16 bits: for memory, and for tiles with too few rows for
/// matrix instructions.
gpu::RowsAttr ProductEmitter::wideRowsOf(VectorType tile) const {
  int64_t pieces = tile.getDimSize(1) / 8;
  // A slice of a shared tile goes by rows of 128 bytes.
  int64_t lanes = std::min<int64_t>(slice.rows == 0 ? 32 : 8, pieces & -pieces);
  return gpu::RowsAttr::get(b.getContext(), numWarps,
                            std::max<int64_t>(lanes, 1), 8);
}

gpu::RowsAttr ProductEmitter::rowsOf(VectorType tile) const {
  return slice.rows == 0 && tile.getDimSize(0) % (8 * numWarps) == 0
             ? matrixRows
             : wideRowsOf(tile);
}

gpu::FragmentType ProductEmitter::typeOf(VectorType tile) const {
  return gpu::FragmentType::get(tile, rowsOf(tile));
}

/// True if no op that is still to come uses `tile`.
bool ProductEmitter::isDead(Value tile) const {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    while (user && !emitted.contains(user) &&
           !isa<tile::TileDialect>(user->getDialect()))
      user = user->getParentOp();
    if (!user)
      return false;
    if (auto transpose = dyn_cast<tile::TransposeOp>(user))
      return emitted.contains(user) && isDead(transpose.getResult());
    return emitted.contains(user);
  });
}

/// Memory for a tile of `block`: that of one that nobody needs any more, if
/// there is one. What another block made may be needed when that comes round
/// again.
Value ProductEmitter::allocate(gpu::SharedType type, Block *block) {
  Value free;
  for (auto &[owner, buffer] : buffers)
    if (buffer.getType() == type && owner.getParentBlock() == block &&
        !pinned.contains(buffer) && isDead(owner))
      free = owner;
  if (free) {
    Value buffer = buffers.lookup(free);
    buffers.erase(free);
    return buffer;
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  Location loc = b.getUnknownLoc();
  return gpu::AllocOp::create(b, loc, type);
}

/// Memory for `tile`, of `block`: where it has to go, or any.
Value ProductEmitter::bufferFor(Value tile, VectorType type, bool swizzled,
                                Block *block) {
  auto own = destinations.find(tile);
  return own != destinations.end()
             ? own->second()
             : allocate(gpu::SharedType::get(type, swizzled), block);
}

Value ProductEmitter::bufferOf(Value tile) {
  if (Value buffer = buffers.lookup(tile))
    return buffer;
  Location loc = tile.getLoc();
  auto transpose = tile.getDefiningOp<tile::TransposeOp>();
  Value source = transpose ? transpose.getTile() : tile;
  Value fragment = fragmentOf(source);
  Value buffer = bufferFor(tile, vectorType(tile), isNarrow(vectorType(tile)),
                           tile.getParentBlock());
  gpu::StoreSharedOp::create(b, loc, fragment, buffer, Value(),
                             bool(transpose));
  return buffers[tile] = buffer;
}

Value ProductEmitter::fragmentOf(Value tile) {
  return fragmentOf(tile, rowsOf(vectorType(tile)));
}

Value ProductEmitter::fragmentOf(Value tile, gpu::RowsAttr rows) {
  Value known = fragments.lookup(tile);
  if (known && cast<gpu::FragmentType>(known.getType()).getLayout() == rows)
    return known;
  auto type = gpu::FragmentType::get(shown(tile), rows);
  if (slice.rows != 0)
    return gpu::LoadSharedOp::create(
        b, tile.getLoc(), type, buffers.lookup(tile), sliceRow(tile.getLoc()));
  if (auto fill = tile.getDefiningOp<tile::FillOp>())
    return gpu::FillOp::create(b, tile.getLoc(), type,
                               scalars.lookupOrDefault(fill.getValue()));
  auto transpose = tile.getDefiningOp<tile::TransposeOp>();
  if (transpose && !buffers.contains(tile) && rows.isMatrix())
    return gpu::LoadSharedOp::create(b, tile.getLoc(), type,
                                     bufferOf(transpose.getTile()), Value(),
                                     /*transpose=*/true);
  return gpu::LoadSharedOp::create(b, tile.getLoc(), type, bufferOf(tile),
                                   Value(),
                                   /*transpose=*/false);
}

bool ProductEmitter::isVectorWork(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return vectorType(load.getTile()).getRank() == 1 && !isCopied(load);
  auto isVectorOrScalar = [](Value value) {
    return isVector(value) || !isa<VectorType>(value.getType());
  };
  return isa<tile::TileDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(), isVectorOrScalar) &&
         llvm::all_of(op->getResults(), isVectorOrScalar) &&
         !isa<tile::BlockIdOp>(op);
}

Value ProductEmitter::fetchVector(Value tile, Attribute layout) {
  if (Value known = fragments.lookup(tile)) // of this layout: sums of rows
    return known;
  if (slice.rows != 0 && isa<gpu::PerRowAttr>(layout))
    return fetchSlice(tile, cast<gpu::PerRowAttr>(layout));
  return gpu::LoadSharedOp::create(
      b, tile.getLoc(), gpu::FragmentType::get(vectorType(tile), layout),
      buffers.lookup(tile), Value());
}

SmallVector<Value> ProductEmitter::mapped(ValueRange values,
                                          const IRMapping &at) {
  return llvm::map_to_vector(
      values, [&](Value value) { return at.lookupOrDefault(value); });
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

bool ProductEmitter::isElements(tile::LoadOp load) {
  VectorType type = vectorType(load.getTile());
  return type.getRank() == 1 && type.getElementType().isF32();
}

bool ProductEmitter::isCopied(tile::LoadOp load) {
  VectorType type = vectorType(load.getTile());
  auto view = cast<MemRefType>(load.getView().getType());
  auto [strides, offset] = view.getStridesAndOffset();
  if (strides[load.getDims().back()] != 1)
    return false;
  int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  if (bytes % 16 != 0)
    return false;
  // What only elementwise work reads goes to registers at once: a state.
  if (type.getRank() == 2)
    return isNarrow(type) &&
           (isReadTransposed(load) ||
            !llvm::all_of(load->getUsers(), llvm::IsaPred<tile::MapRowsOp>));
  return llvm::none_of(load->getUsers(), [](Operation *user) {
    return llvm::any_of(user->getResults(), isVector) &&
           isa<tile::TileDialect>(user->getDialect());
  });
}

/// What the caller promises about an argument: 16 bytes divide its address and
/// strides.
static void promiseAlignment(Value view) {
  while (Operation *op = view.getDefiningOp()) {
    if (!isa<ViewLikeOpInterface, memref::ReinterpretCastOp, memref::CastOp>(
            op))
      return;
    view = op->getOperand(0);
  }
  auto arg = cast<BlockArgument>(view);
  if (auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()))
    func.setArgAttr(
        arg.getArgNumber(), "gdn_gpu.alignment",
        IntegerAttr::get(IntegerType::get(func.getContext(), 64), 16));
}

/// Bytes that divide the address of a tile and of each of its rows: regions of
/// the workspace begin at multiples of 64 bytes, and lie row behind row.
static int64_t getAlignment(Value view, ValueRange indices, VectorType tile) {
  auto type = cast<MemRefType>(view.getType());
  int64_t rowBytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  bool isRegion = isa<BlockArgument>(view) && type.getLayout().isIdentity() &&
                  type.getRank() > 2;
  return isRegion && tile.getRank() == 2 && rowBytes % 16 == 0 &&
                 isZeroInteger(indices.back())
             ? 16
             : 0;
}

gpu::BeginCopyOp ProductEmitter::emitCopy(tile::LoadOp load,
                                          const IRMapping &at, Value rows,
                                          bool isPinned) {
  VectorType type = vectorType(load.getTile());
  if (!buffers.contains(load.getTile())) {
    Value buffer = allocate(gpu::SharedType::get(type, type.getRank() == 2),
                            load.getTile().getParentBlock());
    buffers[load.getTile()] = buffer;
    if (isPinned)
      pinned.insert(buffer);
  }
  Value view = at.lookupOrDefault(load.getView());
  const bool scattered = isElements(load) && !isCopied(load);
  if (!scattered)
    promiseAlignment(view);
  if (!rows && load.getRows())
    rows = at.lookupOrDefault(load.getRows());
  emitted.insert(load);
  return gpu::BeginCopyOp::create(
      b, load.getLoc(), view, mapped(load.getIndices(), at), load.getDims(),
      rows, buffers.lookup(load.getTile()), scattered, /*per_warpgroup=*/false,
      /*tensor_map=*/false);
}

void ProductEmitter::emitOwnCopy(tile::LoadOp load, const IRMapping &at,
                                 Value rows) {
  Value buffer = buffers.lookup(load.getTile());
  if (!buffer)
    pinBuffer(load.getTile(),
              buffer = allocate(
                  gpu::SharedType::get(vectorType(load.getTile()), true),
                  load.getTile().getParentBlock()));
  Value view = at.lookupOrDefault(load.getView());
  promiseAlignment(view);
  if (!rows && load.getRows())
    rows = at.lookupOrDefault(load.getRows());
  gpu::BeginCopyOp::create(b, load.getLoc(), view,
                           mapped(load.getIndices(), at), load.getDims(), rows,
                           buffer, /*scattered=*/false, /*per_warpgroup=*/true,
                           /*tensor_map=*/false);
  emitted.insert(load);
}

/// Of a view [T, Hk, R, d] that expands the heads of an argument [T, Hk R, d]
/// the argument, with `indices` and `dims` of it; else the view.
static Value joinHeads(OpBuilder &b, Value view,
                       SmallVectorImpl<Value> &indices,
                       SmallVectorImpl<int64_t> &dims) {
  auto grouped = view.getDefiningOp<memref::ExpandShapeOp>();
  const SmallVector<ReassociationIndices> heads = {{0}, {1, 2}, {3}};
  if (!grouped || !isa<BlockArgument>(grouped.getSrc()) ||
      grouped.getReassociationIndices() != heads ||
      dims != ArrayRef<int64_t>{0, 3})
    return view;
  Location loc = view.getLoc();
  Value ratio =
      getValueOrCreateConstantIndexOp(b, loc, grouped.getMixedOutputShape()[2]);
  Value head = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, indices[1], ratio), indices[2]);
  indices.assign({indices[0], head, indices[3]});
  dims.assign({0, 2});
  return grouped.getSrc();
}

/// 16 bits go to memory in whole pieces of rows, by way of shared memory; not
/// so a state, which is large and stored once.
void ProductEmitter::emitStore(tile::StoreOp store) {
  VectorType type = vectorType(store.getTile());
  if (storesOwn && isNarrow(type) &&
      store.getTile().getDefiningOp<tile::TransposeOp>() &&
      type.getDimSize(1) % (8 * numWarps) == 0) {
    Value buffer = bufferOf(store.getTile());
    Value view = scalars.lookupOrDefault(store.getView());
    promiseAlignment(view);
    SmallVector<Value> indices = mapped(store.getIndices());
    SmallVector<int64_t> dims(store.getDims());
    view = joinHeads(b, view, indices, dims);
    gpu::CopyOutOp::create(
        b, store.getLoc(), buffer, view, indices, dims,
        store.getRows() ? scalars.lookupOrDefault(store.getRows()) : Value(),
        /*tensor_map=*/false, store.getFullUntilLast());
    return;
  }
  bool inPieces = !storesOwn && isNarrow(type) && type.getDimSize(1) % 8 == 0 &&
                  type.getNumElements() * 2 <= maxStagedBytes;
  Value fragment = inPieces ? fragmentOf(store.getTile(), wideRowsOf(type))
                            : fragmentOf(store.getTile());
  Value view = scalars.lookupOrDefault(store.getView());
  Value rows =
      store.getRows() ? scalars.lookupOrDefault(store.getRows()) : Value();
  if (inPieces)
    promiseAlignment(view);
  gpu::StoreOp::create(
      b, store.getLoc(), fragment, view, mapped(store.getIndices()),
      store.getDims(), rows,
      inPieces ? 16 : getAlignment(store.getView(), store.getIndices(), type));
}

//===----------------------------------------------------------------------===//
// Work on matrices
//===----------------------------------------------------------------------===//

void ProductEmitter::cloneBody(Block &from, Block *to, IRMapping &mapping) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(to);
  for (Operation &op : from.without_terminator()) {
    if (mapping.contains(op.getResult(0)))
      continue; // taken out of the body
    for (Value operand : op.getOperands())
      if (Operation *constant = operand.getDefiningOp();
          constant && constant->hasTrait<OpTrait::ConstantLike>() &&
          !mapping.contains(operand))
        b.clone(*constant, mapping);
    b.clone(op, mapping);
  }
  SmallVector<Value> yielded;
  for (Value value : from.getTerminator()->getOperands()) {
    if (Operation *constant = value.getDefiningOp();
        constant && constant->hasTrait<OpTrait::ConstantLike>() &&
        !mapping.contains(value))
      b.clone(*constant, mapping);
    yielded.push_back(mapping.lookupOrDefault(value));
  }
  gpu::YieldOp::create(b, from.getTerminator()->getLoc(), yielded);
}

void ProductEmitter::emitMap(tile::MapRowsOp map) {
  Location loc = map.getLoc();
  gpu::RowsAttr rows;
  for (Value tile : llvm::concat<Value>(map.getInputs(), map.getResults()))
    if (!isVector(tile))
      rows = rowsOf(shown(tile));
  auto perRow = gpu::PerRowAttr::get(b.getContext(), rows);
  auto perColumn = gpu::PerColumnAttr::get(b.getContext(), rows);
  Block &from = map.getBody().front();
  IRMapping mapping = scalars;
  SmallVector<Value> inputs;
  for (Value input : map.getInputs())
    inputs.push_back(isVector(input) ? fetchVector(input, perRow)
                                     : fragmentOf(input, rows));
  // Tiles of rank 1 from outside: single elements, and rows as they are.
  SetVector<Value> captured;
  map.getBody().walk([&](Operation *op) {
    if (auto extract = dyn_cast<vector::ExtractOp>(op))
      if (buffers.contains(extract.getSource()) &&
          extract.getStaticPosition().size() == 1) {
        Value at = arith::ConstantIndexOp::create(
            b, loc, extract.getStaticPosition().front());
        mapping.map(extract.getResult(),
                    gpu::LoadSharedElementOp::create(
                        b, loc, extract.getType(),
                        buffers.lookup(extract.getSource()), at)
                        .getResult());
        return;
      }
    for (Value operand : op->getOperands())
      if (isVector(operand) && buffers.contains(operand) &&
          !map.getBody().isAncestor(operand.getParentRegion()))
        captured.insert(operand);
  });
  for (Value tile : captured)
    inputs.push_back(fetchVector(tile, perColumn));

  SmallVector<Type> types;
  for (Value result : map.getResults())
    types.push_back(gpu::FragmentType::get(
        shown(result), isVector(result) ? Attribute(perRow) : rows));
  auto result = gpu::MapRowsOp::create(b, loc, types, inputs);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> argTypes = {b.getIndexType()};
  for (Value input : inputs)
    argTypes.push_back(
        gpu::getRowType(cast<gpu::FragmentType>(input.getType())));
  Block *body = b.createBlock(&result.getBody(), {}, argTypes,
                              SmallVector<Location>(argTypes.size(), loc));
  for (auto [i, arg] : llvm::enumerate(from.getArguments()))
    mapping.map(arg, body->getArgument(i));
  for (auto [tile, arg] : llvm::zip(
           captured, body->getArguments().drop_front(from.getNumArguments())))
    mapping.map(tile, arg);
  cloneBody(from, body, mapping);
  for (auto [tile, fragment] : llvm::zip(map.getResults(), result.getResults()))
    fragments[tile] = fragment;
}

void ProductEmitter::emitMatmul(tile::MatmulOp matmul) {
  Location loc = matmul.getLoc();
  Value rhs = matmul.getRhs();
  bool transposed = false;
  if (auto transpose = rhs.getDefiningOp<tile::TransposeOp>();
      transpose && !buffers.contains(rhs)) {
    rhs = transpose.getTile();
    transposed = true;
  }
  // Both sides are shared before either is loaded: behind one barrier.
  if (matmul.getTransposeLhs())
    bufferOf(matmul.getLhs());
  Value right = bufferOf(rhs);
  Value lhs;
  if (matmul.getTransposeLhs()) {
    VectorType type = vectorType(matmul.getLhs());
    auto transposed = VectorType::get({type.getDimSize(1), type.getDimSize(0)},
                                      type.getElementType());
    lhs = gpu::LoadSharedOp::create(b, loc, typeOf(transposed),
                                    bufferOf(matmul.getLhs()), Value(),
                                    /*transpose=*/true);
  } else {
    lhs = fragmentOf(matmul.getLhs());
  }
  Value acc = matmul.getAcc() ? fragmentOf(matmul.getAcc()) : Value();
  fragments[matmul.getResult()] =
      gpu::MatmulOp::create(b, loc, typeOf(vectorType(matmul.getResult())), lhs,
                            right, acc, transposed);
}

/// `fragment` is `tile`, or its transpose if it was made transposed.
void ProductEmitter::setMade(Value tile, Value fragment) {
  if (!isMadeTransposed(tile))
    fragments[tile] = fragment;
  else
    for (Operation *user : tile.getUsers())
      fragments[user->getResult(0)] = fragment;
}

/// How much farther down the bound of an exponent is with each column past the
/// diagonal: a power of two half as far below is zero.
static constexpr int32_t steepness = 1024;

/// 2^(G_i - G_j) on and below the diagonal, of sums over bounded decays, and
/// zero above it. The sums of columns have a bound that depends on the distance
/// to the diagonal, above it far past all sums and below it never met: a
/// minimum for each element, where a mask would be a comparison and a choice.
/// It is as good as the rounding to 16 bits behind it asks.
void ProductEmitter::emitDecayMatrix(tile::DecayMatrixOp decay) {
  Location loc = decay.getLoc();
  const bool transposed = isMadeTransposed(decay.getResult());
  VectorType type = vectorType(decay.getResult());
  gpu::RowsAttr rows = rowsOf(type);
  Value sums = decay.getLogDecay(); // in their buffer, by emitVectors
  Value perRow = gpu::LoadSharedOp::create(
      b, loc,
      gpu::FragmentType::get(vectorType(sums),
                             gpu::PerRowAttr::get(b.getContext(), rows)),
      buffers.lookup(decay.getResult()), Value());
  Value perColumn = gpu::LoadSharedOp::create(
      b, loc,
      gpu::FragmentType::get(vectorType(sums),
                             gpu::PerColumnAttr::get(b.getContext(), rows)),
      buffers.lookup(decay.getResult()), Value());
  auto row = VectorType::get({type.getDimSize(1)}, b.getF32Type());
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{typeOf(type)},
                                    ValueRange{perRow, perColumn});
  OpBuilder::InsertionGuard guard(b);
  Block *body =
      b.createBlock(&map.getBody(), {}, {b.getIndexType(), b.getF32Type(), row},
                    {loc, loc, loc});
  Value own = body->getArgument(1), others = body->getArgument(2);
  auto splat = [&](Type type, Value scalar) -> Value {
    return vector::BroadcastOp::create(b, loc, type, scalar);
  };
  auto numbers = VectorType::get(row.getShape(), b.getI32Type());
  auto indices = VectorType::get(row.getShape(), b.getIndexType());
  Value distance = arith::IndexCastOp::create(
      b, loc, numbers,
      arith::SubIOp::create(b, loc, vector::StepOp::create(b, loc, indices),
                            splat(indices, body->getArgument(0))));
  Value steep = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(numbers, b.getI32IntegerAttr(steepness)));
  const float slack = transposed ? steepness / 2 : -steepness / 2;
  Value start = arith::AddFOp::create(
      b, loc, own, arith::ConstantOp::create(b, loc, b.getF32FloatAttr(slack)));
  Value bound = arith::AddFOp::create(
      b, loc,
      arith::SIToFPOp::create(b, loc, row,
                              arith::MulIOp::create(b, loc, distance, steep)),
      splat(row, start));
  Value exponent;
  if (transposed) {
    Value until = arith::MinimumFOp::create(b, loc, others, bound);
    exponent = arith::SubFOp::create(b, loc, until, splat(row, own));
  } else {
    Value from = arith::MaximumFOp::create(b, loc, others, bound);
    exponent = arith::SubFOp::create(b, loc, splat(row, own), from);
  }
  Value factor =
      math::Exp2Op::create(b, loc, exponent, arith::FastMathFlags::afn);
  gpu::YieldOp::create(b, loc, factor);
  buffers.erase(decay.getResult());
  setMade(decay.getResult(), map.getResult(0));
}

void ProductEmitter::emitInverse(tile::TriInverseOp inverse,
                                 ArrayRef<ProductEmitter *> emitters) {
  ProductEmitter &first = *emitters.front();
  SmallVector<Value> matrices;
  for (ProductEmitter *each : emitters)
    matrices.push_back(each->fragmentOf(inverse.getMatrix()));
  auto type = cast<gpu::FragmentType>(matrices.front().getType());
  Value scratch =
      first.allocate(gpu::TriInverseOp::getScratchType(type, emitters.size()),
                     inverse->getBlock());
  auto made = gpu::TriInverseOp::create(
      first.b, inverse.getLoc(), SmallVector<Type>(emitters.size(), type),
      matrices, scratch, isMadeTransposed(inverse.getResult()));
  for (auto [each, result] : llvm::zip(emitters, made.getInverses())) {
    each->setMade(inverse.getResult(), result);
    each->emitted.insert(inverse);
  }
  // Free again: nobody uses the matrix from there.
  first.buffers[inverse.getMatrix()] = scratch;
}

LogicalResult ProductEmitter::emit(Operation *op) {
  Location loc = op->getLoc();
  LogicalResult result = success();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) {
        if (isCopied(load))
          return (void)emitCopy(load, scalars, Value(), /*isPinned=*/false);
        Value rows =
            load.getRows() ? scalars.lookupOrDefault(load.getRows()) : Value();
        fragments[load.getTile()] =
            gpu::LoadOp::create(b, loc, typeOf(vectorType(load.getTile())),
                                scalars.lookupOrDefault(load.getView()),
                                mapped(load.getIndices()), load.getDims(), rows,
                                getAlignment(load.getView(), load.getIndices(),
                                             vectorType(load.getTile())));
      })
      .Case([](tile::FillOp) {}) // made where it is used
      .Case([&](tile::StoreOp store) { emitStore(store); })
      .Case([&](tile::MapRowsOp map) {
        isTransposed(map) ? emitTransposedMap(map) : emitMap(map);
      })
      .Case([&](tile::MatmulOp matmul) { emitMatmul(matmul); })
      .Case([](tile::TransposeOp) {}) // read that way where it is used
      .Case([&](tile::DecayMatrixOp decay) { emitDecayMatrix(decay); })
      .Case([&](tile::TriInverseOp inverse) { emitInverse(inverse, {this}); })
      .Default([&](Operation *) {
        result = op->emitOpError("is not for a schedule of products");
      });
  emitted.insert(op);
  // What has to go somewhere goes at once.
  for (Value tile : op->getResults())
    if (destinations.contains(tile))
      bufferOf(tile);
  return result;
}
