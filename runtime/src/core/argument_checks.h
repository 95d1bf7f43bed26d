// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of the arguments of a binding.

#ifndef GDNRT_CORE_ARGUMENT_CHECKS_H
#define GDNRT_CORE_ARGUMENT_CHECKS_H

#include "gdnrt/binding.h"

#include <optional>
#include <vector>

namespace gdnrt {

/// Everything that concerns one argument alone.
Status checkArgument(const ParamSchema &param, const Argument &arg,
                     BoundParam &bound);

/// What code asks beyond the alignment of elements, so that it can move
/// several of them at once.
Status checkAlignments(const EntrySchema &entry,
                       const std::vector<uint32_t> &alignments,
                       const std::vector<BoundParam> &bound);

/// Where an argument does not lie as a variant asks.
struct Misfit {
  size_t param;
  std::optional<int> dim;
};

/// The first one. Makes no text: most calls that find one go on without it.
std::optional<Misfit> findMisfit(const EntrySchema &entry,
                                 const VariantSchema &variant,
                                 const std::vector<BoundParam> &bound);
Status describe(const Misfit &misfit, const EntrySchema &entry,
                const VariantSchema &variant,
                const std::vector<BoundParam> &bound);

/// Memory that an entry writes belongs to one parameter alone.
Status checkAliasing(const EntrySchema &entry,
                     const std::vector<BoundParam> &bound);

/// The workspace is written, so it belongs to no argument.
Status checkWorkspace(const EntrySchema &entry,
                      const std::vector<BoundParam> &bound, void *data,
                      uint64_t bytes);

/// The rules of the entry that its sizes alone do not express.
Status checkMultiples(const EntrySchema &entry,
                      const std::vector<int64_t> &symbols);

} // namespace gdnrt

#endif // GDNRT_CORE_ARGUMENT_CHECKS_H
