// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules on the state of a sequence, and what puts tokens into it that it
// lacks: pending ones, or such whose deltas are known.
#ifndef GDN_DIALECT_TILE_IR_TILERULEOPS_TD
#define GDN_DIALECT_TILE_IR_TILERULEOPS_TD

include "gdn/Dialect/Tile/IR/TileDialect.td"
include "gdn/Dialect/Tile/IR/TileInterfaces.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_DeltaScanOp : Tile_Op<"delta_scan", [
    Pure, AttrSizedOperandSegments, Tile_RuleOpInterface]> {
  let summary = "A rule over the tokens of a tile, one after another";
  let description = [{
    For the first `valid` of `B` tokens, with the state `M` (`dv x dk`):

        M <- M * exp(log_decay[t])              // a scalar, or one per column
        d  = beta[t] * (value[t] - M key[t])    // without beta: value[t]
        M <- M + d key[t]^T
        output[t] = M query[t]

    With `beta` that is the gated delta rule, without it gated linear attention.
    With `erase` it is `d = beta[t] * (value[t] - M erase[t])`. All is in f32, `M * exp(log_decay)` rounded before `d key^T` is added with one
    rounding. `query` is already scaled. `deltas`, if the op has that result,
    has `d` of each token as a row. Rows of `output` and `deltas` past `valid`
    are unspecified.

    **Preconditions**

    - (C1) `state` and `new_state` are `dv x dk`, `query` and `key` `B x dk`,
      `value`, `output` and `deltas` `B x dv`, `log_decay` `B` or `B x dk`,
      `beta`, if it is there, `B`, and `erase`, only beside `beta`, `B x dk`.
    - (C2) `valid` is at most `B`. Not checked.
    - (C3) `new_state` has the element type of `state`: f32, or where `B` is 1
      a narrower type, which is read as f32 and rounded after the token.

    **Example**

    ```mlir
    func.func @scan(%m: vector<128x128xf32>, %q: vector<16x128xf32>,
        %k: vector<16x128xf32>, %v: vector<16x128xf32>, %g: vector<16xf32>,
        %beta: vector<16xf32>, %n: index) -> vector<16x128xf32> {
      %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
          : vector<128x128xf32>, vector<16x128xf32>, vector<16x128xf32>,
            vector<16xf32>
      return %o : vector<16x128xf32>
    }

    func.func @keep(%m: vector<128x128xf32>, %q: vector<16x128xf32>,
        %k: vector<16x128xf32>, %v: vector<16x128xf32>, %g: vector<16xf32>,
        %beta: vector<16xf32>, %n: index) -> vector<16x128xf32> {
      %m1, %o, %d = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
          : vector<128x128xf32>, vector<16x128xf32>, vector<16x128xf32>,
            vector<16xf32>, deltas
      return %d : vector<16x128xf32>
    }

    func.func @attend(%m: vector<128x128xf32>, %q: vector<16x128xf32>,
        %k: vector<16x128xf32>, %v: vector<16x128xf32>, %g: vector<16xf32>,
        %n: index) -> vector<16x128xf32> {
      %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g) valid(%n)
          : vector<128x128xf32>, vector<16x128xf32>, vector<16x128xf32>,
            vector<16xf32>
      return %o : vector<16x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Tile_ScanState:$state, Tile_F32Matrix:$query, Tile_F32Matrix:$key,
    Tile_F32Matrix:$value, Tile_F32Tile:$log_decay, Optional<Tile_F32Row>:$beta,
    Optional<Tile_F32Matrix>:$erase, Index:$valid);
  let results = (outs Tile_ScanState:$new_state, Tile_F32Matrix:$output,
                      Optional<Tile_F32Matrix>:$deltas);
  let assemblyFormat = [{
    $state `,` $query `,` $key `,` $value `gates` `(` $log_decay (`,` $beta^)? `)`
    (`erase` `(` $erase^ `)`)? `valid` `(` $valid `)` attr-dict
    `:` custom<ScanTypes>(ref($beta), ref($erase), type($state), type($query), type($key),
                          type($value), type($log_decay), type($beta), type($erase),
                          type($new_state), type($output), type($deltas))
  }];
  let hasVerifier = 1;
}

def Tile_DeltaFoldOp : Tile_Op<"delta_fold", [
    Pure, AllTypesMatch<["state", "new_state"]>]> {
  let summary = "Put tokens whose deltas are known into a state";
  let description = [{
    For the first `valid` of `B` tokens, with the state `M` (`dv x dk`):

        M <- M * exp(log_decay[t])              // a scalar, or one per column
        M <- M + deltas[t] key[t]^T

    in f32, with the roundings of `gdn_tile.delta_scan`: with the `deltas` that a
    scan gave for these tokens, and its keys and log decays, `new_state` has the
    bits of that scan's.

    **Preconditions**

    - (C1) `state` and `new_state` are `dv x dk`, `key` `B x dk`, `deltas`
      `B x dv`, `log_decay` `B` or `B x dk`.
    - (C2) `valid` is at most `B`. Not checked.

    **Example**

    ```mlir
    func.func @fold(%m: vector<128x128xf32>, %k: vector<8x128xf32>,
        %d: vector<8x128xf32>, %g: vector<8xf32>, %n: index)
        -> vector<128x128xf32> {
      %m1 = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%n)
          : vector<128x128xf32>, vector<8x128xf32>, vector<8x128xf32>, vector<8xf32>
      return %m1 : vector<128x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Tile_F32Matrix:$state, Tile_F32Matrix:$key, Tile_F32Matrix:$deltas,
    Tile_F32Tile:$log_decay, Index:$valid);
  let results = (outs Tile_F32Matrix:$new_state);
  let assemblyFormat = [{
    $state `,` $key `,` $deltas `decay` `(` $log_decay `)` `valid` `(` $valid `)`
    attr-dict `:` type($state) `,` type($key) `,` type($deltas) `,` type($log_decay)
  }];
  let hasVerifier = 1;
}

// A row with one element for each row of `matrix`.
class Tile_OneForEachRow<string matrix, string row>
    : TypesMatchWith<"one element for each row of '" # matrix # "'", matrix, row, [{
        ::mlir::VectorType::get(
            ::llvm::cast<::mlir::VectorType>($_self).getShape().take_front(1),
            ::llvm::cast<::mlir::VectorType>($_self).getElementType())
      }]>;

