// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-tile-to-cpu: buffers for the tiles, loops for the ops, words for the
// arguments. See Passes.td.
#include "CheckTileProgram.h"
#include "EntryCode.h"
#include "ExpandDecayOps.h"
#include "ExpandMatrixOps.h"
#include "ExpandTileOps.h"
#include "TileBuffers.h"

#include "gdn/Conversion/ExpandedViews.h"
#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"

namespace gdn {
#define GEN_PASS_DEF_CONVERTTILETOCPU
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Rewrites the tile ops of one function into loops over the buffers.
class FunctionLowering {
public:
  FunctionLowering(func::FuncOp function, TileBuffers &buffers, int64_t lanes)
      : function(function), buffers(buffers), lanes(lanes) {}

  void run();

private:
  Value memory(OpBuilder &b, Location loc, unsigned buffer);
  Value memory(OpBuilder &b, Location loc, Value tile) {
    return memory(b, loc, buffers[tile]);
  }
  Value view(OpBuilder &b, Operation *access);
  void lower(Operation *op);
  void lowerMap(OpBuilder &b, tile::MapRowsOp map);
  Value decayBuffer(OpBuilder &b, Value logDecay, Operation *op);
  void lowerScan(OpBuilder &b, tile::DeltaScanOp scan);
  void lowerReplay(OpBuilder &b, tile::DeltaReplayOp replay);
  void lowerCatchUp(OpBuilder &b, tile::DeltaCatchUpOp catchUp);
  bool keepsPlace(tile::PendingOpInterface op);
  void lowerLoop(scf::ForOp loop);
  /// A tile leaves buffer `from` for buffer `to`.
  struct Move {
    unsigned from, to;
  };
  void moveTiles(OpBuilder &b, Location loc, SmallVector<Move> moves);

  func::FuncOp function;
  TileBuffers &buffers;
  int64_t lanes;
  Value scratch;
  DenseMap<unsigned, Value> scratchViews;
};

struct ConvertTileToCPU final
    : gdn::impl::ConvertTileToCPUBase<ConvertTileToCPU> {
  using ConvertTileToCPUBase::ConvertTileToCPUBase;

  void runOnOperation() override {
    if (lanes != 4 && lanes != 8 && lanes != 16) {
      getOperation().emitError(
          "expects the option 'lanes' to be 4, 8 or 16, but got ")
          << lanes.getValue();
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> programs;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (tile::StageFields stage(func);
          stage.getGrid() && !func.isExternal() &&
          !stage.getScratchBytes()) // is code already
        programs.push_back(func);
    for (func::FuncOp program : programs) {
      if (failed(checkTileProgram(program)))
        return signalPassFailure();
      lowerExpandedViews(program);
      TileBuffers buffers = TileBuffers::assign(program);
      FunctionLowering(program, buffers, lanes).run();
      numTiles += buffers.buffers.size();
      numInPlace += buffers.numInPlace;
      emitEntryCode(program);
    }
  }
};

} // namespace

/// The view that a load reads or a store writes, as a matrix.
Value FunctionLowering::view(OpBuilder &b, Operation *access) {
  auto make = [&](auto op) -> Value {
    auto type = cast<MemRefType>(op.getView().getType());
    SmallVector<OpFoldResult> offsets(op.getIndices().begin(),
                                      op.getIndices().end());
    SmallVector<OpFoldResult> sizes(type.getRank(), b.getIndexAttr(1));
    SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
    VectorType tile = op.getTile().getType();
    for (auto [dim, size] : llvm::zip(op.getDims(), tile.getShape()))
      sizes[dim] = b.getIndexAttr(size);
    MemRefType result = memref::SubViewOp::inferRankReducedResultType(
        tile.getShape(), type, offsets, sizes, strides);
    return memref::SubViewOp::create(b, op.getLoc(), result, op.getView(),
                                     offsets, sizes, strides);
  };
  if (auto load = dyn_cast<tile::LoadOp>(access))
    return make(load);
  return make(cast<tile::StoreOp>(access));
}

Value FunctionLowering::memory(OpBuilder &b, Location loc, unsigned index) {
  const Buffer &buffer = buffers.buffers[index];
  if (buffer.kind != Buffer::Scratch)
    return view(b, buffer.access);
  Value &known = scratchViews[index];
  if (!known) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    Value offset = arith::ConstantIndexOp::create(b, loc, buffer.offset);
    known = memref::ViewOp::create(
        b, loc,
        MemRefType::get(buffer.type.getShape(), buffer.type.getElementType()),
        scratch, offset, ValueRange{});
  }
  return known;
}

