// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry `plan` of mixed batches, on random batches, against the reference:
// the same numbers, and no byte beside the arrays. Engines do not make all that
// is drawn here; what they do not make must not be read or written either.
#include "Call.h"

#include <gtest/gtest.h>

#include <limits>

using namespace gdn;
using namespace gdn::integration;
using gdn::reference::Tensor;

namespace {
/// The arrays of a batch, and the symbols of the entry.
struct EngineBatch {
  std::map<std::string, std::vector<double>> arrays;
  std::map<std::string, int64_t> sizes;
};

/// Where verify leaves states, and the width of slots.
struct Case {
  const char *name;
  VerifyStates verify;
  bool wideIds;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class Draws {
public:
  explicit Draws(uint64_t seed) : stream(seed, "batches") {}
  /// From `first` to `last`.
  int64_t from(int64_t first, int64_t last) {
    return first + stream.below(index++, last - first + 1);
  }
  bool oneIn(int64_t n) { return from(1, n) == 1; }

private:
  data::RandomStream stream;
  uint64_t index = 0;
};

class PlanBatch : public ::testing::TestWithParam<Case> {
protected:
  static Entry &entry(int workers) {
    Config config;
    config.options.mixedBatch = true;
    config.options.verify = GetParam().verify;
    config.options.slots64 = GetParam().wideIds;
    return Program::get(config).entry("plan", workers);
  }
  /// A batch of `n` sequences with a table of so many columns.
  static EngineBatch draw(int64_t n, int64_t width, Draws &draws);
  static void check(const EngineBatch &batch, Placement placement, int workers);
};
} // namespace

/// One sequence: its tokens in this step, all of its tokens, and its drafts.
static std::array<int64_t, 3> drawSequence(Draws &draws) {
  const int64_t drafts = draws.from(0, 4);
  switch (draws.from(0, 6)) {
  case 0: // goes on by a token
    return {1, draws.from(2, 90), -1};
  case 1:
    return {drafts + 1, drafts + draws.from(2, 90), drafts};
  case 2: // a prompt that begins
    return {drafts + 2, drafts + 2, -1};
  case 3: // and one that goes on
    return {drafts + 2, drafts + draws.from(3, 90), -1};
  case 4: // its first token
    return {1, 1, -1};
  case 5:
    return {0, draws.from(0, 5), draws.from(-1, 1)};
  default: // anything
    return {draws.from(-3, 6), draws.from(-2, 6), draws.from(-2, 2)};
  }
}

/// The tokens of a batch: as many as its sequences have, fewer or more.
static int64_t drawTokens(int64_t end, Draws &draws) {
  switch (draws.from(0, 4)) {
  case 0:
    return std::max<int64_t>(0, end - draws.from(1, 9));
  case 1:
    return draws.from(0, end);
  case 2: // padding
    return end + draws.from(1, 40);
  default:
    return end;
  }
}

EngineBatch PlanBatch::draw(int64_t n, int64_t width, Draws &draws) {
  EngineBatch batch = {{{"block_table", {}}}, {{"N", n}, {"B", width}}};
  auto &[arrays, sizes] = batch;
  const int64_t columns = sizes["S"] = draws.from(1, 5);
  int64_t start = draws.oneIn(4) ? draws.from(0, 9) : 0, end = start;
  // Where padding begins, and whether its starts fall back to 0.
  const int64_t padding = draws.oneIn(3) ? draws.from(0, n) : n;
  const bool fallsBack = draws.oneIn(2);
  const bool isNumber = !draws.oneIn(6);
  arrays["query_start_loc"].push_back(start);
  for (int64_t i = 0; i < n; ++i) {
    auto [tokens, all, drafts] = drawSequence(draws);
    if (i >= padding)
      tokens = 0;
    start = i >= padding && fallsBack ? 0 : start + tokens;
    end = std::max(end, start);
    if (!isNumber && draws.oneIn(5))
      start = draws.oneIn(2) ? std::numeric_limits<int32_t>::max()
                             : std::numeric_limits<int32_t>::min();
    arrays["query_start_loc"].push_back(start);
    arrays["seq_lens"].push_back(all);
    arrays["num_drafts"].push_back(drafts);
    arrays["num_accepted"].push_back(draws.oneIn(9)
                                         ? std::numeric_limits<int32_t>::min()
                                         : draws.from(-1, columns + 2));
    for (int64_t j = 0; j < width; ++j)
      arrays["block_table"].push_back(draws.oneIn(9) ? -1
                                      : GetParam().wideIds
                                          ? draws.from(0, int64_t(1) << 40)
                                          : draws.from(0, 5000));
  }
  sizes["T"] = drawTokens(std::min<int64_t>(end, 999), draws);
  return batch;
}

void PlanBatch::check(const EngineBatch &batch, Placement placement,
                      int workers) {
  Entry &plan = entry(workers);
  std::map<std::string, Buffer> buffers;
  std::vector<gdnrt_arg> args;
  for (const Parameter &parameter : plan.parameters) {
    std::vector<int64_t> shape;
    for (const LinearForm &form : parameter.dims)
      shape.push_back(llvm::cantFail(
          form.evaluate([&](llvm::StringRef symbol) -> std::optional<int64_t> {
            return batch.sizes.at(symbol.str());
          })));
    // Rows of the table lie apart, as a part of a wider one.
    std::vector<int64_t> strides(1, 1);
    if (shape.size() == 2)
      strides = {shape[1] + 3, 1};
    Buffer &buffer = buffers[parameter.name] =
        Buffer(parameter.dtype, shape, strides, placement);
    args.push_back(buffer.arg(0));
    // Of this one only the sizes are used: an access would end the process.
    if (parameter.name == "limits")
      args.back().data = reinterpret_cast<void *>(uintptr_t(64));
    else if (!parameter.isOutput)
      buffer.assign(batch.arrays.at(parameter.name));
  }
  std::map<std::string, Buffer> before;
  for (auto &[name, buffer] : buffers)
    before[name] = buffer.clone();

  gdnrt_error error;
  gdnrt_binding *binding = nullptr;
  ASSERT_EQ(gdnrt_kernel_bind(plan.kernel, args.data(), args.size(), &binding,
                              &error),
            GDNRT_OK)
      << error.message;
  EXPECT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK) << error.message;
  gdnrt_binding_destroy(binding);

