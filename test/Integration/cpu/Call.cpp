// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs of a call, and the call itself; see Call.h.
#include "Call.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

/// Scales each group of `width` values to unit length.
static void normalise(std::vector<double> &values, int64_t width) {
  for (size_t i = 0; i < values.size(); i += width) {
    double sum = 0;
    for (int64_t j = 0; j < width; ++j)
      sum += values[i + j] * values[i + j];
    for (int64_t j = 0; j < width; ++j)
      values[i + j] /= std::sqrt(sum);
  }
}

/// Row-major strides with the gaps that `memory` says.
static std::vector<int64_t> stridesOf(const Parameter &parameter,
                                      llvm::ArrayRef<int64_t> shape,
                                      const Memory &memory) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) {
    const bool isOuter = d == 0;
    strides[d] =
        strides[d + 1] * shape[d + 1] + (!isOuter           ? memory.headGap
                                         : parameter.isPool ? memory.slotGap
                                                            : memory.rowGap);
  }
  return strides;
}

Call::Call(const Config &config, llvm::StringRef entry, const Batch &batch,
           const Memory &memory, int workers)
    : config(config), batch(batch),
      program(&Program::get(config).entry(entry, workers)) {
  const int64_t rows = batch.lengths.size();
  int64_t tokens = batch.leading + batch.padding;
  for (int64_t length : batch.lengths)
    tokens += length;
  symbols = {{"T", tokens},
             {"N", rows},
             {"P", batch.slots ? batch.slots : rows + 3},
             {"C", 0},
             {"S", batch.steps                ? batch.steps
                   : batch.tokenSlots.empty() ? 0
                                              : batch.tokenSlots[0].size()},
             {"Hk", batch.keyHeads},
             {"Hv", batch.keyHeads * batch.ratio}};
  for (const std::vector<Checkpoint> &row : batch.checkpoints)
    symbols["C"] += row.size();
  for (const Parameter &parameter : program->parameters) {
    std::vector<int64_t> shape;
    for (const LinearForm &form : parameter.dims)
      shape.push_back(llvm::cantFail(
          form.evaluate([&](llvm::StringRef symbol) -> std::optional<int64_t> {
            return symbols.at(symbol.str());
          })));
    std::vector<int64_t> strides = stridesOf(parameter, shape, memory);
    if (llvm::StringRef(parameter.name).ends_with("state_pool") &&
        config.options.stateLayout == StateLayout::kv) {
      std::swap(shape[2], shape[3]);
      strides = stridesOf(parameter, shape, memory);
      std::swap(shape[2], shape[3]);
      std::swap(strides[2], strides[3]);
    }
    if (parameter.name == "conv_pool" && memory.convChannelsLast)
      strides = {strides[0], 1, shape[1]};
    buffers[parameter.name] =
        Buffer(parameter.dtype, shape, strides,
               parameter.isPool || memory.placement != Placement::sparse
                   ? memory.placement
                   : Placement::heap);
  }
  fillInputs();
}

Buffer &Call::operator[](llvm::StringRef name) {
  auto it = buffers.find(name.str());
  if (it == buffers.end())
    llvm::report_fatal_error("no parameter " + name);
  return it->second;
}

const Parameter *Call::find(llvm::StringRef name) const {
  for (const Parameter &parameter : program->parameters)
    if (parameter.name == name)
      return &parameter;
  return nullptr;
}

static std::vector<double> asDoubles(const std::vector<int64_t> &values) {
  return {values.begin(), values.end()};
}

