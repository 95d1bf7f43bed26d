// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Saves what a pass crashed on. A pass that fails with an error of its own has
// said what is wrong with the input, and leaves no file behind.
#ifndef GDN_PIPELINES_CRASHREPRODUCER_H
#define GDN_PIPELINES_CRASHREPRODUCER_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace gdn {

/// While it lives, it watches the errors of `context`; diagnostics reach the
/// handlers registered before it.
class CrashReproducer {
public:
  CrashReproducer(mlir::MLIRContext &context, std::string path);
  ~CrashReproducer();

  /// Makes `passes` write the reproducer when one of them crashes.
  void attach(mlir::PassManager &passes);

private:
  mlir::MLIRContext &context;
  std::string path;
  mlir::DiagnosticEngine::HandlerID handler;
  bool sawError = false;  // a pass has said what is wrong
  bool reporting = false; // the next error is about the reproducer itself
};

} // namespace gdn

#endif // GDN_PIPELINES_CRASHREPRODUCER_H
