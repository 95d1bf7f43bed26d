// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a layer's kernel: which parameter gets what in a step.

#ifndef GDNRT_LAYER_ARGUMENTS_H
#define GDNRT_LAYER_ARGUMENTS_H

#include "gdn-c/serving.h"
#include "gdnrt/binding.h"
#include "gdnrt/step_check.h"

#include <array>
#include <vector>

namespace gdnrt {

/// The metadata of a step, and the address of its arena on the device. Null:
/// kernels read the arena on the host. Without meaning for metadata whose
/// arrays are on the device.
struct GDNMetadataView {
  const gdnrt_gdn_metadata &metadata;
  const void *deviceArena;

  /// The address at which kernels read an array of the arena.
  const void *onDevice(const void *host) const {
    if (metadata.on_device || !deviceArena || !host)
      return host;
    return static_cast<const char *>(deviceArena) +
           (static_cast<const char *>(host) -
            static_cast<const char *>(metadata.arena));
  }
};

/// The role of a parameter of an entry in a layer: what the layer passes for
/// it.
enum class ParamRole : uint8_t {
  /// Weights and pools. They are given once, when the layer is made.
  fixed,
  /// Arrays with one row per token. They are given in every step.
  token,
  slots,
  writeSlots,
  cuSeqlens,
  hasInitial,
  tokenSlots,
  numAccepted,
  cuCheckpoints,
  checkpointTokens,
  checkpointSlots,
  parents,
  isPrefill,
};

class LayerArguments {
public:
  /// `fixed` are the weights and pools. The entry must outlive the arguments.
  static Result<LayerArguments>
  make(const EntrySchema &entry, const gdnrt_named_arg *fixed, size_t count);

  /// Puts what the step has into the parameters that are not fixed. `tokens`
  /// have only the rows of the run.
  Status fill(const GDNMetadataView &step, const gdnrt_run &run,
              const gdnrt_named_arg *tokens, size_t count);
  /// Whether a `fill` has changed an argument since `markBound`.
  bool isChanged() const { return changed_; }
  void markBound() { changed_ = false; }
  /// One for each parameter.
  std::vector<Argument> all() const;
  /// The parameters that are not fixed, and their arguments.
  const std::vector<size_t> &varying() const { return varying_; }
  const std::vector<Argument> &varyingArguments();

  /// A parameter that is given with one row per token, or null.
  const ParamSchema *tokenParam(const char *name) const;
  /// The range of slots of its pool of states. Empty if there is none.
  SlotRange slotRange() const;
  /// For each parameter the sizes of its weight or pool, or null if it has
  /// none, or of another rank than the parameter.
  std::vector<const int64_t *> fixedSizes() const;

private:
  /// An argument that owns its sizes and strides.
  struct HeldArgument {
    void *data = nullptr;
    int32_t dtype = 0, rank = 0;
    int64_t nullSlot = 0;
    std::array<int64_t, kMaxRank> sizes = {}, strides = {};
    bool operator==(const HeldArgument &other) const;
    Argument view() const;
  };

  explicit LayerArguments(const EntrySchema &entry)
      : entry_(&entry), roles_(entry.params.size()), held_(roles_.size()) {}
  const EntrySchema &entry() const { return *entry_; }
  void setVector(size_t param, const void *data, int64_t size, DType dtype);
  void setTable(size_t param, const int32_t *data, int64_t rows,
                int64_t columns, int64_t stride);
  Status setTokens(size_t param, const gdnrt_named_arg *tokens, size_t count);
  Status checkStates(const gdnrt_gdn_metadata &m, const gdnrt_run &run) const;
  static HeldArgument hold(const gdnrt_arg &arg);
  /// Whether a parameter has the role.
  bool has(ParamRole role) const {
    return (present_ >> static_cast<unsigned>(role) & 1) != 0;
  }

  const EntrySchema *entry_;
  /// For each parameter.
  std::vector<ParamRole> roles_;
  /// A bit for each role that a parameter has.
  uint32_t present_ = 0;
  std::vector<HeldArgument> held_;
  /// The parameters whose role is not `fixed`.
  std::vector<size_t> varying_;
  std::vector<Argument> arguments_;
  bool changed_ = true;
};

} // namespace gdnrt

#endif // GDNRT_LAYER_ARGUMENTS_H
