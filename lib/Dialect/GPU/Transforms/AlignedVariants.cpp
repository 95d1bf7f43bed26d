// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-add-aligned-variants: what a call may promise of its arrays, so that a
// kernel has one way to each of them. See Passes.td.
#include "gdn/Dialect/GPU/Transforms/Passes.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace gdn {
#define GEN_PASS_DEF_ADDALIGNEDVARIANTS
#include "gdn/Dialect/GPU/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

static constexpr int64_t accessBytes = 16; // the most that a thread moves

namespace {
/// How fragments lie in an array.
struct ArrayAccess {
  gpu::FragmentType type;
  ArrayRef<int64_t> dims;
  bool isDirect; // in the argument itself, not in a view of it

  /// Whether a thread may move several columns at once.
  bool isWide() const {
    return !type.isPerRow() && type.getRows().getVector() > 1;
  }
};

struct AddAlignedVariants final
    : gdn::impl::AddAlignedVariantsBase<AddAlignedVariants> {
  void runOnOperation() override;
  bool promise(func::FuncOp kernel);
};
} // namespace

/// Adds the accesses to `view` and to views of it.
static void collect(Value view, bool isDirect,
                    SmallVectorImpl<ArrayAccess> &found) {
  for (Operation *user : view.getUsers()) {
    if (auto load = dyn_cast<gpu::LoadOp>(user))
      found.push_back({load.getTile().getType(), load.getDims(), isDirect});
    else if (auto store = dyn_cast<gpu::StoreOp>(user))
      found.push_back({store.getTile().getType(), store.getDims(), isDirect});
    else if (isa<ViewLikeOpInterface>(user) && user->getOperand(0) == view &&
             user->getNumResults() == 1)
      collect(user->getResult(0), /*isDirect=*/false, found);
  }
}

/// `type` with the strides that make rows of the access pieces of memory: its
/// columns lie side by side, or behind each other's rows where those do.
static MemRefType layOut(MemRefType type, const ArrayAccess &access) {
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t column = access.dims.back(), row = access.dims.front();
  if (!ShapedType::isDynamic(strides[column]))
    return type;
  strides[column] = 1;
  if (access.dims.size() == 2 && strides[row] == 1) {
    if (type.isDynamicDim(row))
      return type;
    strides[column] = type.getDimSize(row);
  }
  return MemRefType::get(
      type.getShape(), type.getElementType(),
      StridedLayoutAttr::get(type.getContext(), offset, strides),
      type.getMemorySpace());
}

/// Has the arrays of `kernel` as its accesses want them; false if they want
/// nothing.
bool AddAlignedVariants::promise(func::FuncOp kernel) {
  Builder b(kernel.getContext());
  bool isAny = false;
  for (BlockArgument arg : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    if (!type)
      continue;
    SmallVector<ArrayAccess> accesses;
    collect(arg, /*isDirect=*/true, accesses);
    llvm::erase_if(accesses,
                   [](const ArrayAccess &access) { return !access.isWide(); });
    if (accesses.empty())
      continue;
    for (const ArrayAccess &access : accesses)
      if (access.isDirect)
        type = layOut(type, access);
    auto known = kernel.getArgAttrOfType<IntegerAttr>(arg.getArgNumber(),
                                                      "gdn_gpu.alignment");
    isAny |= !known || type != arg.getType();
    arg.setType(type);
    if (!known)
      kernel.setArgAttr(arg.getArgNumber(), "gdn_gpu.alignment",
                        b.getI64IntegerAttr(accessBytes));
  }
  kernel.setType(b.getFunctionType(kernel.getBody().getArgumentTypes(),
                                   kernel.getResultTypes()));
  return isAny;
}

void AddAlignedVariants::runOnOperation() {
  SmallVector<func::FuncOp> kernels;
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (gpu::KernelFields kernel(func); kernel.getAlignedVariant()) {
      kernel.setAlignedVariant(false);
      kernels.push_back(func);
    }
  for (func::FuncOp source : kernels) {
    OpBuilder b(source);
    auto copy = cast<func::FuncOp>(b.clone(*source));
    if (!promise(copy)) {
      copy.erase();
      continue;
    }
    copy.setName((source.getName() + "_aligned").str());
    tile::StageFields stage(copy);
    SmallVector<StringAttr> variants = stage.getVariants();
    if (variants.size() == 1) {
      stage.setVariant((variants.front().getValue() + "-aligned").str());
    } else {
      stage.setVariant("aligned");
      stage.setStageOf(source.getName());
    }
    gpu::KernelFields(copy).setPromised();
    ++numAdded;
  }
}
