// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-fuse: which ops share one kernel, and in which order kernels stand. A
// second run changes nothing.
//
// RUN: gdn-opt %s -gdn-fuse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -o %t
// RUN: gdn-opt %t -gdn-fuse | diff %t -

// A decode step: everything but unpack is one kernel with the entry's name. The
// kernel's only result is what the entry returns.
// CHECK-LABEL: func.func @decode(
//       CHECK:   %[[QKV:.+]]:3 = gdn.unpack "qkv"
//       CHECK:   %[[BA:.+]]:2 = gdn.unpack "ba"
//       CHECK:   %[[R:.+]] = gdn.kernel "decode" {
//       CHECK:     %[[G:.+]], %[[BETA:.+]] = gdn.gates %[[BA]]#1, %[[BA]]#0
//       CHECK:     %[[C:.+]]:3 = gdn.conv1d %[[QKV]]#0, %[[QKV]]#1, %[[QKV]]#2
//       CHECK:     %[[Q:.+]] = gdn.l2norm %[[C]]#0
//       CHECK:     %[[K:.+]] = gdn.l2norm %[[C]]#1
//       CHECK:     %[[O:.+]] = gdn.delta_rule %[[Q]], %[[K]], %[[C]]#2 gates(%[[G]], %[[BETA]])
//       CHECK:     gdn.yield %[[O]] : tensor<?x?x64xf32>
//       CHECK:   } : tensor<?x?x64xf32>
//       CHECK:   return %[[R]]
func.func @decode(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkv: tensor<?x?xf32> {gdn.name = "qkv", gdn.dims = ["N", "128*Hk + 64*Hv"]},
    %ba: tensor<?x?xf32> {gdn.name = "ba", gdn.dims = ["N", "2*Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["128*Hk + 64*Hv", "4"]},
    %a_log: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt_bias: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "128*Hk + 64*Hv", "3"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]}) attributes {gdn.entry} {
  %q, %k, %v = gdn.unpack "qkv" flat %qkv heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>
  %b, %a = gdn.unpack "ba" flat %ba heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%conv_pool) slots(%slots)
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>,
        tensor<?xi32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  %o = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%pool) slots(%slots)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// Token-wise ops on parts of one projection share a kernel; those on other
// tokens have their own. Results that only the kernel uses stay inside.
// CHECK-LABEL: func.func @token_wise(
//       CHECK:   %[[QK:.+]]:2 = gdn.unpack
//       CHECK:   %[[A:.+]]:2 = gdn.kernel "token_wise_0" {
//       CHECK:     %[[QN:.+]] = gdn.l2norm %[[QK]]#0
//       CHECK:     %[[KN:.+]] = gdn.l2norm %[[QK]]#1
//       CHECK:     %[[KC:.+]] = gdn.cast %[[KN]]
//       CHECK:     gdn.yield %[[QN]], %[[KC]]
//       CHECK:   %[[B:.+]] = gdn.kernel "token_wise_1" {
//       CHECK:     gdn.l2norm
//       CHECK:   return %[[A]]#0, %[[A]]#1, %[[B]]
func.func @token_wise(
    %hk: index {gdn.name = "Hk"},
    %qk: tensor<?x?xf32> {gdn.name = "qk", gdn.dims = ["T", "16*Hk"]},
    %x: tensor<?x?x8xf32> {gdn.name = "x", gdn.dims = ["S", "Hk", "8"]})
    -> (tensor<?x?x8xf32> {gdn.name = "qn", gdn.dims = ["T", "Hk", "8"]},
        tensor<?x?x8xbf16> {gdn.name = "kn", gdn.dims = ["T", "Hk", "8"]},
        tensor<?x?x8xf32> {gdn.name = "xn", gdn.dims = ["S", "Hk", "8"]}) attributes {gdn.entry} {
  %q, %k = gdn.unpack "qk" flat %qk heads(%hk, %hk) : tensor<?x?xf32> -> tensor<?x?x8xf32>, tensor<?x?x8xf32>
  %qn = gdn.l2norm %q : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %xn = gdn.l2norm %x : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %kn = gdn.l2norm %k : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %kc = gdn.cast %kn : tensor<?x?x8xf32> -> tensor<?x?x8xbf16>
  return %qn, %kc, %xn : tensor<?x?x8xf32>, tensor<?x?x8xbf16>, tensor<?x?x8xf32>
}

