// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage of a variant "staged" that cuts sequences into segments, behind the
// one of SequenceMaps.cpp: the state before each segment of a sequence,
//
//   M_1 = H_0,  M_(s+1) = M_s P_s + H_s
//
// in the place of H. A block has some rows of the state of a value head, which
// stay in f32 from segment to segment.
#include "Program/TokenOps.h"
#include "Stages/KernelStage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SequenceScanStage final : public KernelStage {
public:
  using KernelStage::KernelStage;

protected:
  SmallVector<std::string> gridOf(const std::string &) override {
    return {sequenceForm, valueForm, std::to_string(chooseVSplit())};
  }
  void emitBlock(Value sequence) override;

private:
  int64_t chooseVSplit();
  Value rounded(Value before);
  Value advance(Value before, Value map, Value added);
  void emitScan(Value first, Value count);
  void emitScanAtOnce(Value first, Value count);
};

} // namespace

/// Blocks of a value head: some, as long as matrix instructions find whole
/// rows.
int64_t SequenceScanStage::chooseVSplit() {
  const int64_t rows = cast<MemRefType>(states.getType()).getDimSize(2);
  // Where blocks prepare their chunks, four warps make a product together.
  int64_t vSplit = algorithm.fusedChunks != 0 ? 2 : 4;
  while (vSplit > 1 && rows % (16 * vSplit) != 0)
    vSplit /= 2;
  return vSplit;
}

/// `before` as products take it.
Value SequenceScanStage::rounded(Value before) {
  return castTile(b, loc, before, chunkTypes.inner);
}

/// What a state is behind a segment that multiplies it by `map`.
Value SequenceScanStage::advance(Value before, Value map, Value added) {
  return tile::MatmulOp::create(b, loc, stateCarry().type, before, map, added,
                                /*transpose_lhs=*/false);
}

/// The states of the `count` segments from slot `first` on.
void SequenceScanStage::emitScan(Value first, Value count) {
  Carry carry = stateCarry();
  const int64_t size = carry.type.getDimSize(0);
  const int64_t dk = carry.type.getDimSize(1);
  Value start = loadRows(states, add(first, index(1)), valueStart(), size);
  auto loop =
      scf::ForOp::create(b, loc, index(2), count, index(1), ValueRange{start});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = add(first, loop.getInductionVar());
  Value before = rounded(loop.getRegionIterArg(0));
  Value map = loadRows(maps, sub(at, index(1)), index(0), dk);
  Value next = advance(before, map, loadRows(states, at, valueStart(), size));
  storeRows(next, states, at, valueStart());
  scf::YieldOp::create(b, loc, next);
}

/// The same where all maps of a sequence have a place at once: none is waited
/// for but the first, and what a segment adds is asked for a product ahead.
void SequenceScanStage::emitScanAtOnce(Value first, Value count) {
  Carry carry = stateCarry();
  const int64_t size = carry.type.getDimSize(0);
  const int64_t dk = carry.type.getDimSize(1);
  auto slotOf = [&](int64_t segment) { return add(first, index(segment)); };
  // Of a segment that there is none of, no rows.
  auto rowsOf = [&](int64_t segment, int64_t rows) -> Value {
    return select(compare(P::ugt, count, index(segment)), index(rows),
                  index(0));
  };
  SmallVector<Value> all;
  for (int64_t segment = 2; segment < algorithm.batchSegments; ++segment)
    all.push_back(
        loadRows(maps, slotOf(segment - 1), index(0), dk, rowsOf(segment, dk)));
  auto added = [&](int64_t segment) {
    return loadRows(states, slotOf(segment), valueStart(), size,
                    rowsOf(segment, size));
  };
  Value state = loadRows(states, slotOf(1), valueStart(), size);
  Value next = added(2);
  for (auto [i, map] : llvm::enumerate(all)) {
    const int64_t segment = int64_t(i) + 2;
    Value current = next;
    if (segment + 1 < algorithm.batchSegments)
      next = added(segment + 1);
    state = advance(rounded(state), map, current);
    storeRows(state, states, slotOf(segment), valueStart(),
              rowsOf(segment, size));
  }
}

void SequenceScanStage::emitBlock(Value sequence) {
  takeVSplit(tile::BlockIdOp::create(b, loc, b.getIndexType(), 2),
             chooseVSplit());
  n = sequence;
  Value live = emitBounds();
  SegmentCut cut = cutSequences(*this);
  Value count = countSegments(*this, cut);
  // The states before the first two segments are there.
  live = both(live, compare(P::ugt, count, index(2)));
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  Value first = firstSlot(*this, begin, n, cut.tokens);
  algorithm.fusedChunks != 0 ? emitScanAtOnce(first, count)
                             : emitScan(first, count);
}

LogicalResult gdn::emitScanStage(const StageInputs &inputs) {
  return SequenceScanStage(inputs).emitStage();
}
