// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules: the recurrence, token after token; and gdn.commit_delta_rule,
// which puts pending tokens into states. Heads of sequences are independent and
// run on the context's threads; sums within one keep their order, so that
// results do not depend on the threads.
#include "Ops.h"
#include "Planes.h"
#include "Sequences.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Threading.h"

#include <cmath>

using namespace mlir;
using namespace gdn::reference;

/// The power of two that a delta in f16 is a multiple of: that of its largest
/// element.
static double getDeltaScale(ArrayRef<double> delta) {
  constexpr int leastPower = -126, largestPower = 126;
  double most = 0;
  for (double number : delta)
    most = std::isnan(number) ? number : std::max(most, std::abs(number));
  if (!std::isfinite(most))
    return std::ldexp(1.0, largestPower);
  const int power = most > 0 ? std::ilogb(most) : leastPower;
  return std::ldexp(1.0, std::clamp(power, leastPower, largestPower));
}

namespace {
/// The tokens that are not in the state yet, and the sizes of their pools.
struct Pending {
  Pool &keys, &deltas, &decays;
  Pool *counts; // null: the tokens are those of one step
  Pool *scales; // of deltas in f16; null: they are f32

  int64_t steps() const { return keys.data.dim(2); }
  /// How many of them are in a slot, of a sequence that accepts `accepted` of
  /// its last step.
  int64_t count(int64_t slot, int64_t keyHead, int64_t accepted) const {
    return accepted + (counts ? int64_t(counts->data.row(slot)[keyHead]) : 0);
  }
  /// Whether they are put into the slot's state ahead of `length` tokens.
  bool commits(int64_t count, int64_t length) const {
    return counts ? count + length > steps() : count > 0;
  }
  /// Behind how many of them the tokens of a sequence become pending.
  int64_t firstOf(const Sequence &sequence, int64_t keyHead) const {
    const int64_t before = count(sequence.slot, keyHead, sequence.accepted);
    return counts && !commits(before, sequence.length()) ? before : 0;
  }
  /// Token `t` of a head in a slot of one of the pools.
  static MutableArrayRef<double> at(Pool &pool, int64_t slot, int64_t head,
                                    int64_t t) {
    const int64_t width = pool.data.rowSize() / pool.data.dim(1) /
                          std::max<int64_t>(pool.data.dim(2), 1);
    return pool.data.row(slot).slice((head * pool.data.dim(2) + t) * width,
                                     width);
  }
  /// Puts the first `count` tokens in `slot` into `m`, the state of `head`.
  void fold(MutableArrayRef<double> m, int64_t slot, int64_t head,
            int64_t keyHead, int64_t count) const {
    for (int64_t t = 0; t < count; ++t) {
      ArrayRef<double> k = at(keys, slot, keyHead, t),
                       d = at(deltas, slot, head, t),
                       g = at(decays, slot, head, t);
      const double scale = scales ? at(*scales, slot, head, t)[0] : 1;
      for (size_t i = 0; i < d.size(); ++i)
        for (size_t j = 0; j < k.size(); ++j) {
          double &element = m[i * k.size() + j];
          element = element * std::exp(g[g.size() == 1 ? 0 : j]) +
                    scale * d[i] * k[j];
        }
    }
  }
  /// Keeps `delta` in `slot` as token `t` of `head`. It is not rounded, and its
  /// scale is that of the rounded one.
  void keepDelta(ArrayRef<double> delta, int64_t slot, int64_t head,
                 int64_t t) const {
    MutableArrayRef<double> kept = at(deltas, slot, head, t);
    llvm::copy(delta, kept.begin());
    if (!scales)
      return;
    const double scale = getDeltaScale(delta);
    at(*scales, slot, head, t)[0] = scale;
    for (double &number : kept)
      number /= scale;
  }
};

/// The operands of one op and its sizes.
struct Rule {
  const Tensor &query, &key, &value, &decay;
  const Tensor *beta;  // null: no delta term
  const Tensor *erase; // what d reads; null: the key
  int64_t keyHeads, valueHeads, dk, dv;
  double scale;
  std::optional<Pending> pending;
  Pool *tokenPool; // of the states after tokens, or null

  void run(const Sequence &sequence, int64_t head, Pool &pool,
           Tensor &output) const;
};
} // namespace

/// The planes of the states in `pool`, if it has no numbers.
static std::optional<Planes> planesOf(Environment &env, Value pool,
                                      Value scales, Value low) {
  if (!scales)
    return std::nullopt;
  return Planes{env.pool(pool), env.pool(scales),
                low ? &env.pool(low) : nullptr};
}

