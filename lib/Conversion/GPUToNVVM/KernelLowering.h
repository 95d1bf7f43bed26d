// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program while its kernel is written: what is shared by the lowering of
// regions (KernelLowering.cpp) and of single ops (LowerOps.cpp).
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNELLOWERING_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNELLOWERING_H

#include "Copies/Channels.h"
#include "Fragments/TileAccess.h"
#include "Kernel/KernelEntry.h"
#include "Kernel/NarrowDivision.h"
#include "Kernel/ViewMemory.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

class KernelLowering {
public:
  KernelLowering(mlir::func::FuncOp source, bool hasDependentLaunch,
                 bool everyThreadArrives)
      : source(source), b(source), hasDependentLaunch(hasDependentLaunch),
        memory(source), channels(source, everyThreadArrives), divisions(source),
        numThreads(gpu::KernelFields(source).getThreads()) {}

  void run();

private:
  void placeSharedTiles();
  void lower(mlir::Operation &op);
  void lowerBlock(mlir::Block &block);
  template <typename OpTy> void lowerWarps(OpTy warps);
  void lowerRoles(gpu::RolesOp roles);
  void recomputeThread(mlir::Location loc);
  void recomputeSharedNumbers(mlir::Region &role);
  void lowerUnits(gpu::UnitsOp units);
  void lowerLoop(mlir::scf::ForOp loop);
  void lowerIf(mlir::scf::IfOp branch);
  void lowerAwait(mlir::Location loc);
  TileMemory sharedMemory(mlir::Location loc, mlir::Value buffer,
                          gpu::FragmentType type, mlir::Value row,
                          bool transpose);

  mlir::Value get(mlir::Value value) { return values.lookupOrDefault(value); }
  mlir::Value getIf(mlir::Value value) {
    return value ? get(value) : mlir::Value();
  }
  llvm::SmallVector<mlir::Value> get(mlir::ValueRange range) {
    return llvm::map_to_vector(range,
                               [&](mlir::Value value) { return get(value); });
  }
  mlir::Type convert(mlir::Type type) {
    auto fragment = llvm::dyn_cast<gpu::FragmentType>(type);
    return fragment ? mlir::Type(getLocalType(fragment)) : type;
  }
  /// Values and types on their way across the border of a block.
  llvm::SmallVector<mlir::Type> convert(mlir::TypeRange types) {
    return llvm::map_to_vector(
        types, [&](mlir::Type type) { return getCarriedType(convert(type)); });
  }
  llvm::SmallVector<mlir::Value> carry(mlir::Location loc,
                                       mlir::ValueRange range) {
    return llvm::map_to_vector(range, [&](mlir::Value value) {
      return toCarried(b, loc, get(value));
    });
  }
  void take(mlir::Location loc, mlir::ValueRange outer,
            mlir::ValueRange carried) {
    for (auto [value, got] : llvm::zip_equal(outer, carried))
      values.map(value, fromCarried(b, loc, got, convert(value.getType())));
  }

  mlir::func::FuncOp source;
  mlir::OpBuilder b;
  bool hasDependentLaunch;
  ViewMemory memory;
  Channels channels;
  /// Products of warpgroups in the order in which they begin, and their sums.
  llvm::SmallVector<std::pair<mlir::Value, llvm::SmallVector<mlir::Value>>>
      products;
  NarrowDivision divisions;
  int64_t numThreads;
  KernelEntry entry;
  BlockThreads threads; // that run the op at hand
  mlir::IRMapping values;
  int64_t sharedBytes = 0;
  bool isDependent = false;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNELLOWERING_H
