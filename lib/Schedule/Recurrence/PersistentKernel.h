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

/// When a launch takes the variant.
struct PersistentLimits {
  int64_t minUnits, maxUnits; // for which a launch takes the variant
  bool needsDependent;        // whether it has to be a dependent one
};

class PersistentKernel : public ScheduledKernel {
public:
  PersistentKernel(mlir::func::FuncOp source, tile::RuleOpInterface scan)
      : ScheduledKernel(source, scan, scan, scanWarps * gpu::warpThreads) {}

  /// Finds the layout. Fails without a word if the schedule does not suit the
  /// program, with an error if none does.
  mlir::FailureOr<bool> analyse(int64_t sharedBytes);
  /// Bytes of an element of the state.
  int64_t getElementBytes();
  void emitVariant(const PersistentLimits &limits);

protected:
  enum class Role { scan, query, key, valueGates, output, states, pending };

  void emitRootBlock(mlir::Block &block) override;
  void enterOverlap() override {}
  void emitPlainStore(tile::StoreOp store) override;

  void emitRole(Role role, int64_t first, int64_t count,
                llvm::iterator_range<mlir::Block::iterator> ops);
  void emitStates();
  virtual void emitScan();
  void emitOperands(llvm::ArrayRef<ScanRole> made);
  void emitOutput();

  // What a program with pending tokens has otherwise.
  /// The warp roles beside the scan.
  virtual llvm::SmallVector<Role> getOtherRoles() {
    return {Role::query, Role::key, Role::valueGates, Role::output,
            Role::states};
  }
  /// Finds the store of the new state that `op` is; false if it is another one.
  virtual bool takeStore(mlir::Operation *op);
  /// Bytes of shared memory for what else comes through channels.
  virtual int64_t getMoreBytes() { return 0; }
  virtual void createMoreChannels() {}
  using Ops = llvm::iterator_range<mlir::Block::iterator>;
  /// A role begins with a unit: what it does not compute for itself. Returns
  /// the ops that are left.
  virtual Ops beginOps(Ops ops) { return ops; }
  /// What a role waits for before it computes for the unit.
  virtual void beginUnit(mlir::Block &block) {}
  /// What a role makes behind its operands, ahead of its stores.
  virtual void emitFactors(llvm::ArrayRef<ScanRole> made,
                           FragmentEmitter &warp) {}
  /// Sets the output of the scan in the warp that follows it.
  virtual void emitOutputOf(FragmentEmitter &warp);
  virtual void emitPending() {}

  llvm::SmallVector<mlir::Value> getOperands(ScanRole role);
  virtual llvm::SmallVector<mlir::Value> getChannelled();
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
