// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The values of all variants of a code for given sizes: whether their
// conditions hold, how much workspace they need, and how many units their
// stages have. They are computed when sizes change, so a launch only looks them
// up.

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
    /// Whether all conditions hold and the arrays lie as the variant asks.
    bool applies = false;
    /// Whether the arrays lie as the variant asks.
    bool isLaidOut = false;
    /// Bytes of counters at the start of the workspace, which are zero before
    /// and after a launch. The same for all variants that have counters.
    uint64_t counterBytes = 0;
    /// Bytes of the whole workspace. No value if a size is negative or does not
    /// fit in 63 bits; then the variant is never taken.
    std::optional<uint64_t> workspaceBytes;
    /// The offset of each region from the start of the workspace, in bytes.
    std::vector<uint64_t> regionOffsets;
    std::vector<int64_t> stageUnits;
    /// Whether the variant gives a sequence the same bits as the first variant
    /// that has neither conditions nor layouts.
    bool isCommon = false;
    /// Whether it is for batch-invariant launches, and what it asks of them
    /// holds.
    bool appliesInAnyBatch = false;
  };

  /// Allocates all memory that `update` needs.
  LaunchPlan(const EntrySchema &entry, const CodeSchema &code);

  /// Computes all variants for the values of the entry's symbols, on a device
  /// with `workers` workers. Fails if the number of units of a grid is negative
  /// or does not fit in 64 bits. Allocates nothing unless it fails. `entry` and
  /// `code` are those of the constructor.
  Status update(const EntrySchema &entry, const CodeSchema &code,
                const std::vector<int64_t> &symbols, int workers);

  /// Sets whether the arrays lie as variant `index` asks. Takes effect with the
  /// next update. Not needed for variants without layouts.
  void setLaidOut(size_t index, bool isLaidOut) {
    variants_[index].isLaidOut = isLaidOut;
  }

  /// Evaluates the conditions again, with 1 or 0 for `dependent`: whether
  /// launches may begin before the previous kernel has ended. It is 0 at first.
  void allowDependent(const CodeSchema &code, bool allowed);

  /// Evaluates the conditions again, now and in each update, with `value`
  /// instead of the value of symbol `symbol`, and without a value with that of
  /// the symbol. `symbols` are the values of the last update.
  void expect(const CodeSchema &code, size_t symbol,
              std::optional<int64_t> value,
              const std::vector<int64_t> &symbols);

  /// Reserves `bytes` bytes for counters at the start of the workspace. Regions
  /// begin after them. Takes effect with the next update.
  void reserveCounters(uint64_t bytes) { reservedBytes_ = bytes; }

  const std::vector<Variant> &variants() const { return variants_; }

  /// The first variant that applies and whose workspace fits in `bytes` bytes,
  /// of which the first `zeroBytes` are known to be zero. If there is none, the
  /// last variant.
  size_t choose(uint64_t bytes, uint64_t zeroBytes) const;
  /// As `choose`, among the variants that give a sequence the same bits as the
  /// first that is for batch-invariant launches (`anyBatch`) and whose layouts
  /// the arrays have. If what none of them asks holds, the last of them.
  /// Without such variants: among those with the bits of the first variant that
  /// has neither conditions nor layouts; if none fits, that first variant.
  size_t chooseSameBits(const CodeSchema &code, uint64_t bytes,
                        uint64_t zeroBytes) const;

  /// The number of bytes at the start of a workspace of `bytes` bytes that must
  /// be filled with zeros when it is given. 0 without counters. All of it if no
  /// variant has regions.
  uint64_t bytesToZero(uint64_t bytes) const;

private:
  void applyConditions(const CodeSchema &code);

  std::vector<Variant> variants_;
  size_t firstCommon_ = 0;
  /// The largest number of counters of a stage, in bytes. No value if that is
  /// negative or too large.
  std::optional<uint64_t> counterBytes_ = 0;
  bool hasRegions_ = false, hasCounters_ = false;
  uint64_t reservedBytes_ = 0;
  /// The values of the symbols, then the number of workers, then `dependent`.
  std::vector<int64_t> conditionSymbols_;
  size_t expectedSymbol_ = 0;
  std::optional<int64_t> expected_;
};

} // namespace gdnrt

#endif // GDNRT_LAUNCH_PLAN_H