void FunctionLowering::lowerMap(OpBuilder &b, tile::MapRowsOp map) {
  Location loc = map.getLoc();
  SmallVector<Value> inputs, results;
  for (Value input : map.getInputs())
    inputs.push_back(memory(b, loc, input));
  for (Value result : map.getResults())
    results.push_back(memory(b, loc, result));
  DenseMap<Value, Value> captured;
  map.getBody().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (buffers.has(operand) && !captured.contains(operand))
        captured[operand] = memory(b, loc, operand);
  });
  expandMapRows(b, map, inputs, results, captured, lanes);
}

/// Where exp(log_decay) goes: to the place of the log decay when nothing else
/// wants it.
Value FunctionLowering::decayBuffer(OpBuilder &b, Value logDecay,
                                    Operation *op) {
  if (logDecay.hasOneUse() && logDecay.getParentBlock() == op->getBlock())
    return memory(b, op->getLoc(), logDecay);
  auto type = cast<VectorType>(logDecay.getType());
  return memory(b, op->getLoc(), buffers.addScratch(type));
}

void FunctionLowering::lowerScan(OpBuilder &b, tile::DeltaScanOp scan) {
  Location loc = scan.getLoc();
  expandDeltaScan(
      b, scan,
      {memory(b, loc, scan.getState()), memory(b, loc, scan.getQuery()),
       memory(b, loc, scan.getKey()), memory(b, loc, scan.getValue()),
       memory(b, loc, scan.getLogDecay()),
       decayBuffer(b, scan.getLogDecay(), scan),
       scan.getBeta() ? memory(b, loc, scan.getBeta()) : Value(),
       scan.getErase() ? memory(b, loc, scan.getErase()) : Value(),
       memory(b, loc, scan.getNewState()), memory(b, loc, scan.getOutput()),
       scan.getDeltas() ? memory(b, loc, scan.getDeltas()) : Value(),
       buffers.buffers[buffers[scan.getState()]].kind == Buffer::LoadedView},
      lanes);
}

/// The type of what is left of pending tokens: with a decay per channel a row
/// for each of them, and one for the state.
static VectorType getPendingDecayType(tile::PendingOpInterface op) {
  VectorType type = op.getPendingDecay().getType();
  if (!op.isPendingPerChannel())
    return type;
  return VectorType::get({type.getDimSize(0) + 1, type.getDimSize(1)},
                         type.getElementType());
}

void FunctionLowering::lowerReplay(OpBuilder &b, tile::DeltaReplayOp replay) {
  Location loc = replay.getLoc();
  const int64_t tokens = replay.getKey().getType().getDimSize(0),
                pending = replay.getPendingKey().getType().getDimSize(0);
  auto scratchAs = [&](VectorType type) {
    return memory(b, loc, buffers.addScratch(type));
  };
  auto scratchOf = [&](ArrayRef<int64_t> shape) {
    return scratchAs(VectorType::get(shape, b.getF32Type()));
  };
  auto at = [&](Value tile) { return memory(b, loc, tile); };
  ReplayBuffers used = {at(replay.getState()),
                        at(replay.getPendingKey()),
                        at(replay.getPendingDeltas()),
                        at(replay.getPendingDecay()),
                        at(replay.getQuery()),
                        at(replay.getKey()),
                        at(replay.getValue()),
                        at(replay.getLogDecay()),
                        at(replay.getBeta()),
                        at(replay.getNewState()),
                        at(replay.getOutput()),
                        at(replay.getDeltas()),
                        scratchAs(replay.getLogDecay().getType()),
                        scratchAs(getPendingDecayType(replay)),
                        scratchOf({tokens, pending + tokens}),
                        scratchOf({tokens, pending + tokens})};
  const unsigned state = buffers[replay.getState()];
  used.stateIsInPool = buffers.buffers[state].kind == Buffer::LoadedView;
  used.isInPlace = keepsPlace(replay);
  if (replay.getSeen())
    used.seen = at(replay.getSeen());
  expandDeltaReplay(b, replay, used, lanes);
}

