// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-opt: runs gdn's passes on IR of every level.
#include "gdn/Pipelines/Registration.h"
#include "gdn/Support/OptimizerMain.h"

#include "mlir/IR/DialectRegistry.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  gdn::registerAllDialects(registry);
  gdn::registerAllPasses();
  return gdn::runOptimizer(argc, argv, "gdn optimizer\n", registry);
}
