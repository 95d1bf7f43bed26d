// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments for any gdn entry, made from what the image says and from the
// names of the design: rows of given lengths, each with a slot; random numbers
// of the size that a layer sees.

#ifndef GDNRT_CTS_PROBLEM_H
#define GDNRT_CTS_PROBLEM_H

#include "host_array.h"

#include <map>
#include <string>
#include <vector>

namespace gdnrt::cts {

/// A state inside a row: after so many of its tokens, to that slot.
struct Checkpoint {
  int64_t tokens, slot;
};

/// What a case asks for. Decode ignores lengths but their number.
struct Rows {
  /// Tokens of each row.
  std::vector<int64_t> lengths;
  /// One id per row; empty: rows use slots 1, 2, ...
  std::vector<int64_t> slots;
  /// Tokens after the last row, which belong to none.
  int64_t paddingTokens = 0;
  /// Per row, states inside it, if the entry takes some; missing rows have
  /// none.
  std::vector<std::vector<Checkpoint>> checkpoints = {};
  /// Per row the slots of the states after its tokens, all of one length, and
  /// how many tokens of the step before were accepted; of verify.
  std::vector<std::vector<int64_t>> tokenSlots = {};
  std::vector<int64_t> accepted = {};
  /// Per row the parents of its tokens, where tokens have some.
  std::vector<std::vector<int64_t>> parents = {};
  /// The most that can be accepted; 0: as long as the rows of `tokenSlots`.
  int64_t steps = 0;
  /// Where rows write, if the entry takes that; empty: the slots.
  std::vector<int64_t> writeSlots = {};
  /// Per row 1 if it is a row of prefill, 0 if it is one of verify, where one
  /// of them leaves the other's rows as they are.
  std::vector<int64_t> isPrefill = {};
  /// Hv; there is one key head.
  int64_t valueHeads = 2;
};

class Problem {
public:
  /// `entry` must outlive the problem. Pools have null slot 0.
  Problem(const gdnrt_entry *entry, const Rows &rows);

  bool has(const std::string &name) const { return arrays_.count(name) != 0; }
  HostArray &operator[](const std::string &name) { return arrays_.at(name); }
  const HostArray &operator[](const std::string &name) const {
    return arrays_.at(name);
  }

  bool isRagged() const { return has("cu_seqlens"); }
  int64_t numRows() const { return static_cast<int64_t>(rows_.lengths.size()); }
  /// Tokens of row `row` are [firstToken(row), firstToken(row + 1)).
  int64_t firstToken(int64_t row) const;
  int64_t numTokens() const;

  const std::vector<std::string> &outputs() const { return outputs_; }
  const std::vector<std::string> &pools() const { return pools_; }

  /// Arguments for the whole batch.
  std::vector<gdnrt_named_arg> args() const;

  /// Inputs of tokens become those of `other` from its token `first` on.
  void takeTokens(const Problem &other, int64_t first);
  /// Inputs of the tokens of row `row` become those of row `from` of `other`,
  /// which has as many tokens.
  void takeRow(int64_t row, const Problem &other, int64_t from);
  /// Pools become those of `other` where they have the same shape; windows its
  /// windows, the first columns of each channel, as many as both have.
  void takePools(const Problem &other);

  /// Windows get the channels of a position side by side.
  void layOutByPosition();

  /// Row `row` alone, with inputs and pools of the same values.
  Problem alone(int64_t row) const;

  /// The elements of an output that belong to row `row`.
  Bytes outputOfRow(const std::string &output, int64_t row) const;
  /// The elements of one slot of a pool.
  Bytes slotOf(const std::string &pool, int64_t slot) const;

  /// Windows in one slot: `window` columns of each channel.
  Bytes windowOf(int64_t slot, int64_t window) const;

  /// Sets all elements of a slot to NaN.
  void poisonSlot(const std::string &pool, int64_t slot);
  /// The same of the last `steps` columns (dimension 2), from the `from`th on.
  void poisonColumns(const std::string &pool, int64_t slot, int64_t steps,
                     int64_t from);
  /// Whether no element of an output in row `row` is NaN or infinite.
  bool isFiniteRow(const std::string &output, int64_t row) const;

private:
  /// Whether a parameter holds inputs or outputs of tokens.
  bool isOfTokens(const std::string &name) const;
  void fill(const gdnrt_param_info &info, HostArray &array);
  /// Values of a parameter that says what the checkpoints are; else none.
  std::vector<int64_t> checkpointValues(const std::string &name) const;
  /// Values of a parameter that says where the states after tokens go.
  std::vector<int64_t> tokenSlotValues(const std::string &name) const;

  const gdnrt_entry *entry_;
  Rows rows_;
  std::map<std::string, HostArray> arrays_;
  std::map<std::string, std::string> firstDims_;
  std::vector<std::string> outputs_, pools_;
};

/// The slots of every pool, more than the rows of any case.
constexpr int64_t kNumSlots = 12;

} // namespace gdnrt::cts

#endif // GDNRT_CTS_PROBLEM_H
