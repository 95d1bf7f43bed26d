// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Global memory: allocations of the host, each access checked against them.

#ifndef GDN_TEST_PTX_MEMORY_H
#define GDN_TEST_PTX_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace ptx {

class GlobalRaces;

enum class Space { generic, global, shared, local, parameter };

/// Addresses of one allocation; none if empty.
struct Range {
  uint64_t begin = 0, end = 0;
  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address < end && bytes <= end - address;
  }
};

class Memory {
public:
  Memory();
  ~Memory();
  /// Memory with bits that are no number in any float; 0 if there is none.
  /// Large allocations are 0 instead, so that only what is used costs memory.
  uint64_t allocate(size_t bytes);
  bool free(uint64_t address);
  /// The allocation that holds `address`.
  Range find(uint64_t address) const;
  /// Who has used it when, and what orders launches.
  GlobalRaces &races() const { return *races_; }

private:
  std::unique_ptr<GlobalRaces> races_;
  mutable std::mutex lock_;
  std::map<uint64_t, size_t> ranges_;
};

} // namespace ptx

#endif // GDN_TEST_PTX_MEMORY_H
