// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ops of a GPU program read and write in global memory, whether two of
// them have an element in common, and whether the same threads have it.
#include "GlobalAccess.h"
#include "SharedAccess.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace gdn;

Value gdn::getRootOfView(Value view) {
  while (auto part = view.getDefiningOp<ViewLikeOpInterface>())
    view = part.getViewSource();
  return view;
}

StringAttr gdn::getNameInCall(Value root) {
  auto argument = dyn_cast<BlockArgument>(root);
  if (!argument)
    return {};
  auto function =
      dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function ? function.getArgAttrOfType<StringAttr>(
                        argument.getArgNumber(), "gdn.name")
                  : StringAttr();
}

std::string gdn::describeInEntry(Value view) {
  Value root = getRootOfView(view);
  if (StringAttr name = getNameInCall(root))
    return ("'" + name.getValue() + "'").str();
  auto argument = dyn_cast<BlockArgument>(root);
  if (!argument || !argument.getOwner()->isEntryBlock() ||
      !isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
    return "";
  auto before =
      argument.getOwner()->getArguments().take_front(argument.getArgNumber());
  return "region " +
         std::to_string(llvm::count_if(
             before,
             [](Value value) {
               return isa<MemRefType>(value.getType()) && !getNameInCall(value);
             })) +
         " of the workspace";
}

namespace {

/// Fills in what an op with a view, indices and dims has.
template <typename OpTy>
void setPlace(GlobalAccess &access, OpTy op, ArrayRef<int64_t> shape) {
  access.op = op;
  access.view = op.getView();
  access.root = getRootOfView(access.view);
  llvm::append_range(access.indices, op.getIndices());
  llvm::append_range(access.dims, op.getDims());
  llvm::append_range(access.shape, shape);
}

} // namespace

GlobalAccess GlobalAccess::get(Operation *op) {
  GlobalAccess access;
  if (auto load = dyn_cast<gdn::gpu::LoadOp>(op)) {
    access.fragment = load.getTile().getType();
    setPlace(access, load, access.fragment.getShape());
  } else if (auto store = dyn_cast<gdn::gpu::StoreOp>(op)) {
    access.fragment = store.getTile().getType();
    access.writes = true;
    setPlace(access, store, access.fragment.getShape());
  } else if (auto begin = dyn_cast<gdn::gpu::BeginLoadOp>(op)) {
    access.fragment = cast<gdn::gpu::FragmentType>(begin.getTile());
    setPlace(access, begin, access.fragment.getShape());
  } else if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op)) {
    setPlace(access, copy, copy.getBuffer().getType().getShape());
  } else if (auto copy = dyn_cast<gdn::gpu::CopyOp>(op)) {
    setPlace(access, copy, copy.getTile().getType().getShape());
  } else if (auto out = dyn_cast<gdn::gpu::CopyOutOp>(op)) {
    access.writes = true;
    setPlace(access, out, out.getBuffer().getType().getShape());
  } else if (auto store = dyn_cast<gdn::gpu::StoreElementOp>(op)) {
    access.op = op;
    access.view = store.getView();
    access.root = getRootOfView(access.view);
    llvm::append_range(access.indices, store.getIndices());
    access.writes = access.isScalar = true;
  } else if (auto load = dyn_cast<memref::LoadOp>(op)) {
    access.op = op;
    access.view = load.getMemRef();
    access.root = getRootOfView(access.view);
    llvm::append_range(access.indices, load.getIndices());
    access.isScalar = true;
  }
  return access;
}

/// Elements of the tile along `dim` of its view.
static int64_t getExtent(const GlobalAccess &access, int64_t dim) {
  for (auto [of, size] : llvm::zip_equal(access.dims, access.shape))
    if (of == dim)
      return size;
  return 1;
}

