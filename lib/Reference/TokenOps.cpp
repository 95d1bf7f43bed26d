// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops whose result for a token depends on that token alone, from the formulas
// in GDNTokenOps.td.
#include "Ops.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace gdn::reference;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double gdn::reference::activate(gdn::Activation activation, double x) {
  switch (activation) {
  case gdn::Activation::identity:
    return x;
  case gdn::Activation::silu:
    return x * sigmoid(x);
  case gdn::Activation::sigmoid:
    return sigmoid(x);
  }
  llvm_unreachable("covered switch");
}

namespace {
/// One part of a packed projection.
struct Part {
  bool perKeyHead; ///< heads are key heads (q, k), else value heads
  int64_t heads;
  int64_t columns; ///< per head
};
} // namespace

LogicalResult gdn::reference::evaluateOp(gdn::UnpackOp op, Environment &env) {
  const Tensor &packed = env.tensor(op.getPacked());
  const int64_t keyHeads = env.index(op.getKeyHeads());
  const int64_t valueHeads = env.index(op.getValueHeads());
  const bool interleaved = op.getLayout() == gdn::PackLayout::interleaved;
  if (keyHeads < 0 || valueHeads < 0)
    return op.emitOpError()
           << "expects heads that are not negative, but got " << keyHeads
           << " key heads and " << valueHeads << " value heads";
  if (interleaved && (keyHeads == 0 || valueHeads % keyHeads != 0))
    return op.emitOpError()
           << "expects the value heads to be a multiple of the key heads, but "
              "got "
           << valueHeads << " value heads and " << keyHeads << " key heads";

  const StringRef letters = op.getParts();
  if (letters.size() != op.getNumResults())
    return op.emitOpError() << "expects a result for each of the parts '"
                            << letters << "', but got " << op.getNumResults();
  const int64_t tokens = packed.dim(0);
  SmallVector<Part> parts;
  int64_t columns = 0;
  for (auto [letter, result] : llvm::zip(letters, op.getResults())) {
    auto type = cast<RankedTensorType>(result.getType());
    Part part;
    part.perKeyHead = letter == 'q' || letter == 'k';
    part.heads = part.perKeyHead ? keyHeads : valueHeads;
    part.columns = type.getRank() == 3 ? type.getDimSize(2) : 1;
    int64_t size;
    if (__builtin_mul_overflow(part.heads, part.columns, &size) ||
        __builtin_add_overflow(columns, size, &columns))
      return op.emitOpError()
             << "expects heads whose columns can be counted, but got "
             << keyHeads << " key heads and " << valueHeads << " value heads";
    parts.push_back(part);
  }
  // Before anything of that size is made.
  if (failed(expectShape(op, "packed", packed.shape, {tokens, columns})))
    return failure();
  SmallVector<Tensor> results;
  for (auto [part, result] : llvm::zip(parts, op.getResults())) {
    SmallVector<int64_t> shape = {tokens, part.heads};
    if (cast<RankedTensorType>(result.getType()).getRank() == 3)
      shape.push_back(part.columns);
    results.push_back(Tensor::zeros(shape));
  }

  for (int64_t t = 0; t < tokens; ++t) {
    ArrayRef<double> row = packed.row(t);
    int64_t column = 0;
    auto take = [&](size_t p, int64_t head) {
      for (int64_t i = 0; i < parts[p].columns; ++i)
        results[p].row(t)[head * parts[p].columns + i] = row[column++];
    };
    if (!interleaved) {
      for (size_t p = 0; p < parts.size(); ++p)
        for (int64_t head = 0; head < parts[p].heads; ++head)
          take(p, head);
      continue;
    }
    const int64_t ratio = valueHeads / keyHeads;
    for (int64_t group = 0; group < keyHeads; ++group)
      for (size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].perKeyHead) {
          take(p, group);
          continue;
        }
        for (int64_t r = 0; r < ratio; ++r)
          take(p, group * ratio + r);
      }
  }
  for (auto [result, tensor] : llvm::zip(op->getResults(), results))
    if (failed(env.defineResult(result, std::move(tensor))))
      return failure();
  return success();
}

/// The log decay of `u = a + dt_bias`.
static double logDecay(gdn::GatesOp op, double u, double aLog) {
  // An infinite rate would make NaN of a u of 0.
  if (std::optional<APFloat> bound = op.getLowerBound())
    return bound->convertToDouble() *
           sigmoid(u * std::min(std::exp(aLog),
                                std::numeric_limits<double>::max()));
  const double threshold = op.getSoftplusThreshold().convertToDouble();
  // The same number where softplus is exp(u), and one where it is 0.
  if (u < -36)
    return -std::exp(aLog + u);
  const double softplus = u > threshold ? u : std::log1p(std::exp(u));
  return -std::exp(aLog) * softplus;
}

