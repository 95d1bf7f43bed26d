// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The judgement of a call: errors against the reference, and what must be zero
// or keep its bits.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;
using reference::Pool;
using reference::Tensor;

double gdn::integration::roundingOf(FloatKind kind) {
  switch (kind) {
  case FloatKind::f32:
    return 0;
  case FloatKind::bf16:
    return std::ldexp(1, -8);
  case FloatKind::f16:
    return std::ldexp(1, -11);
  }
  llvm_unreachable("a FloatKind outside its enumeration");
}

static Tensor tensorOf(const Buffer &buffer) {
  return {buffer.shape(), buffer.values()};
}

std::map<std::string, Tensor>
Call::evaluate(const std::map<std::string, Pool *> &pools) {
  mlir::func::FuncOp function = program->function;
  llvm::SmallVector<reference::Argument> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    const std::string name =
        function.getArgAttrOfType<mlir::StringAttr>(i, "gdn.name").str();
    if (function.getArgumentTypes()[i].isIndex())
      arguments.push_back(symbols.at(name));
    else if (auto pool = pools.find(name); pool != pools.end())
      arguments.push_back(pool->second);
    else
      arguments.push_back(tensorOf(before.at(name)));
  }
  std::map<std::string, Tensor> results;
  auto values = reference::evaluate(function, arguments);
  EXPECT_TRUE(mlir::succeeded(values)) << "the reference refuses the call";
  if (mlir::succeeded(values))
    for (auto [i, value] : llvm::enumerate(*values))
      results[function.getResultAttrOfType<mlir::StringAttr>(i, "gdn.name")
                  .str()] = value;
  return results;
}

void Call::check(const Errors &bounds, Pool *state) {
  std::map<std::string, Pool> own;
  std::map<std::string, Pool *> pools;
  for (const Parameter &parameter : program->parameters) {
    if (!parameter.isPool)
      continue;
    const std::string &name = parameter.name;
    if (name == "state_pool" && state) {
      pools[name] = state;
      continue;
    }
    own[name] = {tensorOf(before.at(name)), batch.nullSlot};
    pools[name] = &own[name];
  }
  std::map<std::string, Tensor> results = evaluate(pools);
  for (const auto &[name, want] : results)
    checkOutput(name, want, name == "core" ? bounds.core : bounds.out);
  if (has("state_scales"))
    checkPlanes(pools, bounds.state);
  for (const auto &[name, pool] : pools)
    checkPool(name, pool->data, name == "conv_pool" ? 0 : bounds.state);
  for (const Parameter &parameter : program->parameters)
    if (!parameter.isPool && !parameter.isOutput)
      EXPECT_TRUE(buffers[parameter.name].sameMemory(before.at(parameter.name)))
          << parameter.name << " was written";
}

static void append(std::vector<double> &to, llvm::ArrayRef<double> values) {
  to.insert(to.end(), values.begin(), values.end());
}

void Call::checkOutput(const std::string &name, const Tensor &want,
                       double bound) {
  const Buffer &buffer = buffers[name];
  const Buffer &old = before.at(name);
  Buffer expected = old.clone(); // gaps as they were, rows as they are
  Buffer zeros(buffer.dtype(), buffer.shape());
  zeros.fill(0);
  std::vector<double> gotLive, wantLive;
  for (auto [t, row] : llvm::enumerate(tokenRows())) {
    expected.copyRow(t, buffer);
    if (row >= 0 && isLive(row)) {
      append(gotLive, buffer.row(t));
      append(wantLive, want.row(t));
    } else {
      EXPECT_TRUE(buffer.sameRow(t, zeros))
          << name << ": token " << t << " of no live sequence is not zero";
    }
  }
  EXPECT_TRUE(buffer.sameMemory(expected)) << name << ": a gap was written";
  (name == "core" ? measured.core : measured.out) =
      compare(name, gotLive, wantLive, bound);
}

