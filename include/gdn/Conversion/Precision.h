// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In what precision the products of the chunk form take their operands.
#ifndef GDN_CONVERSION_PRECISION_H
#define GDN_CONVERSION_PRECISION_H

namespace gdn {

enum class Precision {
  f32,  ///< nothing is rounded between load and store
  mixed ///< operands in 16 bits, as tensor cores take them; sums in f32
};

} // namespace gdn

#endif // GDN_CONVERSION_PRECISION_H
