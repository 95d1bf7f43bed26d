// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all tests of the evaluator share: parse a module, evaluate one of its
// functions, see the results or the diagnostic.
#ifndef GDN_TEST_UNIT_REFERENCE_EVALUATORTEST_H
#define GDN_TEST_UNIT_REFERENCE_EVALUATORTEST_H

#include "gdn/Reference/Evaluator.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

namespace gdn::reference {

class EvaluatorTest : public ::testing::Test {
protected:
  EvaluatorTest();

  /// Parses and verifies; the functions live as long as the test.
  mlir::ModuleOp parse(llvm::StringRef text);
  mlir::ModuleOp parseFile(const std::string &path);

  /// The function of this name, or the only one.
  mlir::func::FuncOp function(mlir::ModuleOp module, llvm::StringRef name = "");

  /// Evaluates the only function of `text`; a failure fails the test.
  llvm::SmallVector<Tensor> run(llvm::StringRef text,
                                llvm::ArrayRef<Argument> arguments);

  /// Evaluates `function` with its arguments looked up by `gdn.name`.
  llvm::SmallVector<Tensor>
  runByName(mlir::func::FuncOp function,
            const std::map<std::string, Argument> &arguments);

  /// The first diagnostic of an evaluation that must fail.
  std::string errorOf(llvm::StringRef text, llvm::ArrayRef<Argument> arguments);

  mlir::MLIRContext context;

private:
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
};

constexpr double qNaN = std::numeric_limits<double>::quiet_NaN();

/// A vector tensor.
Tensor vector(std::vector<double> data);

/// A tensor of `shape` with the given values in front and zeros behind.
Tensor tensor(llvm::ArrayRef<int64_t> shape, std::vector<double> front);

/// A tensor of `shape` filled with one value.
Tensor filled(llvm::ArrayRef<int64_t> shape, double value);

/// Normal values that depend on `seed` alone.
Tensor random(llvm::ArrayRef<int64_t> shape, uint64_t seed, double scale = 1);

/// The elements at indices `begin` to `end` of dimension 0.
Tensor slice(const Tensor &tensor, int64_t begin, int64_t end);

/// Expects |got - want| <= bound * max(1, |want|) everywhere.
void expectNear(llvm::ArrayRef<double> got, llvm::ArrayRef<double> want,
                double bound);

/// Expects the same bits.
void expectSame(llvm::ArrayRef<double> got, llvm::ArrayRef<double> want);

} // namespace gdn::reference

#endif // GDN_TEST_UNIT_REFERENCE_EVALUATORTEST_H
