// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Walks a function from top to bottom: checks the arguments, evaluates op after
// op, and collects what the terminator returns.
#include "gdn/Reference/Evaluator.h"
#include "Ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn::reference;

static LogicalResult evaluateBlock(Block &block, Environment &env);

static LogicalResult evaluateOp(gdn::KernelOp op, Environment &env) {
  Block &body = op.getBody().front();
  if (failed(evaluateBlock(body, env)))
    return failure();
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != op->getNumResults())
    return op.emitOpError()
           << "expects gdn.yield to give " << op->getNumResults()
           << " results, but got " << yield->getNumOperands();
  for (auto [result, value] : llvm::zip(op->getResults(), yield->getOperands()))
    if (failed(env.defineResult(result, env.tensor(value))))
      return failure();
  return success();
}

static LogicalResult evaluateOp(arith::ConstantOp op, Environment &env) {
  if (op.getType().isIndex()) {
    env.define(op.getResult(), cast<IntegerAttr>(op.getValue()).getInt());
    return success();
  }
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError()
           << "expects an index or a dense tensor, but got " << op.getValue();
  Tensor tensor;
  tensor.shape.assign(elements.getType().getShape().begin(),
                      elements.getType().getShape().end());
  if (isa<FloatType>(elements.getElementType())) {
    for (APFloat value : elements.getValues<APFloat>())
      tensor.data.push_back(value.convertToDouble());
  } else {
    const bool flags = elements.getElementType().isInteger(1);
    for (APInt value : elements.getValues<APInt>())
      tensor.data.push_back(flags ? double(value.getZExtValue())
                                  : double(value.getSExtValue()));
  }
  return env.defineResult(op->getResult(0), std::move(tensor));
}

static LogicalResult evaluateOp(tensor::DimOp op, Environment &env) {
  const Tensor &source = env.tensor(op.getSource());
  const int64_t dim = env.index(op.getIndex());
  if (dim < 0 || dim >= int64_t(source.shape.size()))
    return op.emitOpError() << "expects a dimension below "
                            << source.shape.size() << ", but got " << dim;
  env.define(op.getResult(), source.dim(dim));
  return success();
}

static LogicalResult evaluateOp(tensor::CastOp op, Environment &env) {
  return env.defineResult(op->getResult(0), env.tensor(op.getSource()));
}

/// Evaluates all ops of `block` but its terminator.
static LogicalResult evaluateBlock(Block &block, Environment &env) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<gdn::UnpackOp, gdn::GatesOp, gdn::L2NormOp,
                  gdn::GatedRMSNormOp, gdn::Conv1dOp, gdn::RuleOpInterface,
                  gdn::AcceptedSlotsOp, gdn::CountedSlotsOp, gdn::TakenSlotsOp,
                  gdn::CommitConv1dOp, gdn::CommitDeltaRuleOp,
                  gdn::MaskSequencesOp, gdn::PoolReadOp, gdn::PoolWriteOp,
                  gdn::PoolCopyOp, gdn::PoolZeroOp, gdn::CastOp,
                  gdn::PlanBatchOp, gdn::CombineMapsOp, gdn::ApplyMapsOp>(
                [&](auto known) {
                  return gdn::reference::evaluateOp(known, env);
                })
            .Case<gdn::KernelOp, arith::ConstantOp, tensor::DimOp,
                  tensor::CastOp>(
                [&](auto known) { return ::evaluateOp(known, env); })
            .Default([](Operation *unknown) {
              return unknown->emitOpError()
                     << "is not known to the reference evaluator";
            });
    if (failed(result))
      return failure();
  }
  return success();
}

/// What `value` is, for a message.
static std::string describe(const Argument &value) {
  if (const auto *index = std::get_if<int64_t>(&value))
    return "the index " + std::to_string(*index);
  if (const auto *tensor = std::get_if<Tensor>(&value))
    return "a tensor " + printShape(tensor->shape);
  if (const Pool *pool = std::get<Pool *>(value))
    return "a pool " + printShape(pool->data.shape);
  return "a null pool";
}

/// Checks argument `i` against the type that the function gives it.
static LogicalResult checkArgument(func::FuncOp function, unsigned i,
                                   const Argument &value) {
  const Type type = function.getArgumentTypes()[i];
  auto error = [&] {
    std::string place = "argument " + std::to_string(i);
    if (auto name = function.getArgAttrOfType<StringAttr>(i, "gdn.name"))
      place += " '" + name.str() + "'";
    return function.emitOpError(place + ": ");
  };
  const auto *tensor = std::get_if<Tensor>(&value);
  Pool *const *pool = std::get_if<Pool *>(&value);
  if (isa<IndexType>(type)) {
    if (std::holds_alternative<int64_t>(value))
      return success();
    return error() << "expects an index, but got " << describe(value);
  }
  if (isa<gdn::PoolType>(type)) {
    if (!pool || !*pool)
      return error() << "expects a pool, but got " << describe(value);
    tensor = &(*pool)->data;
  } else if (!isa<RankedTensorType>(type)) {
    return error() << "expects a type of index, tensor or pool, but got "
                   << type;
  } else if (!tensor) {
    return error() << "expects a tensor, but got " << describe(value);
  }
  std::string problem = mismatch(*tensor, type);
  if (!problem.empty())
    return error() << problem;
  return success();
}

FailureOr<SmallVector<Tensor>>
gdn::reference::evaluate(func::FuncOp function, ArrayRef<Argument> arguments) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError() << "expects a body of one block, but got "
                                  << function.getBody().getBlocks().size();
  if (arguments.size() != function.getNumArguments())
    return function.emitOpError() << "expects " << function.getNumArguments()
                                  << " arguments, but got " << arguments.size();
  Environment env;
  for (unsigned i = 0; i < arguments.size(); ++i) {
    if (failed(checkArgument(function, i, arguments[i])))
      return failure();
    env.define(function.getArgument(i), arguments[i]);
  }
  Block &body = function.getBody().front();
  if (failed(evaluateBlock(body, env)))
    return failure();

  SmallVector<Tensor> results;
  for (mlir::Value value : body.getTerminator()->getOperands()) {
    const auto *tensor = std::get_if<Tensor>(&env.lookup(value));
    if (!tensor)
      return body.getTerminator()->emitOpError()
             << "expects tensors, but got " << value.getType();
    results.push_back(*tensor);
  }
  return results;
}
