// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States that are integers times a scale for each row: docs/spec/slots.md,
// "States in planes".
#ifndef GDN_LIB_REFERENCE_PLANES_H
#define GDN_LIB_REFERENCE_PLANES_H

#include "gdn/Reference/Tensor.h"

namespace gdn::reference {

/// The pools of states in planes.
struct Planes {
  Pool &upper, &scales;
  Pool *low; // null: one plane

  /// Adds the pools that may skip a slot, too.
  template <typename Pools> void addTo(Pools &pools) const {
    pools.push_back(&scales);
    if (low)
      pools.push_back(low);
  }
  /// The states, as a pool of numbers.
  Pool decode() const;
  /// Takes over the rows of `states` that are not those of `before`, which is
  /// what `decode` gave. They are not rounded: the upper plane gets what is no
  /// integer.
  void encode(const Pool &states, const Pool &before) const;
};

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_PLANES_H