def Tile_DeltaCatchUpOp : Tile_Op<"delta_catch_up", [
    Pure, Tile_PendingOpInterface, AllTypesMatch<["state", "new_state"]>,
    TypesMatchWith<"the state in f32", "state", "whole", [{
      ::llvm::cast<::mlir::VectorType>($_self).clone(
          ::mlir::Float32Type::get($_self.getContext()))
    }]>]> {
  let summary = "A state with its pending tokens, which it receives if it is time";
  let description = [{
    Of `W` pending tokens the first `count` are not in the state `M`
    (`dv x dk`). `whole` is the state with them, in f32:

        N <- N * exp(pending_decay[j])                    N = M ahead of the first
                                                          // a scalar, or one per column
        N <- N + pending_deltas[j] pending_key[j]^T      j = 0 .. count-1

    If `commit` is true `new_state` is `N`, rounded once to the element type of
    the state, and `whole` has the same numbers. Otherwise `new_state` has the
    bits of `state`. The order of the sum is free, but no difference of sums is
    taken. Rows of pending tokens past `count` are not used.

    A schedule need not make `whole`: what a scan asks of it are sums over `M`
    and the pending tokens, as in `gdn_tile.delta_replay`.

    **Preconditions**

    - (C1) `state`, `new_state` and `whole` are `dv x dk`, `pending_key`
      `W x dk`, `pending_deltas` `W x dv`, `pending_decay` `W` or `W x dk`.
    - (C2) `count` is at most `W`. Not checked.

    **Example**

    ```mlir
    func.func @catch_up(%m: vector<128x128xbf16>, %pk: vector<16x128xf32>,
        %pd: vector<16x128xf32>, %pg: vector<16xf32>, %n: index, %full: i1)
        -> vector<128x128xf32> {
      %m1, %whole = gdn_tile.delta_catch_up %m pending(%pk, %pd, %pg) count(%n)
          commit(%full)
          : vector<128x128xbf16>, vector<16x128xf32>, vector<16x128xf32>
      return %whole : vector<128x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Tile_ScanState:$state, Tile_F32Matrix:$pending_key,
    Tile_F32Matrix:$pending_deltas, Tile_F32Tile:$pending_decay, Index:$count,
    I1:$commit);
  let results = (outs Tile_ScanState:$new_state, Tile_F32Matrix:$whole);
  let assemblyFormat = [{
    $state `pending` `(` $pending_key `,` $pending_deltas `,` $pending_decay `)`
    `count` `(` $count `)` `commit` `(` $commit `)` attr-dict
    `:` type($state) `,` custom<PendingTypes>(type($pending_key),
        type($pending_deltas), type($pending_decay))
  }];
  let hasVerifier = 1;
}

def Tile_DeltaReplayOp : Tile_Op<"delta_replay", [
    Pure, Tile_RuleOpInterface, Tile_PendingOpInterface, AllTypesMatch<["state", "new_state"]>,
    AllTypesMatch<["query", "key"]>, AllTypesMatch<["value", "output", "deltas"]>,
    Tile_OneForEachRow<"key", "beta">]> {
  let summary = "The delta rule from a state without its last tokens";
  let description = [{
    Of `W` pending tokens the first `count` are not in the state `M`
    (`dv x dk`). If `commit` is true they are put into it,

        M <- M * exp(pending_decay[j])                   // a scalar, or one per column
        M <- M + pending_deltas[j] pending_key[j]^T      j = 0 .. count-1

    `M` is rounded once to its element type, and none is pending any more.
    `new_state` is `M` then, and the bits of `state` otherwise. The output of
    the first `valid` of `B` tokens is that of the recurrence from the state
    that `M` and the pending tokens stand for:

        N  = exp(G) M + sum over pending j: exp(G_j) pending_deltas[j] pending_key[j]^T
             + sum over tokens i < t: exp(G_i) deltas[i] key[i]^T
        deltas[t] = beta[t] * (value[t] - N key[t])
        output[t] = (N + deltas[t] key[t]^T) query[t]

    where `G`, `G_j` and `G_i` are the sums of the log decays behind `M` and
    behind those tokens, up to `t`; with a decay per column they are rows, and a
    factor is that of each column. Sums are in f32, of terms: `N` itself is
    never there, and no difference of sums is taken. Rows of `output` and
    `deltas` past `valid` are unspecified; rows of pending tokens past `count`
    are not used.

    With `seen` the tokens see that instead of `M`, and all pending tokens,
    whether `M` receives them or not.

    **Preconditions**

    - (C1) `state` and `new_state` are `dv x dk`, and `seen` is of f32,
      `pending_key` `W x dk`, `pending_deltas` `W x dv`, `pending_decay` `W`,
      `query` and `key` `B x dk`, `value`, `output` and `deltas` `B x dv`, `log_decay` and `beta`
      `B`. With a decay per column `pending_decay` is `W x dk` and `log_decay` `B x dk`.
    - (C2) `count` is at most `W`, `valid` at most `B`. Not checked.

    **Example**

    ```mlir
    func.func @step(%m: vector<128x128xbf16>, %pk: vector<16x128xf32>,
        %pd: vector<16x128xf32>, %pg: vector<16xf32>, %n: index, %full: i1,
        %q: vector<1x128xf32>, %k: vector<1x128xf32>, %v: vector<1x128xf32>,
        %g: vector<1xf32>, %beta: vector<1xf32>, %one: index)
        -> vector<1x128xf32> {
      %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n)
          commit(%full) tokens(%q, %k, %v) gates(%g, %beta) valid(%one)
          : vector<128x128xbf16>, vector<16x128xf32>, vector<16x128xf32>,
            vector<1x128xf32>, vector<1x128xf32>
      return %o : vector<1x128xf32>
    }
    ```
  }];
  let arguments = (ins
    Tile_ScanState:$state, Tile_F32Matrix:$pending_key,
    Tile_F32Matrix:$pending_deltas, Tile_F32Tile:$pending_decay, Index:$count,
    I1:$commit, Tile_F32Matrix:$query, Tile_F32Matrix:$key,
    Tile_F32Matrix:$value, Tile_F32Tile:$log_decay, Tile_F32Row:$beta,
    Index:$valid, Optional<Tile_F32Matrix>:$seen);
  let results = (outs Tile_ScanState:$new_state, Tile_F32Matrix:$output,
                      Tile_F32Matrix:$deltas);
  let assemblyFormat = [{
    $state (`seen` `(` $seen^ `:` type($seen) `)`)? `pending` `(` $pending_key `,` $pending_deltas `,` $pending_decay `)`
    `count` `(` $count `)` `commit` `(` $commit `)`
    `tokens` `(` $query `,` $key `,` $value `)` `gates` `(` $log_decay `,` $beta `)`
    `valid` `(` $valid `)` attr-dict
    `:` type($state) `,` custom<ReplayTypes>(type($pending_key),
        type($pending_deltas), type($key), type($value), type($pending_decay),
        type($log_decay))
  }];
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_TILE_IR_TILERULEOPS_TD
