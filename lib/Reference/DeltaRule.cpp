// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule: the recurrence, token after token. Heads of rows are
// independent and run on the context's threads; sums within one keep their
// order, so that results do not depend on the threads.
#include "Ops.h"
#include "Rows.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"

#include <cmath>

using namespace mlir;
using namespace gdn::reference;

namespace {
/// The operands of one op and its sizes.
struct DeltaRule {
  const Tensor &query, &key, &value, &decay, &beta;
  int64_t keyHeads, valueHeads, dk, dv;
  double scale;

  void run(const Row &row, int64_t head, Pool &pool, Tensor &output) const;
};
} // namespace

/// One value head of one live row.
void DeltaRule::run(const Row &row, int64_t head, Pool &pool,
                    Tensor &output) const {
  const int64_t keyHead = head / (valueHeads / keyHeads);
  const bool perChannel = decay.shape.size() == 3;
  std::vector<double> m(dv * dk), k(dk), q(dk), alpha(dk);
  if (!row.fromZeros)
    llvm::copy(pool.data.row(row.slot).slice(head * dv * dk, dv * dk),
               m.begin());

  auto write = [&](int64_t slot) {
    llvm::copy(m, pool.data.row(slot).slice(head * dv * dk, dv * dk).begin());
  };
  const Checkpoint *checkpoint = row.checkpoints.begin();
  // The state after each token, and before them all the row's; of trees only.
  std::vector<std::vector<double>> after;
  if (!row.parents.empty())
    after.push_back(m);
  for (int64_t t = row.begin; t < row.end; ++t) {
    if (!row.parents.empty())
      m = after[1 + row.parents[t - row.begin]];
    for (int64_t j = 0; j < dk; ++j) {
      k[j] = key.row(t)[keyHead * dk + j];
      q[j] = scale * query.row(t)[keyHead * dk + j];
      alpha[j] = std::exp(perChannel ? decay.row(t)[head * dk + j]
                                     : decay.row(t)[head]);
    }
    const double strength = beta.row(t)[head];
    for (int64_t i = 0; i < dv; ++i) {
      double *mi = m.data() + i * dk;
      double recalled = 0;
      for (int64_t j = 0; j < dk; ++j) {
        mi[j] *= alpha[j];
        recalled += mi[j] * k[j];
      }
      const double d = strength * (value.row(t)[head * dv + i] - recalled);
      double out = 0;
      for (int64_t j = 0; j < dk; ++j) {
        mi[j] += d * k[j];
        out += mi[j] * q[j];
      }
      output.row(t)[head * dv + i] = out;
    }
    if (checkpoint != row.checkpoints.end() &&
        checkpoint->tokens == t + 1 - row.begin)
      write(checkpoint++->slot);
    if (!row.tokenSlots.empty() && row.tokenSlots[t - row.begin] >= 0)
      write(row.tokenSlots[t - row.begin]);
    if (!row.parents.empty())
      after.push_back(m);
  }
  if (row.writeSlot >= 0)
    write(row.writeSlot);
}

LogicalResult gdn::reference::evaluateOp(gdn::DeltaRuleOp op,
                                         Environment &env) {
  const Tensor &query = env.tensor(op.getQuery());
  const Tensor &key = env.tensor(op.getKey());
  const Tensor &value = env.tensor(op.getValue());
  const Tensor &decay = env.tensor(op.getLogDecay());
  const Tensor &beta = env.tensor(op.getBeta());
  Pool &pool = env.pool(op.getPool());
  const int64_t tokens = query.dim(0);
  const int64_t keyHeads = query.dim(1), valueHeads = value.dim(1);
  const int64_t dk = query.dim(2), dv = value.dim(2);

  SmallVector<int64_t> decayShape = {tokens, valueHeads};
  if (decay.shape.size() == 3)
    decayShape.push_back(dk);
  if (failed(expectShape(op, "key", key.shape, query.shape)) ||
      failed(expectShape(op, "value", value.shape, {tokens, -1, -1})) ||
      failed(expectShape(op, "log_decay", decay.shape, decayShape)) ||
      failed(expectShape(op, "beta", beta.shape, {tokens, valueHeads})) ||
      failed(
          expectShape(op, "pool", pool.data.shape, {-1, valueHeads, dv, dk})))
    return failure();
  if (keyHeads == 0 ? valueHeads != 0 : valueHeads % keyHeads != 0)
    return op.emitOpError()
           << "expects the value heads to be a multiple of the key heads, but "
              "got "
           << valueHeads << " value heads and " << keyHeads << " key heads";
  FailureOr<SmallVector<Row>> rows =
      makeRows(op, tokens, pool, RowOperands::of(op, env));
  if (failed(rows) || failed(expectIndependent(op, *rows)))
    return failure();

  std::optional<APFloat> scale = op.getScale();
  const DeltaRule rule = {
      query,      key,
      value,      decay,
      beta,       keyHeads,
      valueHeads, dk,
      dv,         scale ? scale->convertToDouble() : 1 / std::sqrt(double(dk))};
  Tensor output = Tensor::zeros(value.shape);
  parallelFor(op.getContext(), 0, rows->size() * valueHeads, [&](size_t unit) {
    const Row &row = (*rows)[unit / valueHeads];
    if (row.live() && row.length() > 0)
      rule.run(row, unit % valueHeads, pool, output);
  });
  return env.defineResult(op->getResult(0), std::move(output));
}
