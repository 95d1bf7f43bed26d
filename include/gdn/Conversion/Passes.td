// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions from one level to the next.
#ifndef GDN_CONVERSION_PASSES_TD
#define GDN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertGDNToTile : Pass<"convert-gdn-to-tile", "::mlir::ModuleOp"> {
  let summary = "Choose the algorithm: gdn kernels to tile programs";
  let description = [{
    Replaces every entry function by the tile program of its kernel. Arguments
    become views: index arguments for all symbols of the entry, then a memref
    per tensor and per result, and a memref and its null slot per pool.
    `gdn.unpack` becomes strided views of the packed argument, grouped by key
    head, so that what follows does not depend on the layout.

    One block serves one row and one key head with its `Hv/Hk` value heads, so
    no two blocks touch the same channel of the convolution state. A row is
    walked in blocks of `tokens` tokens (one token in a decode entry); the
    state of the recurrence and the windows of the convolution are carried from
    block to block as f32 tiles. The program has one block more than there are
    rows: it writes zeros to the padding.

    **Runs after** `gdn-fuse`; **before** `convert-tile-to-cpu`.

    **Needs**: one `gdn.kernel` per entry; static head dimensions; all ops of a
    kernel over the same rows and slots.

    **Leaves**: no gdn op. Functions without `gdn.entry` are left alone.

    **Numerics**: f32 accumulation whatever the element types; results are
    rounded once, where they are stored. No reordering of the recurrence.

    **Fails** with an error on the op that has no tile program: a kernel whose
    results are not zero in skipped rows, `gdn.unpack` of a value that is not an
    argument, two kernels in one entry, ops over different rows.

    Before and after: `test/Conversion/GDNToTile/decode.mlir`.
  }];
  let options = [
    Option<"tokens", "tokens", "int64_t", /*default=*/"16",
           "Tokens per block of the token loop of an entry with row bounds">
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels converted">
  ];
  let dependentDialects = [
    "::gdn::tile::TileDialect", "::mlir::arith::ArithDialect",
    "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

#endif // GDN_CONVERSION_PASSES_TD
