// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per op of the dialect: reads its operands from the environment
// and defines its results there. Each fails with a diagnostic at the op.
#ifndef GDN_LIB_REFERENCE_OPS_H
#define GDN_LIB_REFERENCE_OPS_H

#include "Environment.h"

namespace gdn::reference {

// TokenOps.cpp
mlir::LogicalResult evaluateOp(UnpackOp op, Environment &env);
mlir::LogicalResult evaluateOp(GatesOp op, Environment &env);
mlir::LogicalResult evaluateOp(L2NormOp op, Environment &env);
mlir::LogicalResult evaluateOp(GatedRMSNormOp op, Environment &env);
mlir::LogicalResult evaluateOp(CastOp op, Environment &env);
/// x, x*sigmoid(x) or sigmoid(x).
double activate(Activation activation, double x);

// BatchOps.cpp
mlir::LogicalResult evaluateOp(PlanBatchOp op, Environment &env);
// Conv1d.cpp
mlir::LogicalResult evaluateOp(Conv1dOp op, Environment &env);
mlir::LogicalResult evaluateOp(CommitConv1dOp op, Environment &env);
// DeltaRule.cpp
mlir::LogicalResult evaluateOp(RuleOpInterface op, Environment &env);
mlir::LogicalResult evaluateOp(CommitDeltaRuleOp op, Environment &env);
// MapOps.cpp
mlir::LogicalResult evaluateOp(CombineMapsOp op, Environment &env);
mlir::LogicalResult evaluateOp(ApplyMapsOp op, Environment &env);
// PoolOps.cpp
mlir::LogicalResult evaluateOp(AcceptedSlotsOp op, Environment &env);
mlir::LogicalResult evaluateOp(CountedSlotsOp op, Environment &env);
mlir::LogicalResult evaluateOp(TakenSlotsOp op, Environment &env);
mlir::LogicalResult evaluateOp(MaskSequencesOp op, Environment &env);
mlir::LogicalResult evaluateOp(PoolReadOp op, Environment &env);
mlir::LogicalResult evaluateOp(PoolWriteOp op, Environment &env);
mlir::LogicalResult evaluateOp(PoolCopyOp op, Environment &env);
mlir::LogicalResult evaluateOp(PoolZeroOp op, Environment &env);

} // namespace gdn::reference

#endif // GDN_LIB_REFERENCE_OPS_H
