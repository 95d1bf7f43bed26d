// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage of a variant "split" that cuts rows into segments, behind the one
// of SplitMaps.cpp: the state before each segment of a row,
//
//   M_1 = H_0,  M_(s+1) = M_s P_s + H_s
//
// in the place of H. A block has some rows of the state of a value head, which
// stay in f32 from segment to segment.
#include "SplitStage.h"
#include "TokenWork.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SplitScan final : public SplitStage {
public:
  using SplitStage::SplitStage;

protected:
  SmallVector<std::string> gridOf(const std::string &) override {
    return {rowForm, valueForm, std::to_string(countParts())};
  }
  void emitBlock(Value row) override;

private:
  int64_t countParts();
  void emitScan(Value first, Value count);
};

} // namespace

/// Blocks of a value head: some, as long as matrix instructions find whole
/// rows.
int64_t SplitScan::countParts() {
  const int64_t rows = cast<MemRefType>(states.getType()).getDimSize(2);
  // Where blocks prepare their chunks, four warps make a product together.
  int64_t parts = algorithm.together != 0 ? 2 : 4;
  while (parts > 1 && rows % (16 * parts) != 0)
    parts /= 2;
  return parts;
}

/// The states of the `count` segments from slot `first` on.
void SplitScan::emitScan(Value first, Value count) {
  Carry carry = stateCarry();
  const int64_t size = carry.type.getDimSize(0);
  const int64_t dk = carry.type.getDimSize(1);
  Value start = loadRows(states, add(first, index(1)), valueStart(), size);
  auto loop =
      scf::ForOp::create(b, loc, index(2), count, index(1), ValueRange{start});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value at = add(first, loop.getInductionVar());
  Value before = castTile(b, loc, loop.getRegionIterArg(0), chunkTypes.inner);
  Value map =
      loadRows(maps, arith::SubIOp::create(b, loc, at, index(1)), index(0), dk);
  Value next = tile::MatmulOp::create(b, loc, carry.type, before, map,
                                      loadRows(states, at, valueStart(), size),
                                      /*transposeLhs=*/false);
  storeRows(next, states, at, valueStart());
  scf::YieldOp::create(b, loc, next);
}

void SplitScan::emitBlock(Value row) {
  takePart(tile::BlockIdOp::create(b, loc, b.getIndexType(), 2), countParts());
  n = row;
  Value live = emitBounds(), tokens = segmentTokens();
  Value count = countSegments(tokens);
  // The states before the first two segments are there.
  live = arith::AndIOp::create(b, loc, live, compare(P::ugt, count, index(2)));
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitScan(firstSlot(begin, n, tokens), count);
}

LogicalResult gdn::emitScanStage(EntryViews &views, const KernelParts &parts,
                                 const Algorithm &algorithm,
                                 ArrayRef<std::string> variants) {
  return SplitScan(views, parts, algorithm, variants).emitStage();
}
