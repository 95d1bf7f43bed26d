// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which variants prefill has on a target, and when a launch takes which.
#ifndef GDN_LIB_PIPELINES_PREFILLPOLICY_H
#define GDN_LIB_PIPELINES_PREFILLPOLICY_H

#include "gdn/Target/TargetModel.h"

#include "llvm/ADT/SmallVector.h"

#include <string>

namespace gdn {

/// Texts of the option `variants` of convert-gdn-to-tile, in the order in which
/// launches ask for them. With `segmentMaps`, one that makes the maps of
/// sequences is among them, and none whose workspace begins with other things.
llvm::SmallVector<std::string> getPrefillPolicy(const TargetModel &target,
                                                bool segmentMaps);

/// The option `short-chunks` of convert-gdn-to-tile: for which heads chunks
/// have fewer tokens.
llvm::StringRef getShortChunks();

/// The option `longest-first`: whether recurrences behind a stage of all chunks
/// take long sequences first.
bool takesLongestFirst(const TargetModel &target);

/// How passes over memory ask for it.
struct PassPolicy {
  bool wholeLoads;     ///< the option `whole-loads` of convert-gdn-to-tile
  int64_t chunkPieces; ///< the option `chunk-pieces`
};

PassPolicy getPassPolicy(const TargetModel &target);

/// How sequences of a convolution without a rule are cut: the options
/// `segments` and `segments-from` of convert-gdn-to-tile.
struct ConvPolicy {
  int64_t segments;     ///< of each sequence
  int64_t segmentsFrom; ///< mean tokens of a sequence from which it is cut
};

ConvPolicy getConvPolicy();

} // namespace gdn

#endif // GDN_LIB_PIPELINES_PREFILLPOLICY_H
