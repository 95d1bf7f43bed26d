// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of gdn-schedule-persistent-recurrence while it is written:
// whether it suits, and its frame (PersistentRecurrence.cpp); what its roles do
// (Roles.cpp).
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_PERSISTENTKERNEL_H
#define GDN_LIB_SCHEDULE_RECURRENCE_PERSISTENTKERNEL_H

#include "Kernel/ScanStep.h"
#include "Kernel/ScheduledKernel.h"

namespace gdn {

/// Warps that scan; each other role has one.
constexpr int64_t scanWarps = 4;

class PersistentKernel final : public ScheduledKernel {
public:
  PersistentKernel(mlir::func::FuncOp source, tile::DeltaScanOp scan)
      : ScheduledKernel(source, scan, scan, scanWarps * gpu::warpThreads) {}

  /// Finds the layout. Fails without a word if the schedule does not suit the
  /// program, with an error if none does.
  mlir::FailureOr<bool> analyse(int64_t sharedBytes);
  /// Bytes of an element of the state.
  int64_t getElementBytes();
  void emitVariant(int64_t minUnits, int64_t maxUnits);

private:
  enum class Role { scan, query, key, valueGates, output, states };

  void emitRootBlock(mlir::Block &block) override;
  void enterOverlap() override {}
  void emitPlainStore(tile::StoreOp store) override;

  void emitRole(Role role, int64_t first, int64_t count,
                llvm::iterator_range<mlir::Block::iterator> ops);
  void emitStates();
  void emitScan();
  void emitOperands(llvm::ArrayRef<ScanRole> made);
  void emitOutput();

  llvm::SmallVector<mlir::Value> getOperands(ScanRole role);
  llvm::SmallVector<mlir::Value> getChannelled();
  mlir::Value createChannel(gpu::ChannelType type);
  gpu::SharedType getTile(mlir::Value operand, llvm::ArrayRef<int64_t> shape);
  mlir::Value receive(mlir::Value operand, llvm::ArrayRef<int64_t> shape);
  mlir::Value receiveRow(mlir::Value operand, mlir::Attribute layout);
  mlir::Value receiveElement(mlir::Value operand);
  llvm::SmallVector<mlir::Value> indicesAt(mlir::ValueRange indices,
                                           int64_t dim, mlir::Value chunk);
  mlir::scf::ForOp createChunkLoop();

  tile::LoadOp load; // of the state
  llvm::SmallVector<tile::StoreOp> stores;
  int64_t chunkRows = 0, numChunks = 0, depth = 0;
  Role role = Role::scan;
  mlir::Value ring;
  llvm::DenseMap<mlir::Value, mlir::Value>
      channels; // of operands and results of the scan
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_PERSISTENTKERNEL_H
