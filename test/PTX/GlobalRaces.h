// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Races in global memory: who has written a cell last and who has read it
// since, whichever launch that was; what atomics have told at a word; and which
// launches are over before others begin.

#ifndef GDN_TEST_PTX_GLOBALRACES_H
#define GDN_TEST_PTX_GLOBALRACES_H

#include "Knowledge.h"
#include "Races.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace ptx {

struct Kernel;

/// Whom an atomic or a fence reaches.
enum class Scope : uint8_t { block, cluster, gpu };

/// What atomics have told at a word: those of a block or a cluster by block,
/// and those of the GPU together, with the last cluster that did.
struct Told {
  struct Part {
    uint32_t cluster = 0, block = 0;
    Scope scope = Scope::gpu;
    Knowledge known;
  };
  std::vector<Part> parts;
};

/// A launch among others. Clusters have numbers, in the order of launches.
struct LaunchOrder {
  const Kernel *kernel = nullptr;
  /// Its first cluster, and how many there are.
  uint32_t first = 0, count = 0;
  /// Clusters below are over when it begins, and once it has waited. From
  /// `ahead` to `first` are those of the launch ahead.
  uint32_t known = 0, waited = 0, ahead = 0;
  /// What all blocks knew when they let the next launch begin, and whether some
  /// thread has waited for the launch ahead.
  std::atomic<uint32_t> released{UINT32_MAX};
  std::atomic<bool> waits{false};
  const void *stream = nullptr;

  void release(uint32_t known) {
    uint32_t least = released;
    while (known < least && !released.compare_exchange_weak(least, known)) {
    }
  }
};

/// Who did something to a cell.
struct GlobalEntry {
  enum Flag : uint8_t { strong = 1, readOnly = 2 };
  /// 0: nobody.
  uint32_t cluster = 0;
  uint32_t time = 0;
  int line = 0;
  uint16_t agent = 0;
  uint8_t lane = 0, flags = 0;
};

/// Who does something now.
struct GlobalAccess {
  GlobalEntry entry;
  const Knowledge *known = nullptr;
  bool isAsync = false;
  /// As which agents the warp itself reads and writes, and up to when what its
  /// lanes have read and written is in order. Others have no lanes.
  size_t ownReads = ~size_t(0), ownWrites = ~size_t(0);
  uint32_t meetTime = ~0u, exchangeTime = ~0u;
  /// The agent that stands for the launch ahead.
  size_t launchAgent = ~size_t(0);
  const LaunchOrder *order = nullptr;
};

/// Keeps which edges order an access behind `other`, where Paths are kept.
void noteGlobalOrder(const GlobalEntry &other, const GlobalAccess &access,
                     bool wasRead);

struct GlobalConflict {
  Conflict::Kind kind = Conflict::none;
  GlobalEntry other;
  uint64_t address = 0;
  bool isOfLanes = false;
  /// ld.global.nc of what the launch writes.
  bool isReadOnly = false;
};

/// Cells of one page of memory: of 4 bytes, or of fewer where fewer were
/// accessed.
struct GlobalPage {
  static constexpr unsigned kBits = 12;
  struct Cell {
    GlobalEntry write, read;
    /// Readers besides `read`, among `more`; 0: none.
    uint32_t readers = 0;
  };
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  unsigned shift = 2;
  /// Empty until the page is used, and again once its memory is free.
  std::vector<Cell> cells;
  std::deque<std::vector<GlobalEntry>> more;

  void reset(bool isUsed);
  void refine(unsigned newShift);
};

/// The pages that a cluster has used lately.
struct GlobalPages {
  struct Slot {
    uint64_t number = ~uint64_t(0);
    GlobalPage *page = nullptr;
  };
  std::array<Slot, 256> slots;
};

class GlobalRaces {
public:
  /// Begins a launch of so many clusters. It is behind all that was before, but
  /// where it is dependent and directly behind another launch of the stream.
  std::shared_ptr<LaunchOrder> begin(const Kernel *kernel, uint32_t clusters,
                                     bool isDependent, const void *stream);
  /// All launches are over for what comes now, as behind a copy.
  void settle();
  /// What was told stays behind the launch whose edges it has. No paths are
  /// kept any more.
  void endPaths();
  /// Memory that is free again: nobody has used it.
  void drop(uint64_t address, size_t bytes);

  GlobalConflict read(uint64_t address, unsigned bytes,
                      const GlobalAccess &access, GlobalPages &pages);
  GlobalConflict write(uint64_t address, unsigned bytes,
                       const GlobalAccess &access, GlobalPages &pages);

  /// What was told at a word; locked while f(told) runs.
  template <typename F> void withTold(uint64_t address, F f) {
    std::lock_guard<std::mutex> guard(toldLock_);
    f(told_[address & ~uint64_t(3)]);
  }
  /// The launch of a cluster, if it is one of the last.
  std::shared_ptr<const LaunchOrder> launchOf(uint32_t cluster) const;

private:
  static constexpr size_t kMostLaunches = 64, kMostReaders = 8;
  GlobalPage &page(uint64_t address, GlobalPages &pages);
  void addRead(GlobalPage &page, GlobalPage::Cell &cell,
               const GlobalAccess &access);
  void forget(uint64_t address, unsigned bytes);

  mutable std::mutex lock_, toldLock_;
  std::unordered_map<uint64_t, std::unique_ptr<GlobalPage>> pages_;
  std::unordered_map<uint64_t, Told> told_;
  std::deque<std::shared_ptr<LaunchOrder>> launches_;
  std::shared_ptr<LaunchOrder> last_;
  uint32_t nextCluster_ = 1;
};

} // namespace ptx

#endif // GDN_TEST_PTX_GLOBALRACES_H
