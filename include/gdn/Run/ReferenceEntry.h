// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The meaning of a compiled entry: its gdn source, which the image carries,
// evaluated in float64.
#ifndef GDN_RUN_REFERENCEENTRY_H
#define GDN_RUN_REFERENCEENTRY_H

#include "gdn/Reference/Evaluator.h"
#include "gdn/Run/Session.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace gdn::run {

/// What an entry should leave behind, by parameter name.
struct Outcome {
  std::map<std::string, reference::Tensor> results;
  std::map<std::string, reference::Pool> pools;
};

/// The source of one entry, ready to be evaluated.
class ReferenceEntry {
public:
  /// Takes the source from `kernel`'s image. The context outlives the object.
  static llvm::Expected<ReferenceEntry> create(mlir::MLIRContext &context,
                                               const Kernel &kernel);

  /// Evaluates the entry on the values of `arguments`. Pools of `carried` stand
  /// in for those of `arguments`, so that a sequence of calls can keep its
  /// states in float64.
  llvm::Expected<Outcome>
  evaluate(const Arrays &arguments, const Symbols &symbols, int64_t nullSlot,
           const std::map<std::string, reference::Pool> &carried = {}) const;

private:
  std::string name;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
};

} // namespace gdn::run

#endif // GDN_RUN_REFERENCEENTRY_H
