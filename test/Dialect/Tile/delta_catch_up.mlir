// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.delta_catch_up: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @catch_up
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: vector<128x64xbf16>, %[[PK:[a-z0-9]+]]: vector<16x64xf32>, %[[PD:[a-z0-9]+]]: vector<16x128xf32>, %[[PG:[a-z0-9]+]]: vector<16xf32>, %[[N:[a-z0-9]+]]: index, %[[FULL:[a-z0-9]+]]: i1
//       CHECK:   %{{.+}}, %[[WHOLE:.+]] = gdn_tile.delta_catch_up %[[M]] pending(%[[PK]], %[[PD]], %[[PG]]) count(%[[N]]) commit(%[[FULL]]) : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>
//       CHECK:   return %[[WHOLE]] : vector<128x64xf32>
func.func @catch_up(%m: vector<128x64xbf16>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1) -> vector<128x64xf32> {
  %m1, %whole = gdn_tile.delta_catch_up %m pending(%pk, %pd, %pg) count(%n) commit(%full)
      : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>
  return %whole : vector<128x64xf32>
}

// CHECK-LABEL: func.func @per_channel
//       CHECK:   gdn_tile.delta_catch_up {{.+}} : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, per_channel{{$}}
func.func @per_channel(%m: vector<128x64xbf16>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16x64xf32>,
    %n: index, %full: i1) -> vector<128x64xf32> {
  %m1, %whole = gdn_tile.delta_catch_up %m pending(%pk, %pd, %pg) count(%n) commit(%full)
      : vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, per_channel
  return %whole : vector<128x64xf32>
}
