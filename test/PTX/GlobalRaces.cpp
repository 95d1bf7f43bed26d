// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shadow of global memory: a page of cells for each page that kernels use,
// and what is in order with what.
#include "GlobalRaces.h"

#include "Paths.h"
#include "Program.h"

#include <algorithm>

using namespace ptx;

namespace {
/// Holds a page for as long as an access takes.
struct Held {
  explicit Held(GlobalPage &page) : page(page) {
    while (page.lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Held() { page.lock.clear(std::memory_order_release); }
  GlobalPage &page;
};
} // namespace

void GlobalPage::reset(bool isUsed) {
  shift = 2;
  cells = std::vector<Cell>(isUsed ? size_t(1) << (kBits - 2) : 0);
  more = {};
  more.resize(isUsed);
}

void GlobalPage::refine(unsigned newShift) {
  const unsigned parts = 1u << (shift - newShift);
  std::vector<Cell> finer;
  finer.reserve(cells.size() * parts);
  for (const Cell &cell : cells)
    for (unsigned part = 0; part < parts; ++part) {
      finer.push_back(cell);
      if (part > 0 && cell.readers) {
        more.push_back(std::vector<GlobalEntry>(more[cell.readers]));
        finer.back().readers = static_cast<uint32_t>(more.size() - 1);
      }
    }
  cells = std::move(finer);
  shift = newShift;
}

GlobalPage &GlobalRaces::page(uint64_t address, GlobalPages &pages) {
  const uint64_t number = address >> GlobalPage::kBits;
  GlobalPages::Slot &slot = pages.slots[number % pages.slots.size()];
  if (slot.number == number)
    return *slot.page;
  std::lock_guard<std::mutex> guard(lock_);
  std::unique_ptr<GlobalPage> &found = pages_[number];
  if (!found)
    found = std::make_unique<GlobalPage>();
  slot = {number, found.get()};
  return *found;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

static uint32_t timeIn(const Clock &clock, size_t agent) {
  return agent < clock.size() ? clock[agent] : 0;
}

/// Whether a read is over, though nothing but an atomic tells of it.
static bool isReadOver(const GlobalEntry &entry, const OtherClocks &clocks,
                       const GlobalAccess &access) {
  if (entry.time <= timeIn(clocks.reads, entry.agent))
    return true;
  if (entry.time > timeIn(clocks.used, entry.agent))
    return false;
  const std::vector<int> &lines = access.order->kernel->usedByAtomics;
  return std::binary_search(lines.begin(), lines.end(), entry.line);
}

/// Whether what others did, or this agent's warp, is over for an access.
static bool isOver(const GlobalEntry &entry, const GlobalAccess &access,
                   bool wasRead) {
  const Knowledge &known = *access.known;
  if (entry.cluster < known.launches)
    return true;
  const bool isAsync = access.isAsync && !wasRead;
  if (entry.cluster == access.entry.cluster) {
    if (entry.time <= timeIn(isAsync ? known.async : known.all, entry.agent))
      return true;
  } else if (known.isAheadOver && entry.cluster >= access.order->ahead &&
             entry.cluster < access.order->first) {
    return true;
  }
  if (!known.others)
    return false;
  auto other = known.others->find(entry.cluster);
  if (other == known.others->end())
    return hasAll(*known.others);
  const OtherClocks &clocks = other->second;
  return entry.time <=
             timeIn(isAsync ? clocks.async : clocks.all, entry.agent) ||
         (wasRead && isReadOver(entry, clocks, access));
}

/// Whether the entry is of other lanes of the same warp, and later than when
/// they were in order.
static bool isOfLanes(const GlobalEntry &entry, const GlobalAccess &access,
                      size_t agent, uint32_t since) {
  return entry.cluster == access.entry.cluster && entry.agent == agent &&
         entry.time > since && areOthers(entry.lane, access.entry.lane) &&
         entry.line != access.entry.line;
}

static bool isSame(const GlobalEntry &entry, const GlobalEntry &other) {
  return entry.cluster == other.cluster && entry.agent == other.agent &&
         entry.flags == other.flags;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Whether both are of the same launch, which ld.global.nc says that nobody
/// writes.
static bool isReadOnly(const GlobalEntry &read, const GlobalEntry &write,
                       const LaunchOrder &order) {
  return read.flags & GlobalEntry::readOnly && read.cluster >= order.first &&
         write.cluster >= order.first;
}

/// Of readers of which one is over before the other, the later is enough.
void GlobalRaces::addRead(GlobalPage &page, GlobalPage::Cell &cell,
                          const GlobalAccess &access) {
  auto replace = [&](GlobalEntry &entry) {
    if (isSame(entry, access.entry)) {
      const bool isOneMore =
          entry.time > access.exchangeTime && entry.lane != access.entry.lane;
      entry = access.entry;
      if (isOneMore)
        entry.lane = kWholeWarp;
      return true;
    }
    if (entry.flags & ~access.entry.flags & GlobalEntry::readOnly &&
        entry.cluster >= access.order->first)
      return false;
    if (!isOver(entry, access, /*wasRead=*/false))
      return false;
    entry = access.entry;
    return true;
  };
  if (cell.read.cluster == 0) {
    cell.read = access.entry;
    return;
  }
  if (replace(cell.read))
    return;
  if (!cell.readers) {
    page.more.emplace_back();
    cell.readers = static_cast<uint32_t>(page.more.size() - 1);
  }
  std::vector<GlobalEntry> &readers = page.more[cell.readers];
  if (std::any_of(readers.begin(), readers.end(), replace))
    return;
  if (readers.size() < kMostReaders)
    readers.push_back(access.entry);
}

/// What is wrong with an access behind `other`, if something is.
static GlobalConflict compare(const GlobalEntry &other, bool wasRead,
                              bool writes, const GlobalAccess &access) {
  const GlobalEntry &mine = access.entry;
  GlobalConflict found;
  if (other.cluster == 0)
    return found;
  if (other.cluster < access.known->launches) {
    if (Paths::current)
      noteGlobalOrder(other, access, wasRead);
    return found;
  }
  // Atomics are in no race with each other, in whatever order.
  const bool areStrong = mine.flags & other.flags & GlobalEntry::strong;
  found.isOfLanes =
      !areStrong &&
      isOfLanes(other, access, wasRead ? access.ownReads : access.ownWrites,
                wasRead ? access.exchangeTime : access.meetTime);
  const bool isRace =
      found.isOfLanes || (!areStrong && !isOver(other, access, wasRead));
  found.isReadOnly =
      !isRace && (wasRead   ? isReadOnly(other, mine, *access.order)
                  : !writes ? isReadOnly(mine, other, *access.order)
                            : false);
  if (!isRace && !found.isReadOnly) {
    if (!areStrong && Paths::current)
      noteGlobalOrder(other, access, wasRead);
    return found;
  }
  found.kind = wasRead  ? Conflict::writesRead
               : writes ? Conflict::writesWrite
                        : Conflict::readsWrite;
  found.other = other;
  return found;
}

/// Calls f(cell) for the cells of an access, and f(cell, address of it).
template <typename F>
static void forCells(GlobalPage &page, uint64_t address, unsigned bytes, F f) {
  const unsigned shift =
      static_cast<unsigned>(__builtin_ctzll(address | bytes | 4));
  if (page.cells.empty())
    page.reset(/*isUsed=*/true);
  if (shift < page.shift)
    page.refine(shift);
  const uint64_t mask = (uint64_t(1) << GlobalPage::kBits) - 1;
  const uint64_t begin = address & mask, base = address & ~mask;
  for (uint64_t i = begin >> page.shift; i << page.shift < begin + bytes; ++i)
    f(page.cells[i], base + (i << page.shift));
}

GlobalConflict GlobalRaces::read(uint64_t address, unsigned bytes,
                                 const GlobalAccess &access,
                                 GlobalPages &pages) {
  GlobalConflict found;
  Held held(page(address, pages));
  forCells(
      held.page, address, bytes, [&](GlobalPage::Cell &cell, uint64_t place) {
        if (found.kind == Conflict::none) {
          found =
              compare(cell.write, /*wasRead=*/false, /*writes=*/false, access);
          found.address = place;
        }
        addRead(held.page, cell, access);
      });
  return found;
}

GlobalConflict GlobalRaces::write(uint64_t address, unsigned bytes,
                                  const GlobalAccess &access,
                                  GlobalPages &pages) {
  GlobalConflict found;
  bool endsAtomics = false;
  {
    Held held(page(address, pages));
    forCells(
        held.page, address, bytes, [&](GlobalPage::Cell &cell, uint64_t place) {
          auto check = [&](const GlobalEntry &other, bool wasRead) {
            if (found.kind != Conflict::none)
              return;
            found = compare(other, wasRead, /*writes=*/true, access);
            found.address = place;
          };
          check(cell.write, /*wasRead=*/false);
          check(cell.read, /*wasRead=*/true);
          if (cell.readers) {
            std::vector<GlobalEntry> &readers = held.page.more[cell.readers];
            for (const GlobalEntry &reader : readers)
              check(reader, /*wasRead=*/true);
            readers.clear();
          }
          endsAtomics |=
              cell.write.flags & ~access.entry.flags & GlobalEntry::strong;
          cell.write = access.entry;
          cell.read = {};
        });
  }
  if (endsAtomics)
    forget(address, bytes);
  return found;
}

/// Clusters may still have the pages, so these stay.
void GlobalRaces::drop(uint64_t address, size_t bytes) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    const uint64_t begin = address >> GlobalPage::kBits,
                   end = (address + bytes - 1) >> GlobalPage::kBits;
    auto reset = [](GlobalPage &page) {
      Held(page).page.reset(/*isUsed=*/false);
    };
    // Of an allocation that is larger than all that was used, few pages are.
    if (end - begin > pages_.size()) {
      for (auto &[number, page] : pages_)
        if (number >= begin && number <= end)
          reset(*page);
    } else {
      for (uint64_t number = begin; number <= end; ++number)
        if (auto found = pages_.find(number); found != pages_.end())
          reset(*found->second);
    }
  }
  std::lock_guard<std::mutex> guard(toldLock_);
  for (auto told = told_.begin(); told != told_.end();)
    if (told->first >= address && told->first < address + bytes)
      told = told_.erase(told);
    else
      ++told;
}

/// A write that is no atomic ends what atomics tell at a word.
void GlobalRaces::forget(uint64_t address, unsigned bytes) {
  std::lock_guard<std::mutex> guard(toldLock_);
  for (uint64_t word = address & ~uint64_t(3); word < address + bytes;
       word += 4)
    told_.erase(word);
}

void GlobalRaces::endPaths() {
  std::lock_guard<std::mutex> guard(toldLock_);
  for (auto &[address, told] : told_)
    for (Told::Part &part : told.parts) {
      part.known.all.trail = part.known.async.trail = nullptr;
      if (part.known.others)
        part.known.others = std::make_shared<Others>(*part.known.others);
    }
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

std::shared_ptr<LaunchOrder> GlobalRaces::begin(const Kernel *kernel,
                                                uint32_t clusters,
                                                bool isDependent,
                                                const void *stream) {
  std::lock_guard<std::mutex> guard(lock_);
  auto order = std::make_shared<LaunchOrder>();
  order->kernel = kernel;
  order->stream = stream;
  order->count = clusters;
  order->first = nextCluster_;
  nextCluster_ += clusters;
  order->known = order->waited = order->ahead = order->first;
  if (isDependent && last_ && last_->stream == stream) {
    const LaunchOrder &last = *last_;
    order->known = std::min<uint32_t>(last.released, last.first);
    order->ahead = last.first;
    // The launch ahead may end before those that it has not waited for.
    const bool isWholeEnd =
        last.known == last.first || (last.waits && last.waited == last.first);
    order->waited = isWholeEnd ? order->first : order->known;
  }
  last_ = order;
  launches_.push_back(order);
  if (launches_.size() > kMostLaunches)
    launches_.pop_front();
  return order;
}

void GlobalRaces::settle() {
  std::lock_guard<std::mutex> guard(lock_);
  last_ = nullptr;
}

std::shared_ptr<const LaunchOrder>
GlobalRaces::launchOf(uint32_t cluster) const {
  std::lock_guard<std::mutex> guard(lock_);
  for (auto order = launches_.rbegin(); order != launches_.rend(); ++order)
    if (cluster >= (*order)->first &&
        cluster < (*order)->first + (*order)->count)
      return *order;
  return nullptr;
}
