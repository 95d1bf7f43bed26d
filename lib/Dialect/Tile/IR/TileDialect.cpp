// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the gdn_tile dialect.
#include "gdn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace gdn;

#include "gdn/Dialect/Tile/IR/TileDialect.cpp.inc"
#include "gdn/Dialect/Tile/IR/TileInterfaces.cpp.inc"

void tile::TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}
