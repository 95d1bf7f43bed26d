// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-compile --emit: no op of a level is left in the next one, and the code
// has an entry point and calls nothing.
//
// RUN: gdn-compile %s --emit=tile | FileCheck %s --check-prefix=TILE
// RUN: gdn-compile %s --emit=tile | gdn-tile-opt > /dev/null
// RUN: gdn-compile %s --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: gdn-compile %s --emit=llvm-ir --target=x86-64-v4 | FileCheck %s --check-prefix=IR
// RUN: gdn-compile %s --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: gdn-compile %s -o %t.gdnk && gdn-run %t.gdnk | FileCheck %s --check-prefix=IMAGE

// TILE-NOT: gdn.
// TILE-LABEL: func.func @unit(
//  TILE-SAME:   grid

// LLVM-NOT: gdn_tile.map_rows
// LLVM-LABEL: llvm.func @unit(
//  LLVM-SAME:   !llvm.ptr{{.*}}, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr
//  LLVM-SAME:   grid

//    IR: define void @unit(
//   IR-NOT: declare {{.*}} @{{[^l]}}
//    IR: attributes {{.*}} "prefer-vector-width"="512" "target-cpu"="x86-64-v4"

// ASM-LABEL: unit:
//   ASM-NOT: call
//       ASM: ret

//      IMAGE: unit (x86-64-v3)
// IMAGE-NEXT:   in q: bf16[N, Hk, 64]
func.func @unit(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %a: tensor<?x?xbf16> {gdn.name = "a", gdn.dims = ["N", "Hv"]},
    %b: tensor<?x?xbf16> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %a_log: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt_bias: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %states: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool",
                                       gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xf32>
        -> tensor<?x?xf32>, tensor<?x?xf32>
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%states) slots(%slots)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>,
        tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x64xf32>,
        tensor<?xi32> -> tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
