// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The token recurrence as a tile program. A block serves one sequence and one
// key head with its value heads:
//
//   bounds and slot of the sequence; is it live?
//   live:  windows of q and k
//          for each value head of the key head:
//            window of v, state
//            for each chunk of tokens:   conv, norms, gates, products of the
//                                        chunk form, output norm
//            for each block of the rest: conv, norms, gates, scan, output norm
//              (both up to each checkpoint of the sequence in turn, if it may
//              have some; token by token if the state after each is kept; with
//              pending tokens see PendingTokens.cpp)
//            write window of v and state
//          write windows of q and k
//   else:  zeros to the sequence's output; in the block behind the last
//   sequence, to the
//          tokens before the first and behind the last sequence
//
// Or, with `valueHeads`, one value head: then the blocks of a key head agree on
// which of them writes the windows of q and k.
//
// q and k are prepared once per value head: it costs less than one tenth of the
// scan and keeps every carried tile a value of the program.
#include "Recurrence/RecurrentKernel.h"
#include "Chunks/CostModel.h"
#include "Program/CheckOperands.h"
#include "Program/PendingTokens.h"
#include "Program/TokenOps.h"
#include "Recurrence/Checkpoints.h"
#include "Recurrence/TokenBlock.h"

#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Tokens of a block in a kernel without sequences, such as a norm: enough for
/// a load to have many bytes on their way.
static constexpr int64_t tokensWithoutSequences = 4;

/// Block after block of the tokens `from` to `to`. `start` holds the carried
/// tiles before them; returns those after them.
SmallVector<Value> RecurrentKernel::emitBlocks(TokenBlock &block, Value from,
                                               Value to,
                                               ArrayRef<Value> start) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(blockTokens), start);
  if (parts.numAccepted)
    tokenLoops.push_back({loop, parts.maxTokens});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  Value left = sub(to, t);
  Value valid = minimum(left, index(blockTokens));
  SmallVector<Value> next =
      block.emit(t, valid, SmallVector<Value>(loop.getRegionIterArgs()));
  if (!next.empty())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

/// Chunk after chunk of the tokens `from` to `to`.
SmallVector<Value> RecurrentKernel::emitChunks(TokenBlock &block, Value from,
                                               Value to,
                                               ArrayRef<Value> start) {
  SmallVector<Value> tiles(start);
  auto isState = [](const Carry &carry) {
    return isa<RuleOpInterface>(carry.op);
  };
  for (auto [carry, tile] : llvm::zip(parts.carries, tiles))
    if (isState(carry))
      tile = toChunkState(tile);
  chunked = true;
  blockTokens = algorithm.chunk;
  tiles = emitBlocks(block, from, to, tiles);
  chunked = false;
  blockTokens = algorithm.tokens;
  for (auto [carry, tile] : llvm::zip(parts.carries, tiles))
    if (isState(carry))
      tile = fromChunkState(tile);
  return tiles;
}

/// The tokens `from` to `to`: in chunks while enough of them are left, the rest
/// token by token. Whether there are chunks at all is asked of the sequence, so
/// that pieces of it take the form that it takes.
SmallVector<Value> RecurrentKernel::emitTokens(TokenBlock &block, Value from,
                                               Value to,
                                               ArrayRef<Value> start) {
  if (!parts.rule || algorithm.chunkFrom < 0)
    return emitBlocks(block, from, to, start);
  if (algorithm.chunkFrom <= 1)
    return emitChunks(block, from, to, start);
  int64_t least =
      algorithm.chunkNext ? algorithm.chunkNext : algorithm.chunkFrom;
  Value length = sub(to, from);
  // floor((length - least + chunk) / chunk), or 0 where that is negative.
  Value more = add(length, index(algorithm.chunk));
  Value enough = arith::MaxUIOp::create(b, loc, more, index(least));
  Value chunks = arith::DivUIOp::create(b, loc, sub(enough, index(least)),
                                        index(algorithm.chunk));
  if (least < algorithm.chunkFrom) {
    Value length = sub(end, begin);
    Value isLong =
        compare(arith::CmpIPredicate::uge, length, index(algorithm.chunkFrom));
    chunks = select(isLong, chunks, index(0));
  }
  Value tokens = minimum(mul(chunks, index(algorithm.chunk)), length);
  Value rest = add(from, tokens);
  // Once, or never: a sequence without chunks need not turn its state around.
  Value runs = minimum(chunks, index(1));
  auto once = scf::ForOp::create(b, loc, index(0), runs, index(1), start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(once.getBody());
    SmallVector<Value> carried(once.getRegionIterArgs());
    scf::YieldOp::create(b, loc, emitChunks(block, from, rest, carried));
  }
  return emitBlocks(block, rest, to, SmallVector<Value>(once.getResults()));
}

