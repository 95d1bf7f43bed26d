// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-expand-gpu-math: both planes of four numbers are four permutations, and
// four numbers of both planes six, where a thread has registers for the pairs.
//
// RUN: gdn-gpu-opt %s -gdn-expand-gpu-math="bytes-registers=96 numbers-registers=128" | FileCheck %s
// RUN: gdn-gpu-opt %s -gdn-expand-gpu-math | FileCheck %s --check-prefix=FEW
// RUN: gdn-gpu-opt %s -gdn-expand-gpu-math="bytes-registers=129 numbers-registers=129" | FileCheck %s --check-prefix=FEW
//
// FEW-LABEL: llvm.func @planes
//   FEW-NOT:   nvvm.prmt
// FEW-LABEL: llvm.func @numbers
//   FEW-NOT:   nvvm.prmt
// FEW-LABEL: llvm.func @few_registers

// CHECK-LABEL: llvm.func @planes
//   CHECK-DAG:   %[[PAIR:.+]] = arith.constant 20800 : i32
//   CHECK-DAG:   %[[LOW:.+]] = arith.constant 21520 : i32
//   CHECK-DAG:   %[[UPPER:.+]] = arith.constant 30258 : i32
//       CHECK:   %[[X0:.+]] = vector.extract %[[X:.+]][0]
//       CHECK:   %[[X1:.+]] = vector.extract %[[X]][1]
//       CHECK:   %[[A:.+]] = nvvm.prmt <default> %[[PAIR]], %[[X0]], %[[X1]]
//       CHECK:   %[[B:.+]] = nvvm.prmt <default> %[[PAIR]]
//       CHECK:   nvvm.prmt <default> %[[LOW]], %[[A]], %[[B]]
//       CHECK:   nvvm.prmt <default> %[[UPPER]], %[[A]], %[[B]]
// CHECK-COUNT-4: nvvm.prmt
//   CHECK-NOT:   arith.trunci
//       CHECK:   llvm.return
llvm.func @planes(%p: !llvm.ptr) attributes {nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 4 : i32} {
  %bits = llvm.load %p : !llvm.ptr -> vector<8xi32>
  %eight = arith.constant dense<8> : vector<8xi32>
  %shifted = arith.shrui %bits, %eight : vector<8xi32>
  %upper = arith.trunci %shifted : vector<8xi32> to vector<8xi8>
  %low = arith.trunci %bits : vector<8xi32> to vector<8xi8>
  llvm.store %upper, %p : vector<8xi8>, !llvm.ptr
  llvm.store %low, %p : vector<8xi8>, !llvm.ptr
  llvm.return
}

// Of a word of each plane, two bytes of both in turn, and two bytes of these below
// 0x4b00.
//
// CHECK-LABEL: llvm.func @numbers
//   CHECK-DAG:   %[[PAIR:.+]] = arith.constant 20800 : i32
//   CHECK-DAG:   %[[PAIR2:.+]] = arith.constant 29538 : i32
//   CHECK-DAG:   %[[FIRST:.+]] = arith.constant 30224 : i32
//   CHECK-DAG:   %[[SECOND:.+]] = arith.constant 30258 : i32
//   CHECK-DAG:   %[[ABOVE:.+]] = arith.constant 1258291200 : i32
//       CHECK:   %[[LOWS:.+]] = vector.bitcast %{{.+}} : vector<8xi8> to vector<2xi32>
//       CHECK:   %[[UPPERS:.+]] = vector.bitcast %{{.+}} : vector<8xi8> to vector<2xi32>
//       CHECK:   %[[LOW:.+]] = vector.extract %[[LOWS]][0]
//       CHECK:   %[[UPPER:.+]] = vector.extract %[[UPPERS]][0]
//       CHECK:   %[[TWO:.+]] = nvvm.prmt <default> %[[PAIR]], %[[LOW]], %[[UPPER]]
//  CHECK-NEXT:   nvvm.prmt <default> %[[FIRST]], %[[TWO]], %[[ABOVE]]
//  CHECK-NEXT:   nvvm.prmt <default> %[[SECOND]], %[[TWO]], %[[ABOVE]]
//  CHECK-NEXT:   nvvm.prmt <default> %[[PAIR2]], %[[LOW]], %[[UPPER]]
// CHECK-COUNT-8: nvvm.prmt
//   CHECK-NOT:   arith.extui
//       CHECK:   llvm.return
llvm.func @numbers(%p: !llvm.ptr, %q: !llvm.ptr) attributes {nvvm.reqntid = array<i32: 256>, nvvm.minctasm = 2 : i32} {
  %upper = llvm.load %p : !llvm.ptr -> vector<8xi8>
  %low = llvm.load %q : !llvm.ptr -> vector<8xi8>
  %eight = arith.constant dense<8> : vector<8xi32>
  %above = arith.constant dense<1258291200> : vector<8xi32>
  %wide = arith.extui %upper : vector<8xi8> to vector<8xi32>
  %shifted = arith.shli %wide, %eight : vector<8xi32>
  %rest = arith.extui %low : vector<8xi8> to vector<8xi32>
  %both = arith.ori %shifted, %rest : vector<8xi32>
  %numbers = arith.ori %both, %above : vector<8xi32>
  llvm.store %numbers, %p : vector<8xi32>, !llvm.ptr
  llvm.return
}

