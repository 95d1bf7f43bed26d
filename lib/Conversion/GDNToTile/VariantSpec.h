// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant of prefill as a policy asks for it: how its work is divided, for
// which heads it is, and for which launches. Texts of the option `variants`.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_VARIANTSPEC_H
#define GDN_LIB_CONVERSION_GDNTOTILE_VARIANTSPEC_H

#include "gdn/Support/Conditions.h"

namespace gdn {

struct VariantSpec {
  std::string name;
  /// Chunks that a block prepares at once in the loop from state to state, in
  /// the mean, 1 with a decay per channel; 0: another stage prepares all chunks
  /// ahead of it ("staged").
  int64_t fused = 0;
  /// Blocks of a value head, each with as many of its values.
  int64_t vSplit = 1;
  /// Segments of a batch; 0: whole sequences.
  int64_t segments = 0;
  /// Whether it has nothing but the maps of whole sequences, in the workspace.
  bool mapsAlone = false;
  /// Tokens of a chunk, where not as many as of others: then all of its stages
  /// are its own; 0: as many.
  int64_t chunk = 0;
  /// Tokens of a piece in the passes over memory of a variant that has all else
  /// of the staged one with the same V-split; 0: it has its own.
  int64_t pieces = 0;
  /// Whether warps of their own copy what the recurrence multiplies.
  bool copiesAhead = false;
  /// Whether blocks of the recurrence stay for one sequence and head after the
  /// other.
  bool blocksStay = false;
  /// For a choice between whole heads and V-splits of two by the lengths of
  /// sequences: the hundredths of the time of a chunk of V-splits of two that
  /// one of whole heads takes, and the multiprocessors of the device; 0: no
  /// such choice. With a decay per channel it is between stages and blocks that
  /// prepare chunks: the hundredths of what a head's chunk takes in stages.
  int64_t wholeCost = 0, workers = 0;
  /// What the stages of segments cost beside those of whole sequences, in
  /// tokens of V-splits of two.
  int64_t scanTokens = 0;
  /// Whether a kernel that asks for it has its gated norm where the outputs of
  /// the rule are made.
  bool normWithRule = false;
  /// Whether it has the bits of one that has, with the norm as a stage behind.
  bool normBehind = false;
  /// Whether such a stage runs beside the rule: of whole sequences with the
  /// bits of a norm in the recurrence.
  bool normFollows = false;
  /// Whether a kernel that asks for it convolves the values of the rule where
  /// the rule takes them.
  bool convWithRule = false;
  /// Over `keys` and `values`, the sizes of heads, `channels` (1 if they have a
  /// decay each), `bounded` (1 if those are computed and have a bound) and
  /// `scaled` (1 if queries and keys of such have nothing but a norm ahead of
  /// the rule): whether there is the variant.
  Conditions where;
  /// Over `sequences`, `heads` (of values), `tokens`, `workers`, and as numbers
  /// `keys`, `values`, `chunk`, `parts`, `norms`, `convs` (1 if recurrences can
  /// have the gated norm, or convolve values), `follows` (1 if a norm can
  /// follow them), `computed` (1 if decays of channels are computed), `bounded`
  /// and `scaled` (as above): when launches take it.
  Conditions when;
  /// Over the same: when launches that ask for the same bits in any batch take
  /// it; none: they do not.
  std::optional<Conditions> anyBatch;

  /// Reads "NAME: fused=2; v-split=2; segments=5; where=..; when=..", in which
  /// all but the name may be left out; blanks are free. "NAME: pieces=8; .." is
  /// for few tokens, "NAME: v-split=2; copies=ahead; .." copies ahead, "NAME:
  /// v-split=3; chunk=64; .." has chunks of its own, "NAME: fused=2;
  /// segments=3; scan=1344; .." cuts sequences where that is worth so many
  /// tokens, "NAME: by-lengths=165/132; fused=2;
  /// .." a choice, "NAME: fused=2; maps=alone" only makes maps of sequences,
  /// with "v-split=2" in place of "fused" those of decays per channel, "NAME:
  /// fused=2; norm=with-rule; conv=with-rule" has the norm and the convolution
  /// of values with the rule.
  static llvm::Expected<VariantSpec> parse(llvm::StringRef text);
};

/// What a policy says of the stages of prefill.
struct StagedPolicy {
  llvm::SmallVector<VariantSpec, 0> variants;
  /// Tokens of a chunk of heads for which `shortWhere` holds, over `keys` and
  /// `values`; 0: there are no such heads.
  int64_t shortChunk = 0;
  Conditions shortWhere;
  /// Whether recurrences behind a stage of all chunks take long sequences
  /// first.
  bool longestFirst = false;

  /// Reads "<tokens>:<conditions>", or nothing.
  llvm::Error readShortChunks(llvm::StringRef text);
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_VARIANTSPEC_H