void Call::fillInputs() {
  const int64_t rows = symbols["N"], slots = symbols["P"];
  const uint64_t seed = batch.inputs.seed;
  // Slots first: they say which tokens and which states are looked at.
  std::vector<int64_t> ids = batch.ids;
  if (ids.empty())
    ids = data::distinctSlots(rows, slots, batch.nullSlot, seed);
  if (has("slots"))
    buffers["slots"].assign(asDoubles(ids));
  if (has("token_slots")) {
    std::vector<double> table;
    for (const std::vector<int64_t> &row : batch.tokenSlots)
      table.insert(table.end(), row.begin(), row.end());
    buffers["token_slots"].assign(table);
  }
  if (has("parents")) {
    std::vector<double> parents;
    for (const std::vector<int64_t> &row : batch.parents)
      parents.insert(parents.end(), row.begin(), row.end());
    buffers["parents"].assign(parents);
  }
  if (isDeferred()) {
    Buffer &counts = buffers["pending_counts"];
    counts.fill(-7);
    for (int64_t n = 0; n < rows; ++n) {
      std::vector<double> values;
      for (int64_t head = 0; head < counts.dim(1); ++head)
        values.push_back(double(pendingOf(n, head)));
      if (isLive(n))
        counts.assignRows(readSlot(n), values);
    }
  }
  if (has("num_accepted"))
    buffers["num_accepted"].assign(asDoubles(batch.accepted));
  if (has("write_slots"))
    buffers["write_slots"].assign(
        asDoubles(batch.writeIds.empty() ? ids : batch.writeIds));
  if (has("has_initial")) {
    std::vector<double> flags(rows, 1);
    for (size_t n = 0; n < batch.initial.size(); ++n)
      flags[n] = batch.initial[n];
    buffers["has_initial"].assign(flags);
  }
  if (has("cu_checkpoints")) {
    std::vector<double> bounds(rows + 1), after, to;
    for (int64_t n = 0; n < rows; ++n) {
      if (n < int64_t(batch.checkpoints.size()))
        for (const Checkpoint &checkpoint : batch.checkpoints[n]) {
          after.push_back(double(checkpoint.tokens));
          to.push_back(double(checkpoint.slot));
        }
      bounds[n + 1] = double(after.size());
    }
    buffers["cu_checkpoints"].assign(bounds);
    buffers["checkpoint_tokens"].assign(after);
    buffers["checkpoint_slots"].assign(to);
  }
  if (has("cu_seqlens")) {
    std::vector<int64_t> bounds = data::runningSum(batch.lengths);
    for (int64_t &bound : bounds)
      bound += batch.leading;
    buffers["cu_seqlens"].assign(asDoubles(bounds));
  }
  for (const Parameter &parameter : program->parameters) {
    if (parameter.dtype == data::DType::u8)
      fillBytes(parameter);
    if (!data::isFloat(parameter.dtype) || parameter.isOutput)
      continue;
    if (parameter.isPool)
      fillSlots(parameter);
    else if (parameter.isPerToken())
      fillTokens(parameter);
    else
      buffers[parameter.name].assign(randomValues(parameter));
  }
}

std::vector<double> Call::randomValues(const Parameter &parameter) {
  const std::string &name = parameter.name;
  const Buffer &buffer = buffers[name];
  const bool plain = config.form != Form::layer;
  const int64_t count = *data::elementCount(buffer.shape());
  if (name == "log_decay")
    return data::logDecays(batch.inputs.gates, count, batch.inputs.seed);
  if (name == "beta") {
    const data::RandomStream stream(batch.inputs.seed, name);
    std::vector<double> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = (config.doubleBeta ? 2 : 1) * stream.uniform(i);
    return values;
  }
  std::vector<double> values =
      data::randomParameter(name, data::DType::f64, buffer.shape(),
                            batch.inputs)
          .toDoubles();
  if (plain && (name == "q" || name == "k"))
    normalise(values, config.dk);
  if (name == "erase") { // the keys with a gate from 0 to 1 for each channel
    const data::RandomStream gates(batch.inputs.seed, name);
    values = randomValues(*find("k"));
    for (int64_t i = 0; i < count; ++i)
      values[i] *= gates.uniform(i);
  }
  return values;
}

void Call::fillTokens(const Parameter &parameter) {
  Buffer &buffer = buffers[parameter.name];
  const std::vector<double> values = randomValues(parameter);
  const std::vector<int64_t> rows = tokenRows();
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (size_t t = 0; t < rows.size(); ++t)
    if (rows[t] >= 0 && isLive(rows[t]))
      buffer.assignRows(t, llvm::ArrayRef(values).slice(t * width, width));
}