// 96 registers, and bits above that would go into the second byte.
// CHECK-LABEL: llvm.func @fewer_numbers
//   CHECK-NOT:   nvvm.prmt
//       CHECK:   llvm.return
llvm.func @fewer_numbers(%p: !llvm.ptr, %q: !llvm.ptr) attributes {nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 5 : i32} {
  %upper = llvm.load %p : !llvm.ptr -> vector<8xi8>
  %low = llvm.load %q : !llvm.ptr -> vector<8xi8>
  %eight = arith.constant dense<8> : vector<8xi32>
  %above = arith.constant dense<1258291200> : vector<8xi32>
  %wide = arith.extui %upper : vector<8xi8> to vector<8xi32>
  %shifted = arith.shli %wide, %eight : vector<8xi32>
  %rest = arith.extui %low : vector<8xi8> to vector<8xi32>
  %both = arith.ori %shifted, %rest : vector<8xi32>
  %numbers = arith.ori %both, %above : vector<8xi32>
  llvm.store %numbers, %p : vector<8xi32>, !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @other_numbers
//   CHECK-NOT:   nvvm.prmt
//       CHECK:   llvm.return
llvm.func @other_numbers(%p: !llvm.ptr, %q: !llvm.ptr) {
  %upper = llvm.load %p : !llvm.ptr -> vector<8xi8>
  %low = llvm.load %q : !llvm.ptr -> vector<8xi8>
  %eight = arith.constant dense<8> : vector<8xi32>
  %above = arith.constant dense<1258324992> : vector<8xi32>
  %wide = arith.extui %upper : vector<8xi8> to vector<8xi32>
  %shifted = arith.shli %wide, %eight : vector<8xi32>
  %rest = arith.extui %low : vector<8xi8> to vector<8xi32>
  %both = arith.ori %shifted, %rest : vector<8xi32>
  %numbers = arith.ori %both, %above : vector<8xi32>
  llvm.store %numbers, %p : vector<8xi32>, !llvm.ptr
  llvm.return
}

// 85 registers.
// CHECK-LABEL: llvm.func @few_registers
//   CHECK-NOT:   nvvm.prmt
// CHECK-COUNT-2: arith.trunci
llvm.func @few_registers(%p: !llvm.ptr) attributes {nvvm.reqntid = array<i32: 128>, nvvm.minctasm = 6 : i32} {
  %bits = llvm.load %p : !llvm.ptr -> vector<8xi32>
  %eight = arith.constant dense<8> : vector<8xi32>
  %shifted = arith.shrui %bits, %eight : vector<8xi32>
  %upper = arith.trunci %shifted : vector<8xi32> to vector<8xi8>
  %low = arith.trunci %bits : vector<8xi32> to vector<8xi8>
  llvm.store %upper, %p : vector<8xi8>, !llvm.ptr
  llvm.store %low, %p : vector<8xi8>, !llvm.ptr
  llvm.return
}

// One plane, another shift, the bytes of a number in three parts, and six
// numbers.
// CHECK-LABEL: llvm.func @others
//   CHECK-NOT:   nvvm.prmt
//       CHECK:   llvm.return
llvm.func @others(%p: !llvm.ptr) {
  %bits = llvm.load %p : !llvm.ptr -> vector<8xi32>
  %one = arith.trunci %bits : vector<8xi32> to vector<8xi8>
  llvm.store %one, %p : vector<8xi8>, !llvm.ptr

  %more = llvm.load %p : !llvm.ptr -> vector<8xi32>
  %seven = arith.constant dense<7> : vector<8xi32>
  %halves = arith.shrui %more, %seven : vector<8xi32>
  %a = arith.trunci %halves : vector<8xi32> to vector<8xi8>
  %b = arith.trunci %more : vector<8xi32> to vector<8xi8>
  llvm.store %a, %p : vector<8xi8>, !llvm.ptr
  llvm.store %b, %p : vector<8xi8>, !llvm.ptr

  %parts = llvm.load %p : !llvm.ptr -> vector<8xi32>
  %eight = arith.constant dense<8> : vector<8xi32>
  %sixteen = arith.constant dense<16> : vector<8xi32>
  %second = arith.shrui %parts, %eight : vector<8xi32>
  %third = arith.shrui %parts, %sixteen : vector<8xi32>
  %c = arith.trunci %parts : vector<8xi32> to vector<8xi8>
  %d = arith.trunci %second : vector<8xi32> to vector<8xi8>
  %e = arith.trunci %third : vector<8xi32> to vector<8xi8>
  llvm.store %c, %p : vector<8xi8>, !llvm.ptr
  llvm.store %d, %p : vector<8xi8>, !llvm.ptr
  llvm.store %e, %p : vector<8xi8>, !llvm.ptr

  %six = llvm.load %p : !llvm.ptr -> vector<6xi32>
  %bytes = arith.constant dense<8> : vector<6xi32>
  %above = arith.shrui %six, %bytes : vector<6xi32>
  %f = arith.trunci %above : vector<6xi32> to vector<6xi8>
  %g = arith.trunci %six : vector<6xi32> to vector<6xi8>
  llvm.store %f, %p : vector<6xi8>, !llvm.ptr
  llvm.store %g, %p : vector<6xi8>, !llvm.ptr
  llvm.return
}
