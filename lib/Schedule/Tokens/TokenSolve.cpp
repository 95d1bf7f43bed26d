// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of tokens at once, where the state after each of them is not asked
// for. With the state M before the block, one decay g per token and
// R(t, s) = exp(g[s+1] + .. + g[t]):
//
//   products   a_t = M k_t, b_t = M q_t: the state is read and not written
//   pairs      R(t, s) (k_s . k_t), R(t, s) (k_s . q_t) for s <= t
//   solve      d_t = beta_t (v_t - R(t, -1) a_t - sum_{s < t} R(t, s) (k_s .
//   k_t) d_s)
//              o_t = R(t, -1) b_t + sum_{s <= t} R(t, s) (k_s . q_t) d_s
//
// Rows of the state do not depend on each other, so a thread solves for a row.
// What a token gives depends on those before it alone: tokens behind it, or
// another length of the sequence, change no bit. Where rows allow it, tensor
// cores make the products, all tokens at once.
#include "Kernel/FoldStep.h"
#include "Kernel/ScanStep.h"
#include "Tokens/TokensKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

/// Whether tokens may be taken at once: nothing asks for the state after each,
/// and a decay is a number.
bool TokensKernel::isSolvable() {
  return fold && scan.getBeta() &&
         cast<VectorType>(scan.getLogDecay().getType()).getRank() == 1 &&
         (*roles)[ScanRole::state].stores.empty() &&
         (*roles)[ScanRole::state].tiles.empty();
}

/// Whether tensor cores take the rows of the state as they lie, four lanes to a
/// row; longer rows leave a thread no room for a key.
bool TokensKernel::takesTensorCores() {
  fold = getFold(loop, scan);
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t columns = state.getDimSize(1);
  return isSolvable() && state.getDimSize(0) % (numWarps * 16) == 0 &&
         columns % 32 == 0 && columns <= 128;
}

/// Whether tokens are taken one after another, a decay is a number, and eight
/// warps have registers for the state.
bool TokensKernel::scansNumbers() {
  auto state = cast<VectorType>(scan.getState().getType());
  return !getFold(loop, scan) && state.getNumElements() <= 128 * 128 &&
         cast<VectorType>(scan.getLogDecay().getType()).getRank() == 1;
}

/// Whether the state in memory has at most 11 significant bits.
bool TokensKernel::isStateNarrow() {
  ArrayRef<int64_t> shape =
      cast<VectorType>(scan.getState().getType()).getShape();
  return llvm::any_of(
      getLoads((*roles)[ScanRole::state].before), [&](tile::LoadOp load) {
        VectorType type = load.getTile().getType();
        return type.getShape() == shape && !type.getElementType().isF32();
      });
}

/// Eight warps of 128 registers hide more of the memory's latency than four of
/// 255, where these are enough: tensor cores take the state as it lies, rows
/// have one block of tokens, so that no loop keeps anything beside it, and
/// inputs on their way are narrow.
void TokensKernel::chooseWarps(int64_t &minBlocks) {
  int64_t given = std::exchange(numWarps, 8);
  if (given > 8 || !(takesTensorCores() || scansNumbers()) ||
      !ownsByHistory() || !haveNarrowInputs())
    numWarps = given;
  // A row of the decays beside those of keys and queries, or a larger state:
  // eight warps of 255 registers.
  auto state = cast<VectorType>(scan.getState().getType());
  const bool perChannel =
      cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2;
  if (!isOneBlock && given <= 8 &&
      (perChannel || state.getNumElements() > 128 * 128)) {
    numWarps = 8;
    minBlocks = 1;
  }
}

std::optional<int64_t> TokensKernel::getOwnLanes() {
  return takesTensorCores() ? std::optional<int64_t>(4) : std::nullopt;
}

void TokensKernel::placeSolve() {
  auto f32 = b.getF32Type();
  int64_t rows = cast<VectorType>(scan.getState().getType()).getDimSize(0);
  knownBuffer = allocate(VectorType::get({blockTokens, rows}, f32));
  seenBuffer = allocate(VectorType::get({blockTokens, rows}, f32));
  keyPairs = allocate(VectorType::get({blockTokens, blockTokens}, f32));
  queryPairs = allocate(VectorType::get({blockTokens, blockTokens}, f32));
}

Value TokensKernel::fetchNumber(Value buffer, Value at) {
  return gpu::LoadSharedElementOp::create(b, scan.getLoc(), b.getF32Type(),
                                          buffer, at);
}

namespace {
/// A map over rows while its body is written.
struct RowsMap {
  RowsMap(OpBuilder &b, Location loc, TypeRange results, ValueRange inputs)
      : guard(b), op(gpu::MapRowsOp::create(b, loc, results, inputs)),
        body(op.openBody(b)) {}
  Value arg(unsigned i) { return body->getArgument(i); }

