// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors and the checks of their sizes.
#include "Environment.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"

#include <cassert>

using namespace mlir;
using namespace gdn::reference;

Tensor Tensor::zeros(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    assert(size >= 0 && "expects sizes that are not negative");
    count *= size;
  }
  return {shape, std::vector<double>(count)};
}

int64_t Tensor::rowSize() const {
  int64_t count = 1;
  for (int64_t size : ArrayRef(shape).drop_front())
    count *= size;
  return count;
}

std::string gdn::reference::printShape(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : " x ") +
            (size < 0 ? std::string("?") : std::to_string(size));
  return text.empty() ? "a scalar" : text;
}

/// True if the shapes have one rank and no two sizes differ; negative sizes in
/// `want` agree with all.
static bool agrees(ArrayRef<int64_t> got, ArrayRef<int64_t> want) {
  if (got.size() != want.size())
    return false;
  for (auto [have, need] : llvm::zip(got, want))
    if (need >= 0 && have != need)
      return false;
  return true;
}

std::string gdn::reference::mismatch(const Tensor &tensor, Type type) {
  ArrayRef<int64_t> want;
  if (auto pool = dyn_cast<gdn::PoolType>(type))
    want = pool.getShape();
  else if (auto ranked = dyn_cast<RankedTensorType>(type))
    want = ranked.getShape();
  else
    return "expects no tensor, but got " + printShape(tensor.shape);

  // kDynamic is negative, so it agrees with every size.
  if (!agrees(tensor.shape, want))
    return "expects " + printShape(want) + ", but got " +
           printShape(tensor.shape);
  int64_t count = 1;
  for (int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return "expects sizes that can be counted, but got " +
             printShape(tensor.shape);
  if (uint64_t(count) != tensor.data.size())
    return "expects " + std::to_string(count) + " elements for " +
           printShape(tensor.shape) + ", but got " +
           std::to_string(tensor.data.size());
  return "";
}

LogicalResult Environment::defineResult(OpResult result, Tensor contents) {
  std::string problem = mismatch(contents, result.getType());
  if (!problem.empty())
    return result.getOwner()->emitOpError()
           << "result " << result.getResultNumber() << " " << problem;
  define(result, std::move(contents));
  return success();
}

LogicalResult gdn::reference::expectShape(Operation *op, StringRef name,
                                          ArrayRef<int64_t> got,
                                          ArrayRef<int64_t> want) {
  if (agrees(got, want))
    return success();
  return op->emitOpError() << "expects '" << name << "' to be "
                           << printShape(want) << ", but got "
                           << printShape(got);
}