LogicalResult gdn::reference::evaluateOp(gdn::GatesOp op, Environment &env) {
  const Tensor &a = env.tensor(op.getA());
  const Tensor &b = env.tensor(op.getB());
  const Tensor aLog =
      op.getALog() ? env.tensor(op.getALog()) : Tensor::zeros({a.dim(1)});
  const Tensor &bias = env.tensor(op.getDtBias());
  const int64_t tokens = a.dim(0), heads = a.dim(1);
  if (failed(expectShape(op, "b", b.shape, {tokens, heads})) ||
      failed(expectShape(op, "a_log", aLog.shape, {heads})) ||
      failed(expectShape(op, "dt_bias", bias.shape,
                         ArrayRef(a.shape).drop_front())))
    return failure();
  const double factor = op.getDoubleBeta() ? 2 : 1;

  Tensor decay = Tensor::zeros(a.shape), beta = Tensor::zeros(b.shape);
  const int64_t channels = a.shape.size() == 3 ? a.dim(2) : 1;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t i = h * channels + c;
        decay.row(t)[i] =
            logDecay(op, a.row(t)[i] + bias.data[i], aLog.data[h]);
      }
      beta.row(t)[h] = factor * sigmoid(b.row(t)[h]);
    }
  }
  return success(
      succeeded(env.defineResult(op->getResult(0), std::move(decay))) &&
      succeeded(env.defineResult(op->getResult(1), std::move(beta))));
}

LogicalResult gdn::reference::evaluateOp(gdn::L2NormOp op, Environment &env) {
  const Tensor &x = env.tensor(op.getInput());
  const double eps = op.getEps().convertToDouble();
  Tensor y = x;
  const int64_t width = x.dim(2);
  for (int64_t head = 0; head < x.dim(0) * x.dim(1); ++head) {
    MutableArrayRef<double> values =
        MutableArrayRef(y.data).slice(head * width, width);
    double sum = 0;
    for (double value : values)
      sum += value * value;
    for (double &value : values)
      value /= std::sqrt(sum + eps);
  }
  return env.defineResult(op->getResult(0), std::move(y));
}

LogicalResult gdn::reference::evaluateOp(gdn::GatedRMSNormOp op,
                                         Environment &env) {
  const Tensor &x = env.tensor(op.getInput());
  const Tensor &gate = env.tensor(op.getGate());
  const Tensor &weight = env.tensor(op.getWeight());
  const int64_t width = x.dim(2);
  if (failed(expectShape(op, "gate", gate.shape, x.shape)) ||
      failed(expectShape(op, "weight", weight.shape, {width})))
    return failure();
  double eps = op.getEps().convertToDouble();
  Activation activation = op.getActivation().value_or(Activation::silu);
  if (op.getConstants()) {
    const Tensor &constants = env.tensor(op.getConstants());
    if (failed(expectShape(op, "constants", constants.shape, {2})))
      return failure();
    eps = constants.data[0];
    if (!(eps > 0) || !std::isfinite(eps))
      return op.emitOpError("expects a positive 'eps' in 'constants', but got ")
             << eps;
    if (constants.data[1] != 0 && constants.data[1] != 1)
      return op.emitOpError("expects 1 (silu) or 0 (sigmoid) in 'constants', "
                            "but got ")
             << constants.data[1];
    activation =
        constants.data[1] == 1 ? Activation::silu : Activation::sigmoid;
  }
  const bool gateFirst = op.getNormAfterGate();

  Tensor y = x;
  for (int64_t head = 0; head < x.dim(0) * x.dim(1); ++head) {
    MutableArrayRef<double> values =
        MutableArrayRef(y.data).slice(head * width, width);
    ArrayRef<double> z = ArrayRef(gate.data).slice(head * width, width);
    auto applyGate = [&] {
      for (int64_t i = 0; i < width; ++i)
        values[i] *= activate(activation, z[i]);
    };
    if (gateFirst)
      applyGate();
    double sum = 0;
    for (double value : values)
      sum += value * value;
    const double norm = std::sqrt(sum / width + eps);
    for (int64_t i = 0; i < width; ++i)
      values[i] = values[i] / norm * weight.data[i];
    if (!gateFirst)
      applyGate();
  }
  return env.defineResult(op->getResult(0), std::move(y));
}

LogicalResult gdn::reference::evaluateOp(gdn::CastOp op, Environment &env) {
  // Element types round; the reference does not.
  return env.defineResult(op->getResult(0), env.tensor(op.getInput()));
}
