// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries copy_slots and zero_slots of an image on the layers of a pool: a
// launch per layer for many slots at once, in place of a fill or a copy for
// each slot.

#ifndef GDNRT_SRC_POOL_SLOT_MOVES_H
#define GDNRT_SRC_POOL_SLOT_MOVES_H

#include "gdnrt/binding.h"
#include "gdnrt/loaded_kernel.h"

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace gdnrt {

/// Of one layer, as kernels see them.
struct LayerViews {
  Argument state, conv;
  /// Of states in planes.
  Argument scales, low;
};

class SlotMoves {
public:
  /// Takes all memory that launches need. The arrays of `layers` stay as long
  /// as this lives.
  static Result<std::unique_ptr<SlotMoves>>
  make(std::shared_ptr<LoadedKernel> copy, std::shared_ptr<LoadedKernel> zero,
       const std::vector<LayerViews> &layers);
  ~SlotMoves();
  SlotMoves(const SlotMoves &) = delete;
  SlotMoves &operator=(const SlotMoves &) = delete;

  /// Whether the kernels move windows too; otherwise states alone.
  bool moveWindows() const { return moveWindows_; }

  /// Copies or zeroes slots in the order of `stream`. False, and nothing is
  /// done: the stream is captured, or is not the one of the first call, whose
  /// launches may still read the ids. Ids are valid or padding.
  Result<bool> copy(const int32_t *from, const int32_t *to, size_t count,
                    void *stream);
  Result<bool> zero(const int32_t *slots, size_t count, void *stream);

private:
  /// An entry, bound to each layer.
  struct Moves {
    std::shared_ptr<LoadedKernel> kernel;
    std::vector<std::unique_ptr<Binding>> layers;
    /// Of slots, and of write_slots if it copies.
    std::vector<size_t> params;
    int64_t bound = 0;
  };
  static constexpr size_t kMostIds = 256;

  explicit SlotMoves(std::shared_ptr<Device> device)
      : device_(std::move(device)) {}
  Status bind(Moves &moves, std::shared_ptr<LoadedKernel> kernel,
              const std::vector<LayerViews> &layers,
              std::initializer_list<const char *> ids);
  Argument idsOf(size_t index) const;
  Result<bool> run(Moves &moves, std::array<const int32_t *, 2> ids,
                   size_t count, void *stream);

  std::shared_ptr<Device> device_;
  Moves copy_, zero_;
  bool moveWindows_ = true;
  std::mutex lock_;
  std::optional<void *> stream_;
  /// Ids of the host, and where the device reads them if it has memory of its
  /// own: those of slots, then those of write_slots.
  std::array<int32_t, 2 * kMostIds> ids_ = {};
  void *onDevice_ = nullptr;
  int64_t size_ = kMostIds;
};

} // namespace gdnrt

#endif // GDNRT_SRC_POOL_SLOT_MOVES_H
