// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bf16 values as the 16-bit integers that hold them.
#ifndef GDN_LIB_TARGET_BFLOATSTORAGE_H
#define GDN_LIB_TARGET_BFLOATSTORAGE_H

namespace llvm {
class Module;
} // namespace llvm

namespace gdn {

/// Rewrites loads, stores and moves of bf16 to i16.
///
/// The x86-64 levels have no bf16 registers: LLVM carries such a value from
/// one basic block to the next as an f32, and calls a library to make a bf16
/// of it again. To be run after optimisation, which would undo it.
void storeBFloatAsInteger(llvm::Module &module);

} // namespace gdn

#endif // GDN_LIB_TARGET_BFLOATSTORAGE_H