  OpBuilder::InsertionGuard guard;
  gpu::MapRowsOp op;
  Block *body;
};
} // namespace

static Value emitDot(OpBuilder &b, Location loc, Value x, Value y) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                     arith::MulFOp::create(b, loc, x, y),
                                     arith::FastMathFlags::reassoc);
}

/// The pairs of the block's tokens, a token per warp with all before it.
void TokensKernel::emitPairs(Value count) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  int64_t columns = cast<VectorType>(scan.getKey().getType()).getDimSize(1);
  int64_t vector = 4, lanes = 8;
  while (columns % vector != 0)
    vector /= 2;
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  auto rows = gpu::RowsAttr::get(context, /*warps=*/1, lanes, vector);
  auto perColumn = gpu::PerColumnAttr::get(context, rows);
  auto pairs =
      gpu::FragmentType::get(VectorType::get({blockTokens}, b.getF32Type()),
                             gpu::PerRowAttr::get(context, rows));
  auto keys = gpu::FragmentType::get(
      VectorType::get({blockTokens, columns}, b.getF32Type()), rows);

  Value at = enterTurns(count);
  Value all =
      gpu::LoadSharedOp::create(b, loc, keys, shared[scan.getKey()], Value());
  Value key = loadShared(scan.getKey(), perColumn, at);
  Value query = loadShared(scan.getQuery(), perColumn, at);
  SmallVector<Value> decays, numbers;
  for (int64_t u = 0; u < blockTokens; ++u) {
    numbers.push_back(index(u));
    decays.push_back(fetchNumber(shared[scan.getLogDecay()], numbers.back()));
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value keyRow, queryRow;
  {
    RowsMap map(b, loc, {pairs, pairs}, {all, key, query});
    // Sums of the decays between the two, and of no others: the difference of
    // two running sums would be worse where some decay is strong.
    Value sum;
    for (int64_t u = 1; u < blockTokens; ++u) {
      using P = arith::CmpIPredicate;
      Value isAfter =
          arith::CmpIOp::create(b, loc, P::ult, map.arg(0), numbers[u]);
      Value isUpTo = arith::CmpIOp::create(b, loc, P::ule, numbers[u], at);
      Value counts = arith::AndIOp::create(b, loc, isAfter, isUpTo);
      Value part = arith::SelectOp::create(b, loc, counts, decays[u], zero);
      sum = sum ? Value(arith::AddFOp::create(b, loc, sum, part)) : part;
    }
    Value factor = math::ExpOp::create(b, loc, sum);
    SmallVector<Value> yielded;
    for (unsigned i : {2, 3}) {
      Value dot = emitDot(b, loc, map.arg(1), map.arg(i));
      yielded.push_back(arith::MulFOp::create(b, loc, factor, dot));
    }
    gpu::YieldOp::create(b, loc, yielded);
    keyRow = map.op.getResult(0);
    queryRow = map.op.getResult(1);
  }
  gpu::StoreSharedOp::create(b, loc, keyRow, keyPairs, at);
  gpu::StoreSharedOp::create(b, loc, queryRow, queryPairs, at);
  leave(at.getParentBlock()->getParentOp()->getParentOp());
}

