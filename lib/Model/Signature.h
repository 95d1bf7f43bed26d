// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parameters of an entry, collected before its function exists: name, type
// and the linear form of each dimension.
#ifndef GDN_LIB_MODEL_SIGNATURE_H
#define GDN_LIB_MODEL_SIGNATURE_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/PoolOrder.h"
#include "gdn/Model/EntryOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace gdn {

/// The linear form `coefficient * symbol`.
std::string scaled(int64_t coefficient, llvm::StringRef symbol);

/// The builtin type.
mlir::Type floatType(mlir::Builder &builder, FloatKind kind);

/// Collects parameters, then makes the function. A dimension whose form is a
/// number is static in the type.
class Signature {
public:
  using Dims = llvm::ArrayRef<std::string>;

  explicit Signature(mlir::OpBuilder &builder) : builder(builder) {}

  /// An index argument that receives the value of a symbol.
  void addSymbol(llvm::StringRef name);
  void addTensor(llvm::StringRef name, mlir::Type element, Dims dims);
  /// `contiguous` is the dimension whose elements lie side by side, if that is
  /// not the one that pools of the rank have without saying so.
  void addPool(llvm::StringRef name, mlir::Type element, Dims dims,
               std::optional<int64_t> contiguous = std::nullopt);
  /// A pool of states `dims`, in the format and order that the options say; in
  /// planes it is several: `<prefix>state_pool`, `<prefix>state_scales`,
  /// `<prefix>state_low`.
  void addStatePools(llvm::StringRef prefix, Dims dims,
                     const EntryOptions &options);
  void addResult(llvm::StringRef name, mlir::Type element, Dims dims);

  /// Makes the entry function, with an empty body, at the insertion point.
  mlir::func::FuncOp createEntry(llvm::StringRef name);

  /// The argument of that name; null if there is none. After `createEntry`.
  mlir::Value operator[](llvm::StringRef name) const;

  /// `dims` as a shape: numbers are static sizes, other forms are dynamic.
  static llvm::SmallVector<int64_t> shapeOf(Dims dims);

private:
  struct Parameter {
    std::string name;
    mlir::Type type;
    llvm::SmallVector<std::string> dims;
    std::optional<int64_t> contiguous;
  };
  mlir::DictionaryAttr attributesOf(const Parameter &parameter);

  mlir::OpBuilder &builder;
  llvm::SmallVector<Parameter> arguments, results;
  llvm::StringMap<mlir::Value> values;
};

} // namespace gdn

#endif // GDN_LIB_MODEL_SIGNATURE_H