/// Whether the new state is where the state is.
bool FunctionLowering::keepsPlace(tile::PendingOpInterface op) {
  const unsigned next = buffers[op.getNewState()];
  return buffers[op.getState()] == next ||
         buffers.buffers[next].kind == Buffer::StoredView;
}

void FunctionLowering::lowerCatchUp(OpBuilder &b,
                                    tile::DeltaCatchUpOp catchUp) {
  Location loc = catchUp.getLoc();
  auto at = [&](Value tile) { return memory(b, loc, tile); };
  const unsigned decays = buffers.addScratch(getPendingDecayType(catchUp));
  expandDeltaCatchUp(b, catchUp,
                     {at(catchUp.getState()), at(catchUp.getPendingKey()),
                      at(catchUp.getPendingDeltas()),
                      at(catchUp.getPendingDecay()), at(catchUp.getNewState()),
                      at(catchUp.getWhole()), memory(b, loc, decays),
                      keepsPlace(catchUp)},
                     lanes);
}

/// Makes all moves as if at once: carried tiles may change places with each
/// other. A tile moves when no other still has to leave its target; of a
/// circle, one tile waits in scratch.
void FunctionLowering::moveTiles(OpBuilder &b, Location loc,
                                 SmallVector<Move> moves) {
  while (!moves.empty()) {
    auto ready = llvm::find_if(moves, [&](const Move &move) {
      return llvm::none_of(
          moves, [&](const Move &other) { return other.from == move.to; });
    });
    if (ready != moves.end()) {
      expandCopy(b, loc, memory(b, loc, ready->from),
                 memory(b, loc, ready->to));
      moves.erase(ready);
      continue;
    }
    unsigned from = moves.front().from;
    unsigned parked = buffers.addScratch(buffers.buffers[from].type);
    expandCopy(b, loc, memory(b, loc, from), memory(b, loc, parked));
    for (Move &move : moves)
      if (move.from == from)
        move.from = parked;
  }
}

/// Drops the carried tiles of a loop; their buffers do the carrying.
void FunctionLowering::lowerLoop(scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  SmallVector<unsigned> kept;
  for (auto [i, init] : llvm::enumerate(loop.getInitArgs())) {
    if (!isa<VectorType>(init.getType())) {
      kept.push_back(i);
      continue;
    }
    Value arg = loop.getRegionIterArg(i);
    if (buffers[init] != buffers[arg])
      expandCopy(b, loc, memory(b, loc, init), memory(b, loc, arg));
  }
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  b.setInsertionPoint(yield);
  SmallVector<Move> moves;
  for (auto [value, arg] :
       llvm::zip(yield.getResults(), loop.getRegionIterArgs()))
    if (isa<VectorType>(value.getType()) && buffers[value] != buffers[arg])
      moves.push_back({buffers[value], buffers[arg]});
  moveTiles(b, loc, moves);
  SmallVector<Value> inits, yields;
  for (unsigned i : kept) {
    inits.push_back(loop.getInitArgs()[i]);
    yields.push_back(yield.getResults()[i]);
  }
  b.setInsertionPoint(loop);
  auto plain = scf::ForOp::create(b, loc, loop.getLowerBound(),
                                  loop.getUpperBound(), loop.getStep(), inits);
  Block *body = plain.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  loop.getInductionVar().replaceAllUsesWith(plain.getInductionVar());
  for (auto [n, i] : llvm::enumerate(kept)) {
    loop.getRegionIterArg(i).replaceAllUsesWith(plain.getRegionIterArg(n));
    loop.getResult(i).replaceAllUsesWith(plain.getResult(n));
  }
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  b.setInsertionPoint(yield);
  scf::YieldOp::create(b, loc, yields);
  yield.erase();
}

