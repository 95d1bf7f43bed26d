// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory that a tile program works on: views of an entry's arguments,
// grouped by key head, so that one kernel body serves every packing.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_ENTRYVIEWS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_ENTRYVIEWS_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace gdn {

/// A pool as a tile program sees it.
struct PoolView {
  mlir::Value memory;   // memref, slot axis first
  mlir::Value nullSlot; // index
};

/// The tile function of an entry and what its arguments stand for.
///
/// `tensors` maps each tensor argument of the gdn function to a memref of the
/// same shape, `pools` each pool argument, `symbols` each index argument, and
/// `results` holds the memref that receives each result.
struct EntryViews {
  mlir::func::FuncOp source;
  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, mlir::Value> tensors;
  llvm::DenseMap<mlir::Value, PoolView> pools;
  llvm::DenseMap<mlir::Value, mlir::Value> symbols;
  llvm::SmallVector<mlir::Value> results;

  /// The view of `value`, a tensor argument or a part of an unpacked one, as
  /// `[T, Hk, d]` or `[T, Hk]` (per key head).
  mlir::Value keyHeads(mlir::OpBuilder &builder, mlir::Value value) const;

  /// The view of `value` as `[T, Hk, R, d]` or `[T, Hk, R]` (per value head,
  /// grouped by the key head it shares); `ratio` is R.
  mlir::Value valueHeads(mlir::OpBuilder &builder, mlir::Value value,
                         mlir::Value ratio) const;

  /// Size `dim` of a tensor or pool argument: the symbol that it is, which one
  /// word holds for all arguments, or else what the view says.
  mlir::Value size(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Value value, unsigned dim) const;

  /// An index of the gdn function: a symbol argument or a constant.
  mlir::Value index(mlir::OpBuilder &builder, mlir::Value value) const;

  /// What the program says of itself.
  tile::StageFields stage() const {
    return tile::StageFields(mlir::func::FuncOp(function));
  }

  /// The view of result `index` as `[T, Hk, R, d]`.
  mlir::Value resultHeads(mlir::OpBuilder &builder, unsigned index,
                          mlir::Value ratio) const;
};

/// Creates a tile function of `source`, a verified entry, before it, with an
/// empty body.
EntryViews createEntryViews(mlir::func::FuncOp source, llvm::StringRef name);

/// The views that receive `result`, of an op in `kernel`.
llvm::SmallVector<mlir::Value>
getResultViews(const EntryViews &views, KernelOp kernel, mlir::Value result);

/// Creates the program of a stage of `source` before it, as @<source><suffix>,
/// by `emit`, and adds 1 to `numStages`; leaves nothing behind if `emit` fails.
mlir::LogicalResult
emitStageOf(mlir::func::FuncOp source, const llvm::Twine &suffix,
            int64_t &numStages,
            llvm::function_ref<mlir::LogicalResult(EntryViews &)> emit);

/// Symbols of an entry in the order in which code receives them: by first
/// appearance in the dimensions of arguments, then results.
llvm::SmallVector<std::string> getEntrySymbols(mlir::func::FuncOp entry);

/// The linear form of dimension `dim` of `value`, traced to the entry's
/// arguments; empty if it cannot be told.
std::string getDimForm(mlir::Value value, unsigned dim);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_ENTRYVIEWS_H
