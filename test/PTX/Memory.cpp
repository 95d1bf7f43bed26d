// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocations are mapped, each with a page behind it that nobody owns, and
// found by address in an ordered map.

#include "Memory.h"
#include "GlobalRaces.h"

#include <cstring>
#include <sys/mman.h>

using namespace ptx;

static constexpr size_t kPoisonedBytes = size_t(64) << 20;
static constexpr size_t kPage = 4096;

/// Pages of an allocation, with an empty one behind that nobody owns.
static size_t mappedBytes(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage + kPage;
}

Memory::Memory() : races_(std::make_unique<GlobalRaces>()) {}

Memory::~Memory() {
  for (auto &[address, bytes] : ranges_)
    munmap(reinterpret_cast<void *>(address), mappedBytes(bytes));
}

uint64_t Memory::allocate(size_t bytes) {
  void *data = mmap(nullptr, mappedBytes(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return 0;
  if (bytes <= kPoisonedBytes)
    std::memset(data, 0xff, bytes);
  std::lock_guard<std::mutex> guard(lock_);
  uint64_t address = reinterpret_cast<uint64_t>(data);
  ranges_[address] = bytes;
  return address;
}

bool Memory::free(uint64_t address) {
  std::lock_guard<std::mutex> guard(lock_);
  auto found = ranges_.find(address);
  if (found == ranges_.end())
    return false;
  munmap(reinterpret_cast<void *>(address), mappedBytes(found->second));
  if (found->second > 0)
    races_->drop(address, found->second);
  ranges_.erase(found);
  return true;
}

Range Memory::find(uint64_t address) const {
  std::lock_guard<std::mutex> guard(lock_);
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin())
    return {};
  --next;
  if (address >= next->first + next->second)
    return {};
  return {next->first, next->first + next->second};
}
