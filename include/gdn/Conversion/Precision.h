// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In what precision the products of the chunk form take their operands, and in
// how many stages.
#ifndef GDN_CONVERSION_PRECISION_H
#define GDN_CONVERSION_PRECISION_H

namespace gdn {

enum class Precision {
  /// Nothing is rounded between load and store.
  f32,
  /// Operands in 16 bits, as tensor cores take them, sums in f32: f16, which
  /// keeps the bounds of docs/spec/numerics.md.
  mixed,
  /// The same with keys, queries, the state and its increments in the type that
  /// the caller's keys have: what a kernel computes for tiles of bf16
  /// from memory to tensor cores as they are.
  mixedIo
};

/// How the chunk form of a sequence becomes launches.
enum class ChunkStages {
  /// One program does all.
  onePass,
  /// Also a variant in two stages: what does not depend on the state, for all
  /// chunks at once, and the inter-chunk recurrence.
  staged
};

} // namespace gdn

#endif // GDN_CONVERSION_PRECISION_H
