// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Syntax and verifiers of the gdn_tile ops; (Cn) are the constraints that
// TileOps.td and TileRuleOps.td list.
#include "gdn/Dialect/LoopContracts.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/TileChecks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace gdn::tile;

Type gdn::tile::getRowType(VectorType tile) {
  if (tile.getRank() == 1)
    return tile.getElementType();
  return VectorType::get(tile.getShape().drop_front(), tile.getElementType());
}

/// conv1d shows the types of its three tiles; those of the results follow.
static ParseResult parseConvTypes(OpAsmParser &parser, Type &input,
                                  Type &window, Type &weight, Type &result,
                                  Type &newWindow) {
  if (parser.parseType(input) || parser.parseComma() ||
      parser.parseType(window) || parser.parseComma() ||
      parser.parseType(weight))
    return failure();
  result = input;
  newWindow = window;
  return success();
}

static void printConvTypes(OpAsmPrinter &printer, Operation *, Type input,
                           Type window, Type weight, Type, Type) {
  printer << input << ", " << window << ", " << weight;
}

/// delta_scan shows the types of state, key, value and log decay, and a word
/// where it has deltas.
static ParseResult
parseScanTypes(OpAsmParser &parser,
               const std::optional<OpAsmParser::UnresolvedOperand> &strength,
               const std::optional<OpAsmParser::UnresolvedOperand> &eraseKey,
               Type &state, Type &query, Type &key, Type &value, Type &logDecay,
               Type &beta, Type &erase, Type &newState, Type &output,
               Type &deltas) {
  SMLoc loc;
  if (parser.parseType(state) || parser.parseComma() || parser.parseType(key) ||
      parser.parseComma() || parser.parseType(value) || parser.parseComma() ||
      parser.getCurrentLocation(&loc) || parser.parseType(logDecay))
    return failure();
  query = key;
  newState = state;
  output = value;
  auto gates = dyn_cast<VectorType>(logDecay);
  if (!gates)
    return parser.emitError(loc, "expects the log decay to be a vector");
  if (strength)
    beta =
        VectorType::get(gates.getShape().take_front(1), gates.getElementType());
  if (eraseKey)
    erase = key;
  if (failed(parser.parseOptionalComma()))
    return success();
  deltas = value;
  return parser.parseKeyword("deltas");
}

static void printScanTypes(OpAsmPrinter &printer, Operation *, Value, Value,
                           Type state, Type, Type key, Type value,
                           Type logDecay, Type, Type, Type, Type, Type deltas) {
  printer << state << ", " << key << ", " << value << ", " << logDecay;
  if (deltas)
    printer << ", deltas";
}

/// Types, and behind them a word where decays of tokens are one per column,
/// rows as the keys: those of `keys`, for each a decay in `decays`.
static ParseResult parseDecays(OpAsmParser &parser, ArrayRef<Type> keys,
                               ArrayRef<Type *> decays) {
  SMLoc loc = parser.getCurrentLocation();
  const bool perChannel = succeeded(parser.parseOptionalComma());
  if (perChannel && failed(parser.parseKeyword("per_channel")))
    return failure();
  for (auto [key, decay] : llvm::zip_equal(keys, decays)) {
    auto rows = dyn_cast<VectorType>(key);
    if (!rows || rows.getRank() != 2)
      return parser.emitError(loc, "expects keys to be rows of a vector");
    *decay = perChannel ? rows
                        : VectorType::get(rows.getShape().take_front(1),
                                          rows.getElementType());
  }
  return success();
}

static void printDecays(OpAsmPrinter &printer, Type decay) {
  if (cast<VectorType>(decay).getRank() == 2)
    printer << ", per_channel";
}

static ParseResult parsePendingTypes(OpAsmParser &parser, Type &key,
                                     Type &deltas, Type &decay) {
  if (parser.parseType(key) || parser.parseComma() || parser.parseType(deltas))
    return failure();
  return parseDecays(parser, {key}, {&decay});
}

