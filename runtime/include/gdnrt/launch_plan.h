// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the variants of a code come to for given sizes: whether their conditions
// hold, how much workspace they need, how many units their stages have. Worked
// out when sizes change, so that a launch only looks it up.

#ifndef GDNRT_LAUNCH_PLAN_H
#define GDNRT_LAUNCH_PLAN_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gdnrt {

/// Regions of a workspace begin at multiples of this many bytes.
constexpr uint64_t kWorkspaceAlignment = 64;

class LaunchPlan {
public:
  struct Variant {
    /// Whether all conditions hold and arrays lie as it asks.
    bool applies = false;
    /// Whether arrays do.
    bool isLaidOut = false;
    /// Bytes of counters at the start of the workspace, which are zero before
    /// a launch and after it. The same for all variants that have any.
    uint64_t counterBytes = 0;
    /// Bytes of the whole workspace; nothing if a size is negative or does not
    /// fit in 63 bits: then the variant is never taken.
    std::optional<uint64_t> workspaceBytes;
    /// Where each region begins, from the start of the workspace.
    std::vector<uint64_t> regionOffsets;
    std::vector<int64_t> stageUnits;
    /// Whether a sequence has the bits of the first variant that any call can
    /// take.
    bool isCommon = false;
  };

  /// Takes all memory that `update` needs.
  LaunchPlan(const EntrySchema &entry, const CodeSchema &code);

  /// Works out all variants for the values of the entry's symbols, on a device
  /// with `workers` workers. Fails where a grid cannot be counted; takes no
  /// memory unless it fails. `entry` and `code` are those of construction.
  Status update(const EntrySchema &entry, const CodeSchema &code,
                const std::vector<int64_t> &symbols, int workers);

  /// Takes what holds of the layouts that variant `index` asks for; by the next
  /// update. Those without layouts need not be told.
  void setLaidOut(size_t index, bool isLaidOut) {
    variants_[index].isLaidOut = isLaidOut;
  }

  /// Works out the conditions again for launches that may begin before the one
  /// ahead of them has ended, or may not, as at first.
  void allowDependent(const CodeSchema &code, bool allowed);

  /// Reserves `bytes` bytes for counters at the start of the workspace: regions
  /// begin behind them. Holds from the next update on.
  void reserveCounters(uint64_t bytes) { reservedBytes_ = bytes; }

  const std::vector<Variant> &variants() const { return variants_; }

  /// The first variant that applies and whose workspace fits in `bytes`, of
  /// which the first `zeroBytes` are known to be zero; otherwise the last.
  size_t choose(uint64_t bytes, uint64_t zeroBytes) const;
  /// The same among the variants that give a sequence the bits of the first one
  /// that has neither conditions nor layouts; if none fits, that one.
  size_t chooseSameBits(uint64_t bytes, uint64_t zeroBytes) const;

  /// Bytes at the start of a workspace of `bytes` bytes that must be zeroed
  /// when it is given: all of it, unless variants put regions there.
  uint64_t bytesToZero(uint64_t bytes) const;

private:
  void applyConditions(const CodeSchema &code);
  bool fits(const Variant &variant, uint64_t bytes, uint64_t zeroBytes) const;

  std::vector<Variant> variants_;
  size_t firstCommon_ = 0;
  /// The most counters of any stage, in bytes; nothing if that is negative or
  /// too large.
  std::optional<uint64_t> counterBytes_ = 0;
  bool hasRegions_ = false, hasCounters_ = false;
  uint64_t reservedBytes_ = 0;
  /// The symbols and, behind them, the workers, and 1 or 0 for launches that
  /// may be dependent or may not.
  std::vector<int64_t> conditionSymbols_;
};

} // namespace gdnrt

#endif // GDNRT_LAUNCH_PLAN_H
