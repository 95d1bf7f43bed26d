// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments for an entry; see Arguments.h.
#include "gdn/Run/Arguments.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace gdn;
using namespace gdn::run;

llvm::Expected<std::vector<int64_t>> run::shapeOf(const Parameter &parameter,
                                                  const Symbols &symbols) {
  std::vector<int64_t> shape;
  for (const LinearForm &form : parameter.dims) {
    llvm::Expected<int64_t> size =
        form.evaluate([&](llvm::StringRef symbol) -> std::optional<int64_t> {
          auto found = symbols.find(symbol.str());
          if (found == symbols.end())
            return std::nullopt;
          return found->second;
        });
    if (!size)
      return llvm::createStringError(
          llvm::formatv("{0}: {1}: {2}", parameter.name, parameter.typeString(),
                        llvm::toString(size.takeError())));
    if (*size < 0)
      return llvm::createStringError(
          llvm::formatv("{0}: expects sizes of at least 0, but {1} is {2}",
                        parameter.name, form.str(), *size));
    shape.push_back(*size);
  }
  return shape;
}

/// The slot of each sequence: the first of `ids`, and for the last `skipped`
/// sequences an id that kernels skip, of each kind in turn.
static std::vector<double> makeSlots(llvm::ArrayRef<int64_t> ids,
                                     int64_t sequences, int64_t slots,
                                     int64_t skipped, int64_t nullSlot) {
  std::vector<double> values(ids.begin(), ids.begin() + sequences);
  const int64_t kinds[] = {-1, nullSlot, slots};
  for (int64_t i = 0; i < std::min(skipped, sequences); ++i)
    values[sequences - 1 - i] = kinds[i % 3];
  return values;
}

namespace {
/// The checkpoints of all sequences.
struct Checkpoints {
  std::vector<double> bounds = {0}, tokens;
};
} // namespace

/// One after every `distance` tokens of a sequence; none if that is 0.
static Checkpoints makeCheckpoints(llvm::ArrayRef<int64_t> lengths,
                                   int64_t distance) {
  Checkpoints checkpoints;
  for (int64_t length : lengths) {
    for (int64_t n = distance; distance > 0 && n <= length; n += distance)
      checkpoints.tokens.push_back(double(n));
    checkpoints.bounds.push_back(double(checkpoints.tokens.size()));
  }
  return checkpoints;
}

namespace {
/// The slots of the states after each token, and which of them sequences start
/// from.
struct TokenSlots {
  std::vector<double> table, accepted, read;
};
} // namespace

/// Tables of `steps` slots for each of `sequences` sequences, the last
/// `skipped` of which read an id that kernels skip, or have no count of
/// accepted tokens.
static TokenSlots makeTokenSlots(llvm::ArrayRef<int64_t> ids, int64_t sequences,
                                 int64_t steps, int64_t slots, int64_t skipped,
                                 int64_t nullSlot) {
  TokenSlots result;
  result.table.assign(ids.begin(), ids.begin() + sequences * steps);
  for (int64_t n = 0; n < sequences; ++n)
    result.accepted.push_back(double(1 + n % steps));
  const int64_t kinds[] = {-1, nullSlot, slots};
  for (int64_t i = 0; i < std::min(skipped, sequences); ++i) {
    const int64_t n = sequences - 1 - i;
    if (i % 4 == 3)
      result.accepted[n] = i % 8 == 3 ? 0 : double(steps + 1);
    else
      std::fill_n(result.table.begin() + n * steps, steps,
                  double(kinds[i % 4]));
  }
  for (int64_t n = 0; n < sequences; ++n)
    if (auto at = int64_t(result.accepted[n]); at >= 1 && at <= steps)
      result.read.push_back(result.table[n * steps + at - 1]);
  return result;
}

/// Counts of accepted tokens from 0 to `steps`, but none for up to two
/// sequences before the last `skipped` ones.
static std::vector<double> makeCounts(int64_t sequences, int64_t steps,
                                      int64_t skipped) {
  std::vector<double> counts;
  for (int64_t n = 0; n < sequences; ++n)
    counts.push_back(double(n % (steps + 1)));
  for (int64_t i = 0; i < std::min<int64_t>(skipped, 2); ++i)
    if (int64_t n = sequences - 1 - skipped - i; n >= 0)
      counts[n] = i == 0 ? -1 : double(steps + 1);
  return counts;
}

