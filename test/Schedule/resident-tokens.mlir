// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that goes through the tokens of a row with its state in the registers of a
// block: eight tokens are prepared, then scanned one by one, then finished. It is
// no decode step, so that schedule leaves it as it is, and nobody takes a loop
// that is not said to be over tokens.
//
// RUN: gdn-opt %S/../Conversion/GDNToTile/token-slots.mlir -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -o %t.tile
// RUN: gdn-opt %t.tile -gdn-schedule-resident-recurrence | FileCheck %s --check-prefix=DECODE
// RUN: sed 's/ {gdn_tile.tokens}//' %t.tile | gdn-opt -gdn-schedule-resident-tokens | FileCheck %s --check-prefix=DECODE
// RUN: sed 's/grid = [[][^]]*], //; s/gdn_tile.block_id [01]/arith.constant 0 : index/' %t.tile | gdn-opt -gdn-schedule-resident-tokens | FileCheck %s --check-prefix=DECODE
// RUN: gdn-opt %t.tile -gdn-schedule-resident-tokens -canonicalize -cse -o %t.gpu
// RUN: FileCheck %s < %t.gpu
// RUN: gdn-gpu-opt %t.gpu -gdn-gpu-check -o /dev/null
// RUN: gdn-opt %S/../Conversion/GDNToTile/parents.mlir -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse -o %t.tree
// RUN: FileCheck %s --check-prefix=TREE < %t.tree
// RUN: gdn-gpu-opt %t.tree -gdn-gpu-check -o /dev/null
// RUN: sed 's/64x16xbf16/64x16xf32/g' %S/../Conversion/GDNToTile/parents.mlir | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse | FileCheck %s --check-prefix=EXACT
// Windows of one input.
// RUN: sed 's/x4xf16>/x2xf16>/; s/"4"\]/"2"]/; s/x3xf16>/x1xf16>/; s/"3"\]/"1"]/' %S/../Conversion/GDNToTile/parents.mlir | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse -o %t.two
// RUN: gdn-gpu-opt %t.two -gdn-gpu-check -o /dev/null
// RUN: gdn-opt %S/../Conversion/GDNToTile/pending.mlir -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse -o %t.lazy
// RUN: FileCheck %s --check-prefix=LAZY < %t.lazy
// RUN: gdn-opt %S/../Conversion/GDNToTile/pending-short.mlir -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse -o %t.short
// RUN: FileCheck %s --check-prefix=SHORT < %t.short
// RUN: gdn-gpu-opt %t.short -gdn-gpu-check -o /dev/null
// RUN: sed 's/bf16/f32/g' %S/../Conversion/GDNToTile/pending-short.mlir | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/max_tokens(8)/max_tokens(4)/' %S/../Conversion/GDNToTile/pending-short.mlir | gdn-opt -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse -gdn-tile-fuse-rows -cse -gdn-schedule-resident-tokens -canonicalize -cse -o %t.four
// RUN: FileCheck %s --check-prefix=FOUR < %t.four
// RUN: gdn-gpu-opt %t.four -gdn-gpu-check -o /dev/null
// RUN: not gdn-opt %t.tile -gdn-schedule-resident-tokens=threads=96 -o /dev/null 2>&1 | FileCheck %s --check-prefix=THREADS

// THREADS: error: expects the option 'threads' to be a multiple of 32 from 128 to 1024, but got 96

// DECODE-LABEL: func.func @verify(
//   DECODE-NOT:   gdn_gpu