bool RecurrentKernel::goesTokenByToken() {
  return algorithm.tokenByToken && parts.cuSeqlens && parts.rule &&
         !parts.tokenSlots && !parts.numAccepted &&
         (chunkTypes.isExact() || parts.hasErase() ||
          (parts.hasPlanes() && parts.checkpoints));
}

/// The tokens of the sequence, in the pieces that its states ask for.
SmallVector<Value> RecurrentKernel::emitSequenceTokens(TokenBlock &block,
                                                       Value r,
                                                       ArrayRef<Value> start) {
  if (parts.isDeferredStep() && !head)
    keyWriter = compare(arith::CmpIPredicate::eq, r, sub(ratio, index(1)));
  if (!parts.cuSeqlens)
    return block.emit(begin, parts.slots ? index(1) : sub(end, begin), start);
  if (parts.tokenSlots || goesTokenByToken()) {
    // Windows of the key head are the same for each of its value heads.
    SmallVector<Value> writers = tokenWriters;
    for (auto [carry, writer] : llvm::zip(parts.carries, writers))
      if (carry.perKeyHead && !head)
        writer = compare(arith::CmpIPredicate::eq, r, index(0));
    return parts.tokenSlots
               ? emitTokenByToken(*this, block, r, start, writers)
               : emitTokensUpToEnd(*this, block, r, start, writers);
  }
  if (parts.numAccepted)
    return emitPendingTokens(block, r, start);
  if (!parts.checkpoints)
    return emitTokens(block, begin, end, start);
  return emitUpToCheckpoints(
      *this, start,
      [&](Value from, Value to, ArrayRef<Value> carried) {
        return emitTokens(block, from, to, carried);
      },
      [&](Value, Value to, ArrayRef<Value> carried) {
        for (auto [carry, tile] : llvm::zip(parts.carries, carried))
          emitCheckpoint(*this, carry, r, to,
                         [&] { storeCarryAt(carry, tile, r, to); });
      });
}

/// What the sequence accepts of its last step, and then its tokens, which
/// become pending.
SmallVector<Value> RecurrentKernel::emitPendingTokens(TokenBlock &block,
                                                      Value r,
                                                      ArrayRef<Value> start) {
  SmallVector<Value> tiles(start);
  PendingTiles pending;
  if (RuleOpInterface rule = parts.rule; rule && !parts.isDeferred())
    pending = loadPending(b, loc, pendingBufferOf(*this, r), accepted,
                          rule.getPendingKeys().getType(),
                          rule.getPendingDeltas().getType(),
                          rule.getPendingDecays().getType());
  // What the key head has is overwritten once all value heads have read it.
  if (!head)
    keyWriter = compare(arith::CmpIPredicate::eq, r, sub(ratio, index(1)));
  else if (countShared() != 0)
    keyWriter = isLastOfGroup(0);
  for (auto [carry, tile] : llvm::zip(parts.carries, tiles)) {
    if (isa<RuleOpInterface>(carry.op)) {
      tile = parts.isDeferred() ? emitCatchUp(*this, carry, r)
                                : emitCommit(*this, carry, r, tile, pending);
      continue;
    }
    OpBuilder::InsertionGuard guard(b);
    if (carry.perKeyHead)
      enterIf(keyWriter);
    storeCarryAt(carry, tile, r, slot);
  }
  if (parts.isDeferred()) {
    OpBuilder::InsertionGuard guard(b);
    enterIf(keyWriter);
    storePendingCount(*this, sub(end, begin));
  }
  return emitBlocks(block, begin, lastEnd(), tiles);
}