/// Fills what no sequence looks at of the pending tokens in `pool` with NaN:
/// behind the first `window` columns, all but the `counts` that each of `slots`
/// has.
static void poisonPending(data::Array &pool, int64_t window,
                          const std::vector<double> &slots,
                          const std::vector<double> &counts) {
  std::vector<double> values = pool.toDoubles();
  const int64_t columns = pool.shape[2], size = values.size() / pool.shape[0];
  const int64_t width = pool.shape.size() == 4 ? pool.shape[3] : 1;
  for (auto [slot, count] : llvm::zip(slots, counts))
    for (int64_t i = 0; i < size; ++i)
      if (slot >= 0 && slot < double(pool.shape[0]) &&
          i / width % columns >= window + std::max<int64_t>(int64_t(count), 0))
        values[int64_t(slot) * size + i] =
            std::numeric_limits<double>::quiet_NaN();
  pool = data::Array::fromDoubles(pool.dtype, pool.shape, values);
}

/// How many tokens are pending in each slot and key head, from 0 to `room`, in
/// all phases; no number of tokens in slots that `used` does not name.
static std::vector<double> makePendingCounts(int64_t slots, int64_t heads,
                                             int64_t room,
                                             const std::vector<double> &used) {
  std::vector<double> counts;
  for (int64_t slot = 0; slot < slots; ++slot)
    for (int64_t head = 0; head < heads; ++head)
      counts.push_back(llvm::is_contained(used, double(slot))
                           ? double((5 * slot + 3 * head) % (room + 1))
                           : -1);
  return counts;
}

/// Fills rows of `pool`, a slot's heads with their tokens, with NaN, where no
/// token is pending. `counts` has one for each slot and key head.
static void poisonBehind(data::Array &pool, const std::vector<double> &counts) {
  std::vector<double> values = pool.toDoubles();
  const int64_t heads = pool.shape[1], room = pool.shape[2],
                rows = pool.shape[0] * heads * room,
                width = rows ? int64_t(values.size()) / rows : 0,
                keyHeads = int64_t(counts.size()) / pool.shape[0];
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t slot = row / room / heads,
                  keyHead = row / room % heads / (heads / keyHeads);
    if (double(row % room) >= counts[slot * keyHeads + keyHead])
      std::fill_n(values.begin() + row * width, width,
                  std::numeric_limits<double>::quiet_NaN());
  }
  pool = data::Array::fromDoubles(pool.dtype, pool.shape, values);
}

/// Fills the slots of a pool that `used` does not name with NaN.
static void poisonUnused(data::Array &pool, const std::vector<double> &used) {
  int64_t slots = pool.shape[0];
  if (slots == 0)
    return;
  std::vector<double> values = pool.toDoubles();
  int64_t size = values.size() / slots;
  for (int64_t slot = 0; slot < slots; ++slot)
    if (!llvm::is_contained(used, double(slot)))
      std::fill_n(values.begin() + slot * size, size,
                  std::numeric_limits<double>::quiet_NaN());
  pool = data::Array::fromDoubles(pool.dtype, pool.shape, values);
}