  llvm::SmallVector<reference::Argument> inputs;
  for (unsigned i = 0; i < plan.function.getNumArguments(); ++i) {
    const std::string name =
        plan.function.getArgAttrOfType<mlir::StringAttr>(i, "gdn.name").str();
    if (plan.function.getArgumentTypes()[i].isIndex()) {
      inputs.push_back(batch.sizes.at(name));
      continue;
    }
    const Buffer &buffer = buffers[name];
    EXPECT_TRUE(buffer.sameMemory(before[name])) << name << " was written";
    inputs.push_back(Tensor(buffer.shape(), buffer.values()));
  }
  auto results = reference::evaluate(plan.function, inputs);
  ASSERT_TRUE(mlir::succeeded(results));
  for (auto [i, result] : llvm::enumerate(*results)) {
    const std::string name =
        plan.function.getResultAttrOfType<mlir::StringAttr>(i, "gdn.name")
            .str();
    EXPECT_EQ(buffers[name].values(), result.data) << name;
  }
}

TEST_P(PlanBatch, OfRandomArrays) {
  for (int64_t n = 1; n <= 70; ++n)
    for (uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(std::to_string(n) + " sequences, seed " +
                   std::to_string(seed));
      Draws draws(100 * n + seed);
      const int64_t width = draws.from(1, 6);
      check(draw(n, width, draws), Placement::heap, 1);
      if (HasFailure())
        return;
    }
}

// Every thread of a pool stores elements that are its own.
TEST_P(PlanBatch, WorkersDoNotMatter) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    check(draw(66, 2, draws), Placement::heap, 0);
  }
}

// The byte behind, or before, each array cannot be accessed.
TEST_P(PlanBatch, ArraysAreAccessedInside) {
  for (Placement placement : {Placement::guardAfter, Placement::guardBefore})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      Draws draws(seed);
      const int64_t n = draws.from(1, 9), width = draws.from(1, 3);
      check(draw(n, width, draws), placement, 1);
    }
}

TEST_P(PlanBatch, TablesWithoutColumnsHaveNoSlots) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Draws draws(seed);
    check(draw(9, 0, draws), Placement::guardAfter, 1);
  }
}

// A limit may be 0, or larger than 32 bits can hold.
TEST_P(PlanBatch, LimitsAreAnyNumbers) {
  const int64_t many = int64_t(1) << 33;
  for (auto [tokens, columns] :
       {std::pair<int64_t, int64_t>(0, 3), {9, 0}, {0, 0}, {0, many}})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      Draws draws(seed);
      EngineBatch batch = draw(9, 2, draws);
      batch.sizes["T"] = tokens;
      batch.sizes["S"] = columns;
      check(batch, Placement::guardAfter, 1);
    }
}

static const Case cases[] = {
    {"Slots", VerifyStates::slots, false},
    {"SlotsI64", VerifyStates::slots, true},
    {"Tree", VerifyStates::tree, false},
    {"TreeI64", VerifyStates::tree, true},
    {"Lazy", VerifyStates::lazy, false},
    {"Buffer", VerifyStates::buffer, false},
};
INSTANTIATE_TEST_SUITE_P(Cpu, PlanBatch, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