void FunctionLowering::lower(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) {
        if (buffers.buffers[buffers[load.getTile()]].kind == Buffer::Scratch)
          expandLoad(b, load, memory(b, loc, load.getTile()), lanes);
      })
      .Case([&](tile::StoreOp store) {
        const Buffer &from = buffers.buffers[buffers[store.getTile()]];
        if (from.kind != Buffer::StoredView)
          expandStore(b, store, memory(b, loc, store.getTile()), lanes);
      })
      .Case([&](tile::FillOp fill) {
        expandFill(b, fill, memory(b, loc, fill.getTile()));
      })
      .Case([&](tile::MapRowsOp map) { lowerMap(b, map); })
      .Case([&](tile::Conv1dOp conv) {
        ConvBuffers at = {memory(b, loc, conv.getInput()),
                          memory(b, loc, conv.getWindow()),
                          memory(b, loc, conv.getWeight()),
                          conv.getBias() ? memory(b, loc, conv.getBias())
                                         : Value(),
                          memory(b, loc, conv.getResult()),
                          memory(b, loc, conv.getNewWindow())};
        expandConv1d(b, conv, at, lanes);
      })
      .Case([&](tile::DeltaScanOp scan) { lowerScan(b, scan); })
      .Case([&](tile::DeltaReplayOp replay) { lowerReplay(b, replay); })
      .Case([&](tile::DeltaCatchUpOp catchUp) { lowerCatchUp(b, catchUp); })
      .Case([&](tile::DeltaFoldOp fold) {
        expandDeltaFold(b, fold,
                        {memory(b, loc, fold.getState()),
                         memory(b, loc, fold.getKey()),
                         memory(b, loc, fold.getDeltas()),
                         memory(b, loc, fold.getLogDecay()),
                         decayBuffer(b, fold.getLogDecay(), fold),
                         memory(b, loc, fold.getNewState())},
                        lanes);
      })
      .Case([&](tile::MatmulOp matmul) {
        MatmulBuffers at = {
            memory(b, loc, matmul.getLhs()), memory(b, loc, matmul.getRhs()),
            matmul.getAcc() ? memory(b, loc, matmul.getAcc()) : Value(),
            memory(b, loc, matmul.getResult())};
        expandMatmul(b, matmul, at, lanes);
      })
      .Case([&](tile::TransposeOp transpose) {
        expandTranspose(b, loc, memory(b, loc, transpose.getTile()),
                        memory(b, loc, transpose.getResult()), lanes);
      })
      .Case([&](tile::PrefixSumOp sum) {
        expandPrefixSum(b, loc, memory(b, loc, sum.getValues()),
                        memory(b, loc, sum.getResult()), lanes);
      })
      .Case([&](tile::SuffixSumOp sum) {
        expandSuffixSum(b, loc, memory(b, loc, sum.getValues()),
                        memory(b, loc, sum.getResult()), lanes);
      })
      .Case([&](tile::ExtractRowOp extract) {
        expandExtractRow(b, loc, memory(b, loc, extract.getTile()),
                         extract.getRow(), memory(b, loc, extract.getResult()),
                         lanes);
      })
      .Case([&](tile::DecayMatrixOp decay) {
        VectorType type = decay.getLogDecay().getType();
        expandDecayMatrix(b, loc, memory(b, loc, decay.getLogDecay()),
                          memory(b, loc, buffers.addScratch(type)),
                          memory(b, loc, decay.getResult()), lanes);
      })
      .Case([&](tile::DecayScoresOp scores) {
        VectorType type = scores.getLogDecay().getType();
        DecayScoresBuffers at = {memory(b, loc, scores.getQuery()),
                                 memory(b, loc, scores.getKey()),
                                 memory(b, loc, scores.getLogDecay()),
                                 memory(b, loc, buffers.addScratch(type)),
                                 memory(b, loc, scores.getQueryScores()),
                                 memory(b, loc, scores.getKeyScores())};
        expandDecayScores(b, loc, at, lanes);
      })
      .Case([&](tile::DecayOperandsOp operands) {
        auto at = [&](Value tile) { return memory(b, loc, tile); };
        VectorType type = operands.getLogDecay().getType();
        auto scratchOf = [&](VectorType of) {
          return memory(b, loc, buffers.addScratch(of));
        };
        int64_t blocks = type.getDimSize(0) / tile::DecayOperandsOp::block;
        auto between = VectorType::get({blocks * blocks, type.getDimSize(1)},
                                       type.getElementType());
        expandDecayOperands(
            b, loc,
            {at(operands.getQuery()), at(operands.getKey()),
             at(operands.getLogDecay()), at(operands.getQueryScores()),
             at(operands.getKeyScores()), at(operands.getFromQuery()),
             at(operands.getFromKey()), at(operands.getToEnd()),
             at(operands.getEnd()), scratchOf(type), scratchOf(type),
             scratchOf(type), scratchOf(type), scratchOf(between)},
            lanes);
      })
      .Case([&](tile::TriInverseOp inverse) {
        VectorType type = inverse.getMatrix().getType();
        if (!type.getElementType().isF32()) {
          auto wide = cast<VectorType>(type.clone(b.getF32Type()));
          expandNarrowInverse(b, loc,
                              {memory(b, loc, inverse.getMatrix()),
                               memory(b, loc, buffers.addScratch(wide)),
                               memory(b, loc, buffers.addScratch(wide)),
                               memory(b, loc, inverse.getResult())});
          return;
        }
        expandTriInverse(b, loc, memory(b, loc, inverse.getMatrix()),
                         memory(b, loc, inverse.getResult()), lanes);
      });
}