void Call::fillSlots(const Parameter &parameter) {
  Buffer &buffer = buffers[parameter.name];
  const std::vector<double> flags = has("has_initial")
                                        ? buffers["has_initial"].values()
                                        : std::vector<double>(symbols["N"], 1);
  const data::RandomStream stream(batch.inputs.seed, parameter.name);
  for (int64_t n = 0; n < symbols["N"]; ++n) {
    if (!isLive(n) || flags[n] == 0)
      continue;
    std::vector<double> values(buffer.row(readSlot(n)).size());
    const double scale = parameter.name == "state_pool"     ? 0.1
                         : parameter.name == "state_scales" ? 0.002
                                                            : 1;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = scale * stream.normal(n * values.size() + i);
    if (parameter.name == "state_scales")
      for (double &value : values)
        value = std::abs(value);
    // Of pending tokens only those that are there are looked at.
    if (isDeferred() && llvm::StringRef(parameter.name).starts_with("pend")) {
      const int64_t heads = buffer.dim(1), room = buffer.dim(2),
                    width = values.size() / (heads * room);
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t head = int64_t(i) / width / room;
        if (parameter.name == "pending_decays")
          values[i] = -std::abs(values[i]);
        if (parameter.name == "pending_keys")
          values[i] /= std::sqrt(double(width));
        if (int64_t(i) / width % room >=
            pendingOf(n, head * symbols["Hk"] / heads) + acceptedOf(n))
          values[i] = std::nan("");
      }
    } else if (isPending() && has("num_accepted") &&
               !llvm::StringRef(parameter.name).starts_with("state_")) {
      const bool isConv = parameter.name == "conv_pool";
      const int64_t steps = symbols["S"], all = buffer.dim(2);
      const int64_t used = all - steps + batch.accepted[n];
      const int64_t width =
          isConv || buffer.shape().size() == 3 ? 1 : buffer.dim(3);
      for (size_t i = 0; i < values.size(); ++i) {
        if (parameter.name == "pending_decays")
          values[i] = -std::abs(values[i]);
        if (parameter.name == "pending_keys")
          values[i] /= std::sqrt(double(width));
        if (int64_t(i) / width % all >= used)
          values[i] = std::nan("");
      }
    }
    buffer.assignRows(readSlot(n), values);
  }
}