/// One value head: its state and window, token block after token block.
/// `keyCarries` holds the carried tiles of the key head before the sequence,
/// and receives them as they are after it.
void RecurrentKernel::emitValueHead(Value r,
                                    MutableArrayRef<Value> keyCarries) {
  SmallVector<Value> start;
  for (auto [carry, held] : llvm::zip(parts.carries, keyCarries)) {
    // With tokens that are pending over several steps the rule loads its state.
    const bool isLoaded = !parts.isDeferred() || carry.op != parts.rule;
    start.push_back(carry.perKeyHead ? held
                    : isLoaded       ? loadStart(carry, r)
                                     : Value());
  }
  TokenBlock block(*this, r);
  SmallVector<Value> last = emitSequenceTokens(block, r, start);
  for (auto [carry, value, held] : llvm::zip(parts.carries, last, keyCarries)) {
    if (carry.perKeyHead)
      held = value;
    else if (!isWrittenInside(carry))
      storeEnd(carry, value, r);
  }
}

/// The block's value head. The windows of its key head are read by the blocks
/// of all its value heads, so the last of them writes them.
void RecurrentKernel::emitOneValueHead(MutableArrayRef<Value> keyCarries) {
  SmallVector<Value> last(keyCarries.begin(), keyCarries.end());
  if (parts.numAccepted)
    return emitValueHead(head, last);
  // What is written on the way: once all blocks have read what was there.
  int64_t next = 0;
  for (auto [carry, writer] : llvm::zip(parts.carries, tokenWriters))
    if (carry.perKeyHead && isWrittenInside(carry))
      writer = isLastOfGroup(next++);
    else if (carry.perKeyHead)
      ++next;
  emitValueHead(head, last);
  next = 0;
  for (auto [carry, value] : llvm::zip(parts.carries, last)) {
    if (!carry.perKeyHead)
      continue;
    int64_t window = next++;
    if (isWrittenInside(carry))
      continue;
    if (keyBranch && window == countShared() - 1) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(keyBranch.thenBlock()->getTerminator());
      storeCarry(carry, castTile(b, loc, value, carry.stored.getElementType()),
                 index(0));
      continue;
    }
    Value stored = castTile(b, loc, value, carry.stored.getElementType());
    Value isLast = isLastOfGroup(window);
    auto write = scf::IfOp::create(b, loc, isLast, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(write.thenBlock());
    storeCarry(carry, stored, index(0));
  }
}

void RecurrentKernel::emitSequence() {
  if (parts.checkpoints)
    emitCheckpointBounds(*this);
  if (parts.numAccepted && !accepted)
    accepted = elementAt(parts.numAccepted, n);
  if (parts.isDeferred())
    emitPendingCount(*this, sub(end, begin));
  tokenWriters.assign(parts.carries.size(), Value());
  SmallVector<Value> first(parts.carries.size());
  SmallVector<Value> init;
  Value zero = index(0);
  for (auto [carry, value] : llvm::zip(parts.carries, first))
    if (carry.perKeyHead)
      init.push_back(value = loadStart(carry, zero));
  if (head)
    return emitOneValueHead(first);
  auto loop = scf::ForOp::create(b, loc, zero, ratio, index(1), init);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> held = first;
    emitValueHead(loop.getInductionVar(), held);
    SmallVector<Value> yielded;
    for (auto [carry, value] : llvm::zip(parts.carries, held))
      if (carry.perKeyHead)
        yielded.push_back(value);
    if (!init.empty())
      scf::YieldOp::create(b, loc, yielded);
  }
  unsigned next = 0;
  for (const Carry &carry : parts.carries) {
    if (!carry.perKeyHead)
      continue;
    Value tile = loop.getResult(next++);
    if (!isWrittenInside(carry))
      storeEnd(carry, tile, zero);
  }
}