/// What states in planes stand for, in the slots that are written; the pools of
/// planes are then done with. Other slots keep their bits.
void Call::checkPlanes(std::map<std::string, Pool *> &pools, double bound) {
  const bool hasLow = has("state_low");
  auto decode = [&](llvm::ArrayRef<double> upper, llvm::ArrayRef<double> low,
                    llvm::ArrayRef<double> scales, std::vector<double> &to) {
    const size_t columns = upper.size() / scales.size();
    for (size_t i = 0; i < upper.size(); ++i)
      to.push_back(scales[i / columns] *
                   (upper[i] - 128 + (hasLow ? (low[i] - 128) / 256 : 0)));
  };
  std::vector<double> got, want;
  for (int64_t slot : writtenSlots()) {
    auto row = [&](const char *name) { return buffers[name].row(slot); };
    auto wanted = [&](const char *name) {
      return pools.at(name)->data.row(slot).vec();
    };
    decode(row("state_pool"), hasLow ? row("state_low") : std::vector<double>(),
           row("state_scales"), got);
    decode(wanted("state_pool"),
           hasLow ? wanted("state_low") : std::vector<double>(),
           wanted("state_scales"), want);
  }
  const data::Difference difference = data::compare(got, want);
  EXPECT_EQ(difference.firstNonFinite, -1) << "states are not finite";
  EXPECT_LE(difference.relativeRMSE, bound) << "states in planes";
  noteError(hasLow ? "states in two planes" : "states in one plane",
            difference.relativeRMSE);
  measured.state = difference.relativeRMSE;
  for (const char *name : {"state_pool", "state_scales", "state_low"}) {
    if (!pools.erase(name))
      continue;
    Buffer expected = before.at(name).clone();
    for (int64_t slot : writtenSlots())
      expected.copyRow(slot, buffers[name]);
    EXPECT_TRUE(buffers[name].sameMemory(expected))
        << name << ": bits changed that no sequence writes";
  }
}

std::vector<int64_t> Call::writtenSlots() const {
  std::vector<int64_t> slots;
  for (size_t n = 0; n < batch.lengths.size(); ++n) {
    if (writtenSlot(n) >= 0)
      slots.push_back(writtenSlot(n));
    for (int64_t slot : checkpointSlots(n))
      slots.push_back(slot);
    for (int64_t slot : writtenTokenSlots(n))
      if (slot >= 0)
        slots.push_back(slot);
  }
  return slots;
}

void Call::checkPool(const std::string &name, const Tensor &want,
                     double bound) {
  const Buffer &buffer = buffers[name];
  Buffer expected = before.at(name).clone();
  std::vector<double> gotWritten, wantWritten;
  for (int64_t slot : writtenSlots()) {
    std::vector<double> got = buffer.row(slot);
    expected.copyRow(slot, buffer);
    std::vector<double> target = want.row(slot).vec();
    if (bound == 0) { // rounds once
      Buffer rounded(buffer.dtype(), {1, int64_t(target.size())});
      rounded.assign(target);
      target = rounded.values();
    }
    for (auto [i, value] : llvm::enumerate(target)) {
      if (bound == 0 || std::isnan(value)) {
        EXPECT_TRUE(got[i] == value ||
                    (std::isnan(value) && std::isnan(got[i])))
            << name << ": element " << i << " of slot " << slot << " is "
            << got[i] << ", not " << value;
        continue;
      }
      gotWritten.push_back(got[i]);
      wantWritten.push_back(value);
    }
  }
  EXPECT_TRUE(buffer.sameMemory(expected))
      << name << ": bits changed that no sequence writes";
  if (bound == 0)
    return;
  const double error = compare(name, gotWritten, wantWritten, bound);
  if (name == "state_pool")
    measured.state = error;
}

double Call::compare(const std::string &name, llvm::ArrayRef<double> got,
                     llvm::ArrayRef<double> want, double bound) {
  const data::DType dtype = buffers[name].dtype();
  const std::vector<double> rounded =
      data::Array::fromDoubles(dtype, {int64_t(want.size())}, want).toDoubles();
  const double rounding = data::compare(rounded, want).relativeRMSE;
  const data::Difference difference = data::compare(got, want);
  EXPECT_EQ(difference.firstNonFinite, -1) << name << " is not finite";
  EXPECT_LE(difference.relativeRMSE, bound + rounding) << name;
  // Runs of many calls and operands in 16 bits have bounds of their own.
  noteError(name + " in " + data::name(dtype).str() +
                (bound > oneCall.core ? ", wider bound" : ""),
            difference.relativeRMSE);
  return difference.relativeRMSE;
}

namespace {
/// Prints what was noted when all tests have run.
class ErrorReport : public ::testing::Environment {
public:
  void TearDown() override {
    for (const auto &[kind, error] : worst)
      printf("largest relative RMSE of %s: %.2e\n", kind.c_str(), error);
  }
  std::map<std::string, double> worst;
};
} // namespace

static ErrorReport *const report = static_cast<ErrorReport *>(
    ::testing::AddGlobalTestEnvironment(new ErrorReport));

void gdn::integration::noteError(const std::string &kind, double error) {
  double &worst = report->worst[kind];
  worst = std::max(worst, error);
}