void Call::fillBytes(const Parameter &parameter) {
  Buffer &buffer = buffers[parameter.name];
  const data::RandomStream stream(batch.inputs.seed, parameter.name);
  std::vector<double> values(*data::elementCount(buffer.shape()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::floor(1 + 255 * stream.uniform(i));
  buffer.assign(values);
}

static bool isSkipped(double id, int64_t slots, int64_t nullSlot) {
  return id < 0 || id >= double(slots) || id == double(nullSlot);
}

int64_t Call::readSlot(int64_t n) const {
  if (has("slots"))
    return int64_t(buffers.at("slots").rows(n, 1)[0]);
  const int64_t accepted = batch.accepted[n];
  return accepted < 1 || accepted > symbols.at("S")
             ? -1
             : batch.tokenSlots[n][accepted - 1];
}

int64_t Call::pendingOf(int64_t n, int64_t keyHead) const {
  const int64_t room = config.options.deferWrites - acceptedOf(n);
  return (batch.pending[n] + keyHead) % (room + 1);
}

int64_t Call::acceptedOf(int64_t n) const {
  const bool isCount = has("num_accepted") && batch.accepted[n] >= 0 &&
                       batch.accepted[n] <= symbols.at("S");
  return isCount ? batch.accepted[n] : 0;
}

bool Call::hasCount(int64_t n) const {
  return !has("num_accepted") || !isPending() ||
         (batch.accepted[n] >= 0 && batch.accepted[n] <= symbols.at("S") &&
          (!has("cu_seqlens") ||
           batch.lengths[n] <= config.options.verifyTokens.value_or(8)));
}

bool Call::isLive(int64_t n) const {
  return hasCount(n) &&
         !isSkipped(double(readSlot(n)), symbols.at("P"), batch.nullSlot);
}

std::vector<int64_t> Call::writtenTokenSlots(int64_t n) const {
  std::vector<int64_t> slots;
  if (!has("token_slots") || !isLive(n))
    return slots;
  for (int64_t t = 0; t < std::min(batch.lengths[n], symbols.at("S")); ++t) {
    const int64_t id = batch.tokenSlots[n][t];
    const bool skips = isSkipped(double(id), symbols.at("P"), batch.nullSlot);
    slots.push_back(skips ? -1 : id);
  }
  return slots;
}

int64_t Call::writtenSlot(int64_t n) const {
  if (has("token_slots"))
    return -1;
  const char *name = has("write_slots") ? "write_slots" : "slots";
  const double id = buffers.at(name).rows(n, 1)[0];
  const bool writes = isLive(n) && batch.lengths[n] > 0 &&
                      !isSkipped(id, symbols.at("P"), batch.nullSlot);
  return writes ? int64_t(id) : -1;
}

std::vector<int64_t> Call::checkpointSlots(int64_t n) const {
  std::vector<int64_t> slots;
  if (!has("cu_checkpoints") || !isLive(n) ||
      n >= int64_t(batch.checkpoints.size()))
    return slots;
  int64_t last = 0;
  for (const Checkpoint &checkpoint : batch.checkpoints[n]) {
    if (checkpoint.tokens % 64 != 0 || checkpoint.tokens <= last ||
        checkpoint.tokens > batch.lengths[n])
      continue;
    last = checkpoint.tokens;
    if (!isSkipped(double(checkpoint.slot), symbols.at("P"), batch.nullSlot))
      slots.push_back(checkpoint.slot);
  }
  return slots;
}

std::vector<int64_t> Call::tokenRows() const {
  std::vector<int64_t> rows(batch.leading, -1);
  for (size_t n = 0; n < batch.lengths.size(); ++n)
    rows.insert(rows.end(), batch.lengths[n], n);
  rows.insert(rows.end(), batch.padding, -1);
  return rows;
}

void Call::takeVariant(gdnrt_binding *binding, const std::string &variant) {
  const gdnrt_entry *entry = gdnrt_kernel_entry(program->kernel);
  const size_t code = gdnrt_kernel_code(program->kernel);
  gdnrt_error error;
  for (size_t i = 0; i < gdnrt_entry_variant_count(entry, code); ++i) {
    gdnrt_variant_info info = gdnrt_variant_info_default();
    ASSERT_EQ(gdnrt_entry_variant(entry, code, i, &info, &error), GDNRT_OK);
    if (variant != info.name)
      continue;
    uint64_t bytes;
    ASSERT_EQ(gdnrt_binding_force_variant(binding, i, &error), GDNRT_OK);
    ASSERT_EQ(gdnrt_binding_workspace_bytes(binding, &bytes, &error), GDNRT_OK);
    workspace.assign(bytes + 64, 0xff);
    const size_t past = reinterpret_cast<uintptr_t>(workspace.data()) % 64;
    ASSERT_EQ(gdnrt_binding_set_workspace(binding,
                                          workspace.data() + (64 - past) % 64,
                                          bytes, nullptr, &error),
              GDNRT_OK)
        << error.message;
    return;
  }
  FAIL() << "no variant " << variant;
}

void Call::run(const std::string &variant) {
  std::vector<gdnrt_arg> args;
  before.clear();
  for (const Parameter &parameter : program->parameters) {
    const Buffer &buffer = buffers[parameter.name];
    args.push_back(buffer.arg(parameter.isPool ? batch.nullSlot : 0));
    if (!buffer.sparse())
      before[parameter.name] = buffer.clone();
  }
  gdnrt_error error;
  gdnrt_binding *binding = nullptr;
  ASSERT_EQ(gdnrt_kernel_bind(program->kernel, args.data(), args.size(),
                              &binding, &error),
            GDNRT_OK)
      << error.message;
  if (!variant.empty())
    takeVariant(binding, variant);
  EXPECT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK) << error.message;
  gdnrt_binding_destroy(binding);
}

Batch gdn::integration::allKindsOfSequences() {
  Batch batch;
  batch.lengths = {200, 0, 64, 5, 130, 63, 17, 1};
  batch.ids = {1, 2, 3, 0, 5, 32, 6, 7};
  batch.writeIds = {1, 2, 3, 4, 5, 8, 9, -1};
  batch.initial = {true, true, false, true, true, true, false, true};
  batch.nullSlot = 0;
  batch.slots = 32;
  batch.keyHeads = 2;
  batch.leading = 3;
  batch.padding = 2;
  batch.checkpoints = {{{64, 20}, {128, 21}, {192, 22}},
                       {},
                       {{64, 23}},
                       {},
                       {{128, 24}, {130, 31}}};
  return batch;
}

Batch gdn::integration::oneTokenEach(Batch batch) {
  batch.lengths.assign(batch.lengths.size(), 1);
  batch.leading = batch.padding = 0;
  batch.checkpoints.clear();
  batch.initial.clear();
  return batch;
}

void gdn::integration::setDecaysOfAllStrengths(Call &call) {
  constexpr double decays[] = {0, -1e-4, -0.5, -3, -30, -200, -1e30};
  std::vector<double> values = call["log_decay"].values();
  for (auto [i, value] : llvm::enumerate(values))
    if (!std::isnan(value))
      value = decays[(i * 5 + i / 7) % std::size(decays)];
  call["log_decay"].assign(values);
}