/// One value head of one live sequence.
void Rule::run(const Sequence &sequence, int64_t head, Pool &pool,
               Tensor &output) const {
  const int64_t keyHead = head / (valueHeads / keyHeads);
  const bool perChannel = decay.shape.size() == 3;
  std::vector<double> m(dv * dk), k(dk), e(dk), q(dk), alpha(dk), delta(dv);
  if (!sequence.fromZeros)
    llvm::copy(pool.data.row(sequence.slot).slice(head * dv * dk, dv * dk),
               m.begin());

  auto writeTo = [&](Pool &target, int64_t slot) {
    llvm::copy(m, target.data.row(slot).slice(head * dv * dk, dv * dk).begin());
  };
  auto write = [&](int64_t slot) { writeTo(pool, slot); };
  int64_t first = 0;
  if (pending) {
    const int64_t before =
        pending->count(sequence.slot, keyHead, sequence.accepted);
    pending->fold(m, sequence.slot, head, keyHead, before);
    if (pending->commits(before, sequence.length()))
      write(sequence.slot);
    first = pending->firstOf(sequence, keyHead);
  }
  const Checkpoint *checkpoint = sequence.checkpoints.begin();
  // The state after each token, and before them all that of the sequence; of
  // trees only.
  std::vector<std::vector<double>> after;
  if (!sequence.parents.empty())
    after.push_back(m);
  for (int64_t t = sequence.begin; t < sequence.end; ++t) {
    if (!sequence.parents.empty())
      m = after[1 + sequence.parents[t - sequence.begin]];
    for (int64_t j = 0; j < dk; ++j) {
      k[j] = key.row(t)[keyHead * dk + j];
      e[j] = erase ? erase->row(t)[keyHead * dk + j] : k[j];
      q[j] = scale * query.row(t)[keyHead * dk + j];
      alpha[j] = std::exp(perChannel ? decay.row(t)[head * dk + j]
                                     : decay.row(t)[head]);
    }
    for (int64_t i = 0; i < dv; ++i) {
      double *mi = m.data() + i * dk;
      double recalled = 0;
      for (int64_t j = 0; j < dk; ++j) {
        mi[j] *= alpha[j];
        recalled += mi[j] * e[j];
      }
      double d = value.row(t)[head * dv + i];
      if (beta)
        d = beta->row(t)[head] * (d - recalled);
      delta[i] = d;
      double out = 0;
      for (int64_t j = 0; j < dk; ++j) {
        mi[j] += d * k[j];
        out += mi[j] * q[j];
      }
      output.row(t)[head * dv + i] = out;
    }
    if (const int64_t at = first + t - sequence.begin;
        pending && at < pending->steps()) {
      pending->keepDelta(delta, sequence.slot, head, at);
      auto decays = Pending::at(pending->decays, sequence.slot, head, at);
      llvm::copy(decay.row(t).slice(head * decays.size(), decays.size()),
                 decays.begin());
    }
    if (checkpoint != sequence.checkpoints.end() &&
        checkpoint->tokens == t + 1 - sequence.begin)
      write(checkpoint++->slot);
    if (!sequence.tokenSlots.empty() &&
        sequence.tokenSlots[t - sequence.begin] >= 0)
      writeTo(tokenPool ? *tokenPool : pool,
              sequence.tokenSlots[t - sequence.begin]);
    if (!sequence.parents.empty())
      after.push_back(m);
  }
  if (!pending && sequence.writeSlot >= 0)
    write(sequence.writeSlot);
}

/// Keeps the keys of a sequence's tokens, and how many are pending: once all
/// value heads have put the keys of previous steps into their states.
static void keepKeys(const Pending &pending, const Sequence &sequence,
                     const Tensor &key, bool areAccepted) {
  for (int64_t head = 0; head < key.dim(1); ++head) {
    const int64_t first = pending.firstOf(sequence, head);
    const int64_t count = std::min(sequence.length(), pending.steps() - first);
    for (int64_t t = 0; t < count; ++t)
      llvm::copy(
          key.row(sequence.begin + t).slice(head * key.dim(2), key.dim(2)),
          Pending::at(pending.keys, sequence.slot, head, first + t).begin());
    if (pending.counts)
      pending.counts->data.row(sequence.slot)[head] =
          areAccepted ? first + count : first;
  }
}

