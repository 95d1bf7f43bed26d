// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When the chunk form pays on a CPU.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_COSTMODEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_COSTMODEL_H

#include "gdn/Support/FormCosts.h"

#include <cstdint>

namespace gdn {

/// What the choice needs to know of a rule.
struct RuleShape {
  int64_t dk, dv;  ///< elements of a key and of a value
  bool perChannel; ///< one decay per element of the key
  bool hasDelta;   ///< what is written depends on the state
};

/// From how many tokens on a chunk takes no longer than going through them one
/// by one.
struct ChunkRule {
  int64_t first; ///< tokens of a sequence that takes chunks; -1: none does
  int64_t next;  ///< tokens that are left behind a chunk; at most `first`
};

/// The rule for chunks of `chunk` tokens on a CPU with vectors of `lanes` f32
/// elements and these costs.
ChunkRule chooseChunkRule(RuleShape shape, int64_t chunk, int64_t lanes,
                          const FormCosts &cost);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKS_COSTMODEL_H
