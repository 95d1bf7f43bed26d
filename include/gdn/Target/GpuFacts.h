// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all GPUs of the table have in common, as numbers for passes that are
// not told for which of them they work. TargetModel.h has what sets them apart.
#ifndef GDN_TARGET_GPUFACTS_H
#define GDN_TARGET_GPUFACTS_H

#include <cstdint>

namespace gdn::gpufacts {

/// 32-bit registers of a multiprocessor, of which one block may have all.
inline constexpr int64_t registersPerSm = 64 * 1024;
inline constexpr int64_t maxRegistersPerThread = 255;
inline constexpr int64_t maxThreadsPerBlock = 1024;
/// Parts of a multiprocessor: each has a quarter of the registers and issues
/// for its own warps.
inline constexpr int64_t partitionsPerSm = 4;
/// Most bytes of shared memory of a block on the chips that have most of it
/// (sm_90a, sm_100a, sm_103a).
inline constexpr int64_t maxSharedBytesPerBlock = 227 * 1024;
/// Bytes of a line of the first-level and second-level caches, which one
/// prefetch asks for.
inline constexpr int64_t lineBytes = 128;
/// Blocks of token-wise work whose inputs are on their way to the second-level
/// cache before one loads them: a quarter of those that an H200 has at once.
/// With twice as many, what was asked for and what blocks store drive each
/// other out.
inline constexpr int64_t blocksAhead = 128;

} // namespace gdn::gpufacts

#endif // GDN_TARGET_GPUFACTS_H