/// The products of the state with keys and queries.
void TokensKernel::emitProducts(Value state, Value first, Value count) {
  Location loc = scan.getLoc();
  if (takesTensorCores()) {
    // The sequence's first tokens meet the state as its slot holds it.
    Value exact = isStateNarrow() ? isEqual(first, begin) : Value();
    gpu::ShareProductsOp::create(b, loc, state, shared[scan.getKey()],
                                 shared[scan.getQuery()], count, knownBuffer,
                                 seenBuffer, exact);
    return;
  }
  MLIRContext *context = b.getContext();
  auto perColumn = gpu::PerColumnAttr::get(context, stateRows);
  int64_t rows = cast<VectorType>(scan.getState().getType()).getDimSize(0);
  auto perRow =
      gpu::FragmentType::get(VectorType::get({rows}, b.getF32Type()),
                             gpu::PerRowAttr::get(context, stateRows));
  auto recurrence = scf::ForOp::create(b, loc, index(0), count, index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(recurrence.getBody());
  Value at = recurrence.getInductionVar();
  Value key = loadShared(scan.getKey(), perColumn, at);
  Value query = loadShared(scan.getQuery(), perColumn, at);
  Value known, seen;
  {
    RowsMap map(b, loc, {perRow, perRow}, {state, key, query});
    SmallVector<Value> yielded;
    for (unsigned i : {2, 3})
      yielded.push_back(emitDot(b, loc, map.arg(1), map.arg(i)));
    gpu::YieldOp::create(b, loc, yielded);
    known = map.op.getResult(0);
    seen = map.op.getResult(1);
  }
  gpu::StoreSharedOp::create(b, loc, known, knownBuffer, at);
  gpu::StoreSharedOp::create(b, loc, seen, seenBuffer, at);
}

/// Deltas and outputs, token after token; `deltas` are those of the tokens
/// before `t`.
Value TokensKernel::emitSolved(int64_t t, ArrayRef<Value> deltas, Value decay,
                               gpu::FragmentType type) {
  Location loc = scan.getLoc();
  Value at = index(t);
  auto get = [&](Value buffer) -> Value {
    return gpu::LoadSharedOp::create(b, loc, type, buffer, at);
  };
  auto flat = [&](Value buffer) -> Value {
    auto line = VectorType::get({blockTokens * blockTokens}, b.getF32Type());
    return gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(line), buffer);
  };
  Value keyBuffer = flat(keyPairs), queryBuffer = flat(queryPairs);
  SmallVector<Value> keys, queries;
  for (int64_t s = 0; s <= t; ++s) {
    Value buffer = index(t * blockTokens + s);
    if (s < t)
      keys.push_back(fetchNumber(keyBuffer, buffer));
    queries.push_back(fetchNumber(queryBuffer, buffer));
  }
  Value beta = fetchNumber(shared[scan.getBeta()], at);
  Value factor = math::ExpOp::create(b, loc, decay);
  SmallVector<Value> inputs = {get(knownBuffer), get(seenBuffer),
                               get(shared[scan.getValue()])};
  llvm::append_range(inputs, deltas);
  Value delta, output;
  {
    RowsMap map(b, loc, {type, type}, inputs);
    auto multiply = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, loc, x, y);
    };
    auto add = [&](Value x, Value y) -> Value {
      return arith::AddFOp::create(b, loc, x, y);
    };
    Value known = multiply(factor, map.arg(1));
    Value seen = multiply(factor, map.arg(2));
    for (int64_t s = 0; s < t; ++s) {
      known = add(known, multiply(keys[s], map.arg(4 + s)));
      seen = add(seen, multiply(queries[s], map.arg(4 + s)));
    }
    Value error = arith::SubFOp::create(b, loc, map.arg(3), known);
    Value d = multiply(beta, error);
    gpu::YieldOp::create(b, loc, {d, add(seen, multiply(d, queries[t]))});
    delta = map.op.getResult(0);
    output = map.op.getResult(1);
  }
  gpu::StoreSharedOp::create(b, loc, delta, shared[scan.getDeltas()], at);
  gpu::StoreSharedOp::create(b, loc, output, shared[scan.getOutput()], at);
  return delta;
}

void TokensKernel::emitSolve(Value count) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  int64_t size = cast<VectorType>(scan.getState().getType()).getDimSize(0);
  auto rows = gpu::RowsAttr::get(context, numWarps, /*lanes=*/1, /*vector=*/1);
  auto type = gpu::FragmentType::get(VectorType::get({size}, b.getF32Type()),
                                     gpu::PerRowAttr::get(context, rows));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  SmallVector<Value> deltas;
  Value sum; // of the decays up to the token
  for (int64_t t = 0; t < blockTokens; ++t) {
    Value at = index(t);
    Value decay = fetchNumber(shared[scan.getLogDecay()], at);
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, decay)) : decay;
    Value isToken =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, count);
    auto branch = emitIf(isToken, type);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value delta = emitSolved(t, deltas, sum, type);
    scf::YieldOp::create(b, loc, delta);
    b.setInsertionPointToStart(branch.elseBlock());
    Value none = gpu::FillOp::create(b, loc, type, zero);
    scf::YieldOp::create(b, loc, none);
    deltas.push_back(branch.getResult(0));
  }
}

/// The state before the next block of tokens: this one's go in as they would in
/// a commit. `last` is the token behind this block.
Value TokensKernel::emitCarried(Value state, Value last, Value count) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  Value isMore =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, last, end);
  auto branch = emitIf(isMore, state.getType());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, state);
  b.setInsertionPointToStart(branch.thenBlock());
  auto key = [&](Value at) {
    return loadShared(scan.getKey(),
                      gpu::PerColumnAttr::get(context, stateRows), at);
  };
  auto delta = [&](Value at) {
    return loadShared(scan.getDeltas(),
                      gpu::PerRowAttr::get(context, stateRows), at);
  };
  auto logDecay = [&](Value at) {
    return fetchNumber(shared[scan.getLogDecay()], at);
  };
  scf::YieldOp::create(b, loc,
                       gdn::emitFold(b, loc, state, count, /*perChannel=*/false,
                                     {key, delta, logDecay}));
  return branch.getResult(0);
}
