// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes of an op by the names that its documentation uses (T, Hk, dk, ...), so
// that every size error of the dialect reads alike.
#ifndef GDN_LIB_DIALECT_GDN_IR_NAMEDSIZES_H
#define GDN_LIB_DIALECT_GDN_IR_NAMEDSIZES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"

#include <initializer_list>

namespace gdn {

/// A named size plus a constant, as in `N + 1`.
struct SizeName {
  SizeName(const char *name, int64_t offset = 0) : name(name), offset(offset) {}
  SizeName(llvm::StringRef name) : name(name), offset(0) {}

  llvm::StringRef name;
  int64_t offset;
};

/// The sizes that the shapes of one op have shown so far. The first static
/// dimension with a name sets it; later ones have to agree. A dynamic one
/// agrees with everything, unless the name must be static.
class NamedSizes {
public:
  /// Errors are emitted on `op`. The sizes in `mustBeStatic` may not be
  /// dynamic anywhere.
  explicit NamedSizes(mlir::Operation *op,
                      llvm::ArrayRef<llvm::StringRef> mustBeStatic = {})
      : op(op), mustBeStatic(mustBeStatic) {}

  /// Checks that `owner`, an operand or result of the shaped or pool type
  /// `type`, has the dimensions `names`, in this order and no others.
  mlir::LogicalResult agree(llvm::StringRef owner, mlir::Type type,
                            llvm::ArrayRef<SizeName> names);
  mlir::LogicalResult agree(llvm::StringRef owner, mlir::Type type,
                            std::initializer_list<SizeName> names) {
    return agree(owner, type, llvm::ArrayRef<SizeName>(names));
  }

  /// Checks one dimension of `owner`; it must exist.
  mlir::LogicalResult agreeDim(llvm::StringRef owner, mlir::Type type,
                               unsigned dim, SizeName name);

  /// The size called `name`; dynamic while nothing static has set it.
  int64_t get(llvm::StringRef name) const;

  /// Where `name` was set, as in "dim 2 of 'query'". The name must be set.
  std::string setBy(llvm::StringRef name) const;

  /// Checks that `name` is a multiple of 8 from 8 to 256, if it is known.
  mlir::LogicalResult verifyHeadDim(llvm::StringRef name);

  /// Checks that Hv is a multiple of Hk, if both are known.
  mlir::LogicalResult verifyHeadCounts();

private:
  struct Setter {
    std::string owner;
    unsigned dim;
    int64_t size;
  };

  mlir::Operation *op;
  llvm::SmallVector<llvm::StringRef, 2> mustBeStatic;
  llvm::StringMap<Setter> sizes;
};

/// The sizes of a ranked shaped type or of a pool.
llvm::ArrayRef<int64_t> getSizes(mlir::Type type);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GDN_IR_NAMEDSIZES_H
