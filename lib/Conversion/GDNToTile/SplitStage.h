// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the stages of the variant "split" share: the chunk slots and what
// the workspace holds of each.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_SPLITSTAGE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_SPLITSTAGE_H

#include "RecurrentKernel.h"

namespace gdn {

class SplitStage : public RecurrentKernel {
public:
  SplitStage(EntryViews &views, const KernelParts &parts,
             const Algorithm &algorithm)
      : RecurrentKernel(views, parts, algorithm) {
    blockTokens = algorithm.chunk;
  }

  /// Fills the function with the program of the stage.
  mlir::LogicalResult emit();

protected:
  /// The grid, as linear forms; `slots` is the number of chunk slots.
  virtual llvm::SmallVector<std::string> gridOf(const std::string &slots) = 0;
  /// The program of a block, whose coordinate 0 is `first` and which has value
  /// head `head` of key head `h`.
  virtual void emitBlock(mlir::Value first) = 0;

  mlir::Value compare(mlir::arith::CmpIPredicate how, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, how, x, y);
  }
  mlir::Value divide(mlir::Value x, int64_t by) {
    return mlir::arith::DivUIOp::create(b, loc, x, index(by));
  }
  /// The slot of the first chunk of a row that begins at token `rowBegin`.
  mlir::Value firstSlot(mlir::Value rowBegin, mlir::Value row) {
    return add(divide(rowBegin, algorithm.chunk), row);
  }

  /// Rows of a chunk's tile of gates.
  enum Gate : int64_t { decayRow, strengthRow, freeRow, endRow, gateRows };

  /// A tile of a region of the workspace, at a head of the region's kind; of
  /// values those that the block has.
  mlir::Value loadRegion(mlir::Value region, mlir::Value chunkSlot,
                         mlir::Value head);
  void storeRegion(mlir::Value tile, mlir::Value region, mlir::Value chunkSlot,
                   mlir::Value head);
  /// A row of the gates of the block's value head.
  mlir::Value loadGate(Gate row, mlir::Value chunkSlot);
  void storeGate(mlir::Value tile, Gate row, mlir::Value chunkSlot);

  // The workspace, by chunk slot and value head: Y, Z and the gates.
  mlir::Value toState, toOutput, gates;
  // By chunk slot and key head, C x dk, and value head, C x dv; null for what
  // is in memory already, as products take it.
  mlir::Value queries, keys, values;

private:
  void describe();
};

/// The form of the number of chunk slots, without the rows in it; empty if it
/// has none.
std::string getChunkForm(DeltaRuleOp rule, int64_t chunk);

/// Tokens of a block of the stage that computes inputs of the rule: few, so
/// that they fit the registers of a warp.
int64_t getGroupTokens(const KernelParts &parts, const Algorithm &algorithm);
/// Whether that stage has anything to do.
bool hasPrologue(const KernelParts &parts, const Algorithm &algorithm);

/// Fill `views.function` with the program of a stage of a kernel that can be
/// split.
mlir::LogicalResult emitPrologueStage(EntryViews &views,
                                      const KernelParts &parts,
                                      const Algorithm &algorithm);
mlir::LogicalResult emitPrepareStage(EntryViews &views,
                                     const KernelParts &parts,
                                     const Algorithm &algorithm);
mlir::LogicalResult emitWalkStage(EntryViews &views, const KernelParts &parts,
                                  const Algorithm &algorithm);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SPLITSTAGE_H
