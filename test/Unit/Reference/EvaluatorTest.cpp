// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parsing, evaluation and comparison for the tests of the evaluator.
#include "EvaluatorTest.h"

#include "gdn/Data/Compare.h"
#include "gdn/Data/RandomInputs.h"
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <cmath>

using namespace mlir;
using namespace gdn::reference;

EvaluatorTest::EvaluatorTest() {
  context.loadDialect<gdn::GDNDialect, func::FuncDialect, arith::ArithDialect,
                      tensor::TensorDialect>();
}

ModuleOp EvaluatorTest::parse(StringRef text) {
  modules.push_back(parseSourceString<ModuleOp>(text, &context));
  EXPECT_TRUE(modules.back()) << "does not parse:\n" << text.str();
  return *modules.back();
}

ModuleOp EvaluatorTest::parseFile(const std::string &path) {
  modules.push_back(parseSourceFile<ModuleOp>(path, &context));
  EXPECT_TRUE(modules.back()) << "does not parse: " << path;
  return *modules.back();
}

func::FuncOp EvaluatorTest::function(ModuleOp module, StringRef name) {
  if (!name.empty())
    return module.lookupSymbol<func::FuncOp>(name);
  return *module.getOps<func::FuncOp>().begin();
}

SmallVector<Tensor> EvaluatorTest::run(StringRef text,
                                       ArrayRef<Argument> arguments) {
  ModuleOp module = parse(text);
  if (!module)
    return {};
  FailureOr<SmallVector<Tensor>> results =
      evaluate(function(module), arguments);
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? *results : SmallVector<Tensor>();
}

SmallVector<Tensor>
EvaluatorTest::runByName(func::FuncOp function,
                         const std::map<std::string, Argument> &arguments) {
  SmallVector<Argument> ordered;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, "gdn.name");
    auto it = arguments.find(name.str());
    if (it == arguments.end()) {
      ADD_FAILURE() << "no argument '" << name.str() << "'";
      return {};
    }
    ordered.push_back(it->second);
  }
  FailureOr<SmallVector<Tensor>> results = evaluate(function, ordered);
  EXPECT_TRUE(succeeded(results));
  return succeeded(results) ? *results : SmallVector<Tensor>();
}

std::string EvaluatorTest::errorOf(StringRef text,
                                   ArrayRef<Argument> arguments) {
  ModuleOp module = parse(text);
  if (!module)
    return "";
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(evaluate(function(module), arguments)));
  return message;
}

Tensor gdn::reference::vector(std::vector<double> data) {
  const int64_t size = data.size();
  return {{size}, std::move(data)};
}

Tensor gdn::reference::tensor(ArrayRef<int64_t> shape,
                              std::vector<double> front) {
  Tensor result = Tensor::zeros(shape);
  llvm::copy(front, result.data.begin());
  return result;
}

Tensor gdn::reference::filled(ArrayRef<int64_t> shape, double value) {
  Tensor result = Tensor::zeros(shape);
  llvm::fill(result.data, value);
  return result;
}

Tensor gdn::reference::random(ArrayRef<int64_t> shape, uint64_t seed,
                              double scale) {
  const gdn::data::RandomStream stream(seed, "test");
  return {shape, gdn::data::normalValues(*gdn::data::elementCount(shape), scale,
                                         stream)};
}

Tensor gdn::reference::slice(const Tensor &tensor, int64_t begin, int64_t end) {
  SmallVector<int64_t> shape = tensor.shape;
  shape[0] = end - begin;
  const int64_t width = tensor.rowSize();
  return {shape, std::vector<double>(tensor.data.begin() + begin * width,
                                     tensor.data.begin() + end * width)};
}

void gdn::reference::expectNear(ArrayRef<double> got, ArrayRef<double> want,
                                double bound) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - want[i]),
              bound * std::max(1.0, std::abs(want[i])))
        << "element " << i << ": got " << got[i] << ", want " << want[i];
}

void gdn::reference::expectSame(ArrayRef<double> got, ArrayRef<double> want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(gdn::data::bitEqual(got.slice(i, 1), want.slice(i, 1)))
        << "element " << i << ": got " << got[i] << ", want " << want[i];
}