// CHECK-LABEL: func.func @verify(
//       CHECK:   %[[M:.+]] = gdn_gpu.load %{{.+}} aligned 16
//       CHECK:   gdn_gpu.await_launch
// The state after the tokens of a block is that before the next.
//       CHECK:   scf.for %[[T0:[a-z0-9]+]] = %[[BEGIN:[a-z0-9]+]] to %[[END:[^ ]+]] step %c8 iter_args(
//  CHECK-NEXT:     %[[LEFT:.+]] = arith.subi %[[END]], %[[T0]]
//  CHECK-NEXT:     %[[CUT:.+]] = arith.minsi %[[LEFT]], %c8
//  CHECK-NEXT:     %[[COUNT:.+]] = arith.maxsi %[[CUT]], %c0
// Query: warp 0, four tokens at once. The first finds the window in the pool,
// the others in the inputs.
//       CHECK:     gdn_gpu.each_warp 0 for 1 {
//       CHECK:       scf.for %[[I:.+]] = %{{.+}} to %[[COUNT]] step %c4 {
//       CHECK:         gdn_gpu.load {{.*}}<4x
//       CHECK:         arith.cmpi eq, %{{.+}}, %[[BEGIN]]
//       CHECK:         scf.if
//       CHECK:         gdn_gpu.conv1d
//       CHECK:         gdn_gpu.store_shared %{{.+}}, %[[Q:.+]] row(%[[I]])
//       CHECK:     gdn_gpu.each_warp 1 for 1 {
//       CHECK:     gdn_gpu.each_warp 2 for 1 {
//       CHECK:     gdn_gpu.each_warp 3 for 1 {
//       CHECK:       gdn_gpu.store_shared {{.*}}<8xf32, #gdn_gpu.per_row<
//       CHECK:     gdn_gpu.barrier
//       CHECK:     scf.for %[[J:.+]] = %c0 to %{{.+}} step %c1 iter_args(
//       CHECK:       gdn_gpu.load_shared %[[Q]] row(%[[J]])
//       CHECK:       gdn_gpu.map_rows
//       CHECK:       gdn_gpu.store_shared %{{.+}}, %[[O:.+]] row(%[[J]])
//       CHECK:       scf.if
//       CHECK:         gdn_gpu.store {{.+}} aligned 16
// The windows after each token, if this block is the last that has read them.
//       CHECK:     gdn_gpu.warps 0 for 1 {
//       CHECK:       gdn_gpu.last_reader
//       CHECK:       scf.for
//       CHECK:         gdn_gpu.load_shared {{.*}}<11x{{.*}} -> {{.*}}<3x
//       CHECK:         gdn_gpu.store
//       CHECK:     gdn_gpu.warps 1 for 1 {
//       CHECK:     gdn_gpu.warps 2 for 1 {
//   CHECK-NOT:       gdn_gpu.last_reader
//       CHECK:     gdn_gpu.barrier
//       CHECK:     gdn_gpu.each_warp 0 for 4 {
//       CHECK:       gdn_gpu.load_shared %[[O]] row

// A tree: tokens one by one, each with a window of its own; the state is read
// back inside the loop.
// TREE-LABEL: func.func @verify(
//  TREE-SAME:   gdn_gpu.allow = "spills up to 36 bytes: {{[^"]+}}"
//       TREE:   gdn_gpu.each_warp 0 for 1 {
//       TREE:     scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c1 {
// TREE-COUNT-4:     gdn_gpu.conv1d
//       TREE:       gdn_gpu.store_shared {{.*}}<3x{{.*}}<24x
//       TREE:   gdn_gpu.barrier
//       TREE:   scf.for %{{.+}} = %c0 to %{{.+}} step %c1 {
//       TREE:     gdn_gpu.load {{.+}} aligned 16
//       TREE:     gdn_gpu.store {{.+}} aligned 16

// With states of f32 there is room for all.
//  EXACT-NOT: gdn_gpu.allow
//      EXACT: gdn_gpu.map_rows

// Pending tokens: folded into the state of the row's first tokens, which is
// stored; the state after this step's tokens is not. So these are taken at once:
// pairs of tokens and products with the state, then a row of it per thread, one
// token after another, eight times. Another block of tokens would take them in.
// LAZY-LABEL: func.func @verify(
//       LAZY:   gdn_gpu.load {{.+}} aligned 16
//       LAZY:   gdn_gpu.await_launch
// LAZY-COUNT-2: gdn_gpu.begin_copy %{{.+}} rows(
//       LAZY:   gdn_gpu.begin_copy scattered
//       LAZY:   scf.for {{.+}} iter_args(%[[BEFORE:.+]] = %{{.+}}) -> (!gdn_gpu.fragment<
//       LAZY:     gdn_gpu.await_copies
//       LAZY:     gdn_gpu.barrier
//       LAZY:     %[[TICKET:.+]] = gdn_gpu.warps 0 for 1
//       LAZY:       gdn_gpu.take_ticket
//       LAZY:     gdn_gpu.each_warp 0 for 4 {
//       LAZY:       gdn_gpu.load_shared %{{.+}} : <8x16xf32> -> <8x16xf32,
//       LAZY:       gdn_gpu.map_rows
//       LAZY:       gdn_gpu.store_shared %{{.+}}, %[[KK:.+]] row({{.+}}<8x8xf32>
//       LAZY:       gdn_gpu.store_shared %{{.+}}, %[[KQ:.+]] row({{.+}}<8x8xf32>
//       LAZY:     %[[M:.+]] = scf.if {{.+}} -> (!gdn_gpu.fragment<
//       LAZY:       scf.for {{.+}} iter_args(
//       LAZY:         gdn_gpu.map_rows
//       LAZY:       gdn_gpu.store {{.+}} aligned 16
//       LAZY:     scf.for %[[T:.+]] = %c0 to %[[COUNT:.+]] step %c1 {
//       LAZY:       gdn_gpu.map_rows %[[M]], %{{.+}}, %{{.+}}
//       LAZY:       gdn_gpu.store_shared %{{.+}}, %[[A:.+]] row(%[[T]])
//       LAZY:       gdn_gpu.store_shared %{{.+}}, %[[B:.+]] row(%[[T]])
//       LAZY:     gdn_gpu.barrier
// LAZY-COUNT-8:     gdn_gpu.load_shared %[[A]] row(
//   LAZY-NOT:   aligned 16
//       LAZY:     gdn_gpu.is_last %[[TICKET]]
//       LAZY:     gdn_gpu.barrier
//       LAZY:     scf.if {{.+}} -> (!gdn_gpu.fragment<
//       LAZY:       gdn_gpu.map_rows %[[M]]
//       LAZY:       scf.for {{.+}} iter_args({{.+}} -> (!gdn_gpu.fragment<

