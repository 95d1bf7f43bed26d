// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What roles make of a chunk, with a decay per channel. Keys to the end lie in
// panels that are apart; the inverse and the scores are columns of one tile.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!input = !gdn_gpu.shared<32x128xbf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>
!beta = !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>

// CHECK-LABEL: func.func @within
//       CHECK:   gdn_gpu.decay_within %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : <32x128xbf16, swizzled>, <32x128xf32, swizzled>, <16x128xf16, swizzled>, <2x128xf32>
func.func @within(%q: !input, %k: !input, %g: !logs, %f: !first, %d: !decays)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.decay_within %q, %k, %g, %f, %d : !input, !logs, !first, !decays
  return
}

// Logs of f16 where those of f32 would be, with rows of queries and keys to be multiplied.
// CHECK-LABEL: func.func @narrow
//       CHECK:   gdn_gpu.decay_within %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} norms(%{{.+}}) : <32x128xbf16, swizzled>, <32x128xf16, swizzled, apart = 2>, <16x128xf16, swizzled>, <2x128xf32>, !gdn_gpu.shared<2x32xf32>
func.func @narrow(%q: !input, %k: !input, %g: !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>, %f: !first, %d: !decays,
                  %n: !gdn_gpu.shared<2x32xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.decay_within %q, %k, %g, %f, %d norms(%n)
      : !input, !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>, !first, !decays, !gdn_gpu.shared<2x32xf32>
  return
}

// CHECK-LABEL: func.func @others
//       CHECK:   gdn_gpu.decay_between %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} scale(%{{.+}}) : <32x128xf16, swizzled>, <32x128xf32, swizzled>, <16x128xf16, swizzled>, <2x128xf32>, <32x64xf16, swizzled>, <128xf32>
//       CHECK:   gdn_gpu.block_inverses %{{.+}}, %{{.+}}, %{{.+}} scale(%{{.+}}) : <32x128xf32, swizzled>, <32x64xf16, swizzled>, <32xf32, {{.+}}>
//       CHECK:   gdn_gpu.join_inverses %{{.+}}, %{{.+}} : <32x128xf32, swizzled>, <32x64xf16, swizzled>
func.func @others(%q: !tile, %k: !tile, %g: !logs, %f: !first, %d: !decays, %p: !products, %e: !end, %b: !beta, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  gdn_gpu.warps 0 for 2 {
    gdn_gpu.decay_between %q, %k, %g, %f, %d, %p, %e scale(%s) : !tile, !logs, !first, !decays, !products, !end
  }
  gdn_gpu.warps 2 for 1 {
    gdn_gpu.block_inverses %g, %p, %b scale(%s) : !logs, !products, !beta
    gdn_gpu.join_inverses %g, %p : !logs, !products
  }
  return
}

// CHECK-LABEL: func.func @products
//       CHECK:   gdn_gpu.reshape %{{.+}} : <32x128xf32, swizzled> to <32x128xf16, swizzled, apart = 2>
//       CHECK:   gdn_gpu.matmul %{{.+}}, transpose %{{.+}} from 32 : <16x32xf16, #{{.+}}>, <32x64xf16, swizzled> -> <16x32xf32, #{{.+}}>
//       CHECK:   gdn_gpu.matmul %{{.+}}, %{{.+}} : <16x32xf16, #{{.+}}>, <32x128xf16, swizzled, apart = 2> -> <16x128xf32, #{{.+}}>
func.func @products(%x: !gdn_gpu.fragment<16x32xf16, #rows>, %g: !logs, %p: !products)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %to_end = gdn_gpu.reshape %g : !logs to !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>
  %o = gdn_gpu.matmul %x, transpose %p from 32
      : !gdn_gpu.fragment<16x32xf16, #rows>, !products -> !gdn_gpu.fragment<16x32xf32, #rows>
  %s = gdn_gpu.matmul %x, %to_end
      : !gdn_gpu.fragment<16x32xf16, #rows>, !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>
      -> !gdn_gpu.fragment<16x128xf32, #rows>
  return
}
