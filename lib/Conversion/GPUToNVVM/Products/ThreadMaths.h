// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers, words and memory of one thread, as code of llvm and nvvm.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_THREADMATHS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_THREADMATHS_H

#include "Kernel/BlockThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace gdn {

struct ThreadMaths : Arithmetic {
  ThreadMaths(mlir::OpBuilder &b, mlir::Location loc) : Arithmetic{b, loc} {}

  mlir::Value f32(float value) const {
    return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  mlir::Value times(mlir::Value x, mlir::Value y) const {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  mlir::Value inverse(mlir::Value x) const {
    return mlir::arith::DivFOp::create(b, loc, f32(1), x);
  }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) const {
    return mlir::math::FmaOp::create(b, loc, x, y, z);
  }
  mlir::Value larger(mlir::Value x, mlir::Value y) const {
    return mlir::arith::MaximumFOp::create(b, loc, x, y);
  }
  mlir::Value absolute(mlir::Value x) const {
    return mlir::math::AbsFOp::create(b, loc, x);
  }
  mlir::Value select(mlir::Value condition, mlir::Value yes,
                     mlir::Value no) const {
    return mlir::arith::SelectOp::create(b, loc, condition, yes, no);
  }
  mlir::Value asBits(mlir::Value x) const {
    return mlir::arith::BitcastOp::create(b, loc, b.getI32Type(), x);
  }
  mlir::Value asFloat(mlir::Value bits) const {
    return mlir::arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  }
  mlir::Value bitAnd(mlir::Value x, int64_t bits) const {
    return mlir::arith::AndIOp::create(b, loc, x, i32(bits));
  }
  mlir::Value minus(mlir::Value x, mlir::Value y) const {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value divide(mlir::Value x, int64_t by) const {
    return mlir::arith::DivUIOp::create(b, loc, x, i32(by));
  }
  mlir::Value remainder(mlir::Value x, int64_t by) const {
    return mlir::arith::RemUIOp::create(b, loc, x, i32(by));
  }
  /// Each digit is a byte of the result, 0 to 3 of `x` and 4 to 7 of `y`.
  mlir::Value permute(mlir::Value x, mlir::Value y, uint32_t bytes) const {
    auto mode = mlir::NVVM::PermuteModeAttr::get(
        b.getContext(), mlir::NVVM::PermuteMode::DEFAULT);
    return mlir::NVVM::PermuteOp::create(b, loc, b.getI32Type(), x, y,
                                         i32(bytes), mode);
  }
  mlir::Value shuffle(mlir::NVVM::ShflKind kind, mlir::Value value,
                      mlir::Value by) const {
    return mlir::NVVM::ShflOp::create(b, loc, value.getType(), i32(-1), value,
                                      by, i32(gpu::warpThreads - 1), kind,
                                      mlir::UnitAttr());
  }
  mlir::Value advance(mlir::Value pointer, mlir::LLVM::GEPArg bytes) const {
    return mlir::LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                                     pointer,
                                     llvm::ArrayRef<mlir::LLVM::GEPArg>{bytes});
  }
  mlir::Value load(mlir::Type type, mlir::Value pointer,
                   int64_t alignment) const {
    return mlir::LLVM::LoadOp::create(b, loc, type, pointer, alignment);
  }
  /// `count` elements of a type that lie side by side.
  llvm::SmallVector<mlir::Value> loadAll(mlir::Type type, int64_t count,
                                         mlir::Value pointer,
                                         int64_t alignment) const {
    mlir::Value all =
        load(mlir::VectorType::get({count}, type), pointer, alignment);
    llvm::SmallVector<mlir::Value> elements;
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(mlir::vector::ExtractOp::create(b, loc, all, i));
    return elements;
  }
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_THREADMATHS_H