void RecurrentKernel::recordForm() {
  if (!parts.cuSeqlens || !parts.rule || parts.tokenSlots || parts.numAccepted)
    return;
  SmallVector<NamedAttribute> facts;
  auto record = [&](StringRef name, const Twine &value) {
    facts.push_back(b.getNamedAttr(name, b.getStringAttr(value)));
  };
  const bool chunks = algorithm.chunkFrom > 0;
  record("chunk_from", chunks ? Twine(algorithm.chunkFrom) : Twine("never"));
  if (chunks && algorithm.chunkNext)
    record("chunk_next", Twine(algorithm.chunkNext));
  // Maps of segments take chunks even if the tokens of a sequence never do.
  if (chunks || algorithm.segments >= 2) {
    record("chunk", Twine(algorithm.chunk));
    record("precision", chunkTypes.precision());
  }
  views.stage().setFacts(b.getDictionaryAttr(facts));
}

LogicalResult RecurrentKernel::emit() {
  recordForm();
  if (!parts.cuSeqlens || parts.tokenSlots || goesTokenByToken())
    blockTokens = 1;
  else if (parts.numAccepted) // no more are looked at again
    blockTokens = std::min(blockTokens, mostPendingTokens);
  b.setInsertionPointToStart(&views.function.getBody().front());
  if (failed(emitGrid()) || failed(emitViews()))
    return failure();
  const bool hasGroups = !parts.slots && isIdentifier(sequenceForm);
  if (hasGroups) {
    blockTokens = tokensWithoutSequences;
    views.stage().setGrid(
        {sequenceForm + " floordiv " + std::to_string(blockTokens) + " + 1",
         algorithm.valueHeads ? valueForm : headForm});
  }
  n = tile::BlockIdOp::create(b, loc, b.getIndexType(), 0);
  h = tile::BlockIdOp::create(b, loc, b.getIndexType(), 1);
  if (algorithm.valueHeads) {
    head = arith::RemUIOp::create(b, loc, h, ratio);
    h = arith::DivUIOp::create(b, loc, h, ratio);
  }
  if (Value live = emitBounds()) {
    takeTokens();
    auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitSequence();
    b.setInsertionPointToStart(branch.elseBlock());
    emitZeros(begin, end);
    if (lead)
      emitZeros(index(0), lead);
  } else {
    if (hasGroups) {
      begin = mul(n, index(blockTokens));
      Value tokens = memref::DimOp::create(
          b, loc, operandViews.lookup(views.results.front()), 0);
      end = add(begin, minimum(sub(tokens, begin), index(blockTokens)));
    }
    emitSequence();
  }
  func::ReturnOp::create(b, loc);
  markTokenLoops();
  return success();
}

Algorithm gdn::chooseForm(const KernelOperands &parts,
                          const Algorithm &algorithm) {
  Algorithm chosen = algorithm;
  if (parts.hasErase()) {
    chosen.chunkFrom = -1;
    chosen.segments = 0;
  }
  if (RuleOpInterface rule = parts.rule; rule && chosen.chunkFrom == 0) {
    auto last = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getShape().back();
    };
    ChunkRule picked = {-1, -1};
    if (algorithm.lanes > 0 && algorithm.formCosts)
      picked = chooseChunkRule({last(rule.getKey()), last(rule.getValue()),
                                rule.isPerChannel(), rule.getBeta() != nullptr},
                               algorithm.chunk, algorithm.lanes,
                               *algorithm.formCosts);
    chosen.chunkFrom = picked.first;
    chosen.chunkNext = picked.next;
  }
  return chosen;
}

LogicalResult gdn::emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                       const Algorithm &algorithm) {
  if (failed(checkKernelOperands(kernel)))
    return failure();
  FailureOr<KernelOperands> parts =
      KernelOperands::analyse(views.source, kernel);
  if (failed(parts))
    return failure();
  Algorithm chosen = chooseForm(*parts, algorithm);
  return RecurrentKernel(views, *parts, chosen).emit();
}