/// Checks what is pending of the live sequences with tokens.
static LogicalResult expectCounts(Operation *op, const Pending &pending,
                                  ArrayRef<Sequence> sequences,
                                  int64_t keyHeads) {
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    if (!pending.counts || !sequence.live() || sequence.length() == 0)
      continue;
    if (sequence.length() > pending.steps())
      return op->emitOpError("expects sequences of at most ")
             << pending.steps() << " tokens, but sequence " << n << " has "
             << sequence.length();
    for (int64_t head = 0; head < keyHeads; ++head)
      if (const int64_t count =
              pending.count(sequence.slot, head, sequence.accepted);
          count < 0 || count > pending.steps())
        return op->emitOpError("expects from 0 to ")
               << pending.steps() << " pending tokens, but key head " << head
               << " of slot " << sequence.slot << " has " << count;
  }
  return success();
}

/// Checks the pools of pending tokens; decays have a value per channel where
/// they have rank 4.
static LogicalResult expectPools(Operation *op, StringRef prefix,
                                 const Pending &pending, int64_t keyHeads,
                                 int64_t valueHeads, int64_t dk, int64_t dv) {
  const int64_t steps = pending.steps();
  SmallVector<int64_t> decays = {-1, valueHeads, steps};
  if (pending.decays.data.shape.size() == 4)
    decays.push_back(dk);
  return failure(
      (pending.counts &&
       failed(expectShape(op, (prefix + "counts").str(),
                          pending.counts->data.shape, {-1, keyHeads}))) ||
      (pending.scales &&
       failed(expectShape(op, "pending_scales", pending.scales->data.shape,
                          {-1, valueHeads, steps}))) ||
      failed(expectShape(op, (prefix + "keys").str(), pending.keys.data.shape,
                         {-1, keyHeads, steps, dk})) ||
      failed(expectShape(op, (prefix + "deltas").str(),
                         pending.deltas.data.shape,
                         {-1, valueHeads, steps, dv})) ||
      failed(expectShape(op, (prefix + "decays").str(),
                         pending.decays.data.shape, decays)));
}

LogicalResult gdn::reference::evaluateOp(gdn::RuleOpInterface op,
                                         Environment &env) {
  const Tensor &query = env.tensor(op.getQuery());
  const Tensor &key = env.tensor(op.getKey());
  const Tensor &value = env.tensor(op.getValue());
  const Tensor &decay = env.tensor(op.getLogDecay());
  const Tensor *beta = env.optional(op.getBeta());
  const Tensor *erase = env.optional(op.getErase());
  const std::optional<Planes> planes =
      planesOf(env, op.getPool(), op.getStateScales(), op.getStateLow());
  Pool states = planes ? planes->decode() : Pool();
  const Pool before = states;
  Pool &pool = planes ? states : env.pool(op.getPool());
  const int64_t tokens = query.dim(0);
  const int64_t keyHeads = query.dim(1), valueHeads = value.dim(1);
  const int64_t dk = query.dim(2), dv = value.dim(2);

  SmallVector<int64_t> decayShape = {tokens, valueHeads};
  if (decay.shape.size() == 3)
    decayShape.push_back(dk);
  if (failed(expectShape(op, "key", key.shape, query.shape)) ||
      (erase && failed(expectShape(op, "erase", erase->shape, key.shape))) ||
      failed(expectShape(op, "value", value.shape, {tokens, -1, -1})) ||
      failed(expectShape(op, "log_decay", decay.shape, decayShape)) ||
      (beta &&
       failed(expectShape(op, "beta", beta->shape, {tokens, valueHeads}))) ||
      failed(
          expectShape(op, "pool", pool.data.shape, {-1, valueHeads, dv, dk})))
    return failure();
  if (keyHeads == 0 ? valueHeads != 0 : valueHeads % keyHeads != 0)
    return op->emitOpError()
           << "expects the value heads to be a multiple of the key heads, but "
              "got "
           << valueHeads << " value heads and " << keyHeads << " key heads";
  SequenceOperands operands = SequenceOperands::of(op, env);
  Pool *tokenPool = nullptr;
  if (op.getTokenPool()) {
    operands.tokenPool = tokenPool = &env.pool(op.getTokenPool());
    if (failed(expectShape(op, "token_pool", tokenPool->data.shape,
                           {-1, valueHeads, dv, dk})))
      return failure();
  }
  std::optional<Pending> pending;
  if (op.getPendingKeys()) {
    pending.emplace(Pending{
        env.pool(op.getPendingKeys()), env.pool(op.getPendingDeltas()),
        env.pool(op.getPendingDecays()),
        op.getPendingCounts() ? &env.pool(op.getPendingCounts()) : nullptr,
        op.getPendingScales() ? &env.pool(op.getPendingScales()) : nullptr});
    if (failed(expectPools(op, "pending_", *pending, keyHeads, valueHeads, dk,
                           dv)))
      return failure();
    operands.steps = pending->steps();
    operands.pendingPools = {&pending->keys, &pending->deltas,
                             &pending->decays};
    if (pending->counts)
      operands.pendingPools.push_back(pending->counts);
    if (pending->scales)
      operands.pendingPools.push_back(pending->scales);
  }
  if (planes)
    planes->addTo(operands.pendingPools);
  FailureOr<SmallVector<Sequence>> sequences =
      makeSequences(op, tokens, pool, operands);
  if (failed(sequences) || failed(expectIndependent(op, *sequences)) ||
      (pending && failed(expectCounts(op, *pending, *sequences, keyHeads))))
    return failure();

  std::optional<APFloat> scale = op.getScale();
  const Rule rule = {query,
                     key,
                     value,
                     decay,
                     beta,
                     erase,
                     keyHeads,
                     valueHeads,
                     dk,
                     dv,
                     scale ? scale->convertToDouble()
                           : 1 / std::sqrt(double(dk)),
                     pending,
                     tokenPool};
  Tensor output = Tensor::zeros(value.shape);
  auto runAll = [&](Pool &from) {
    parallelFor(op.getContext(), 0, sequences->size() * valueHeads,
                [&](size_t unit) {
                  const Sequence &sequence = (*sequences)[unit / valueHeads];
                  if (sequence.live() && sequence.length() > 0)
                    rule.run(sequence, unit % valueHeads, from, output);
                });
  };
  auto withBeta = dyn_cast<gdn::DeltaRuleOp>(*op);
  if (withBeta && withBeta.getReadsUpper()) {
    // Twice: what a state receives does not depend on what tokens see.
    const Pool deltas = pending->deltas, decays = pending->decays,
               scales = pending->scales ? *pending->scales : Pool();
    runAll(pool);
    pending->deltas = deltas;
    pending->decays = decays;
    if (pending->scales)
      *pending->scales = scales;
    Pool seen = Planes{planes->upper, planes->scales, nullptr}.decode();
    runAll(seen);
  } else {
    runAll(pool);
  }
  for (const Sequence &sequence : *sequences)
    if (pending && sequence.live() && sequence.length() > 0)
      keepKeys(*pending, sequence, key, /*areAccepted=*/!op.getNumAccepted());
  if (planes)
    planes->encode(states, before);
  return env.defineResult(op->getResult(0), std::move(output));
}