llvm::Expected<Arrays> run::generateArguments(const Kernel &kernel,
                                              const GenerateOptions &options,
                                              int64_t nullSlot) {
  std::vector<int64_t> lengths = options.lengths;
  bool isRagged = kernel.find("cu_seqlens") != nullptr;
  if (!isRagged)
    lengths.assign(lengths.size(), 1);
  int64_t sequences = lengths.size();
  Checkpoints checkpoints = makeCheckpoints(
      lengths, kernel.find("cu_checkpoints") ? options.checkpoints : 0);
  int64_t numCheckpoints = checkpoints.tokens.size();
  // Slots of a sequence: one, or as many as it may have tokens.
  int64_t steps = 1;
  const bool isLazy = kernel.find("pending_keys") != nullptr;
  const bool isBuffer = kernel.find("token_state_pool") != nullptr;
  if (kernel.find("token_slots") || isLazy)
    for (int64_t length : options.lengths)
      steps = std::max(steps, isLazy ? std::min<int64_t>(length, 8) : length);
  // A tree starts from a slot that is none of them, and so does a sequence
  // whose states go to a buffer: that has slots of its own.
  const bool isTree = kernel.find("parents") != nullptr;
  int64_t sequenceSlots =
      isLazy || isBuffer ? sequences : sequences * (steps + isTree);
  int64_t numUsed = sequenceSlots + numCheckpoints;
  int64_t slots = options.slots ? options.slots : numUsed + 3;
  if (slots < numUsed + (nullSlot >= 0 && nullSlot < slots))
    return llvm::createStringError(llvm::formatv(
        "--generate: slots: expects {0} for each of {1} sequences{2} beside "
        "the "
        "null slot, but got {3}",
        sequenceSlots == sequences
            ? "a slot"
            : llvm::formatv("{0} slots", steps + isTree).str(),
        sequences,
        numCheckpoints
            ? llvm::formatv(" and {0} checkpoints", numCheckpoints).str()
            : std::string(),
        slots));
  if (options.valueHeads % options.keyHeads != 0)
    return llvm::createStringError(llvm::formatv(
        "--generate: expects Hv to be a multiple of Hk, but got Hv={0} and "
        "Hk={1}",
        options.valueHeads, options.keyHeads));
  int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t(0)) +
                   options.padding;
  Symbols symbols = {{"T", tokens},
                     {"N", sequences},
                     {"P", slots},
                     {"C", numCheckpoints},
                     {"B", sequences * steps + 3},
                     {"S", steps},
                     {"Hk", options.keyHeads},
                     {"Hv", options.valueHeads}};

  const std::vector<int64_t> ids =
      data::distinctSlots(numUsed, slots, nullSlot, options.inputs.seed);
  const bool hasOwnSlots = kernel.find("slots") != nullptr;
  const std::vector<int64_t> tableIds =
      isBuffer ? data::distinctSlots(sequences * steps, symbols["B"], nullSlot,
                                     options.inputs.seed + 1)
               : std::vector<int64_t>(ids.begin() + (isTree ? sequences : 0),
                                      ids.end());
  TokenSlots tokenSlots;
  if (kernel.find("token_slots"))
    tokenSlots = makeTokenSlots(tableIds, sequences, steps, slots,
                                hasOwnSlots ? 0 : options.skipped, nullSlot);
  if (isLazy)
    tokenSlots.accepted = makeCounts(sequences, steps, options.skipped);
  const std::vector<double> used =
      hasOwnSlots ? makeSlots(ids, sequences, slots, options.skipped, nullSlot)
                  : tokenSlots.read;
  // Tokens that are pending over several steps, as slots count them and with
  // what is accepted.
  std::vector<double> pendingCounts, tokensThere;
  if (kernel.find("pending_counts")) {
    auto keys = shapeOf(*kernel.find("pending_keys"), symbols);
    if (!keys)
      return keys.takeError();
    // Beside what is accepted of a verify.
    const int64_t accepted = kernel.find("num_accepted") ? steps : 0;
    pendingCounts =
        makePendingCounts(slots, options.keyHeads,
                          std::max<int64_t>((*keys)[2] - accepted, 0), used);
    tokensThere = pendingCounts;
    if (accepted != 0)
      for (auto [slot, count] : llvm::zip(used, tokenSlots.accepted))
        if (slot >= 0 && slot < double(slots) && count > 0)
          for (int64_t head = 0; head < options.keyHeads; ++head)
            tokensThere[int64_t(slot) * options.keyHeads + head] += count;
  }
  data::InputOptions inputs = options.inputs;
  // The rule takes keys of unit length; entries with gates see to that.
  inputs.unitKeys |= kernel.find("log_decay") != nullptr;
  Arrays arrays;
  for (const Parameter &parameter : kernel.getParameters()) {
    if (!parameter.isRead)
      continue;
    auto shape = shapeOf(parameter, symbols);
    if (!shape)
      return shape.takeError();
    data::Array &array = arrays[parameter.name];
    if (parameter.name == "cu_seqlens") {
      std::vector<int64_t> bounds = data::runningSum(lengths);
      array = data::Array::fromDoubles(
          parameter.dtype, *shape,
          std::vector<double>(bounds.begin(), bounds.end()));
    } else if (parameter.name == "slots" || parameter.name == "write_slots") {
      array = data::Array::fromDoubles(parameter.dtype, *shape, used);
    } else if (parameter.name == "token_slots") {
      array =
          data::Array::fromDoubles(parameter.dtype, *shape, tokenSlots.table);
    } else if (parameter.name == "parents") {
      // Each token the start of two others, or in every third sequence a chain.
      std::vector<double> parents;
      for (int64_t i = 0; i < sequences * steps; ++i) {
        const int64_t t = i % steps;
        parents.push_back(
            double(i / steps % 3 == 2 || t == 0 ? t - 1 : (t - 1) / 2));
      }
      array = data::Array::fromDoubles(parameter.dtype, *shape, parents);
    } else if (parameter.name == "num_accepted") {
      array = data::Array::fromDoubles(parameter.dtype, *shape,
                                       tokenSlots.accepted);
    } else if (parameter.name == "cu_checkpoints") {
      array =
          data::Array::fromDoubles(parameter.dtype, *shape, checkpoints.bounds);
    } else if (parameter.name == "checkpoint_tokens") {
      array =
          data::Array::fromDoubles(parameter.dtype, *shape, checkpoints.tokens);
    } else if (parameter.name == "checkpoint_slots") {
      array = data::Array::fromDoubles(
          parameter.dtype, *shape,
          std::vector<double>(ids.begin() + sequenceSlots, ids.end()));
    } else if (parameter.name == "pending_counts") {
      array = data::Array::fromDoubles(parameter.dtype, *shape, pendingCounts);
    } else if (parameter.name == "has_initial") {
      std::vector<double> flags(sequences);
      for (int64_t i = 0; i < sequences; ++i)
        flags[i] = i % 2;
      array = data::Array::fromDoubles(parameter.dtype, *shape, flags);
    } else if (data::isFloat(parameter.dtype) ||
               parameter.dtype == data::DType::u8) {
      array = data::randomParameter(parameter.name, parameter.dtype, *shape,
                                    inputs);
      const bool isOfTokens =
          llvm::StringRef(parameter.name).starts_with("token_");
      if (parameter.isPool && data::isFloat(parameter.dtype))
        poisonUnused(array, isOfTokens ? tokenSlots.read : used);
      if (!pendingCounts.empty() &&
          llvm::StringRef(parameter.name).starts_with("pending_"))
        poisonBehind(array, tokensThere);
      else if (isLazy && parameter.isPool &&
               !llvm::StringRef(parameter.name).starts_with("state_") &&
               tokenSlots.accepted.size() == used.size() &&
               (pendingCounts.empty() || kernel.find("num_accepted")))
        poisonPending(
            array, parameter.name == "conv_pool" ? array.shape[2] - steps : 0,
            used, tokenSlots.accepted);
    } else {
      return llvm::createStringError(llvm::formatv(
          "--generate: cannot make up '{0}' of type {1}; give it by --input",
          parameter.name, parameter.typeString()));
    }
  }
  return arrays;
}

