// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-compile --emit=gdn: the entries of a model, which parse and verify again.
//
// RUN: gdn-compile --preset qwen3-next-80b-a3b --emit=gdn | FileCheck %s
// RUN: gdn-compile --preset qwen3-next-80b-a3b --emit=gdn | gdn-opt | gdn-opt | FileCheck %s --check-prefix=OPS
// RUN: gdn-compile --preset olmo-hybrid-7b --emit=gdn --outputs=both | FileCheck %s --check-prefix=OLMO
// RUN: gdn-compile --preset qwen3.5-4b --emit=gdn --layout=split --io=bf16,f16 --state=f32,bf16 | FileCheck %s --check-prefix=NAMES
// RUN: gdn-compile --preset kimi-linear-48b-a3b --emit=gdn | FileCheck %s --check-prefix=KIMI
// RUN: gdn-compile --preset kimi-k3 --emit=gdn | FileCheck %s --check-prefix=BOUND
// RUN: gdn-compile --preset ling-3.0-flash --emit=gdn | FileCheck %s --check-prefix=BOUND
// RUN: gdn-compile --preset glm-5.3-flash --emit=gdn --layout=ready --outputs=core | FileCheck %s --check-prefix=READY

// Arguments have the names of their parameters.
// CHECK-LABEL: func.func @prefill(
//  CHECK-SAME:   %[[HK:Hk]]: index {gdn.name = "Hk"}
//  CHECK-SAME:   %qkvz: tensor<?x?xbf16> {gdn.dims = ["T", "256*Hk + 256*Hv"], gdn.name = "qkvz"}
//  CHECK-SAME:   %cu_seqlens: tensor<?xi32> {gdn.dims = ["N + 1"], gdn.name = "cu_seqlens"}
//  CHECK-SAME:   %state_pool: !gdn.pool<?x?x128x128xf32>
//  CHECK-SAME:   attributes {gdn.entry, gdn.facts = {doubled_beta = "0", io = "bf16", layout = "interleaved", model_type = "qwen3_next", norm_eps = "1e-06", output_gate = "silu", outputs = "norm", state = "f32"}}
//       CHECK:   gdn.unpack "qkvz" interleaved %qkvz heads(%[[HK]], %Hv)
// CHECK-LABEL: func.func @decode(
//   CHECK-NOT:   cu_seqlens

// OPS-LABEL: func.func @decode(
//  OPS-SAME:   %[[QKVZ:[^:]+]]: tensor<?x?xbf16> {gdn.dims = ["N", "256*Hk + 256*Hv"]
//       OPS:   %[[PARTS:.+]]:4 = gdn.unpack "qkvz"
//       OPS:   %[[CONV:.+]]:3 = gdn.conv1d %[[PARTS]]#0, %[[PARTS]]#1, %[[PARTS]]#2
//       OPS:   %[[Q:.+]] = gdn.l2norm %[[CONV]]#0
//       OPS:   %[[K:.+]] = gdn.l2norm %[[CONV]]#1
//       OPS:   %[[DECAY:.+]], %[[BETA:.+]] = gdn.gates
//       OPS:   %[[CORE:.+]] = gdn.delta_rule %[[Q]], %[[K]], %[[CONV]]#2 gates(%[[DECAY]], %[[BETA]])
//       OPS:   %[[NORM:.+]] = gdn.gated_rms_norm %[[CORE]], %[[PARTS]]#3
//       OPS:   %[[OUT:.+]] = gdn.mask_sequences %[[NORM]]
//       OPS:   return %[[OUT]]

// The core output is rounded after the norm has read it.
// OLMO-LABEL: func.func @decode(
//       OLMO:   gdn.gates {{.*}} {double_beta}
//       OLMO:   %[[CORE:.+]] = gdn.delta_rule {{.*}} -> tensor<?x?x192xf32>
//   OLMO-DAG:   gdn.cast %[[CORE]] : tensor<?x?x192xf32> -> tensor<?x?x192xbf16>
//   OLMO-DAG:   gdn.gated_rms_norm %[[CORE]], {{.*}} {eps = 9.99999974E-6 : f32}

// NAMES: func.func @prefill_bf16_f32(
// NAMES: func.func @decode_bf16_f32(
// NAMES: func.func @prefill_bf16_bf16(
// NAMES: func.func @decode_f16_bf16(
// NAMES:   gdn.unpack "qkv" flat %qkv

// KIMI-LABEL: func.func @decode(
//  KIMI-SAME:   %a: tensor<?x?x128xbf16> {gdn.dims = ["N", "Hv", "128"], gdn.name = "a"}
//       KIMI:   gdn.gated_rms_norm {{.*}} sigmoid

// A model that bounds its log decays.
// BOUND-LABEL: func.func @decode(
//  BOUND-SAME:   gdn.facts = {decay_bound = "-5", doubled_beta = "0"
//       BOUND:   gdn.gates {{.*}} {lower_bound = -5.000000e+00 : f32}

// READY-LABEL: func.func @decode(
//   READY-NOT:   decay_bound
