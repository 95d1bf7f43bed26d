// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @flag@: what it does and the idea. See Passes.td.
#include "@passes@.h"

#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_ @UPPER @
#include "@passes@.h.inc"
} // namespace gdn

using namespace mlir;

namespace {
struct @Camel @final : gdn::impl::@Camel @Base<@Camel @> {
  using @Camel @Base::@Camel @Base;

  void runOnOperation() override {}
};
} // namespace