static void printPendingTypes(OpAsmPrinter &printer, Operation *, Type key,
                              Type deltas, Type decay) {
  printer << key << ", " << deltas;
  printDecays(printer, decay);
}

static ParseResult parseReplayTypes(OpAsmParser &parser, Type &pendingKey,
                                    Type &pendingDeltas, Type &key, Type &value,
                                    Type &pendingDecay, Type &logDecay) {
  if (parser.parseType(pendingKey) || parser.parseComma() ||
      parser.parseType(pendingDeltas) || parser.parseComma() ||
      parser.parseType(key) || parser.parseComma() || parser.parseType(value))
    return failure();
  return parseDecays(parser, {pendingKey, key}, {&pendingDecay, &logDecay});
}

static void printReplayTypes(OpAsmPrinter &printer, Operation *,
                             Type pendingKey, Type pendingDeltas, Type key,
                             Type value, Type pendingDecay, Type) {
  printer << pendingKey << ", " << pendingDeltas << ", " << key << ", "
          << value;
  printDecays(printer, pendingDecay);
}

#define GET_OP_CLASSES
#include "gdn/Dialect/Tile/IR/TileOps.cpp.inc"

LogicalResult BlockIdOp::verify() {
  // block_id_c1
  auto func = (*this)->getParentOfType<func::FuncOp>();
  return gdn::verifyAxis(*this, StageFields(func).getGrid(), getAxis());
}

LogicalResult LastInGroupOp::verify() {
  // last_in_group_c1
  auto func = (*this)->getParentOfType<func::FuncOp>();
  if (!StageFields(func).getGroups())
    return emitOpError("expects a function with 'groups' of 'gdn_tile.stage' "
                       "around it");
  return success();
}

/// signal_c1, await_signals_c1
template <typename OpTy> static LogicalResult verifySignal(OpTy op) {
  return gdn::verifyCounter(op, cast<MemRefType>(op.getView().getType()),
                            op.getIndices().size());
}

LogicalResult SignalOp::verify() { return verifySignal(*this); }
LogicalResult AwaitSignalsOp::verify() { return verifySignal(*this); }

/// The constraints that load and store share: (C1) and (C2) of both.
template <typename OpTy> static LogicalResult verifyAccess(OpTy op) {
  auto view = cast<MemRefType>(op.getView().getType());
  auto tile = cast<VectorType>(op.getTile().getType());
  if (failed(gdn::verifyViewDims(op, view, op.getIndices().size(), op.getDims(),
                                 tile.getRank(), "the tile")))
    return failure();
  return gdn::verifyViewElement(op, view, tile.getElementType(), "the tile");
}

LogicalResult LoadOp::verify() {
  // load_c4
  if (getWhole() && !getRows())
    return emitOpError("expects 'rows' where it has 'whole'");
  return verifyAccess(*this);
}

LogicalResult ExtractRowsOp::verify() {
  // extract_rows_c1
  VectorType from = getTile().getType(), to = getResult().getType();
  if (from.getRank() != 2 || to.getRank() != 2 ||
      to.getDimSize(0) > from.getDimSize(0) ||
      to.getDimSize(1) != from.getDimSize(1) ||
      to.getElementType() != from.getElementType())
    return emitOpError("expects the result to be rows of 'tile', ")
           << from << ", but got " << to;
  return success();
}

LogicalResult StoreOp::verify() {
  if (failed(verifyAccess(*this)))
    return failure();
  // store_c4
  if (getFullUntilLast())
    return gdn::verifyFullUntilLast(*this, getRows(),
                                    getTile().getType().getDimSize(0));
  return success();
}

LogicalResult FillOp::verify() {
  // fill_c1
  Type element = getTile().getType().getElementType();
  if (getValue().getType() != element)
    return emitOpError("expects 'value' to have the tile's element type ")
           << element << ", but got " << getValue().getType();
  return success();
}

