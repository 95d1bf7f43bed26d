// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an agent knows of the times of all agents. A warp is one, and so is what
// it starts on the side: copies by cp.async, products, bulk copies.

#ifndef GDN_TEST_PTX_KNOWLEDGE_H
#define GDN_TEST_PTX_KNOWLEDGE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptx {

struct Trail;

/// By agent: up to which of its times its work is over.
struct Clock : std::vector<uint32_t> {
  using vector::vector;
  /// By which edges it knows that, where Paths are kept.
  Trail *trail = nullptr;
};

/// Learns of the end of what `agent` did up to `time`, or of all in `other`.
void raise(Clock &clock, size_t agent, uint32_t time);
void join(Clock &clock, const Clock &other);

/// What is over, and of that what accesses of the asynchronous proxy find: what
/// threads did themselves counts there only behind a fence.
struct Knowledge {
  Clock all, async;

  void reset(size_t agents) {
    all.assign(agents, 0);
    async.assign(agents, 0);
    all.trail = async.trail = nullptr;
  }
  void clear() {
    all.clear();
    async.clear();
    all.trail = async.trail = nullptr;
  }
  void add(const Knowledge &other) {
    join(all, other.all);
    join(async, other.async);
  }
  /// The end of what `agent` did in the asynchronous proxy: both find it.
  void addEnd(size_t agent, uint32_t time) {
    raise(all, agent, time);
    raise(async, agent, time);
  }
  /// fence.proxy.async: a fence anywhere on the way from an access to a later
  /// one is enough.
  void fence() { join(async, all); }
};

} // namespace ptx

#endif // GDN_TEST_PTX_KNOWLEDGE_H