// Rows of up to four tokens: tiles of four.
//       FOUR: gdn_gpu.allow = "spills: {{[^"]+}}"
//       FOUR: gdn_gpu.share_products {{.+}}, <4x128xf32>, <4x{{[0-9]+}}xf32>
//   FOUR-NOT: gdn_gpu.share_products

// Rows of up to eight tokens: no loop over blocks of them, and eight warps. Windows
// and inputs of each convolution by two of them, four tokens each, to shared memory;
// then two tokens at a time from there.
// SHORT-LABEL: func.func @verify(
//  SHORT-SAME:   threads = 256
//       SHORT:   gdn_gpu.load {{.+}} aligned 16
//       SHORT:   gdn_gpu.await_launch
//   SHORT-NOT:   iter_args
//       SHORT:   %[[WEIGHT:.+]] = gdn_gpu.each_warp 0 for 2 -> !gdn_gpu.fragment<4x128xbf16,
//       SHORT:     gdn_gpu.load {{.*}}<4x128xbf16
//   SHORT-NOT:     gdn_gpu.map_rows
//       SHORT:     scf.if
//       SHORT:       gdn_gpu.load {{.*}}<3x128xbf16
//   SHORT-NOT:     gdn_gpu.map_rows
//       SHORT:     gdn_gpu.load {{.*}}<4x128xbf16
//       SHORT:     gdn_gpu.map_rows
//       SHORT:     scf.if
//       SHORT:       gdn_gpu.store_shared %{{.+}}, %[[HISTORY:.+]] row(%c0) : <3x128xf32
//       SHORT:     gdn_gpu.store_shared %{{.+}}, %[[HISTORY]] row(%{{.+}}) : <4x128xf32
//       SHORT:   gdn_gpu.each_warp 2 for 2
//       SHORT:   gdn_gpu.each_warp 4 for 2
//       SHORT:   gdn_gpu.each_warp 6 for 1
//       SHORT:   gdn_gpu.barrier
//       SHORT:   gdn_gpu.each_warp 0 for 2 {
//       SHORT:     scf.for %[[T:.+]] = %{{.+}} to %{{.+}} step %c2 {
//   SHORT-NOT:       gdn_gpu.load
//   SHORT-DAG:       gdn_gpu.map_rows %[[WEIGHT]]
//   SHORT-DAG:       gdn_gpu.load_shared %[[HISTORY]] row(%[[T]]) {{.*}}<3x128xf32
//       SHORT:       gdn_gpu.conv1d {{.*}}<1x128xf32
//       SHORT:   gdn_gpu.await_copies
//  SHORT-NEXT:   gdn_gpu.barrier
//       SHORT:   gdn_gpu.share_products
//       SHORT:   gdn_gpu.barrier
//       SHORT:   gdn_gpu.is_last
//       SHORT:   gdn_gpu.barrier
//   SHORT-NOT:   iter_args({{.+}} -> (!gdn_gpu.fragment<
//   SHORT-NOT:   gdn_gpu.barrier
//       SHORT:   return

// Inputs of f32 leave eight warps no room.
//  WIDE-LABEL: func.func @verify(
//   WIDE-SAME:   threads = 128
