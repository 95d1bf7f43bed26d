// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The first and the last stage of the variants "staged" where states are in
// planes: numbers of f32 to the workspace, zeros for a sequence that has no
// state yet, and planes from there, rounded once. What lies between them is
// what it is with states of f32. Blocks share the state of a value head.
#include "Stages/KernelStage.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Blocks for the state of a value head, if its rows can be shared.
static constexpr int64_t mostShares = 4;

namespace {

class PlaneStage final : public KernelStage {
public:
  PlaneStage(const StageInputs &inputs, bool widens)
      : KernelStage(inputs), widens(widens) {}

protected:
  bool readsChunks() const override { return false; }
  SmallVector<std::string> gridOf(const std::string &) override {
    return {sequenceForm, valueForm, std::to_string(countShares())};
  }
  void emitBlock(Value sequence) override;

private:
  int64_t countShares();
  void widen();
  void round();

  bool widens; // or rounds
};

} // namespace

int64_t PlaneStage::countShares() {
  const int64_t rows = cast<MemRefType>(wideStates.getType()).getDimSize(2);
  int64_t shares = mostShares;
  while (rows % shares != 0)
    shares /= 2;
  return shares;
}

void PlaneStage::widen() {
  Carry carry = stateCarry();
  OpBuilder::InsertionGuard guard(b);
  if (carry.hasInitial) {
    Value flag = memref::LoadOp::create(
        b, loc, views.tensors.lookup(carry.hasInitial), n);
    auto branch = scf::IfOp::create(b, loc, flag, /*withElse=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
    // A block that fills stores at once.
    SmallVector<Value> at = {n, headIndex(head), valueStart(), index(0)};
    Value zeros = tile::FillOp::create(b, loc, carry.type, zero);
    tile::StoreOp::create(b, loc, zeros, wideStates, at,
                          ArrayRef<int64_t>{2, 3}, Value());
    b.setInsertionPointToStart(branch.thenBlock());
  }
  storeRows(loadCarryAt(carry, head, slot, /*rows=*/Value()), wideStates, n,
            valueStart());
}

void PlaneStage::round() {
  Carry carry = stateCarry();
  OpBuilder::InsertionGuard guard(b);
  Value to = enterWrite(carry);
  storeCarryAt(carry,
               loadRows(wideStates, n, valueStart(), carry.type.getDimSize(0)),
               head, to);
}

void PlaneStage::emitBlock(Value sequence) {
  takeVSplit(tile::BlockIdOp::create(b, loc, b.getIndexType(), 2),
             countShares());
  n = sequence;
  OpBuilder::InsertionGuard guard(b);
  enterIf(emitBounds());
  widens ? widen() : round();
}

LogicalResult gdn::emitWideningStage(const StageInputs &inputs) {
  return PlaneStage(inputs, /*widens=*/true).emitStage();
}

LogicalResult gdn::emitRoundingStage(const StageInputs &inputs) {
  return PlaneStage(inputs, /*widens=*/false).emitStage();
}
