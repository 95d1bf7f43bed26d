// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choices that a model leaves open: element types, packing of the
// projections, outputs and optional parameters of the entries.
#ifndef GDN_MODEL_ENTRYOPTIONS_H
#define GDN_MODEL_ENTRYOPTIONS_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace gdn {

/// Element types that the gdn dialect computes with.
enum class FloatKind { f32, bf16, f16 };

/// How a caller hands over the projections.
enum class InputLayout {
  interleaved, // `qkvz` and `ba`, one block per key head
  flat,        // `qkvz` and `ba`, part after part
  split,       // `qkv` (part after part), `z`, `b`, `a`
  separate,    // `q`, `k`, `v`, `z`, `b`, `a`, head by head
  gated,       // `q`, `k`, `v`, `b`, `a`, head by head: no convolution; the
               // rule's output alone
  ready        // `q`, `k`, `v`, `log_decay`, `beta` as the rule takes them: no
               // gates either
};

/// Whether entries of the layout begin with the convolution.
inline bool hasConv(InputLayout layout) {
  return layout != InputLayout::gated && layout != InputLayout::ready;
}

/// What an entry gives back.
enum class EntryOutputs {
  core, // `core`: the delta rule's output, before the norm
  norm, // `out`: after the gated norm
  both
};

/// Whether there is an entry `verify`, for tokens that may be taken back, and
/// where it keeps the states to go back to.
enum class VerifyStates {
  none,   // no such entry
  slots,  // after every token, in slots of the pool
  tree,   // the same, and the tokens of a sequence are a tree
  buffer, // after every token, in slots of other pools; `commit` copies one
  lazy    // none: tokens are pending until the next step or `commit`
};

/// How the elements of a state lie in memory, the last innermost.
enum class StateLayout {
  vk, // [dv, dk]
  kv  // [dk, dv]
};

/// Choices for the entries of one pair of element types.
struct EntryOptions {
  FloatKind io = FloatKind::bf16;   // projections and outputs
  FloatKind state = FloatKind::f32; // recurrent states
  /// How many planes of 8 bits states have, with a scale for each row, in place
  /// of numbers of type `state`: 1 or 2; 0: none.
  int64_t statePlanes = 0;
  /// Of two planes decode reads the upper one alone, unless it writes states.
  bool readsUpper = false;
  StateLayout stateLayout = StateLayout::vk;
  std::optional<FloatKind> convState;  // raw inputs kept; default io
  std::optional<FloatKind> convWeight; // default io
  std::optional<FloatKind> normWeight; // default io
  FloatKind dtBias = FloatKind::f32;
  std::optional<InputLayout> layout; // default: the model's
  EntryOutputs outputs = EntryOutputs::norm;
  bool l2norm = false;        // of ready `q` and `k`, in the entry
  bool normConstants = false; // eps and gate of the norm are a parameter
                              // `norm_constants`
  bool slots64 = false;       // slot ids are i64 instead of i32
  bool hasInitial = false;    // prefill takes `has_initial`
  bool decodeInitial = false; // decode takes `has_initial`
  bool mixedBatch = false;    // verify and prefill take all rows of a step, of
                              // which `is_prefill` says whose they are
  bool writeSlots = false;    // entries take `write_slots`
  bool checkpoints = false;   // prefill takes `cu_checkpoints`,
                              // `checkpoint_tokens`, `checkpoint_slots`
  bool combineMaps = false;   // entries `combine_maps` and `apply_maps`
  VerifyStates verify = VerifyStates::none;
  /// The most tokens of a sequence of `verify`, 0 for any number; longer
  /// sequences are skipped. Default: 8. Trees and buffers have no bound.
  std::optional<int64_t> verifyTokens;
  /// How many tokens decode keeps pending before it writes a state; 0: it
  /// writes it at each step. An entry `commit` puts them into states.
  int64_t deferWrites = 0;
  /// Keys and deltas of pending tokens of several steps: f32, or f16 with a
  /// power of two for each delta.
  FloatKind pending = FloatKind::f32;
};

llvm::StringRef stringify(FloatKind kind);
/// The name of the states' format: of `state`, `i8`, `i8x2` or `i8x2_upper`.
llvm::StringRef getStateName(const EntryOptions &options);
llvm::StringRef stringify(StateLayout layout);
llvm::StringRef stringify(InputLayout layout);
llvm::StringRef stringify(EntryOutputs outputs);

} // namespace gdn

#endif // GDN_MODEL_ENTRYOPTIONS_H
