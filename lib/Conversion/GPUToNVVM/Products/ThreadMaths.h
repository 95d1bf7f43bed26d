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
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

struct ThreadMaths : Arithmetic {
  ThreadMaths(mlir::OpBuilder &b, mlir::Location loc) : Arithmetic{b, loc} {}

  using Arithmetic::add;
  mlir::Value add(mlir::Value x, int64_t constant) const {
    return constant == 0 ? x : add(x, i32(constant));
  }

  mlir::Value f32(float value) const {
    return mlir::arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  mlir::Value times(mlir::Value x, mlir::Value y) const {
    return mlir::arith::MulFOp::create(b, loc, x, y);
  }
  mlir::Value plus(mlir::Value x, mlir::Value y) const {
    return mlir::arith::AddFOp::create(b, loc, x, y);
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
  mlir::Value negative(mlir::Value x) const {
    return mlir::arith::NegFOp::create(b, loc, x);
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
  mlir::Value flip(mlir::Value x, mlir::Value bits) const {
    return mlir::arith::XOrIOp::create(b, loc, x, bits);
  }
  mlir::Value flip(mlir::Value x, int64_t bits) const {
    return bits == 0 ? x : flip(x, i32(bits));
  }
  /// `x`, shifted.
  mlir::Value left(mlir::Value x, int64_t bits) const {
    return mlir::arith::ShLIOp::create(b, loc, x, i32(bits));
  }
  mlir::Value right(mlir::Value x, int64_t bits) const {
    return mlir::arith::ShRUIOp::create(b, loc, x, i32(bits));
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
  void syncWarp() const { mlir::NVVM::SyncWarpOp::create(b, loc, i32(-1)); }
  /// `body` in the threads of which `condition` holds.
  void onlyIf(mlir::Value condition, llvm::function_ref<void()> body) const {
    mlir::scf::IfOp::create(b, loc, condition,
                            [&](mlir::OpBuilder &b, mlir::Location loc) {
                              body();
                              mlir::scf::YieldOp::create(b, loc);
                            });
  }
  /// What `yes` gives in the threads of which `condition` holds, in others what
  /// `no` does.
  llvm::SmallVector<mlir::Value>
  choose(mlir::Value condition,
         llvm::function_ref<llvm::SmallVector<mlir::Value>()> yes,
         llvm::function_ref<llvm::SmallVector<mlir::Value>()> no) const {
    auto give = [](auto values) {
      return [values](mlir::OpBuilder &b, mlir::Location loc) {
        mlir::scf::YieldOp::create(b, loc, values());
      };
    };
    auto branch =
        mlir::scf::IfOp::create(b, loc, condition, give(yes), give(no));
    return llvm::SmallVector<mlir::Value>(branch.getResults());
  }
  mlir::Value load(mlir::Type type, mlir::Value pointer,
                   int64_t alignment) const {
    return mlir::LLVM::LoadOp::create(b, loc, type, pointer, alignment);
  }
  /// `count` elements of a type that lie side by side.
  llvm::SmallVector<mlir::Value> loadAll(mlir::Type type, int64_t count,
                                         mlir::Value pointer,
                                         int64_t alignment) const {
    return elementsOf(
        load(mlir::VectorType::get({count}, type), pointer, alignment));
  }
  llvm::SmallVector<mlir::Value> elementsOf(mlir::Value vector) const {
    llvm::SmallVector<mlir::Value> elements;
    const int64_t count =
        mlir::cast<mlir::VectorType>(vector.getType()).getNumElements();
    for (int64_t i = 0; i < count; ++i)
      elements.push_back(mlir::vector::ExtractOp::create(b, loc, vector, i));
    return elements;
  }
  mlir::Value vectorOf(mlir::ValueRange elements) const {
    auto type = mlir::VectorType::get({int64_t(elements.size())},
                                      elements.front().getType());
    return mlir::vector::FromElementsOp::create(b, loc, type, elements);
  }
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_THREADMATHS_H
