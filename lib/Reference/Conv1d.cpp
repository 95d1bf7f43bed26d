// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.conv1d: every output from its formula, with the state as the inputs
// before the sequence's first token; and gdn.commit_conv1d, which moves it on.
#include "Ops.h"
#include "Sequences.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace gdn::reference;

LogicalResult gdn::reference::evaluateOp(gdn::Conv1dOp op, Environment &env) {
  SmallVector<const Tensor *> inputs;
  SmallVector<Tensor> results;
  int64_t channels = 0, tokens = 0;
  for (mlir::Value value : op.getInputs()) {
    const Tensor &input = env.tensor(value);
    if (inputs.empty())
      tokens = input.dim(0);
    if (input.dim(0) != tokens)
      return op.emitOpError()
             << "expects input " << inputs.size() << " to have T = " << tokens
             << " tokens, but got " << input.dim(0);
    channels += input.rowSize();
    inputs.push_back(&input);
    results.push_back(Tensor::zeros(input.shape));
  }
  if (results.size() != op.getNumResults())
    return op.emitOpError() << "expects a result for each of " << results.size()
                            << " inputs, but got " << op.getNumResults();

  const Tensor &weight = env.tensor(op.getWeight());
  const Tensor *bias = env.optional(op.getBias());
  Pool &pool = env.pool(op.getPool());
  const int64_t width = weight.dim(1); // K
  if (width < 1)
    return op.emitOpError()
           << "expects 'weight' of width 2 to 8, but got " << width;
  if (failed(expectShape(op, "weight", weight.shape, {channels, width})) ||
      (bias && failed(expectShape(op, "bias", bias->shape, {channels}))) ||
      failed(expectShape(
          op, "pool", pool.data.shape,
          {pool.slots(), channels, op.getNumAccepted() ? -1 : width - 1})))
    return failure();
  // Columns of a slot: the window, and where tokens stay pending their inputs.
  const int64_t columns = pool.data.dim(2);
  SequenceOperands operands = SequenceOperands::of(op, env);
  operands.steps = columns - (width - 1);
  Pool &tokenPool = op.getTokenPool() ? env.pool(op.getTokenPool()) : pool;
  if (op.getTokenPool()) {
    operands.tokenPool = &tokenPool;
    if (failed(expectShape(op, "token_pool", tokenPool.data.shape,
                           {-1, channels, columns})))
      return failure();
  }
  FailureOr<SmallVector<Sequence>> sequences =
      makeSequences(op, tokens, pool, operands);
  if (failed(sequences) || failed(expectIndependent(op, *sequences)))
    return failure();

  for (const Sequence &sequence : *sequences) {
    if (!sequence.live() || sequence.length() == 0)
      continue;
    int64_t channel = 0;
    for (size_t section = 0; section < inputs.size(); ++section) {
      const Tensor *input = inputs[section];
      Tensor &result = results[section];
      for (int64_t c = 0; c < input->rowSize(); ++c, ++channel) {
        // A copy: a slot that is written may be the one that is read.
        const SmallVector<double> state(
            ArrayRef<double>(pool.data.row(sequence.slot))
                .slice(channel * columns, columns));
        // x_t of the sequence; t < 0 is before its first token.
        auto x = [&](int64_t t) {
          if (t >= 0)
            return input->row(sequence.begin + t)[c];
          return sequence.fromZeros ? 0
                                    : state[sequence.accepted + width - 1 + t];
        };
        std::vector<int64_t> window(width); // K tokens up to t
        for (int64_t t = 0; t < sequence.length(); ++t) {
          double sum = bias ? bias->data[channel] : 0;
          for (int64_t j = width, token = t; j-- > 0;
               token = sequence.before(token))
            window[j] = token;
          for (int64_t j = 0; j < width; ++j)
            sum += weight.row(channel)[j] * x(window[j]);
          result.row(sequence.begin + t)[c] = activate(op.getActivation(), sum);
        }
        // The state after `tokens` tokens, to `slot`.
        auto write = [&](Pool &target, int64_t tokens, int64_t slot) {
          MutableArrayRef<double> next =
              target.data.row(slot).slice(channel * columns, width - 1);
          for (int64_t j = width - 1, token = tokens - 1; j-- > 0;
               token = sequence.before(token))
            next[j] = x(token);
        };
        for (const Checkpoint &checkpoint : sequence.checkpoints)
          write(pool, checkpoint.tokens, checkpoint.slot);
        for (auto [t, slot] : llvm::enumerate(sequence.tokenSlots))
          if (slot >= 0)
            write(tokenPool, t + 1, slot);
        if (op.getNumAccepted())
          for (int64_t t = 1 - width;
               t < std::min(sequence.length(), operands.steps); ++t)
            pool.data.row(
                sequence.writeSlot)[channel * columns + width - 1 + t] = x(t);
        else if (sequence.writeSlot >= 0)
          write(pool, sequence.length(), sequence.writeSlot);
      }
    }
  }
  for (auto [result, tensor] : llvm::zip(op->getResults(), results))
    if (failed(env.defineResult(result, std::move(tensor))))
      return failure();
  return success();
}

LogicalResult gdn::reference::evaluateOp(gdn::CommitConv1dOp op,
                                         Environment &env) {
  Pool &pool = env.pool(op.getPool());
  const int64_t window = op.getWindow(), columns = pool.data.dim(2);
  FailureOr<SmallVector<Commit>> commits =
      makeCommits(op, {&pool}, env.tensor(op.getSlots()),
                  &env.tensor(op.getNumAccepted()), columns - window,
                  /*areCounted=*/false);
  if (failed(commits))
    return failure();
  for (const Commit &commit : *commits)
    for (int64_t channel = 0; channel < pool.data.dim(1); ++channel) {
      MutableArrayRef<double> state =
          pool.data.row(commit.slot).slice(channel * columns, columns);
      for (int64_t p = 0; p < window; ++p)
        state[p] = state[p + commit.accepted];
    }
  return success();
}
