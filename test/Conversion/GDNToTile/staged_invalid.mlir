// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two stages are for products of rounded operands.
//
// RUN: gdn-opt %s -convert-gdn-to-tile="chunk-stages=staged precision=mixed"
// RUN: not gdn-opt %s -convert-gdn-to-tile=chunk-stages=staged 2>&1 | FileCheck %s
// RUN: not gdn-compile %s --chunk-stages=staged -o %t 2>&1 | FileCheck %s --check-prefix=COMPILE

// RUN: not gdn-opt %s -convert-gdn-to-tile=variants=a:v-split=0 2>&1 | FileCheck %s --check-prefix=VSPLIT
//   VSPLIT: error: expects the option 'variants' to hold variants of prefill, but of 'a:v-split=0': expected 'v-split' to be at least 1, got '0'
// RUN: not gdn-opt %s -convert-gdn-to-tile=variants=staged:,a:segments=1 2>&1 | FileCheck %s --check-prefix=CUTS
//    CUTS: error: expects the option 'variants' to hold variants of prefill, but of 'a:segments=1': expected 'segments' to be at least 2, got '1'
// RUN: not gdn-opt %s -convert-gdn-to-tile="short-chunks=0:values<=127" 2>&1 | FileCheck %s --check-prefix=SHORT
//   SHORT: error: expected 'short-chunks' to be at least 1, got '0'
// RUN: not gdn-opt %s -convert-gdn-to-tile="short-chunks=32:tokens<=127" 2>&1 | FileCheck %s --check-prefix=HEADS
//   HEADS: error: expected 'short-chunks' to be about keys, values, parts, channels, bounded, scaled, got 'tokens'
// RUN: not gdn-opt %s -convert-gdn-to-tile="lanes=8 form-costs=1,2" 2>&1 | FileCheck %s --check-prefix=COSTS
//   COSTS: error: expects the option 'form-costs' to have 10 numbers, but got 2
// RUN: not gdn-opt %s -convert-gdn-to-tile=variants=:fused=2 2>&1 | FileCheck %s --check-prefix=NAME
//    NAME: but of ':fused=2': expected a name, got ':fused=2'
// RUN: not gdn-opt %s -convert-gdn-to-tile=variants=a:wide=2 2>&1 | FileCheck %s --check-prefix=FIELD
//   FIELD: expected fused, v-split, segments, scan, chunk, pieces, by-lengths, norm, conv, maps, copies, blocks, where, when or any-batch, got 'wide'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:where=sequences<=2' 2>&1 | FileCheck %s --check-prefix=WHERE
//   WHERE: expected 'where' to be about keys, values, parts, channels, bounded, scaled, got 'sequences'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:when=sequences' 2>&1 | FileCheck %s --check-prefix=WHEN
//    WHEN: expected 'product <= product', got 'sequences'
// RUN: not gdn-opt %s -convert-gdn-to-tile=variants=a:by-lengths=165/132 2>&1 | FileCheck %s --check-prefix=LENGTHS
// LENGTHS: expected 'by-lengths' with 'fused'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;norm=apart' 2>&1 | FileCheck %s --check-prefix=NORM
//    NORM: expected 'norm' to be with-rule, behind or follows, got 'apart'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:norm=with-rule' 2>&1 | FileCheck %s --check-prefix=STAGED
//  STAGED: expected 'norm' with 'fused'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:norm=behind' 2>&1 | FileCheck %s --check-prefix=BEHIND
//  BEHIND: expected 'norm' with 'fused'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;segments=4;norm=behind' 2>&1 | FileCheck %s --check-prefix=OWN-BITS
//  OWN-BITS: expected 'norm' to be with-rule with 'segments', whose bits are their own
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;norm=follows' 2>&1 | FileCheck %s --check-prefix=FOLLOWS
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;norm=follows' 2>&1 | FileCheck %s --check-prefix=FOLLOWS
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=1;v-split=2;norm=follows' 2>&1 | FileCheck %s --check-prefix=FOLLOWS
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;v-split=4;norm=follows' 2>&1 | FileCheck %s --check-prefix=FOLLOWS
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;v-split=2;norm=follows;conv=with-rule' 2>&1 | FileCheck %s --check-prefix=FOLLOWS
// FOLLOWS: expected 'norm' to be follows with 'fused=2' and 'v-split=2' and without 'conv' and 'maps'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;maps=also' 2>&1 | FileCheck %s --check-prefix=MAPS
//    MAPS: expected 'maps' to be alone, got 'also'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:pieces=8;maps=alone' 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;segments=3;maps=alone' 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;v-split=2;maps=alone' 2>&1 | FileCheck %s --check-prefix=MORE
//    MORE: expected 'maps' with 'fused' or 'v-split' and with nothing else
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;copies=late' 2>&1 | FileCheck %s --check-prefix=COPIES
//  COPIES: expected 'copies' to be ahead, got 'late'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;segments=8;copies=ahead' 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;copies=ahead' 2>&1 | FileCheck %s --check-prefix=AHEAD
//   AHEAD: expected 'copies' without 'fused', 'segments', 'pieces' and 'maps'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;blocks=go' 2>&1 | FileCheck %s --check-prefix=BLOCKS
//  BLOCKS: expected 'blocks' to be stay, got 'go'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:blocks=stay' 2>&1 | FileCheck %s --check-prefix=STAY
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;v-split=2;blocks=stay' 2>&1 | FileCheck %s --check-prefix=STAY
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;segments=4;blocks=stay' 2>&1 | FileCheck %s --check-prefix=STAY
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;by-lengths=165/132;blocks=stay' 2>&1 | FileCheck %s --check-prefix=STAY
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;maps=alone;blocks=stay' 2>&1 | FileCheck %s --check-prefix=STAY
//    STAY: expected 'blocks' with 'fused' and without 'v-split', 'segments', 'by-lengths' and 'maps'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;conv=apart' 2>&1 | FileCheck %s --check-prefix=CONV
//    CONV: expected 'conv' to be with-rule, got 'apart'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:conv=with-rule' 2>&1 | FileCheck %s --check-prefix=WHOLE
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;segments=3;conv=with-rule' 2>&1 | FileCheck %s --check-prefix=WHOLE
//   WHOLE: expected 'conv' with 'fused' and without 'segments'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;by-lengths=165/132;v-split=2' 2>&1 | FileCheck %s --check-prefix=HALVES
//  HALVES: expected 'by-lengths' without 'segments' and 'v-split'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:pieces=8;segments=2' 2>&1 | FileCheck %s --check-prefix=PIECES
//  PIECES: expected 'pieces' without 'fused' and 'segments'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:chunk=0' 2>&1 | FileCheck %s --check-prefix=CHUNK
//   CHUNK: expected 'chunk' to be at least 1, got '0'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:chunk=48' 2>&1 | FileCheck %s --check-prefix=POWER
//   POWER: error: expects chunks of a power of two of tokens from 16 on in the option 'variants', but got 48
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:chunk=8' 2>&1 | FileCheck %s --check-prefix=EIGHT
//   EIGHT: error: expects chunks of a power of two of tokens from 16 on in the option 'variants', but got 8
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;chunk=64;fused=2' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;chunk=64;segments=8' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;chunk=64;pieces=8' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;chunk=64;copies=ahead' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;chunk=64;maps=alone' 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:v-split=2;chunk=64;any-batch=always' 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: expected 'chunk' with nothing but 'v-split', 'where' and 'when'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;v-split=2;scan=64' 2>&1 | FileCheck %s --check-prefix=SCAN
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:fused=2;segments=4;scan=64' 2>&1 | FileCheck %s --check-prefix=SCAN
//    SCAN: expected 'scan' with 'fused', 'segments' and 'v-split'
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:segments=4;any-batch=always' 2>&1 | FileCheck %s --check-prefix=ANYBATCH
// ANYBATCH: expected 'any-batch' without 'segments', whose bits depend on the batch
// RUN: not gdn-opt %s '-convert-gdn-to-tile=variants=a:any-batch=lengths<=2' 2>&1 | FileCheck %s --check-prefix=ABOUT
//   ABOUT: expected 'any-batch' to be about sequences, heads, tokens, workers, keys, values, chunk, parts, norms, convs, follows, computed, bounded, scaled, got 'lengths'
//   CHECK: error: expects the option 'precision' to be mixed or mixed-io with 'chunk-stages=staged', but got f32
// COMPILE: error: --chunk-stages=staged: expects --precision mixed or mixed-io, but got f32
module {
}
