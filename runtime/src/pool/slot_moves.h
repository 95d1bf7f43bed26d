// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries copy_slots and zero_slots of an image on the layers of a pool: a
// launch for many slots at once, in place of a fill or a copy for each slot.
// Where the layers of all buffers lie alike one launch takes all of them, else
// each layer has its own. The device has the ids of every slot in a table, so
// that one slot is moved by nothing but a launch, also in a graph. Ids of many
// slots go to the device ahead of theirs.

#ifndef GDNRT_SRC_POOL_SLOT_MOVES_H
#define GDNRT_SRC_POOL_SLOT_MOVES_H

#include "gdnrt/binding.h"
#include "gdnrt/loaded_kernel.h"

#include <array>
#include <deque>
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

/// Layers seen as one array of slots, whose ids are the same in all buffers.
struct JoinedLayers {
  /// Slot s of layer l is slot s * slotStep + l * layerStep of the array.
  int64_t slotStep = 1, layerStep = 0;
  /// How many layers it has.
  size_t count = 1;
  /// Slots of the array, and the bytes from one to the next in each buffer.
  int64_t numSlots = 0;
  std::vector<int64_t> distances;
};

/// The layers as one array of slots, if they are equally far apart in each
/// buffer and the ids agree; else nothing.
std::optional<JoinedLayers> joinLayers(const std::vector<LayerViews> &layers);

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

  /// Copies or zeroes slots in the order of `stream`, which may be captured.
  /// Ids are valid or padding.
  Status copy(const int32_t *from, const int32_t *to, size_t count,
              void *stream);
  Status zero(const int32_t *slots, size_t count, void *stream);

private:
  /// An entry, bound to each layer, or to all that are joined.
  struct Moves {
    std::shared_ptr<LoadedKernel> kernel;
    std::vector<std::unique_ptr<Binding>> layers;
    /// Of slots, and of write_slots if it copies.
    std::vector<size_t> params;
  };
  /// Of slots, and of write_slots if the entry copies.
  using Ids = std::array<const int32_t *, 2>;
  /// Slots of a launch, in each of the layers that it takes.
  static constexpr size_t kMostSlots = 256;

  explicit SlotMoves(std::shared_ptr<Device> device)
      : device_(std::move(device)) {}
  std::vector<LayerViews> viewsOf(const std::vector<LayerViews> &layers);
  Status makeTable(int64_t numSlots);
  Status bind(Moves &moves, std::shared_ptr<LoadedKernel> kernel,
              const std::vector<LayerViews> &layers,
              std::initializer_list<const char *> ids);
  int32_t placeOf(int32_t slot, size_t layer) const;
  Result<bool> mayUpload(void *stream) const;
  Status launch(Moves &moves, Ids ids, size_t count, void *stream);
  Status launchUploaded(Moves &moves, Ids ids, size_t count, void *stream);
  Status run(Moves &moves, Ids ids, size_t count, void *stream);

  std::shared_ptr<Device> device_;
  Moves copy_, zero_;
  bool moveWindows_ = true;
  std::mutex lock_;
  /// Of the first upload, whose launches may still read the ids.
  std::optional<void *> stream_;
  JoinedLayers joined_;
  /// Sizes and strides of the views of layers that are joined.
  std::deque<std::vector<int64_t>> shapes_;
  /// The ids of slot s are the `joined_.count` from s * joined_.count on.
  std::vector<int32_t> table_;
  /// Ids of a launch that are no range of the table.
  std::vector<int32_t> ids_;
  /// Both where the device reads them: `table_`, then `ids_`. Null if the
  /// device reads the host's.
  int32_t *onDevice_ = nullptr;
  /// The size of the ids of a launch.
  int64_t size_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_SRC_POOL_SLOT_MOVES_H