void FunctionLowering::run() {
  Block &entry = function.getBody().front();
  OpBuilder b(function.getContext());
  auto bytes = MemRefType::get({ShapedType::kDynamic}, b.getI8Type());
  scratch = entry.addArgument(bytes, function.getLoc());

  SmallVector<Operation *> tileOps;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<tile::MapRowsOp>(op)) {
      tileOps.push_back(op);
      return WalkResult::skip();
    }
    if (isa<tile::TileDialect>(op->getDialect()) && !isa<tile::BlockIdOp>(op))
      tileOps.push_back(op);
    return WalkResult::advance();
  });
  for (Operation *op : tileOps)
    lower(op);
  SmallVector<Operation *> dead;
  function.walk([&](scf::ForOp loop) {
    if (llvm::any_of(loop.getRegionIterArgs(),
                     [&](Value arg) { return buffers.has(arg); }))
      dead.push_back(loop);
  });
  for (Operation *loop : dead)
    lowerLoop(cast<scf::ForOp>(loop));
  // Uses before definitions: later ops use the tiles of earlier ones.
  for (Operation *op : llvm::reverse(tileOps))
    op->dropAllUses(), op->dropAllReferences();
  for (Operation *op : dead)
    op->dropAllUses(), op->dropAllReferences();
  for (Operation *op : llvm::reverse(tileOps))
    op->erase();
  for (Operation *op : llvm::reverse(dead))
    op->erase();

  auto sized = MemRefType::get({buffers.scratchBytes}, b.getI8Type());
  scratch.setType(sized);
  tile::StageFields(function).setScratchBytes(buffers.scratchBytes);
}
