// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States of sequences that wait, in a host tier, and on their way through a
// file.

#ifndef GDNRT_TRACES_HOST_STATES_H
#define GDNRT_TRACES_HOST_STATES_H

#include "gdn-c/host_tier.h"
#include "pools.h"

#include <cstdint>
#include <memory>

namespace gdnrt::traces {

class HostStates {
public:
  /// Host slots for two states of sequences, and for those that the cache may
  /// have.
  HostStates(const Pools &pools, const Trace &trace);

  gdnrt_host_tier *tier() const { return tier_.get(); }
  /// What a state may be off by, in parts of its largest element, when it comes
  /// back; 0: it has all bits.
  double error() const;

  /// Stores a slot of the pool; returns the host slot, or -1 if there is none.
  int32_t store(int32_t slot);
  /// Writes a host slot to memory as a file, and reads it back.
  void passThroughFile(int32_t host);
  /// Moves a host slot to so many tensor-parallel ranks, each with a pool and a
  /// tier of its own, and back. False if heads cannot be divided so.
  bool passThroughRanks(int32_t host, int64_t ranks);
  /// Loads a host slot into a slot of the pool, and frees it.
  void load(int32_t host, int32_t slot);
  void free(int32_t host);
  /// The number of host slots in use.
  int64_t numUsed() const;

private:
  struct Destroy {
    void operator()(gdnrt_host_tier *tier) const {
      gdnrt_host_tier_destroy(tier);
    }
  };
  using Tier = std::unique_ptr<gdnrt_host_tier, Destroy>;
  int32_t format() const;

  const Pools &pools_;
  const Trace &trace_;
  Tier tier_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_HOST_STATES_H
