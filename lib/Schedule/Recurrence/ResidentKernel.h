// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The program of gdn-schedule-resident-recurrence while it is written
// (ResidentRecurrence.cpp), and its passes over a state that registers cannot
// hold (StatePasses.cpp).
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_RESIDENTKERNEL_H
#define GDN_LIB_SCHEDULE_RECURRENCE_RESIDENTKERNEL_H

#include "Kernel/ScanStep.h"
#include "Kernel/ScheduledKernel.h"

namespace gdn {

class ResidentKernel : public ScheduledKernel {
public:
  ResidentKernel(mlir::func::FuncOp source, tile::RuleOpInterface scan,
                 int64_t threads, bool staysNarrow = false)
      : ScheduledKernel(source, scan, scan, threads), staysNarrow(staysNarrow) {
  }

protected:
  bool takesPasses() const override { return !staysNarrow; }
  bool widensRows() const override { return staysNarrow; }
  mlir::LogicalResult check() override;
  void emitRootBlock(mlir::Block &block) override;
  mlir::Value getBegun(tile::LoadOp load, ScanRole role) {
    return begun.lookup({load.getTile(), unsigned(role)});
  }
  void emitBegin(FragmentEmitter &warp, tile::LoadOp load, ScanRole role);
  void emitWindows();
  void emitOutputLoads();
  void emitOperands(ScanRole role, llvm::ArrayRef<mlir::Value> operands);
  /// What late stores of a role use besides its operands.
  llvm::SetVector<mlir::Value> getKept(ScanRole role,
                                       llvm::ArrayRef<mlir::Value> operands);
  /// Whether the warp of the value asks for what it makes the gates of with
  /// what the value is made of.
  virtual bool asksForGates() { return joinsGates(); }
  void shareGates(FragmentEmitter &warp);
  ScanToken fetchToken();
  void emitScan(FragmentEmitter &all);
  void emitPasses();
  mlir::Value emitPassLoad(tile::LoadOp load, mlir::Value first,
                           gpu::FragmentType type);
  void emitPassStores(mlir::Operation *op, mlir::Value first,
                      mlir::Value state);
  mlir::Value inPasses(mlir::Value buffer);
  /// Whether stores of an operand's role wait until the scan is done; what
  /// they store lies in shared memory meanwhile.
  virtual bool isLate(mlir::Operation *store) const {
    return mlir::isa<mlir::scf::IfOp>(store);
  }
  /// Whether to ask for the last reader as soon as the role has read.
  virtual bool asksEarly(mlir::Operation *store) const { return true; }
  /// Whether the last warp waits for what others have shared, and these for
  /// nothing.
  virtual bool awaitsArrivals() { return staysNarrow; }
  /// What an operand's role makes of it besides.
  virtual void emitFactors(ScanRole role, FragmentEmitter &warp) {}
  void emitLateStores();
  /// Sets the output of the scan in the warp that follows it.
  virtual void emitOutputOf(FragmentEmitter &warp);
  void emitOutput();
  /// Whether code for aligned arrays is faster.
  virtual bool suitsAligned();
  /// Says which variants the kernel has.
  void setVariants();

  bool isStateNarrow() {
    return !scan.getState().getType().getElementType().isF32();
  }
  /// Whether the state becomes f32 in registers.
  virtual bool widensState() { return isStateNarrow(); }

  bool staysNarrow; // a narrow state stays so in registers
  mlir::Value zero;
  /// Buffers of tiles whose loads a role has begun: its warp alone waits for
  /// them.
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> begun;
  llvm::DenseMap<mlir::Value, mlir::Value>
      held; // fragments that one warp holds for later
  llvm::DenseMap<mlir::Operation *, mlir::Value>
      tickets; // of stores of a last reader
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_RESIDENTKERNEL_H
