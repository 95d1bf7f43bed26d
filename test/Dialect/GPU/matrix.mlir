// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops for tensor cores: parse, print, and print again, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 16, vector = 8>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!transposed = !gdn_gpu.fragment<128x64xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!gates = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>

// CHECK-LABEL: func.func @products(
//       CHECK: %[[K:.+]] = gdn_gpu.alloc : <64x128xbf16, swizzled>
//       CHECK: gdn_gpu.begin_copy %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}] dims [0, 2] rows(%{{.+}}), %[[K]]
//       CHECK: gdn_gpu.begin_copy %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}] dims [0, 2], %[[K]]
//       CHECK: gdn_gpu.await_copies
//       CHECK: %[[A:.+]] = gdn_gpu.load_shared %[[K]]
//       CHECK: gdn_gpu.load_shared transpose %[[K]]
//       CHECK: %[[S:.+]] = gdn_gpu.matmul %[[A]], transpose %[[K]] :
//       CHECK: gdn_gpu.matmul %[[A]], transpose %[[K]] acc(%[[S]] : !gdn_gpu.fragment<64x64xf32, #{{.+}}>) :
//       CHECK: gdn_gpu.tri_inverse %{{.+}} in %{{.+}} : (!gdn_gpu.fragment<64x64xf16, #{{.+}}>, !gdn_gpu.shared<64x64xf16, swizzled>) -> !gdn_gpu.fragment<64x64xf16, #{{.+}}>
//       CHECK: gdn_gpu.store_shared transpose %{{.+}}, %{{.+}} :
//       CHECK: gdn_gpu.tri_inverse transposed %{{.+}}, %{{.+}} in %{{.+}} : (
//       CHECK: gdn_gpu.running_sum %{{.+}} :
//       CHECK: gdn_gpu.running_sum suffix %{{.+}} :
//       CHECK: %[[PLACES:.+]] = gdn_gpu.alloc : <4x64xf32>
//       CHECK: gdn_gpu.column_sum %{{.+}}, %[[PLACES]] : <64x64xf32, #{{.+}}>, <4x64xf32> -> <64xf32, #gdn_gpu.per_column<#{{.+}}>>
func.func @products(%k: memref<?x?x128xbf16, strided<[?, ?, 1]>>, %t: index,
                    %h: index, %valid: index, %l: !matrix, %g: !gates)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %keys = gdn_gpu.alloc : !keys
  %scratch = gdn_gpu.alloc : !square
  gdn_gpu.begin_copy %k[%t, %h, %c0] dims [0, 2] rows(%valid), %keys
      : memref<?x?x128xbf16, strided<[?, ?, 1]>>, !keys
  gdn_gpu.begin_copy %k[%t, %h, %c0] dims [0, 2], %keys
      : memref<?x?x128xbf16, strided<[?, ?, 1]>>, !keys
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %a = gdn_gpu.load_shared %keys : !keys -> !left
  %b = gdn_gpu.load_shared transpose %keys : !keys -> !transposed
  %w = gdn_gpu.load_shared %keys : !keys -> !gdn_gpu.fragment<64x128xbf16, #wide>
  %s = gdn_gpu.matmul %a, transpose %keys : !left, !keys -> !sums
  %r = gdn_gpu.matmul %a, transpose %keys acc(%s : !sums) : !left, !keys -> !sums
  %i = gdn_gpu.tri_inverse %l in %scratch : (!matrix, !square) -> !matrix
  gdn_gpu.barrier
  gdn_gpu.store_shared transpose %i, %scratch : !matrix, !square
  %more = gdn_gpu.alloc : !gdn_gpu.shared<80x64xf16, swizzled>
  %two:2 = gdn_gpu.tri_inverse transposed %l, %i in %more
      : (!matrix, !matrix, !gdn_gpu.shared<80x64xf16, swizzled>) -> (!matrix, !matrix)
  %p = gdn_gpu.running_sum %g : !gates
  %q = gdn_gpu.running_sum suffix %g : !gates
  %buffers = gdn_gpu.alloc : !gdn_gpu.shared<4x64xf32>
  %wide = gdn_gpu.matmul %l, %scratch : !matrix, !square -> !sums
  %columns = gdn_gpu.column_sum %wide, %buffers : !sums, !gdn_gpu.shared<4x64xf32>
      -> !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>
  return
}
