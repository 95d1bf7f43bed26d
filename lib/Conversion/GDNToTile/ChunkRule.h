// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When the chunk form pays on a CPU.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_CHUNKRULE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_CHUNKRULE_H

#include <cstdint>

namespace gdn {

/// What a rule needs to know of a delta rule.
struct RuleShape {
  int64_t dk, dv;  ///< elements of a key and of a value
  bool perChannel; ///< one decay per element of the key
};

/// Tokens that must be left of a row for a chunk of `chunk` tokens to take no
/// longer than walking through them, on a CPU with vectors of `lanes` f32
/// elements; -1 where no chunk does, or `lanes` is 0.
int64_t chooseChunkFrom(RuleShape shape, int64_t chunk, int64_t lanes);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_CHUNKRULE_H