Overlap gdn::getOverlap(const GlobalAccess &access, const GlobalAccess &other) {
  if (access.root != other.root)
    return Overlap::none;
  if (access.view != other.view ||
      access.indices.size() != other.indices.size())
    return Overlap::unknown;
  Overlap overlap = Overlap::some;
  for (auto [dim, mine, its] : llvm::enumerate(access.indices, other.indices)) {
    if (mine == its)
      continue;
    std::optional<int64_t> first = getConstantIntValue(mine);
    std::optional<int64_t> second = getConstantIntValue(its);
    if (!first || !second)
      overlap = Overlap::unknown;
    else if (*first + getExtent(access, dim) <= *second ||
             *second + getExtent(other, dim) <= *first)
      return Overlap::none;
  }
  return overlap;
}

/// Whether two accesses have the same indices along the dimensions of their
/// tiles, which are the same.
static bool haveSameIndices(const GlobalAccess &access,
                            const GlobalAccess &other) {
  return access.dims == other.dims &&
         llvm::all_of(access.dims, [&](int64_t dim) {
           return isEqualConstantIntOrValue(access.indices[dim],
                                            other.indices[dim]);
         });
}

bool gdn::areInSamePlane(const GlobalAccess &access,
                         const GlobalAccess &other) {
  if (access.view != other.view || access.dims != other.dims)
    return access.root == other.root;
  for (auto [dim, mine, its] : llvm::enumerate(access.indices, other.indices))
    if (!llvm::is_contained(access.dims, int64_t(dim)) &&
        !isEqualConstantIntOrValue(mine, its))
      return false;
  return true;
}

/// Whether more than one thread has an element of the fragment.
static bool isReplicated(gdn::gpu::FragmentType fragment) {
  gdn::gpu::RowsAttr rows = fragment.getRows();
  if (fragment.isPerRow())
    return rows.getLanes() > 1;
  if (fragment.isPerColumn())
    return rows.getGroups() > 1 || rows.getWarps() > 1;
  return false;
}

/// Whether each lane of the fragment has some column.
static bool fillsLanes(gdn::gpu::FragmentType fragment) {
  gdn::gpu::RowsAttr rows = fragment.getRows();
  return fragment.isPerRow() ||
         fragment.getShape().back() >= rows.getLanes() * rows.getVector();
}

bool gdn::haveSameColumns(const GlobalAccess &access,
                          const GlobalAccess &other) {
  if (access.view != other.view || access.dims.empty() || other.dims.empty() ||
      access.dims.back() != other.dims.back())
    return false;
  const int64_t columns = access.dims.back();
  return isEqualConstantIntOrValue(access.indices[columns],
                                   other.indices[columns]);
}

bool gdn::isBySameThreads(const GlobalAccess &access, const GlobalAccess &other,
                          bool haveMet) {
  // Copies by groups of warps, which meet before each of them.
  auto isCopyOfGroups = [](Operation *op) {
    return isa<gdn::gpu::BeginCopyOp, gdn::gpu::CopyOutOp>(op) &&
           isPerWarpgroup(op);
  };
  if (isCopyOfGroups(access.op) && isCopyOfGroups(other.op))
    return access.view == other.view && haveSameColumns(access, other);
  if (!access.fragment || !other.fragment || access.view != other.view)
    return false;
  gdn::gpu::FragmentType mine = access.fragment, its = other.fragment;
  // Elsewhere in other dimensions, the two have no element in common.
  if (mine.getLayout() == its.getLayout() && haveSameIndices(access, other) &&
      (!isReplicated(mine) || haveMet ||
       access.writes == other.writes)) // the same writes
    return true;
  // Of lanes that have the same columns, one writes.
  const bool areSameWrites = access.writes && other.writes &&
                             mine.getShape().back() == its.getShape().back();
  // Rows may be others where one lane has all rows of its columns.
  gdn::gpu::RowsAttr rows = mine.getRows();
  return rows == its.getRows() && !mine.isPerRow() && !its.isPerRow() &&
         rows.getWarps() == 1 && rows.getGroups() == 1 &&
         haveSameColumns(access, other) &&
         ((fillsLanes(mine) && fillsLanes(its)) || areSameWrites);
}
