// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes from forms, numbers from a hash of name and index, so that an element
// has the same value in every layout and batch.

#include "problem.h"

#include "suite.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

using namespace gdnrt::cts;

/// The value of "256*Hk + 256*Hv"; stops the suite at a symbol without value.
static int64_t evaluate(const char *form,
                        const std::map<std::string, int64_t> &symbols) {
  int64_t sum = 0, sign = 1;
  while (*form) {
    if (*form == ' ' || *form == '+') {
      ++form;
      continue;
    }
    if (*form == '-') {
      sign = -1;
      ++form;
      continue;
    }
    char *rest;
    int64_t term = std::strtoll(form, &rest, 10);
    if (rest == form)
      term = 1;
    form = *rest == '*' ? rest + 1 : rest;
    if (size_t length = std::strcspn(form, " ")) {
      auto symbol = symbols.find(std::string(form, length));
      if (symbol == symbols.end()) {
        std::fprintf(stderr, "no value for a symbol in %s\n", form);
        std::exit(2);
      }
      term *= symbol->second;
      form += length;
    }
    sum += sign * term;
    sign = 1;
  }
  return sum;
}

static uint64_t hashOf(const std::string &name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// Uniform in [-1, 1).
static double random(uint64_t seed, int64_t index) {
  uint64_t state = seed + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(index);
  state ^= state >> 30;
  state *= 0xbf58476d1ce4e5b9u;
  state ^= state >> 27;
  state *= 0x94d049bb133111ebu;
  state ^= state >> 31;
  return static_cast<double>(state >> 11) / 4503599627370496.0 - 1;
}

Problem::Problem(const gdnrt_entry *entry, const Rows &rows)
    : entry_(entry), rows_(rows) {
  size_t index;
  // Without cu_seqlens each row is one token, whatever the case asks for.
  bool ragged =
      gdnrt_entry_find_param(entry, "cu_seqlens", &index, nullptr) == GDNRT_OK;
  if (!ragged) {
    rows_.lengths.assign(rows_.lengths.size(), 1);
    rows_.paddingTokens = 0;
  }
  if (rows_.slots.empty()) {
    rows_.slots.resize(rows_.lengths.size());
    std::iota(rows_.slots.begin(), rows_.slots.end(), 1);
  }
  std::map<std::string, int64_t> symbols = {
      {"N", numRows()}, {"T", numTokens()},
      {"P", kNumSlots}, {"C", 0},
      {"S", 0},         {"B", kNumSlots},
      {"Hk", 1},        {"Hv", rows_.valueHeads}};
  if (!rows_.tokenSlots.empty())
    symbols["S"] = static_cast<int64_t>(rows_.tokenSlots[0].size());
  if (rows_.steps)
    symbols["S"] = rows_.steps;
  for (const auto &row : rows_.checkpoints)
    symbols["C"] += static_cast<int64_t>(row.size());
  for (size_t p = 0; p < gdnrt_entry_param_count(entry); ++p) {
    gdnrt_param_info info = gdnrt_param_info_default();
    gdnrt_entry_param(entry, p, &info, nullptr);
    Sizes sizes;
    for (int32_t d = 0; d < info.rank; ++d)
      sizes.push_back(evaluate(info.dims[d], symbols));
    HostArray array(info.dtype, sizes);
    fill(info, array);
    if (info.kind == GDNRT_POOL)
      pools_.push_back(info.name);
    else if (info.access == GDNRT_WRITE)
      outputs_.push_back(info.name);
    firstDims_.emplace(info.name, info.rank ? info.dims[0] : "");
    arrays_.emplace(info.name, std::move(array));
  }
  if (suiteOptions.byPosition)
    layOutByPosition();
}

void Problem::layOutByPosition() {
  for (const std::string &pool : pools_) {
    HostArray &array = arrays_.at(pool);
    const Sizes &sizes = array.sizes();
    if (pool.find("conv_pool") != std::string::npos && sizes.size() == 3)
      array.relayout({sizes[1] * sizes[2], 1, sizes[1]});
  }
}

int64_t Problem::firstToken(int64_t row) const {
  return std::accumulate(rows_.lengths.begin(), rows_.lengths.begin() + row,
                         int64_t{0});
}

int64_t Problem::numTokens() const {
  return firstToken(numRows()) + rows_.paddingTokens;
}

std::vector<int64_t> Problem::checkpointValues(const std::string &name) const {
  std::vector<int64_t> bounds = {0}, tokens, slots;
  for (size_t row = 0; row < rows_.lengths.size(); ++row) {
    if (row < rows_.checkpoints.size())
      for (const Checkpoint &checkpoint : rows_.checkpoints[row]) {
        tokens.push_back(checkpoint.tokens);
        slots.push_back(checkpoint.slot);
      }
    bounds.push_back(static_cast<int64_t>(tokens.size()));
  }
  return name == "cu_checkpoints"      ? bounds
         : name == "checkpoint_tokens" ? tokens
         : name == "checkpoint_slots"  ? slots
                                       : std::vector<int64_t>();
}

std::vector<int64_t> Problem::tokenSlotValues(const std::string &name) const {
  if (name == "num_accepted")
    return rows_.accepted;
  std::vector<int64_t> table;
  if (name == "token_slots" || name == "parents")
    for (const std::vector<int64_t> &row :
         name == "parents" ? rows_.parents : rows_.tokenSlots)
      table.insert(table.end(), row.begin(), row.end());
  return table;
}

void Problem::fill(const gdnrt_param_info &info, HostArray &array) {
  std::string name = info.name;
  if (info.access == GDNRT_WRITE)
    return; // stays NaN, so that what is not written is seen
  uint64_t seed = hashOf(name);
  size_t index;
  const bool isReady =
      gdnrt_entry_find_param(entry_, "log_decay", &index, nullptr) == GDNRT_OK;
  std::vector<int64_t> integers = checkpointValues(name);
  if (integers.empty())
    integers = tokenSlotValues(name);
  for (size_t i = 0; i < integers.size(); ++i)
    array.setInteger(static_cast<int64_t>(i), integers[i]);
  if (!integers.empty())
    return;
  const int64_t count = array.count();
  auto setIntegers = [&](auto valueOf) {
    for (int64_t i = 0; i < count; ++i)
      array.setInteger(i, valueOf(i));
  };
  // Values are uniform in middle + [-radius, radius).
  auto setNumbers = [&](double middle, double radius) {
    for (int64_t i = 0; i < count; ++i)
      array.setNumber(i, middle + radius * random(seed, i));
  };
  if (name == "cu_seqlens")
    setIntegers([&](int64_t i) { return firstToken(i); });
  else if (name == "write_slots" && !rows_.writeSlots.empty())
    setIntegers(
        [&](int64_t i) { return rows_.writeSlots[static_cast<size_t>(i)]; });
  else if (name == "slots" || name == "write_slots")
    setIntegers([&](int64_t i) { return rows_.slots[static_cast<size_t>(i)]; });
  else if (name == "is_prefill")
    setIntegers(
        [&](int64_t i) { return rows_.isPrefill.at(static_cast<size_t>(i)); });
  else if (name == "has_initial")
    setIntegers([](int64_t) { return 1; });
  else if (name == "pending_decays" || name == "log_decay")
    setNumbers(-1, 1);
  else if (name == "pending_counts") // fewer than any slot has room for
    setIntegers([](int64_t i) { return i % 4; });
  else if (name == "pending_scales") // powers of two
    for (int64_t i = 0; i < count; ++i)
      array.setNumber(i, std::ldexp(1.0, static_cast<int>(i % 3) - 2));
  else if (name == "state_scales")
    setNumbers(0.004, 0.002);
  else if (info.dtype == GDNRT_U8) // planes: a byte is 128 above its number
    setIntegers([&](int64_t i) {
      return static_cast<int64_t>(128 + 100 * random(seed, i));
    });
  else if (name == "beta")
    setNumbers(0.5, 0.5);
  else if (isReady && (name == "q" || name == "k"))
    // About as long as the unit vectors that such entries are given.
    setNumbers(0, 1.7 / std::sqrt(array.sizes().back()));
  else if (name == "A_log")
    setNumbers(1, 1);
  else if (name == "norm_weight")
    setNumbers(1, 0.25);
  else if (name == "norm_constants")
    setNumbers(1, 0);
  else if (name == "conv_weight" || info.kind == GDNRT_POOL)
    setNumbers(0, 0.5);
  else
    setNumbers(0, 1.5);
}

std::vector<gdnrt_named_arg> Problem::args() const {
  std::vector<gdnrt_named_arg> list;
  for (const auto &[name, array] : arrays_)
    list.push_back({name.c_str(), array.arg()});
  return list;
}

bool Problem::isOfTokens(const std::string &name) const {
  return firstDims_.at(name) == (isRagged() ? "T" : "N") && name != "slots" &&
         name != "write_slots" && name != "has_initial" &&
         name != "is_prefill" && name != "num_accepted" &&
         name != "token_slots" && name != "parents";
}

void Problem::takeTokens(const Problem &other, int64_t first) {
  for (auto &[name, array] : arrays_) {
    if (!isOfTokens(name))
      continue;
    int64_t width = array.count() / std::max<int64_t>(array.sizes()[0], 1);
    array.copyFrom(other[name], first * width);
  }
}

void Problem::takeRow(int64_t row, const Problem &other, int64_t from) {
  for (auto &[name, array] : arrays_) {
    if (!isOfTokens(name))
      continue;
    const int64_t width = array.count() / std::max<int64_t>(numTokens(), 1);
    const int64_t to = firstToken(row) * width;
    const int64_t first = other.firstToken(from) * width;
    for (int64_t i = 0; i < rows_.lengths[static_cast<size_t>(row)] * width;
         ++i)
      array.copyElement(to + i, other[name], first + i);
  }
}

void Problem::takePools(const Problem &other) {
  for (const std::string &pool : pools_) {
    if (!other.has(pool))
      continue;
    HostArray &array = arrays_.at(pool);
    const HostArray &from = other[pool];
    // Only windows may differ; counts of pending tokens have two dimensions.
    if (pool != "conv_pool" || array.sizes() == from.sizes()) {
      array.copyFrom(from, 0);
      continue;
    }
    const int64_t to = array.sizes()[2], columns = from.sizes()[2];
    for (int64_t row = 0; row < array.count() / to; ++row)
      for (int64_t column = 0; column < std::min(to, columns); ++column)
        array.copyElement(row * to + column, from, row * columns + column);
  }
}

Bytes Problem::windowOf(int64_t slot, int64_t window) const {
  const HostArray &array = arrays_.at("conv_pool");
  const int64_t columns = array.sizes()[2];
  const Bytes all = slotOf("conv_pool", slot);
  const auto width =
      static_cast<int64_t>(all.size()) / (array.sizes()[1] * columns);
  Bytes result;
  for (int64_t i = 0; i < static_cast<int64_t>(all.size()); ++i)
    if (i / width % columns < window)
      result.push_back(all[static_cast<size_t>(i)]);
  return result;
}

Problem Problem::alone(int64_t row) const {
  Rows one;
  one.lengths = {rows_.lengths[static_cast<size_t>(row)]};
  one.slots = {rows_.slots[static_cast<size_t>(row)]};
  Problem result(entry_, one);
  // Values depend on the index in the batch: take them from this problem.
  for (auto &[name, array] : result.arrays_) {
    const std::string &dim = firstDims_.at(name);
    bool perToken = isRagged() ? dim == "T" : dim == "N";
    if (!perToken || name == "slots" || name == "write_slots")
      continue;
    int64_t width = array.count() / std::max<int64_t>(array.sizes()[0], 1);
    array.copyFrom(arrays_.at(name), firstToken(row) * width);
  }
  return result;
}

Bytes Problem::outputOfRow(const std::string &output, int64_t row) const {
  const HostArray &array = arrays_.at(output);
  Bytes all = array.elements();
  size_t width =
      numTokens() ? all.size() / static_cast<size_t>(numTokens()) : 0;
  auto begin = all.begin() +
               static_cast<long>(static_cast<size_t>(firstToken(row)) * width);
  auto end =
      all.begin() +
      static_cast<long>(static_cast<size_t>(firstToken(row + 1)) * width);
  return Bytes(begin, end);
}

Bytes Problem::slotOf(const std::string &pool, int64_t slot) const {
  Bytes all = arrays_.at(pool).elements();
  long width = static_cast<long>(all.size() / kNumSlots);
  return Bytes(all.begin() + slot * width, all.begin() + (slot + 1) * width);
}

void Problem::poisonSlot(const std::string &pool, int64_t slot) {
  HostArray &array = arrays_.at(pool);
  int64_t width = array.count() / kNumSlots;
  for (int64_t i = 0; i < width; ++i)
    array.setNan(slot * width + i);
}

void Problem::poisonColumns(const std::string &pool, int64_t slot,
                            int64_t steps, int64_t from) {
  HostArray &array = arrays_.at(pool);
  const Sizes &sizes = array.sizes();
  const int64_t width = sizes.size() == 4 ? sizes[3] : 1;
  const int64_t size = array.count() / kNumSlots;
  for (int64_t i = 0; i < size; ++i)
    if (i / width % sizes[2] >= sizes[2] - steps + from)
      array.setNan(slot * size + i);
}

bool Problem::isFiniteRow(const std::string &output, int64_t row) const {
  const HostArray &array = arrays_.at(output);
  const int64_t width = array.count() / std::max<int64_t>(array.sizes()[0], 1);
  for (int64_t i = firstToken(row) * width; i < firstToken(row + 1) * width;
       ++i)
    if (!array.isFinite(i))
      return false;
  return true;
}
