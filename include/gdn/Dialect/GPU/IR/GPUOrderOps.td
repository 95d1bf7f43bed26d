// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Order: among the warps of a block, among blocks that share something, and among
// launches of a stream.
#ifndef GDN_DIALECT_GPU_IR_GPUORDEROPS_TD
#define GDN_DIALECT_GPU_IR_GPUORDEROPS_TD

include "gdn/Dialect/GPU/IR/GPUDialect.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GPU_BarrierOp : GPU_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "All threads of the block meet, or of a role";
  let description = [{
    What any thread shared before the barrier, every thread may load behind it.

    **Preconditions**

    - (C1) it is not inside a `gdn_gpu.warps` that is no role or a `gdn_gpu.each_warp`, nor under a condition that differs
      among the threads of a block.

    **Example**

    ```mlir
    func.func @meet() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      gdn_gpu.barrier
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def GPU_WarpBarrierOp : GPU_Op<"warp_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The lanes of a warp meet";
  let description = [{
    What a lane read or wrote before the barrier, in any memory, is in order with what
    the other lanes of its warp do behind it. A tile of few elements lies in more than
    one lane; each of them loads it, and one stores it.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` of one warp or a `gdn_gpu.each_warp`, and not under
      a condition that differs among its lanes.

    **Example**

    ```mlir
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
    func.func @shift(%pool: memref<4x16xf32>)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      gdn_gpu.warps 0 for 1 {
        %old = gdn_gpu.load %pool[%c1, %c0] dims [1] : memref<4x16xf32>,
            !gdn_gpu.fragment<16xf32, #gdn_gpu.per_column<#row>>
        gdn_gpu.warp_barrier
        gdn_gpu.store %old, %pool[%c0, %c0] dims [1] :
            !gdn_gpu.fragment<16xf32, #gdn_gpu.per_column<#row>>, memref<4x16xf32>
      }
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def GPU_ArriveOp : GPU_Op<"arrive", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Half of a barrier: one warp waits for the others later";
  let description = [{
    All warps but `warp` note that they have come here and go on. What they
    shared before, `warp` may load behind its `gdn_gpu.await_arrivals`.

    **Preconditions**

    - (C1) it is not inside a `gdn_gpu.warps` or a `gdn_gpu.each_warp`, nor under a
      condition that differs among the threads of a block.
    - (C2) `warp` is one of the block's, and the function has one such op.
    - (C3) the function has a `gdn_gpu.await_arrivals`; checked on the function.

    **Example**

    ```mlir
    #rows = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @meet(%o: !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>)
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
      gdn_gpu.store_shared %o, %buffer
          : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>,
            !gdn_gpu.shared<128xf32>
      gdn_gpu.arrive for 3
      gdn_gpu.warps 3 for 1 {
        gdn_gpu.await_arrivals
        %all = gdn_gpu.load_shared %buffer : !gdn_gpu.shared<128xf32>
            -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#row>>
      }
      return
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$warp);
  let assemblyFormat = "`for` $warp attr-dict";
  let hasVerifier = 1;
}