LogicalResult MapRowsOp::verifyRegions() {
  // map_rows_c1
  if (getNumResults() == 0)
    return emitOpError("expects at least one result");
  int64_t rows = cast<VectorType>(getResult(0).getType()).getDimSize(0);
  for (Value value : llvm::concat<Value>(getInputs(), getResults()))
    if (int64_t got = cast<VectorType>(value.getType()).getDimSize(0);
        got != rows)
      return emitOpError("expects every input and result to have ")
             << rows << " rows, set by the first result, but got " << got;
  // map_rows_c2, map_rows_c3
  auto rowsOf = [](ValueRange tiles) {
    return llvm::map_to_vector(tiles, [](Value tile) {
      return getRowType(cast<VectorType>(tile.getType()));
    });
  };
  return gdn::verifyRowBody(*this, getBody().front(), rowsOf(getInputs()),
                            rowsOf(getResults()), "the row");
}

/// Checks the shape of one tile; `why` says what sets it.
static LogicalResult verifyShape(Operation *op, StringRef name, Type type,
                                 ArrayRef<int64_t> want, StringRef why) {
  auto got = cast<VectorType>(type);
  if (got.getShape() == want)
    return success();
  return op->emitOpError("expects '")
         << name << "' to be " << VectorType::get(want, got.getElementType())
         << ", " << why << ", but got " << got;
}

LogicalResult gdn::tile::Conv1dOp::verify() {
  // conv1d_c1
  int64_t channels = getInput().getType().getDimSize(1);
  int64_t width = getWeight().getType().getDimSize(0);
  if (width < 2)
    return emitOpError("expects 'weight' to have at least 2 rows, but got ")
           << width;
  if (failed(verifyShape(*this, "weight", getWeight().getType(),
                         {width, channels}, "channels set by 'input'")) ||
      failed(verifyShape(*this, "window", getWindow().getType(),
                         {width - 1, channels},
                         "one row fewer than 'weight'")) ||
      failed(verifyShape(*this, "result", getResult().getType(),
                         getInput().getType().getShape(), "set by 'input'")) ||
      failed(verifyShape(*this, "new_window", getNewWindow().getType(),
                         getWindow().getType().getShape(), "set by 'window'")))
    return failure();
  if (Value bias = getBias())
    return verifyShape(*this, "bias", bias.getType(), {channels},
                       "channels set by 'input'");
  return success();
}

LogicalResult DeltaScanOp::verify() {
  // delta_scan_c1
  int64_t dv = getState().getType().getDimSize(0);
  int64_t dk = getState().getType().getDimSize(1);
  int64_t tokens = getKey().getType().getDimSize(0);
  SmallVector<int64_t> decay = {tokens};
  if (cast<VectorType>(getLogDecay().getType()).getRank() == 2)
    decay.push_back(dk);
  if (failed(verifyShape(*this, "key", getKey().getType(), {tokens, dk},
                         "dk set by 'state'")) ||
      failed(verifyShape(*this, "query", getQuery().getType(), {tokens, dk},
                         "set by 'key'")) ||
      failed(verifyShape(*this, "value", getValue().getType(), {tokens, dv},
                         "tokens set by 'key' and dv by 'state'")) ||
      failed(verifyShape(*this, "log_decay", getLogDecay().getType(), decay,
                         "tokens set by 'key' and dk by 'state'")) ||
      (getBeta() && failed(verifyShape(*this, "beta", getBeta().getType(),
                                       {tokens}, "tokens set by 'key'"))) ||
      (getErase() && failed(verifyShape(*this, "erase", getErase().getType(),
                                        {tokens, dk}, "set by 'key'"))) ||
      failed(verifyShape(*this, "new_state", getNewState().getType(), {dv, dk},
                         "set by 'state'")))
    return failure();
  if (getErase() && !getBeta())
    return emitOpError("expects 'beta' to be given with 'erase', but got none");
  // delta_scan_c3
  Type element = getState().getType().getElementType();
  if (getNewState().getType().getElementType() != element)
    return emitOpError("expects 'new_state' to have the element type ")
           << element << " of 'state', but got "
           << getNewState().getType().getElementType();
  if (!element.isF32() && tokens != 1)
    return emitOpError("expects a state of ")
           << element << " to pass one token, but got " << tokens;
  if (Value deltas = getDeltas())
    if (failed(verifyShape(*this, "deltas", deltas.getType(), {tokens, dv},
                           "set by 'value'")))
      return failure();
  return verifyShape(*this, "output", getOutput().getType(), {tokens, dv},
                     "set by 'value'");
}

