// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant with chunks of its own: 64 tokens where others have 32. All of its stages are its own,
// with regions of the workspace by its own chunk slots, and so are its bits.
//
// RUN: gdn-compile --preset=qwen3.5-4b --io=bf16 --only=prefill --emit=gdn -o %t.mlir
// RUN: gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged chunk=32 variants=short:pieces=8;v-split=2,long:v-split=2;chunk=64;when=chunk*sequences<=tokens,staged-v-split-2:v-split=2;when=chunk*sequences<=tokens,staged:" -canonicalize -cse | FileCheck %s

// The ones for few tokens are those of the others. Then launches ask for this variant.
// CHECK-LABEL: func.func @prefill__prologue_short(
//  CHECK-SAME:   facts = {chunk = "32",
//  CHECK-SAME:   variant = "short"
// CHECK-LABEL: func.func @prefill__prologue_v_split_2_chunk_64(
//  CHECK-SAME:   bits = "long"
//  CHECK-SAME:   conditions = {{\[\[}}["64", "N"], ["T"]]]
//  CHECK-SAME:   facts = {chunk = "64",
//  CHECK-SAME:   grid = ["T floordiv 64 + N", {{[^]]*}}, "2"]
//  CHECK-SAME:   variant = "long"
//  CHECK-SAME:   workspace = {{\[\[}}"T floordiv 64 + N", {{"Hk|"16"}}{{.*}}, "64", "128", "2"]
// CHECK-LABEL: func.func @prefill__prologue(
//  CHECK-SAME:   facts = {chunk = "32",
//  CHECK-SAME:   variant = ["staged-v-split-2", "staged"]
// CHECK-LABEL: func.func @prefill__intra_chunk_v_split_2_chunk_64(
//  CHECK-SAME:   bits = "long"
//  CHECK-SAME:   grid = ["T floordiv 64 + N",
//  CHECK-SAME:   variant = "long"
// CHECK-LABEL: func.func @prefill__inter_chunk_v_split_2_chunk_64(
//  CHECK-SAME:   bits = "long"
//  CHECK-SAME:   facts = {chunk = "64",
//  CHECK-SAME:   variant = "long"
//       CHECK:   scf.for {{.*}} step %c64
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   grid = ["T floordiv 32 + N",
//  CHECK-SAME:   variant = ["short", "staged-v-split-2", "staged"]
// CHECK-LABEL: func.func @prefill__inter_chunk_v_split_2(
//  CHECK-SAME:   bits = "staged"
//  CHECK-SAME:   conditions = {"staged-v-split-2" = {{\[\[}}["32", "N"], ["T"]]]}
//  CHECK-SAME:   variant = ["short", "staged-v-split-2"]
// CHECK-LABEL: func.func @prefill__norm_v_split_2_chunk_64(
//  CHECK-SAME:   facts = {chunk = "64",
//  CHECK-SAME:   variant = "long"
// CHECK-LABEL: func.func @prefill__norm(
//  CHECK-SAME:   facts = {chunk = "32",
//  CHECK-SAME:   variant = ["staged-v-split-2", "staged"]

// Where checkpoints lie between chunks, where operands have two parts, with a decay per channel
// and where V-splits do not divide the values there is none.
// RUN: gdn-compile --preset=qwen3.5-4b --io=bf16 --checkpoints --only=prefill --emit=gdn -o %t.checkpoints.mlir
// RUN: gdn-opt %t.checkpoints.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged chunk=32 variants=long:chunk=64,staged:" | FileCheck %s --check-prefix=NONE
// RUN: gdn-compile --preset=qwen3.5-4b --io=f32 --only=prefill --emit=gdn -o %t.f32.mlir
// RUN: gdn-opt %t.f32.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged chunk=32 variants=long:chunk=64,staged:" | FileCheck %s --check-prefix=NONE
// RUN: gdn-compile --preset=kimi-linear-48b-a3b --io=bf16 --only=prefill --emit=gdn -o %t.channels.mlir
// RUN: gdn-opt %t.channels.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged chunk=32 variants=long:chunk=64,staged:" | FileCheck %s --check-prefix=NONE
// RUN: gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged chunk=32 variants=long:v-split=3;chunk=64,staged:" | FileCheck %s --check-prefix=NONE
//     NONE: variant = "staged"
// NONE-NOT: "long"

// It has a first stage ahead of the one that others share, so launches ask for it ahead of these,
// and behind those whose recurrence convolves.
// RUN: not gdn-opt %t.mlir -gdn-fuse -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged chunk=32 variants=staged:,long:v-split=2;chunk=64" 2>&1 | FileCheck %s --check-prefix=BEHIND
// BEHIND: error: {{.*}}expects variants of prefill with 'chunk' ahead of those that share a first stage, but got 'long' behind 'staged'
// RUN: not gdn-opt %t.mlir -gdn-fuse="norm-with-rule conv-with-rule" -convert-gdn-to-tile="value-heads precision=mixed-io chunk-stages=staged variants=long:v-split=2;chunk=32,fused:fused=2;conv=with-rule,staged:" 2>&1 | FileCheck %s --check-prefix=CONV
//   CONV: error: {{.*}}expects variants of prefill with 'conv' ahead of those without, 'by-lengths' first, but got 'fused' behind 'long'
