// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of tiles on tensor cores, by families of instructions: one file has
// one family.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PRODUCTFAMILY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PRODUCTFAMILY_H

#include "Kernel/BlockThreads.h"

#include "mlir/IR/IRMapping.h"

namespace gdn {

struct KernelEntry;

/// What one thread has of the operands of a product.
struct ProductOperands {
  mlir::Value lhs;              ///< its elements, or a pointer to `lhsTile`
  gpu::SharedType lhsTile;      ///< null where `lhs` is of a fragment
  bool isLhsTransposed = false; ///< `lhsTile` is the transpose
  gpu::SharedType rhsTile;
  mlir::Value rhs; ///< the pointer to it
  bool isRhsTransposed = false;
  int64_t inner;    ///< columns of the left side
  int64_t from = 0; ///< column of a transposed `rhs` that they begin at
  mlir::Value acc;  ///< the thread's elements to add to, or null
  gpu::FragmentType result;

  /// Element `at` of those to add to, `zero` where there are none.
  mlir::Value loadSum(mlir::OpBuilder &b, mlir::Location loc, int64_t at,
                      mlir::Value zero) const {
    return acc ? mlir::vector::ExtractOp::create(b, loc, acc, at).getResult()
               : zero;
  }
};

class ProductFamily {
public:
  virtual ~ProductFamily() = default;

  /// Starts a product; the thread's sums under way, in the family's order.
  virtual llvm::SmallVector<mlir::Value>
  start(mlir::OpBuilder &b, mlir::Location loc, const BlockThreads &threads,
        const ProductOperands &operands) const = 0;
  /// The elements of the result, once at most `left` of the products that were
  /// started are under way.
  virtual mlir::Value await(mlir::OpBuilder &b, mlir::Location loc,
                            gpu::FragmentType result,
                            llvm::ArrayRef<mlir::Value> sums,
                            int64_t left) const = 0;
};

/// mma.sync: each warp for itself, the right side by ldmatrix.
const ProductFamily &getMmaSync();
/// wgmma: four warps together, the right side by a descriptor.
const ProductFamily &getWgmma();

/// One mma.sync of 16 rows and 8 columns, operands in registers of
/// `type` (bf16 or f16): 4 and 2 i32 of 16 inner elements or 2 and 1 of 8, and
/// 4 sums, f32. Returns the sums with
/// the product.
llvm::SmallVector<mlir::Value, 4>
emitMma(mlir::OpBuilder &b, mlir::Location loc, mlir::Type type,
        mlir::ValueRange lhs, mlir::ValueRange rhs, mlir::ValueRange acc);

/// One m16n8k8 of tf32, sums in f32: operands are words of f32, of which it
/// takes the upper 19 bits.
llvm::SmallVector<mlir::Value, 4>
emitTf32Mma(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange lhs,
            mlir::ValueRange rhs, mlir::ValueRange acc);

/// In kernels that finish products: keeps the end of the last one ahead of
/// `barrier` where copies go on behind it, by stores of what its last
/// instructions give in a unit that there is none of. ptxas sees no order
/// between a barrier and products, moves products behind it, and holds what
/// they multiply, which was loaded before it.
void finishProducts(mlir::OpBuilder &b, mlir::Operation *barrier,
                    const mlir::IRMapping &values, const KernelEntry &entry);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_PRODUCTFAMILY_H
