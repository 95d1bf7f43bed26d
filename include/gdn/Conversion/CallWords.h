// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of a bound call as the arguments of a program: what code for CPUs
// and for GPUs begins with (docs/design/20261121-entries-and-images.md).
#ifndef GDN_CONVERSION_CALLWORDS_H
#define GDN_CONVERSION_CALLWORDS_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace gdn {

/// Fails, with a diagnostic, unless words can be the arguments of `function`,
/// which is `what` in it: one block, no results, and arguments that are strided
/// memrefs or indices.
mlir::LogicalResult checkReadsWords(mlir::func::FuncOp function,
                                    llvm::StringRef what);

/// Reads words one after another.
class WordReader {
public:
  /// `words` points to the first.
  WordReader(mlir::OpBuilder &b, mlir::Location loc, mlir::Value words)
      : b(b), loc(loc), words(words), types(b.getContext()) {}

  /// How many words an argument of `type` takes.
  static int64_t count(mlir::Type type);

  mlir::Value word();

  /// Reads the arguments of a program to `mapping`: first those between its
  /// `symbols` and the regions of its `workspace` (null: none), then the
  /// symbols, then the regions. The bytes that `alignmentOf` gives for a memref
  /// divide its address and the strides that its type does not say; 0 is for
  /// none. Returns the values of the symbols.
  llvm::SmallVector<mlir::Value>
  arguments(llvm::ArrayRef<mlir::BlockArgument> all, mlir::ArrayAttr symbols,
            mlir::ArrayAttr workspace,
            llvm::function_ref<int64_t(mlir::BlockArgument)> alignmentOf,
            mlir::IRMapping &mapping);
  /// The elements behind `pointer`, of which no word speaks.
  mlir::Value scratch(mlir::Value pointer, mlir::MemRefType type);

private:
  mlir::Value index();
  /// An array: its address, its sizes and its strides.
  mlir::Value view(mlir::MemRefType type, int64_t alignment);
  /// A region of the workspace, row-major: its address. Its sizes are the forms
  /// of `sizes` but the last, which is the bytes of an element.
  mlir::Value region(mlir::MemRefType type, mlir::ArrayAttr sizes,
                     mlir::ArrayAttr symbols,
                     llvm::ArrayRef<mlir::Value> values);
  void assumeMultiple(mlir::Value value, int64_t of);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::Value words;
  mlir::LLVMTypeConverter types;
  unsigned next = 0;
};

} // namespace gdn

#endif // GDN_CONVERSION_CALLWORDS_H
