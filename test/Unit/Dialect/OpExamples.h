// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A context with gdn's dialects and those that they stand beside, and the
// programs of test/Dialect in it: what sweeps over all ops begin from.
#ifndef GDN_TEST_UNIT_DIALECT_OPEXAMPLES_H
#define GDN_TEST_UNIT_DIALECT_OPEXAMPLES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <random>

namespace gdn {

/// Draws; the same on every machine.
class Draws {
public:
  explicit Draws(unsigned seed) : engine(seed) {}

  unsigned below(size_t bound) { return bound == 0 ? 0 : engine() % bound; }
  bool oneIn(unsigned n) { return below(n) == 0; }
  template <typename Range> auto pick(const Range &range) {
    return range[below(range.size())];
  }

private:
  std::mt19937 engine;
};

class OpExamplesTest : public ::testing::Test {
protected:
  OpExamplesTest();

  mlir::MLIRContext context;
  /// All ops of gdn, gdn_tile and gdn_gpu, by their names.
  std::vector<mlir::RegisteredOperationName> ops;
  /// The programs of test/Dialect that are not wrong.
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> examples;
  /// Types and attributes that ops may be given: those of the examples, and
  /// others.
  mlir::SmallVector<mlir::Type> types;
  mlir::SmallVector<mlir::Attribute> attributes;

  /// Verifies, prints and reads again `module`; what verifies is folded, made
  /// canonical and verified once more. Fails the test unless whatever does not
  /// verify says why, and whatever does stays what it is. True if it verifies.
  bool check(mlir::ModuleOp module);

  static bool isOwn(mlir::Operation *op);
  /// A value of the type, of an op that nobody knows.
  static mlir::Value makeValue(mlir::OpBuilder &b, mlir::Type type);

  /// Errors so far.
  unsigned numErrors = 0;

private:
  void readExamples(const std::string &path);
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text);

  mlir::DiagnosticEngine::HandlerID handler;
};

} // namespace gdn

#endif // GDN_TEST_UNIT_DIALECT_OPEXAMPLES_H