// A pool is written, convolved and read: kernels in this order, although the
// two convolutions have the same rows.
// CHECK-LABEL: func.func @pool_order(
//       CHECK:   gdn.kernel "pool_order_0" {
//  CHECK-NEXT:     gdn.pool_write
//  CHECK-NEXT:   }
//       CHECK:   gdn.kernel "pool_order_1" {
//  CHECK-NEXT:     gdn.conv1d
//       CHECK:   gdn.kernel "pool_order_2" {
//  CHECK-NEXT:     gdn.pool_read
//       CHECK:   gdn.kernel "pool_order_3" {
//  CHECK-NEXT:     gdn.conv1d
func.func @pool_order(
    %x: tensor<?x?xf32> {gdn.name = "x", gdn.dims = ["N", "D"]},
    %s: tensor<?x?x3xf32> {gdn.name = "s", gdn.dims = ["N", "D", "3"]},
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["D", "4"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x3xf32> {gdn.name = "pool", gdn.dims = ["P", "D", "3"]})
    -> (tensor<?x?xf32> {gdn.name = "y", gdn.dims = ["N", "D"]},
        tensor<?x?x3xf32> {gdn.name = "t", gdn.dims = ["N", "D", "3"]}) attributes {gdn.entry} {
  gdn.pool_write %s, %pool[%slots] : tensor<?x?x3xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  %t = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x3xf32>
  %z = gdn.conv1d %y weight(%w) silu pool(%pool) slots(%slots)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  return %z, %t : tensor<?x?xf32>, tensor<?x?x3xf32>
}

// Two ops on one pool: one kernel while each row keeps to its own slot (first
// pair, pool %p), two when rows write the slots of others (second pair, %r).
// CHECK-LABEL: func.func @one_pool_twice(
//       CHECK:   %[[A:.+]]:2 = gdn.kernel "one_pool_twice_0" {
//       CHECK:     %[[Y0:.+]] = gdn.conv1d %{{.+}} weight(%{{.+}}) silu pool(%[[P:.+]]) slots(%{{.+}})
//       CHECK:     %[[Y1:.+]] = gdn.conv1d %[[Y0]] weight(%{{.+}}) silu pool(%[[P]]) slots(%{{[^>]+}})
//       CHECK:     %[[Y2:.+]] = gdn.conv1d %[[Y1]] weight(%{{.+}}) silu pool(%[[R:.+]]) slots(%{{.+}} -> %{{.+}})
//       CHECK:     gdn.yield
//       CHECK:   gdn.kernel "one_pool_twice_1" {
//       CHECK:     gdn.conv1d %[[A]]#{{[01]}} weight(%{{.+}}) silu pool(%[[R]]) slots(%{{.+}} -> %{{.+}})
func.func @one_pool_twice(
    %x: tensor<?x?xf32> {gdn.name = "x", gdn.dims = ["N", "D"]},
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["D", "4"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %into: tensor<?xi32> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %p: !gdn.pool<?x?x3xf32> {gdn.name = "p", gdn.dims = ["P", "D", "3"]},
    %r: !gdn.pool<?x?x3xf32> {gdn.name = "r", gdn.dims = ["P", "D", "3"]})
    -> (tensor<?x?xf32> {gdn.name = "y", gdn.dims = ["N", "D"]},
        tensor<?x?xf32> {gdn.name = "z", gdn.dims = ["N", "D"]}) attributes {gdn.entry} {
  %y0 = gdn.conv1d %x weight(%w) silu pool(%p) slots(%slots)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  %y1 = gdn.conv1d %y0 weight(%w) silu pool(%p) slots(%slots)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  %y2 = gdn.conv1d %y1 weight(%w) silu pool(%r) slots(%slots -> %into)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> into tensor<?xi32> -> tensor<?x?xf32>
  %y3 = gdn.conv1d %y2 weight(%w) silu pool(%r) slots(%slots -> %into)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> into tensor<?xi32> -> tensor<?x?xf32>
  return %y1, %y3 : tensor<?x?xf32>, tensor<?x?xf32>
}

// Different rows, so different kernels; what connects them goes to the first.
// CHECK-LABEL: func.func @other_rows(
//       CHECK:   %[[A:.+]] = gdn.kernel "other_rows_0" {
//       CHECK:     %[[M:.+]] = gdn.mask_sequences %{{.+}} of(%{{.+}}) slots(%[[S:.+]]) :
//       CHECK:     %[[N:.+]] = gdn.l2norm %[[M]]
//       CHECK:     gdn.yield %[[N]]
//       CHECK:   gdn.kernel "other_rows_1" {
//       CHECK:     gdn.mask_sequences %[[A]]
func.func @other_rows(
    %x: tensor<?x?x8xf32> {gdn.name = "x", gdn.dims = ["N", "H", "8"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %others: tensor<?xi32> {gdn.name = "others", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x3xf32> {gdn.name = "pool", gdn.dims = ["P", "D", "3"]})
    -> (tensor<?x?x8xf32> {gdn.name = "y", gdn.dims = ["N", "H", "8"]}) attributes {gdn.entry} {
  %a = gdn.mask_sequences %x of(%pool) slots(%slots) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  %b = gdn.l2norm %a : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %c = gdn.mask_sequences %b of(%pool) slots(%others) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  return %c : tensor<?x?x8xf32>
}

// An unpack of a computed value has to stand between two kernels.
// CHECK-LABEL: func.func @unpack_between(
//       CHECK:   %[[A:.+]] = gdn.kernel "unpack_between_0" {
//       CHECK:     gdn.mask_sequences
//       CHECK:   %[[Q:.+]] = gdn.unpack "q" flat %[[A]]
//       CHECK:   gdn.kernel "unpack_between_1" {
//       CHECK:     %[[N:.+]] = gdn.l2norm %[[Q]]
//       CHECK:     gdn.mask_sequences %[[N]]
func.func @unpack_between(
    %hk: index {gdn.name = "Hk"},
    %x: tensor<?x?xf32> {gdn.name = "x", gdn.dims = ["N", "8*Hk"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x3xf32> {gdn.name = "pool", gdn.dims = ["P", "D", "3"]})
    -> (tensor<?x?x8xf32> {gdn.name = "y", gdn.dims = ["N", "Hk", "8"]}) attributes {gdn.entry} {
  %a = gdn.mask_sequences %x of(%pool) slots(%slots) : tensor<?x?xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  %q = gdn.unpack "q" flat %a heads(%hk, %hk) : tensor<?x?xf32> -> tensor<?x?x8xf32>
  %n = gdn.l2norm %q : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %m = gdn.mask_sequences %n of(%pool) slots(%slots) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  return %m : tensor<?x?x8xf32>
}

// Names are unique: @taken_0 is a function, so numbering starts at 1.
// CHECK-LABEL: func.func @taken(
//       CHECK:   gdn.kernel "taken_1"
//       CHECK:   gdn.kernel "taken_2"
func.func @taken(
    %s: tensor<?x?x3xf32> {gdn.name = "s", gdn.dims = ["N", "D", "3"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %p: !gdn.pool<?x?x3xf32> {gdn.name = "p", gdn.dims = ["P", "D", "3"]},
    %r: !gdn.pool<?x?x3xf32> {gdn.name = "r", gdn.dims = ["P", "D", "3"]}) attributes {gdn.entry} {
  gdn.pool_write %s, %p[%slots] : tensor<?x?x3xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
  gdn.pool_write %s, %r[%slots] : tensor<?x?x3xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
  return
}

// Not an entry: left alone.
// CHECK-LABEL: func.func @taken_0(
//   CHECK-NOT:   gdn.kernel
//       CHECK:   return
func.func @taken_0(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %y = gdn.l2norm %x : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// Checkpoints are kept. The same ones do not part two ops, others do, and ops
// with none go with any.
// CHECK-LABEL: func.func @checkpoints(
//       CHECK:   gdn.kernel "checkpoints_0" {
//       CHECK:     gdn.conv1d {{.*}} checkpoints(%[[CU:.+]], %[[N:.+]], %[[A:[a-z0-9]+]])
//       CHECK:     gdn.delta_rule {{.*}} checkpoints(%[[CU]], %[[N]], %[[A]])
//       CHECK:     gdn.mask_sequences
//       CHECK:   gdn.kernel "checkpoints_1" {
//       CHECK:     gdn.delta_rule {{.*}} checkpoints(%[[CU]], %[[N]], %[[B:[a-z0-9]+]])
//   CHECK-NOT:   gdn.kernel
func.func @checkpoints(
    %x: tensor<?x?x64xf32> {gdn.name = "x", gdn.dims = ["T", "H", "64"]},
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["64*H", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %cc: tensor<?xi32> {gdn.name = "cu_checkpoints", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "checkpoint_tokens", gdn.dims = ["C"]},
    %a: tensor<?xi32> {gdn.name = "checkpoint_slots", gdn.dims = ["C"]},
    %b: tensor<?xi32> {gdn.name = "other_slots", gdn.dims = ["C"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "64*H", "3"]},
    %first: !gdn.pool<?x?x64x64xf32> {gdn.name = "first", gdn.dims = ["P", "H", "64", "64"]},
    %second: !gdn.pool<?x?x64x64xf32> {gdn.name = "second", gdn.dims = ["P", "H", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "y", gdn.dims = ["T", "H", "64"]},
        tensor<?x?x64xf32> {gdn.name = "z", gdn.dims = ["T", "H", "64"]}) attributes {gdn.entry} {
  %c = gdn.conv1d %x weight(%w) silu pool(%conv_pool) slots(%slots) sequences(%cu) checkpoints(%cc, %n, %a)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %o = gdn.delta_rule %c, %c, %c gates(%g, %g) pool(%first) slots(%slots) sequences(%cu) checkpoints(%cc, %n, %a)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %m = gdn.mask_sequences %x of(%first) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %p = gdn.delta_rule %m, %m, %o gates(%g, %g) pool(%second) slots(%slots) sequences(%cu) checkpoints(%cc, %n, %b)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o, %p : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}

// The slots to read are chosen outside of the kernel. Other token slots part two
// ops, ops with none go with any.
// CHECK-LABEL: func.func @token_slots(
//       CHECK:   %[[S:.+]] = gdn.accepted_slots
//       CHECK:   gdn.kernel "token_slots_0" {
//       CHECK:     gdn.conv1d {{.*}} slots(%[[S]]) {{.*}} token_slots(%[[A:[a-z0-9]+]])
//       CHECK:     gdn.delta_rule {{.*}} slots(%[[S]]) {{.*}} token_slots(%[[A]])
//       CHECK:     gdn.mask_sequences
//       CHECK:   gdn.kernel "token_slots_1" {
//       CHECK:     gdn.delta_rule {{.*}} token_slots(%[[B:[a-z0-9]+]])
//   CHECK-NOT:   gdn.kernel
func.func @token_slots(
    %x: tensor<?x?x64xf32> {gdn.name = "x", gdn.dims = ["T", "H", "64"]},
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["64*H", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %a: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %b: tensor<?x?xi32> {gdn.name = "other_slots", gdn.dims = ["N", "S"]},
    %n: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "64*H", "3"]},
    %first: !gdn.pool<?x?x64x64xf32> {gdn.name = "first", gdn.dims = ["P", "H", "64", "64"]},
    %second: !gdn.pool<?x?x64x64xf32> {gdn.name = "second", gdn.dims = ["P", "H", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "y", gdn.dims = ["T", "H", "64"]},
        tensor<?x?x64xf32> {gdn.name = "z", gdn.dims = ["T", "H", "64"]}) attributes {gdn.entry} {
  %slots = gdn.accepted_slots %a[%n] : tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>
  %c = gdn.conv1d %x weight(%w) silu pool(%conv_pool) slots(%slots) sequences(%cu) token_slots(%a)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> -> tensor<?x?x64xf32>
  %o = gdn.delta_rule %c, %c, %c gates(%g, %g) pool(%first) slots(%slots) sequences(%cu) token_slots(%a)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> -> tensor<?x?x64xf32>
  %m = gdn.mask_sequences %x of(%first) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %p = gdn.delta_rule %m, %m, %o gates(%g, %g) pool(%second) slots(%slots) sequences(%cu) token_slots(%b)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> -> tensor<?x?x64xf32>
  return %o, %p : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}

// A convolution in the order of the tokens cannot share a kernel with a rule on
// a tree of them.
// CHECK-LABEL: func.func @parents(
//       CHECK:   gdn.kernel "parents_0" {
//       CHECK:     gdn.conv1d
//   CHECK-NOT:     gdn.delta_rule
//       CHECK:   gdn.kernel "parents_1" {
//       CHECK:     gdn.delta_rule
func.func @parents(
    %x: tensor<?x?x64xf32> {gdn.name = "x", gdn.dims = ["T", "H", "64"]},
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["64*H", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %table: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %parents: tensor<?x?xi32> {gdn.name = "parents", gdn.dims = ["N", "S"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "64*H", "3"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "pool", gdn.dims = ["P", "H", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "y", gdn.dims = ["T", "H", "64"]}) attributes {gdn.entry} {
  %c = gdn.conv1d %x weight(%w) silu pool(%conv_pool) slots(%slots) sequences(%cu) token_slots(%table)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> -> tensor<?x?x64xf32>
  %o = gdn.delta_rule %c, %c, %c gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) parents(%parents)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x?xi32> parents tensor<?x?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// Commits of the same tokens share a kernel, two of a kind do not.
// CHECK-LABEL: func.func @commits(
//       CHECK:   gdn.kernel "commits_0" {
//       CHECK:     gdn.commit_conv1d
//       CHECK:     gdn.commit_delta_rule
//       CHECK:   gdn.kernel "commits_1" {
//       CHECK:     gdn.commit_conv1d
//   CHECK-NOT:   gdn.kernel
func.func @commits(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %first: !gdn.pool<?x?x5xf16> {gdn.name = "first", gdn.dims = ["P", "D", "5"]},
    %second: !gdn.pool<?x?x5xf16> {gdn.name = "second", gdn.dims = ["P", "D", "5"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "pool", gdn.dims = ["P", "H", "64", "16"]},
    %keys: !gdn.pool<?x?x2x16xf32> {gdn.name = "keys", gdn.dims = ["P", "H", "2", "16"]},
    %deltas: !gdn.pool<?x?x2x64xf32> {gdn.name = "deltas", gdn.dims = ["P", "H", "2", "64"]},
    %decays: !gdn.pool<?x?x2xf32> {gdn.name = "decays", gdn.dims = ["P", "H", "2"]})
    attributes {gdn.entry} {
  gdn.commit_conv1d %first[%slots] accepted(%accepted) window 3
      : !gdn.pool<?x?x5xf16>, tensor<?xi32>, tensor<?xi32>
  gdn.commit_delta_rule %pool[%slots] accepted(%accepted) pending(%keys, %deltas, %decays)
      : !gdn.pool<?x?x64x16xf32>, tensor<?xi32> accepted tensor<?xi32>
        pending !gdn.pool<?x?x2x16xf32>, !gdn.pool<?x?x2x64xf32>, !gdn.pool<?x?x2xf32>
  gdn.commit_conv1d %second[%slots] accepted(%accepted) window 3
      : !gdn.pool<?x?x5xf16>, tensor<?xi32>, tensor<?xi32>
  return
}

// Moves of the same slots go together, unless one reads what another writes; of
// other slots they do not, nor with what computes.
// CHECK-LABEL: func.func @moves(
//       CHECK:   gdn.kernel "moves_0" {
//  CHECK-NEXT:     gdn.pool_copy %[[P:.+]][%[[A:.+]]] to %[[P]][%[[B:.+]]] :
//  CHECK-NEXT:     gdn.pool_copy %[[R:.+]][%[[A]]] to %[[R]][%[[B]]] :
//       CHECK:   gdn.kernel "moves_1" {
//  CHECK-NEXT:     gdn.pool_copy %[[R]][%[[A]]] to %{{.+}}[%[[B]]] :
//       CHECK:   gdn.kernel "moves_2" {
//  CHECK-NEXT:     gdn.pool_zero
//  CHECK-NEXT:   }
func.func @moves(
    %a: tensor<?xi32> {gdn.name = "a", gdn.dims = ["N"]},
    %b: tensor<?xi32> {gdn.name = "b", gdn.dims = ["N"]},
    %p: !gdn.pool<?x?x3xf32> {gdn.name = "p", gdn.dims = ["P", "D", "3"]},
    %r: !gdn.pool<?x?x3xf32> {gdn.name = "r", gdn.dims = ["P", "D", "3"]},
    %s: !gdn.pool<?x?x3xf32> {gdn.name = "s", gdn.dims = ["P", "D", "3"]}) attributes {gdn.entry} {
  gdn.pool_copy %p[%a] to %p[%b] : !gdn.pool<?x?x3xf32>, tensor<?xi32> to !gdn.pool<?x?x3xf32>, tensor<?xi32>
  gdn.pool_copy %r[%a] to %r[%b] : !gdn.pool<?x?x3xf32>, tensor<?xi32> to !gdn.pool<?x?x3xf32>, tensor<?xi32>
  gdn.pool_copy %r[%a] to %s[%b] : !gdn.pool<?x?x3xf32>, tensor<?xi32> to !gdn.pool<?x?x3xf32>, tensor<?xi32>
  gdn.pool_zero %p[%a] : !gdn.pool<?x?x3xf32>, tensor<?xi32>
  return
}

// A plan is a kernel of its own. Limits that are constants stay outside.
// CHECK-LABEL: func.func @plan(
//  CHECK-SAME:     %[[TOKENS:[a-z0-9]+]]: index {gdn.name = "B"}
//       CHECK:   %[[COLUMNS:.+]] = arith.constant 4 : index
//       CHECK:   gdn.kernel "plan_0" {
//  CHECK-NEXT:     gdn.plan_batch {{.+}} limits(%[[TOKENS]], %[[COLUMNS]])
//  CHECK-NEXT:     gdn.yield
//       CHECK:   gdn.kernel "plan_1" {
//  CHECK-NEXT:     gdn.pool_zero
func.func @plan(
    %t: index {gdn.name = "B"},
    %starts: tensor<?xi32> {gdn.name = "starts", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "n", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "table", gdn.dims = ["N", "B"]},
    %p: !gdn.pool<?x?x3xf32> {gdn.name = "p", gdn.dims = ["P", "D", "3"]})
    -> (tensor<?xi1> {gdn.name = "own", gdn.dims = ["N"]}) attributes {gdn.entry} {
  %s = arith.constant 4 : index
  %plan:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%t, %s)
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
  gdn.pool_zero %p[%n] : !gdn.pool<?x?x3xf32>, tensor<?xi32>
  return %plan#0 : tensor<?xi1>
}

// Fusion asks interfaces: a rule without the delta term goes with the convolution of
// the same sequences, but not where the two write other checkpoints.
// CHECK-LABEL: func.func @linear(
//       CHECK:   gdn.kernel "linear" {
//       CHECK:     %[[C:.+]]:2 = gdn.conv1d
//       CHECK:     gdn.gated_linear_attention %[[C]]#0, %[[C]]#0, %[[C]]#1 decay(
//       CHECK:   }
// CHECK-LABEL: func.func @linear_apart(
//       CHECK:   gdn.kernel "linear_apart_0" {
//       CHECK:   gdn.kernel "linear_apart_1" {
func.func @linear(
    %k: tensor<?x?x64xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 64*Hv", "4"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 64*Hv", "3"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %kc, %vc = gdn.conv1d %k, %v weight(%w) silu pool(%conv_pool) slots(%slots) sequences(%cu)
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>,
        tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>
  %o = gdn.gated_linear_attention %kc, %kc, %vc decay(%g) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
func.func @linear_apart(
    %k: tensor<?x?x64xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 64*Hv", "4"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %cc: tensor<?xi32> {gdn.name = "cu_checkpoints", gdn.dims = ["N + 1"]},
    %ct: tensor<?xi32> {gdn.name = "checkpoint_tokens", gdn.dims = ["C"]},
    %cs: tensor<?xi32> {gdn.name = "checkpoint_slots", gdn.dims = ["C"]},
    %other: tensor<?xi32> {gdn.name = "other_slots", gdn.dims = ["C"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 64*Hv", "3"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %kc, %vc = gdn.conv1d %k, %v weight(%w) silu pool(%conv_pool) slots(%slots) sequences(%cu) checkpoints(%cc, %ct, %cs)
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>
  %o = gdn.gated_linear_attention %kc, %kc, %vc decay(%g) pool(%pool) slots(%slots) sequences(%cu)
      checkpoints(%cc, %ct, %other)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
        checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
