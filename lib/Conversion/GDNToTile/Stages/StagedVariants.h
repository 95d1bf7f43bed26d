// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variants of a kernel in stages: which of a policy it can have, and how
// the stages of each differ from those of others.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_STAGEDVARIANTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_STAGEDVARIANTS_H

#include "Stages/KernelStage.h"
#include "VariantSpec.h"

#include <optional>
#include <string>

namespace gdn {

/// A kernel of variants that differ in their conditions alone, or in passes
/// over memory, and what its stages but the first are called.
struct StagedVariant {
  llvm::SmallVector<StageVariant, 0> variants;
  std::string suffix;
  int64_t vSplit, segments, fusedChunks;
  int64_t chunk = 0;  // tokens, where not as of others; 0: they are
  int64_t pieces = 0; // of the first's own passes over memory; 0: none
  int64_t wholeCost = 0,
          workers = 0; // one of two recurrences, as lengths of sequences say
  int64_t scanTokens = 0;
  bool normWithRule = false, normBehind = false;
  bool convWithRule = false, mapsAlone = false, copiesAhead = false;
  bool blocksStay = false, normFollows = false;

  /// Whether it shares no stage that works on chunks: others have chunks of
  /// other tokens, each prepared by a stage.
  bool hasOwnStages() const { return chunk != 0 && fusedChunks == 0; }
};

/// The conditions with what is known of the heads and of chunks; nothing if
/// they never hold.
std::optional<Conditions> specialise(const Conditions &conditions,
                                     const KernelOperands &parts,
                                     const Algorithm &algorithm);

/// The variants that are wanted for the heads and that can be had, in the order
/// of preference; the one for few tokens comes first.
llvm::SmallVector<StagedVariant, 0>
chooseVariants(const KernelOperands &parts, const Algorithm &algorithm,
               llvm::ArrayRef<VariantSpec> wanted);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_STAGEDVARIANTS_H