def GPU_AwaitArrivalsOp : GPU_Op<"await_arrivals", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The other half: waits until all other warps have arrived";
  let description = [{
    See `gdn_gpu.arrive`.

    **Preconditions**

    - (C1) it is the first op of a `gdn_gpu.warps` of the one warp that the
      `gdn_gpu.arrive` of the function names.

    **Example**

    ```mlir
    func.func @last() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      gdn_gpu.arrive for 1
      gdn_gpu.warps 1 for 1 {
        gdn_gpu.await_arrivals
      }
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def GPU_LastReaderOp : GPU_Op<"last_reader", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "True in the last of several blocks that have read a tile";
  let description = [{
    Each of `count` blocks runs the op once, with the same `counter`, an u32 of
    the launch's counters; in exactly one of them, the one that comes last, the
    result is true, and then all of them hold the values of `after`: what they
    were computed from may be overwritten. The counter is zero before the first
    of the blocks and again behind the last.

    Runs inside a `gdn_gpu.warps` of one warp. It orders the loads that `after`
    depends on, by the dependence alone, and nothing else.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` of one warp.
    - (C2) it has in `after`, or ahead of a `gdn_gpu.barrier` before it, what the block
      loads of the view that the last block writes; checked on the function.

    **Example**

    ```mlir
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @shift(%pool: memref<?x128xbf16>, %slot: index, %head: index,
                     %readers: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      gdn_gpu.warps 0 for 1 {
        %old = gdn_gpu.load %pool[%slot, %c0] dims [0, 1] : memref<?x128xbf16>,
            !gdn_gpu.fragment<1x128xbf16, #row>
        %last = gdn_gpu.last_reader %head of %readers after %old
            : !gdn_gpu.fragment<1x128xbf16, #row>
        scf.if %last {
          %zero = arith.constant 0.0 : bf16
          %new = gdn_gpu.fill %zero : bf16 -> !gdn_gpu.fragment<1x128xbf16, #row>
          gdn_gpu.store %new, %pool[%slot, %c0] dims [0, 1]
              : !gdn_gpu.fragment<1x128xbf16, #row>, memref<?x128xbf16>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins Index:$counter, Index:$count, Variadic<GPU_FragmentType>:$after);
  let results = (outs I1:$last);
  let assemblyFormat = [{
    $counter `of` $count (`after` $after^ `:` type($after))? attr-dict
  }];
  let hasVerifier = 1;
  let hasVerifier = 1;
}

def GPU_TakeTicketOp : GPU_Op<"take_ticket", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The first half of a gdn_gpu.last_reader: ask";
  let description = [{
    Counts this block among the `count` blocks that have read what `after` was
    computed from, and does not wait for the answer. `gdn_gpu.is_last` does, later:
    the way to the counter and back is as long as one to memory.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` of one warp.
    - (C2) its ticket comes to a `gdn_gpu.is_last`; checked on the function.
    - (C3) as `gdn_gpu.last_reader` (C2).

    **Example**

    ```mlir
    #row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
    func.func @ask(%pool: memref<?x128xbf16>, %slot: index, %head: index,
                   %readers: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      %c0 = arith.constant 0 : index
      %ticket = gdn_gpu.warps 0 for 1 -> i32 {
        %old = gdn_gpu.load %pool[%slot, %c0] dims [0, 1] : memref<?x128xbf16>,
            !gdn_gpu.fragment<1x128xbf16, #row>
        %asked = gdn_gpu.take_ticket %head of %readers after %old
            : !gdn_gpu.fragment<1x128xbf16, #row>
        gdn_gpu.yield %asked : i32
      }
      gdn_gpu.warps 0 for 1 {
        %last = gdn_gpu.is_last %ticket of %readers
      }
      return
    }
    ```
  }];
  let arguments = (ins Index:$counter, Index:$count, Variadic<GPU_FragmentType>:$after);
  let results = (outs I32:$ticket);
  let assemblyFormat = [{
    $counter `of` $count (`after` $after^ `:` type($after))? attr-dict
  }];
  let hasVerifier = 1;
}

