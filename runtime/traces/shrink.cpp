// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers sizes, removes runs of steps, long ones first, and lowers the numbers
// of those that are left, until nothing helps.

#include "shrink.h"

#include <algorithm>

using namespace gdnrt::traces;

namespace {

class Shrinker {
public:
  Shrinker(Trace trace, const std::function<bool(const Trace &)> &fails)
      : best_(std::move(trace)), fails_(fails) {}

  Trace run() {
    bool helped = true;
    while (helped && budget_ > 0) {
      // A small pool first: with it, fewer steps suffice.
      helped = lowerSizes();
      helped |= removeSteps();
      helped |= lowerSteps();
    }
    return best_;
  }

private:
  bool keepIfFails(const Trace &candidate) {
    if (budget_-- <= 0 || !fails_(candidate))
      return false;
    best_ = candidate;
    return true;
  }

  /// Fewer steps may fail again in a smaller pool, with all sequences in each
  /// batch, or with other seeds. Worth its time when few steps are left.
  bool keepOtherIfFails(const Trace &fewer) {
    if (fewer.steps.size() > 12)
      return false;
    for (int64_t slots : {int64_t{1}, fewer.verifyTokens}) {
      Trace candidate = fewer;
      candidate.numRequests = std::max<int64_t>(fewer.numRequests - slots, 1);
      if (keepIfFails(candidate))
        return true;
    }
    for (uint32_t seed = 0; seed < 16; ++seed) {
      Trace candidate = fewer;
      for (Step &step : candidate.steps) {
        step.seed = seed;
        if (step.kind == StepKind::extend || step.kind == StepKind::decode ||
            step.kind == StepKind::verify)
          step.which = 0xfff;
      }
      if (keepIfFails(candidate))
        return true;
    }
    return false;
  }

  bool removeSteps() {
    bool helped = false;
    for (size_t run = std::max<size_t>(best_.steps.size() / 2, 1); run > 0;
         run /= 2)
      for (size_t first = 0; first < best_.steps.size();) {
        Trace candidate = best_;
        auto begin = candidate.steps.begin() + static_cast<long>(first);
        auto end = begin + static_cast<long>(
                               std::min(run, candidate.steps.size() - first));
        candidate.steps.erase(begin, end);
        if (keepIfFails(candidate) || keepOtherIfFails(candidate))
          helped = true;
        else
          first += run;
      }
    return helped;
  }

  /// Tries smaller values of a number that `member` finds in a trace.
  template <typename Member> bool lower(Member &&member, int64_t least) {
    bool helped = false;
    auto tried = [&](int64_t value) {
      Trace candidate = best_;
      auto &number = member(candidate);
      if (value < least || value >= static_cast<int64_t>(number))
        return false;
      number = static_cast<std::decay_t<decltype(number)>>(value);
      return keepIfFails(candidate);
    };
    for (int64_t value : {least, least + 1, least + 2})
      if (tried(value))
        return true;
    for (;;) {
      int64_t now = static_cast<int64_t>(member(best_));
      if (!tried(least + (now - least) / 2) && !tried(now - 1))
        return helped;
      helped = true;
    }
  }

  bool lowerSteps() {
    bool helped = false;
    for (size_t i = 0; i < best_.steps.size(); ++i) {
      helped |= lower([i](Trace &t) -> auto & { return t.steps[i].size; }, 0);
      helped |= lower([i](Trace &t) -> auto & { return t.steps[i].which; }, 0);
      // A seed is not better for being smaller; one digit is easier to read.
      for (uint32_t seed = 0; seed < 8 && best_.steps[i].seed >= 8; ++seed) {
        Trace candidate = best_;
        candidate.steps[i].seed = seed;
        helped |= keepIfFails(candidate);
      }
    }
    return helped;
  }

  bool lowerSizes() {
    bool helped = lower([](Trace &t) -> auto & { return t.numRequests; }, 1);
    helped |= lower([](Trace &t) -> auto & { return t.numTrack; }, 0);
    helped |= lower([](Trace &t) -> auto & { return t.hostCopies; }, 0);
    helped |= lower([](Trace &t) -> auto & { return t.hostMinTokens; }, 0);
    helped |= lower([](Trace &t) -> auto & { return t.hostFormat; }, 0);
    helped |= lower([](Trace &t) -> auto & { return t.verifyTokens; }, 1);
    helped |= lower([](Trace &t) -> auto & { return t.padding; }, 0);
    helped |= lower([](Trace &t) -> auto & { return t.convExtra; }, 0);
    for (bool Trace::*way :
         {&Trace::usesGraphs, &Trace::usesPlanner, &Trace::usesCache}) {
      Trace without = best_;
      without.*way = false;
      if (best_.*way)
        helped |= keepIfFails(without);
    }
    Trace plain = best_;
    plain.isSD = plain.usesBuffer = plain.movesByKernels = false;
    plain.keyHeads = plain.valueHeads = 1;
    if (best_.isSD || best_.usesBuffer || best_.movesByKernels ||
        best_.valueHeads > 1)
      helped |= keepIfFails(plain);
    return helped;
  }

  Trace best_;
  const std::function<bool(const Trace &)> &fails_;
  int budget_ = 10000;
};

} // namespace

Trace gdnrt::traces::shrink(Trace trace,
                            const std::function<bool(const Trace &)> &fails) {
  return Shrinker(std::move(trace), fails).run();
}