llvm::Error run::takeArguments(const Kernel &kernel,
                               const data::Tensors &tensors, bool required,
                               bool convert, Arrays &arrays) {
  for (const Parameter &parameter : kernel.getParameters()) {
    if (!parameter.isRead)
      continue;
    const data::Array *found = tensors.find(parameter.name);
    if (!found && !required)
      continue;
    if (!found) {
      llvm::Expected<const data::Array *> missing = tensors.get(parameter.name);
      return missing.takeError();
    }
    if (found->dtype == parameter.dtype) {
      arrays[parameter.name] = *found;
      continue;
    }
    if (!convert || !data::isFloat(found->dtype) ||
        !data::isFloat(parameter.dtype))
      return llvm::createStringError(llvm::formatv(
          "{0}: {1}: expects {2}, but got {3}{4}", tensors.origin,
          parameter.name, parameter.typeString(), found->typeString(),
          convert ? "" : "; --convert rounds floats to the entry's types"));
    arrays[parameter.name] = found->as(parameter.dtype);
  }
  return llvm::Error::success();
}

Symbols run::solveSymbols(const Kernel &kernel, const Arrays &arrays) {
  Symbols symbols;
  bool changed = true;
  while (changed) {
    changed = false;
    for (const Parameter &parameter : kernel.getParameters()) {
      auto array = arrays.find(parameter.name);
      if (array == arrays.end())
        continue;
      for (auto [form, size] : llvm::zip(parameter.dims, array->second.shape)) {
        int64_t rest = size - form.getConstant();
        const LinearForm::Term *unknown = nullptr;
        unsigned numUnknown = 0;
        for (const LinearForm::Term &term : form.getTerms()) {
          auto known = symbols.find(term.symbol);
          if (known != symbols.end()) {
            rest -= term.coefficient * known->second;
          } else {
            unknown = &term;
            ++numUnknown;
          }
        }
        if (numUnknown == 1 && rest % unknown->coefficient == 0) {
          symbols[unknown->symbol] = rest / unknown->coefficient;
          changed = true;
        }
      }
    }
  }
  return symbols;
}

llvm::Error run::addOutputs(const Kernel &kernel, const Symbols &symbols,
                            Arrays &arrays) {
  for (const Parameter &parameter : kernel.getParameters()) {
    if (parameter.isRead)
      continue;
    auto shape = shapeOf(parameter, symbols);
    if (!shape)
      return shape.takeError();
    data::Array array = data::Array::zeros(parameter.dtype, *shape);
    std::fill(array.bytes.begin(), array.bytes.end(), char(0xff));
    arrays[parameter.name] = std::move(array);
  }
  return llvm::Error::success();
}
