// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of the operands that ops over sequences have in common.
#ifndef GDN_LIB_DIALECT_GDN_IR_STATECHECKS_H
#define GDN_LIB_DIALECT_GDN_IR_STATECHECKS_H

#include "NamedSizes.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace gdn {

/// Checks the operands that describe sequences. Without bounds every token is a
/// sequence, so that N is T.
mlir::LogicalResult verifySequences(SequenceOpInterface op, NamedSizes &sizes);

/// Checks the operands that ask for states inside a sequence.
mlir::LogicalResult verifyCheckpoints(StateOpInterface op, NamedSizes &sizes);

/// Checks the operands that ask for states after every token.
mlir::LogicalResult verifyTokenSlots(StateOpInterface op, NamedSizes &sizes);

/// Checks the pool of the states after tokens.
mlir::LogicalResult verifyTokenPool(StateOpInterface op);

/// Checks the count of accepted tokens, if there is one, of an op whose tokens
/// become pending, and that nothing else says where its states go.
mlir::LogicalResult verifyPendingStates(StateOpInterface op, NamedSizes &sizes);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GDN_IR_STATECHECKS_H