/// The sizes of pending tokens.
static LogicalResult verifyPending(PendingOpInterface op) {
  int64_t dv = op.getState().getType().getDimSize(0);
  int64_t dk = op.getState().getType().getDimSize(1);
  int64_t pending = op.getPendingKey().getType().getDimSize(0);
  SmallVector<int64_t> decays = {pending};
  if (op.isPendingPerChannel())
    decays.push_back(dk);
  return failure(
      failed(verifyShape(op, "pending_key", op.getPendingKey().getType(),
                         {pending, dk}, "dk set by 'state'")) ||
      failed(verifyShape(op, "pending_deltas", op.getPendingDeltas().getType(),
                         {pending, dv},
                         "tokens set by 'pending_key' and dv by 'state'")) ||
      failed(verifyShape(op, "pending_decay", op.getPendingDecay().getType(),
                         decays,
                         "tokens set by 'pending_key' and dk by 'state'")));
}

LogicalResult DeltaCatchUpOp::verify() {
  // delta_catch_up_c1; sizes that types share are the parser's.
  return verifyPending(*this);
}

LogicalResult DeltaReplayOp::verify() {
  // delta_replay_c1; sizes that types share are the parser's.
  int64_t dv = getState().getType().getDimSize(0);
  int64_t dk = getState().getType().getDimSize(1);
  int64_t tokens = getKey().getType().getDimSize(0);
  SmallVector<int64_t> decay = {tokens};
  if (isPendingPerChannel())
    decay.push_back(dk);
  return failure(
      failed(verifyPending(*this)) ||
      failed(verifyShape(*this, "log_decay", getLogDecay().getType(), decay,
                         isPendingPerChannel()
                             ? "set by 'key', one per channel as "
                               "'pending_decay'"
                             : "set by 'key', one per token as "
                               "'pending_decay'")) ||
      (getSeen() &&
       failed(verifyShape(*this, "seen", cast<VectorType>(getSeen().getType()),
                          {dv, dk}, "that of 'state'"))) ||
      failed(verifyShape(*this, "key", getKey().getType(), {tokens, dk},
                         "dk set by 'state'")) ||
      failed(verifyShape(*this, "value", getValue().getType(), {tokens, dv},
                         "tokens set by 'key' and dv by 'state'")));
}

LogicalResult DeltaFoldOp::verify() {
  // delta_fold_c1
  int64_t dv = getState().getType().getDimSize(0);
  int64_t dk = getState().getType().getDimSize(1);
  int64_t tokens = getKey().getType().getDimSize(0);
  SmallVector<int64_t> decay = {tokens};
  if (cast<VectorType>(getLogDecay().getType()).getRank() == 2)
    decay.push_back(dk);
  return failure(
      failed(verifyShape(*this, "key", getKey().getType(), {tokens, dk},
                         "dk set by 'state'")) ||
      failed(verifyShape(*this, "deltas", getDeltas().getType(), {tokens, dv},
                         "tokens set by 'key' and dv by 'state'")) ||
      failed(verifyShape(*this, "log_decay", getLogDecay().getType(), decay,
                         "tokens set by 'key' and dk by 'state'")));
}
