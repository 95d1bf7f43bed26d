// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that the lowering takes for granted, checked before it starts, so
// that later steps cannot fail half way.
#include "CheckTileProgram.h"

#include "gdn/Conversion/CallWords.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static bool isTile(Value value) { return isa<VectorType>(value.getType()); }

static bool isTileOp(Operation *op) {
  return isa<tile::TileDialect>(op->getDialect());
}

/// True if `value` has a buffer: it comes from a gdn_tile op or an scf.for.
static bool hasBuffer(Value value) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return isa<scf::ForOp>(arg.getOwner()->getParentOp());
  return isTileOp(value.getDefiningOp()) ||
         isa<scf::ForOp>(value.getDefiningOp());
}

/// Fails unless `form` is a linear form over the function's symbols.
static LogicalResult checkForm(func::FuncOp function, const Twine &what,
                               StringAttr form) {
  ArrayAttr symbols = tile::StageFields(function).getSymbols();
  llvm::Expected<LinearForm> parsed = LinearForm::parse(form.getValue());
  bool ok = bool(parsed);
  if (ok) {
    ok = llvm::all_of(parsed->getTerms(), [&](const LinearForm::Term &term) {
      return llvm::any_of(symbols.getAsRange<StringAttr>(), [&](StringAttr s) {
        return s.getValue() == term.symbol;
      });
    });
  } else {
    llvm::consumeError(parsed.takeError());
  }
  if (ok)
    return success();
  return function.emitOpError("expects ")
         << what
         << " to be a linear form over 'symbols' of 'gdn_tile.stage', but got '"
         << form.getValue() << "'";
}

static LogicalResult checkSignature(func::FuncOp function) {
  ArrayAttr symbols = tile::StageFields(function).getSymbols();
  if (!symbols)
    return function.emitOpError(
        "expects 'symbols' of 'gdn_tile.stage' on a function with 'grid' of "
        "'gdn_tile.stage'");
  // Units become coordinates by division, in the code.
  ArrayAttr grid = tile::StageFields(function).getGrid();
  for (auto [axis, form] : llvm::enumerate(grid.getAsRange<StringAttr>()))
    if (failed(checkForm(
            function, "axis " + Twine(axis) + " of 'grid' of 'gdn_tile.stage'",
            form)))
      return failure();
  ArrayAttr workspace = tile::StageFields(function).getWorkspace();
  for (Attribute region :
       workspace ? workspace.getValue() : ArrayRef<Attribute>())
    for (auto form : cast<ArrayAttr>(region).getAsRange<StringAttr>())
      if (failed(checkForm(function, "sizes in 'workspace' of 'gdn_tile.stage'",
                           form)))
        return failure();
  return checkReadsWords(function, "a tile function");
}

/// An op in the body of `map`, at any depth.
static LogicalResult checkRowOp(Operation *op, tile::MapRowsOp map) {
  if (isTileOp(op) && !isa<tile::YieldOp, tile::BlockIdOp>(op))
    return op->emitOpError("expects to be outside gdn_tile.map_rows, whose "
                           "body works on rows");
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<VectorType>(operand.getType());
    if (type && type.getRank() != 1 &&
        !map.getBody().isAncestor(operand.getParentRegion()) &&
        hasBuffer(operand)) {
      InFlightDiagnostic diag =
          op->emitOpError("expects a tile that a body uses whole to have rank "
                          "1, but got ")
          << type;
      diag.attachNote(map.getLoc()) << "make it an input to use its rows";
      return diag;
    }
  }
  return success();
}

LogicalResult gdn::checkTileProgram(func::FuncOp function) {
  if (failed(checkSignature(function)))
    return failure();
  WalkResult walk = function.walk<WalkOrder::PreOrder>([](Operation *op) {
    if (isa<tile::SignalOp, tile::AwaitSignalsOp>(op)) {
      op->emitOpError("expects stages that run beside each other, but on a CPU "
                      "one runs behind the other");
      return WalkResult::interrupt();
    }
    if (isa<tile::LastInGroupOp, tile::SumOfPairOp>(op)) {
      op->emitOpError("expects blocks that share something, but on a CPU a "
                      "block serves a whole key head");
      return WalkResult::interrupt();
    }
    if (isa<tile::ExtractRowsOp>(op)) {
      op->emitOpError("expects pieces that take rows of a block's tile, but on "
                      "a CPU each loads its own");
      return WalkResult::interrupt();
    }
    bool carries =
        isTileOp(op) || isa<scf::ForOp>(op) ||
        (isa<scf::YieldOp>(op) && isa<scf::ForOp>(op->getParentOp()));
    if (!carries && !op->hasTrait<OpTrait::ConstantLike>() &&
        llvm::any_of(op->getResults(), isTile)) {
      op->emitOpError("expects to be a gdn_tile op or scf.for to have a tile "
                      "as its result");
      return WalkResult::interrupt();
    }
    for (Value operand : op->getOperands()) {
      if (!isTile(operand) || (carries && hasBuffer(operand)))
        continue;
      if (carries)
        op->emitOpError("expects its tiles to be results of gdn_tile ops or "
                        "carried by scf.for");
      else
        op->emitOpError("expects to be a gdn_tile op or scf.for to use a tile");
      return WalkResult::interrupt();
    }
    if (auto matmul = dyn_cast<tile::MatmulOp>(op))
      if (Type type = matmul.getLhs().getType().getElementType();
          !type.isF32()) {
        op->emitOpError("expects operands in f32, to which "
                        "gdn-tile-widen-operands brings them, but got ")
            << type;
        return WalkResult::interrupt();
      }
    auto map = dyn_cast<tile::MapRowsOp>(op);
    if (!map)
      return WalkResult::advance();
    WalkResult body = map.getBody().walk([&](Operation *inner) {
      return failed(checkRowOp(inner, map)) ? WalkResult::interrupt()
                                            : WalkResult::advance();
    });
    return body.wasInterrupted() ? WalkResult::interrupt() : WalkResult::skip();
  });
  return failure(walk.wasInterrupted());
}
