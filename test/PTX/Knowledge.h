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

/// By agent: up to which of its times its work is over.
using Clock = std::vector<uint32_t>;

inline void join(Clock &clock, const Clock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = clock[i] < other[i] ? other[i] : clock[i];
}

/// What is over, and of that what accesses of the asynchronous proxy find: what
/// threads did themselves counts there only behind a fence.
struct Knowledge {
  Clock all, async;

  void reset(size_t agents) {
    all.assign(agents, 0);
    async.assign(agents, 0);
  }
  void clear() {
    all.clear();
    async.clear();
  }
  void add(const Knowledge &other) {
    join(all, other.all);
    join(async, other.async);
  }
  /// The end of what `agent` did in the asynchronous proxy: both find it.
  void addEnd(size_t agent, uint32_t time) {
    for (Clock *clock : {&all, &async}) {
      if (clock->size() <= agent)
        clock->resize(agent + 1);
      (*clock)[agent] = (*clock)[agent] < time ? time : (*clock)[agent];
    }
  }
  /// fence.proxy.async: a fence anywhere on the way from an access to a later
  /// one is enough.
  void fence() { join(async, all); }
};

} // namespace ptx

#endif // GDN_TEST_PTX_KNOWLEDGE_H