def GPU_IsLastOp : GPU_Op<"is_last", [MemoryEffects<[MemRead]>]> {
  let summary = "The second half of a gdn_gpu.last_reader: the answer";
  let description = [{
    True if `ticket` is that of the last of `count` blocks.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` of one warp.
    - (C2) `ticket` comes from a `gdn_gpu.take_ticket` of the same warp and `count`.
      Not checked.

    **Example**

    ```mlir
    func.func @answer(%ticket: i32, %readers: index)
        attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
      gdn_gpu.warps 0 for 1 {
        %last = gdn_gpu.is_last %ticket of %readers
      }
      return
    }
    ```
  }];
  let arguments = (ins I32:$ticket, Index:$count);
  let results = (outs I1:$last);
  let assemblyFormat = "$ticket `of` $count attr-dict";
  let hasVerifier = 1;
}

def GPU_AwaitLaunchOp : GPU_Op<"await_launch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "What earlier launches of the stream wrote is there";
  let description = [{
    Waits until the launches before this one in the stream have finished and
    their writes are visible, where the launch may have begun before
    (programmatic dependent launch); else, and on targets without it, nothing.

    **Preconditions**

    - (C1) it is not inside a `gdn_gpu.warps` or `gdn_gpu.each_warp`, but for a role of `gdn_gpu.roles`,
      which waits for itself.
    - (C2) in a function that has one, what writes global memory stands behind one on every
      way, of its own role; checked on the function, but for a stage that overlaps with the
      last. A `gdn_gpu.await_signals` stands for one: who signals has waited.
    - (C3) the same of what reads global memory, but for numbers that are integers, pools
      (arrays whose argument has a null slot, by its name), arrays that the function
      writes, too, and all arguments of the call of a stage with `awaits_stage`: the launch
      ahead must not write these. Not checked, but of stages by C5.
    - (C4) in a function that has one, some warp comes by one on every way to the end, in
      every block or in the first of the launch: who comes next waits for this launch alone.
      Checked on the function. A `gdn_gpu.await_signals` does not stand for one.
    - (C5) what a stage behind another one reads ahead of it, no stage ahead of it in any of its
      variants writes, be it an integer; but for a stage that overlaps with the last. The first
      stage of a variant has no `awaits_stage`. Checked on the entry.

    **Example**

    ```mlir
    func.func @order() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      gdn_gpu.await_launch
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def GPU_ReleaseLaunchOp : GPU_Op<"release_launch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "The next launch of the stream may begin";
  let description = [{
    Lets the next launch begin where it was launched to depend on this one
    programmatically; else, and on targets without it, nothing. The next launch
    still waits at its `gdn_gpu.await_launch` until this one has finished.

    **Preconditions**

    - (C1) it is not inside a `gdn_gpu.warps` or `gdn_gpu.each_warp`, but for a role of `gdn_gpu.roles`.
    - (C2) in a function with a `gdn_gpu.await_launch` it stands behind one on every way: what
      the next launch reads ahead of its own, no launch before this one may write any more;
      checked on the function, but for stages that overlap with a neighbour, and for those
      behind another one of the call (C3). A function with a `gdn_gpu.await_signals` has none.
    - (C3) a stage that has one ahead of its `gdn_gpu.await_launch` is in each of its variants
      ahead of another one that has blocks where this one has: the launch behind the last stage may
      be one of another call, which waits for that stage alone. The next stage does not overlap
      with this one, since it would read what those ahead of both have written, and awaits no
      signals, whose counters these have cleared. Checked on the entry.

    **Example**

    ```mlir
    func.func @order() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
      gdn_gpu.release_launch
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def GPU_SignalOp : GPU_Op<"signal", [AttrSizedOperandSegments,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "What a warp has stored is there for who awaits it";
  let description = [{
    Each warp adds `amount` to the counter at `indices`, behind all that it has stored
    before, and all that others have told it of by a barrier or a channel (release, over
    the device). With `last(%n)` it adds to `n` counters, the first index of which goes
    down from there; `n` may be 0, and is at most a warp's lanes.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` or a `gdn_gpu.each_warp`.
    - (C2) one index per dimension of the view, whose elements are f32, the bits of which
      are the number.
    - (C3) what the warp stores asynchronously, by a tensor map, it has awaited. Not
      checked.
    - (C4) of counters that another stage of its entry awaits, the signals of a stage are
      of all turns of its loop: one of each turn; or one of that some turns before, and one
      behind the loop of as many of the last, at most. Checked on the entry, but not which
      counters these are.

    **Example**

    ```mlir
    func.func @tell(%counters: memref<?x?xf32>, %chunk: index, %head: index)
        attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
      gdn_gpu.warps 0 for 4 {
        gdn_gpu.signal 16, %counters[%chunk, %head] : memref<?x?xf32>
      }
      return
    }
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$amount,
    Arg<AnyMemRef, "view", [MemRead, MemWrite]>:$view,
    Variadic<Index>:$indices, Optional<Index>:$count);
  let assemblyFormat = [{
    $amount `,` $view `[` $indices `]` (`last` `(` $count^ `)`)? attr-dict `:` type($view)
  }];
  let hasVerifier = 1;
}

def GPU_AwaitSignalsOp : GPU_Op<"await_signals", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Waits until a counter has what signals are to add up to";
  let description = [{
    Each lane waits until the counter at `indices` has `total` (acquire, over the device),
    which a `gdn_gpu.signal` of each of several warps of another launch adds up to. What those
    have stored, the warp may load behind it.

    **Preconditions**

    - (C1) it is inside a `gdn_gpu.warps` or a `gdn_gpu.each_warp`.
    - (C2) as `gdn_gpu.signal` (C2).
    - (C3) who signals runs already, or has ended, and no block of it needs the place of
      this one. Not checked.
    - (C4) in a variant of an entry, each stage ahead that writes an array of the call which
      this one reads signals the counters. The warps and the blocks with the same chunks
      (`same_chunks` of `gdn_tile.stage`) that run a signal add up to `total`. A stage ahead
      of those has cleared the counters. Checked on the entry.

    **Example**

    ```mlir
    func.func @follow(%counters: memref<?x?xf32>, %chunk: index, %head: index)
        attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
      gdn_gpu.each_warp 0 for 2 {
      ^bb0(%warp: index):
        gdn_gpu.await_signals 128, %counters[%chunk, %head] : memref<?x?xf32>
      }
      return
    }
    ```
  }];
  let arguments = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$total,
    Arg<AnyMemRef, "view", [MemRead]>:$view,
    Variadic<Index>:$indices);
  let assemblyFormat = "$total `,` $view `[` $indices `]` attr-dict `:` type($view)";
  let hasVerifier = 1;
}

#endif // GDN_DIALECT_GPU_IR_GPUORDEROPS_TD
