// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments for an entry, made from its schema: given a value for each symbol,
// every parameter gets memory of its size, filled with plausible numbers.
#ifndef GDN_RUNTIME_BENCH_ENTRY_CALL_H
#define GDN_RUNTIME_BENCH_ENTRY_CALL_H

#include "gdn-c/runtime.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gdnbench {

/// Values of the symbols of an entry: {"Hk", 16}, {"N", 64}, ...
using Symbols = std::map<std::string, int64_t>;

/// Ends the process with the message of `error` unless `status` is OK.
void check(gdnrt_status status, const gdnrt_error &error);

/// An image and a device, and what belongs to them.
class Runtime {
public:
  Runtime(const std::string &imagePath, int workers);
  ~Runtime();
  Runtime(const Runtime &) = delete;

  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
};

/// Memory on huge pages where the system has them. Buffers of one key are the
/// same memory, so that two calls can work on one pool.
class Memory {
public:
  void *get(const std::string &key, size_t bytes, bool &isNew);

private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(void *data) const;
  };
  std::map<std::string, std::unique_ptr<void, Unmap>> blocks;
};

/// A bound call of one entry. Rows are of equal length; row n of the call uses
/// the n-th slot of a random order of the pool's slots, and `advance` moves on
/// to the next slots of that order.
class EntryCall {
public:
  /// `poolKey` names the memory of the pools, which calls may share.
  EntryCall(Runtime &runtime, const std::string &entry, const Symbols &symbols,
            Memory &memory, const std::string &poolKey);
  ~EntryCall();
  EntryCall(const EntryCall &) = delete;

  void launch();
  /// Takes the next slots; a launch reads them where they are.
  void advance();
  /// Gives every row the null slot.
  void skipAllRows();
  /// Binds all arguments once more and drops the result.
  void bindAgain();
  /// Replaces the argument `slots` by itself.
  void rebindSlots();

  /// The state pool: slots of `slotBytes` bytes; `slots` are those of the next
  /// launch.
  void *statePool() const { return states; }
  size_t slotBytes() const { return stateSlotBytes; }
  const std::vector<int32_t> &slots() const { return slotIds; }
  int64_t rows() const { return symbols.at("N"); }

private:
  void addParam(const gdnrt_param_info &info, Memory &memory,
                const std::string &poolKey);

  Symbols symbols;
  gdnrt_kernel *kernel = nullptr;
  gdnrt_binding *binding = nullptr;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<std::unique_ptr<char[]>> buffers;
  std::vector<gdnrt_arg> args;
  std::vector<int32_t> slotIds, order;
  size_t slotsParam = 0, next = 0, stateSlotBytes = 0;
  void *states = nullptr;
};

} // namespace gdnbench

#endif // GDN_RUNTIME_BENCH_ENTRY_CALL_H