LogicalResult gdn::reference::evaluateOp(gdn::CommitDeltaRuleOp op,
                                         Environment &env) {
  const std::optional<Planes> planes =
      planesOf(env, op.getPool(), op.getStateScales(), op.getStateLow());
  Pool states = planes ? planes->decode() : Pool();
  const Pool before = states;
  Pool &pool = planes ? states : env.pool(op.getPool());
  const Pending pending = {
      env.pool(op.getKeys()), env.pool(op.getDeltas()),
      env.pool(op.getDecays()),
      op.getCounts() ? &env.pool(op.getCounts()) : nullptr,
      op.getPendingScales() ? &env.pool(op.getPendingScales()) : nullptr};
  const int64_t keyHeads = pending.keys.data.dim(1);
  const int64_t heads = pool.data.dim(1), dv = pool.data.dim(2),
                dk = pool.data.dim(3);
  if (failed(expectPools(op, "", pending, keyHeads, heads, dk, dv)))
    return failure();
  if (keyHeads == 0 ? heads != 0 : heads % keyHeads != 0)
    return op.emitOpError()
           << "expects the value heads to be a multiple of the key heads, but "
              "got "
           << heads << " value heads and " << keyHeads << " key heads";
  SmallVector<const Pool *> pools = {&pool, &pending.keys, &pending.deltas,
                                     &pending.decays};
  for (const Pool *pool : {pending.counts, pending.scales})
    if (pool)
      pools.push_back(pool);
  if (planes)
    planes->addTo(pools);
  FailureOr<SmallVector<Commit>> commits = makeCommits(
      op, pools, env.tensor(op.getSlots()), env.optional(op.getNumAccepted()),
      pending.steps(), pending.counts != nullptr);
  if (failed(commits))
    return failure();
  for (const Commit &commit : *commits) {
    Sequence sequence;
    sequence.slot = commit.slot;
    sequence.end = 1; // of some length
    sequence.accepted = commit.accepted;
    if (failed(expectCounts(op, pending, sequence, keyHeads)))
      return failure();
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t keyHead = head / (heads / keyHeads);
      pending.fold(pool.data.row(commit.slot).slice(head * dv * dk, dv * dk),
                   commit.slot, head, keyHead,
                   pending.count(commit.slot, keyHead, commit.accepted));
    }
    if (pending.counts)
      llvm::fill(pending.counts->data.row(commit.slot), 0);
  }
  if (planes)
    planes->encode(states, before);
  return success();
}
