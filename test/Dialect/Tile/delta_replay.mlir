// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.delta_replay: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @replay
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: vector<128x64xbf16>, %[[PK:[a-z0-9]+]]: vector<16x64xf32>, %[[PD:[a-z0-9]+]]: vector<16x128xf32>, %[[PG:[a-z0-9]+]]: vector<16xf32>, %[[N:[a-z0-9]+]]: index, %[[FULL:[a-z0-9]+]]: i1, %[[K:[a-z0-9]+]]: vector<4x64xf32>, %[[V:[a-z0-9]+]]: vector<4x128xf32>, %[[G:[a-z0-9]+]]: vector<4xf32>
//       CHECK:   gdn_tile.delta_replay %[[M]] pending(%[[PK]], %[[PD]], %[[PG]]) count(%[[N]]) commit(%[[FULL]]) tokens(%[[K]], %[[K]], %[[V]]) gates(%[[G]], %[[G]]) valid(%[[N]]) : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>
func.func @replay(%m: vector<128x64xbf16>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) -> vector<128x64xbf16> {
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>
  return %m1 : vector<128x64xbf16>
}

// CHECK-LABEL: func.func @seen
//       CHECK:   gdn_tile.delta_replay %{{.+}} seen(%[[M:.+]] : vector<128x64xf32>) pending(
func.func @seen(%m: vector<128x64xbf16>, %u: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) -> vector<4x128xf32> {
  %m1, %o, %d = gdn_tile.delta_replay %m seen(%u : vector<128x64xf32>) pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>
  return %o : vector<4x128xf32>
}

// CHECK-LABEL: func.func @per_channel
//       CHECK:   gdn_tile.delta_replay {{.+}} : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>, per_channel{{$}}
func.func @per_channel(%m: vector<128x64xbf16>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16x64xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4x64xf32>, %beta: vector<4xf32>) -> vector<4x128xf32> {
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %beta) valid(%n)
      : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>, per_channel
  return %o : vector<4x128xf32>
}
