// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn_gpu dialect: a tile program on the threads of a GPU block, with its
// layouts, and the types and attributes that say them.
#ifndef GDN_DIALECT_GPU_IR_GPUDIALECT_TD
#define GDN_DIALECT_GPU_IR_GPUDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def GPU_Dialect : Dialect {
  let name = "gdn_gpu";
  let cppNamespace = "::gdn::gpu";
  let summary = "One block's work on the threads of a GPU";
  let description = [{
    A function of this level is the program that every thread of a block runs.
    Its attribute `gdn_gpu.kernel` says how many threads there are; 32 of them
    in a row are a *warp*. All threads run all ops, except inside
    `gdn_gpu.warps`, which only some warps enter.

    **Values.** A *fragment* is a tile in registers: its type says which thread
    holds which element. A *shared tile* is a tile in the block's shared memory.
    Every other value is a value of each thread; ops of `arith` and `memref` on
    them are allowed anywhere and compute the same in every thread, since
    nothing but fragments differs from thread to thread.

    **Layouts are in the types.** An op takes fragments whose layouts fit
    together; a tile changes its layout only by way of a shared tile
    (`gdn_gpu.store_shared`, `gdn_gpu.load_shared`).

    **Order is in the barriers.** A shared tile is loaded behind a
    `gdn_gpu.barrier` that stands behind its `gdn_gpu.store_shared`; the pass
    `gdn-gpu-check` refuses anything else, on its own and as the first step of
    `convert-gdn-gpu-to-nvvm`.

    **Roles** (`gdn_gpu.roles`) run at the same time on warps of their own, each
    over all units of the block (`gdn_gpu.units`), and hand tiles over through
    channels, rings in shared memory. A tile of a channel is written between
    `gdn_gpu.acquire` and `gdn_gpu.commit`, read between `gdn_gpu.receive` and
    `gdn_gpu.release`; phases, arrivals and their counts follow from the roles.

    **Attributes of a function.** The fields of `gdn_gpu.kernel` say, beside
    `threads`: `min_blocks`, blocks that an SM must have registers for, or fewer of
    them, with the attribute `gdn_gpu.fewer_blocks`, where ptxas would spill;
    `blocks_per_sm`, for a launch of that many blocks per SM that share the units
    among them (0: a block per unit); `cluster`, how many blocks that follow one
    another are a cluster; `counters`, linear forms whose product says how many u32
    counters the launch needs in its workspace; and how code is made. The grid and the
    symbols are those of `gdn_tile.stage`. The page `docs/spec/attributes.md` has all
    of them.

    **Rounding is explicit**, as in `gdn_tile`.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Registers layouts (attributes) and types.
    void registerLayoutsAndTypes();
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::vector::VectorDialect"];
}

class GPU_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<GPU_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def GPU_RowsAttr : GPU_Attr<"Rows", "rows"> {
  let summary = "Rows of a tile dealt to warps, columns to lanes";
  let description = [{
    The layout of a tile of `R x C` over `warps` warps. A warp works on
    `32 / lanes` rows at once, `lanes` lanes on each; a lane holds pieces of
    `vector` neighbouring columns. With `g = 32 / lanes`,
    `n = ceil(R / (warps * g))` and `m = ceil(C / (lanes * vector))`, lane `l`
    of warp `w` holds for `i < n`, `p < m`, `e < vector` the element of

        row     w * n * g + i * g + l / lanes
        column  (p * lanes + l mod lanes) * vector + e

    at position `(i * m + p) * vector + e` of its registers. Where that lies past
    the tile, the buffer holds nothing: it is never stored and does not count in
    a reduction.

    With `cyclic` the rows go round: the warps together hold the next
    `warps * g` rows at each `i`, so that a block sweeps over the tile, and the
    row is

        (i * warps + w) * g + l / lanes

    With `tall` the rows of a thread are neighbours, and the row is

        (w * g + l / lanes) * n + i

    which is for arrays whose columns lie side by side in memory: a thread reads
    its rows of a column at once.

    With `crossed` lanes of a row are `g` apart: `l / g` stands for `l mod lanes` in
    its columns and `l mod g` for `l / lanes` in its row, which is how products have
    rows on the right. A layout is at most one of the three.

    `lanes` is a power of two up to 32, `vector` one up to 64.
  }];
  let parameters = (ins "int64_t":$warps, "int64_t":$lanes, "int64_t":$vector,
                        DefaultValuedParameter<"bool", "false">:$cyclic,
                        DefaultValuedParameter<"bool", "false">:$tall,
                        DefaultValuedParameter<"bool", "false">:$crossed);
  let builders = [
    AttrBuilder<(ins "int64_t":$warps, "int64_t":$lanes, "int64_t":$vector,
                     CArg<"bool", "false">:$cyclic), [{
      return $_get($_ctxt, warps, lanes, vector, cyclic, /*tall=*/false,
                   /*crossed=*/false);
    }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Rows that a warp works on at once.
    int64_t getGroups() const { return 32 / getLanes(); }
    /// From a lane of a row to the next one of the row.
    int64_t getLaneStep() const { return getCrossed() ? getGroups() : 1; }
    /// Rows of a tile of `rows` rows that a thread holds (n above).
    int64_t getLocalRows(int64_t rows) const;
    /// From a row of a thread to its next.
    int64_t getRowStep() const {
      if (getTall())
        return 1;
      return getGroups() * (getCyclic() ? getWarps() : 1);
    }
    /// From the first row of a lane to that of the next lane that has others,
    /// in tiles of `rows` rows.
    int64_t getGroupStep(int64_t rows) const {
      return getTall() ? getLocalRows(rows) : 1;
    }
    /// From the first row of a warp to that of the next.
    int64_t getWarpStep(int64_t rows) const {
      return getGroups() * (getCyclic() ? 1 : getLocalRows(rows));
    }
    /// Pieces of a row of `columns` columns that a thread holds (m above).
    int64_t getPieces(int64_t columns) const;
    /// True if the tiles of matrix instructions lie like this: four lanes to a
    /// row, two columns each, eight rows at once.
    bool isMatrix() const {
      return getLanes() == 4 && getVector() == 2 && !getCyclic() && !getTall() &&
             !getCrossed();
    }
    /// Columns of a row that a thread holds: pieces * vector.
    int64_t getLocalColumns(int64_t columns) const {
      return getPieces(columns) * getVector();
    }
  }];
}

def GPU_PerRowAttr : GPU_Attr<"PerRow", "per_row"> {
  let summary = "One value for each row of a layout";
  let description = [{
    The layout of a rank-1 tile with a value per row of tiles in the layout
    `rows`: a thread holds the values of its rows, in order; the lanes of a row
    hold the same.
  }];
  let parameters = (ins "RowsAttr":$rows);
  let assemblyFormat = "`<` $rows `>`";
}

def GPU_PerColumnAttr : GPU_Attr<"PerColumn", "per_column"> {
  let summary = "One value for each column of a layout";
  let description = [{
    The layout of a rank-1 tile with a value per column of tiles in the layout
    `rows`: a thread holds the values of its columns, in order; lanes that hold
    the same columns hold the same.
  }];
  let parameters = (ins "RowsAttr":$rows);
  let assemblyFormat = "`<` $rows `>`";
}

class GPU_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<GPU_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def GPU_FragmentType : GPU_Type<"Fragment", "fragment"> {
  let summary = "A tile in the registers of several warps";
  let description = [{
    `!gdn_gpu.fragment<128x128xf32, #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>>`:
    shape, element type (f32, bf16, f16, i32 of rank 1, or i8 of rank 2) and layout. The warps count from the
    first one that runs the op. A rank-2 tile has the layout `rows`, a rank-1
    tile `per_row` or `per_column`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
    "::mlir::Attribute":$layout);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    TypeBuilderWithInferredContext<(ins "::mlir::VectorType":$tile, "::mlir::Attribute":$layout), [{
      return $_get(tile.getContext(), tile.getShape(), tile.getElementType(), layout);
    }]>];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    int64_t getDimSize(unsigned dim) const { return getShape()[dim]; }
    /// The tile as a builtin vector.
    ::mlir::VectorType getTile() const;
    /// The `rows` layout that this layout is, or is a part of.
    RowsAttr getRows() const;
    bool isPerRow() const { return ::mlir::isa<PerRowAttr>(getLayout()); }
    bool isPerColumn() const { return ::mlir::isa<PerColumnAttr>(getLayout()); }
    /// Elements in the registers of one thread.
    int64_t getLocalSize() const;
  }];
}

def GPU_SharedType : GPU_Type<"Shared", "shared"> {
  let summary = "A tile in shared memory";
  let description = [{
    `!gdn_gpu.shared<128xf32>`: row-major, of its own memory.

    `!gdn_gpu.shared<64x128xbf16, swizzled>`: what matrix instructions read. A row
    is `n` pieces of 16 bytes; with `g` the largest power of two up to 8 that
    divides `n`, piece `p` of row `r` lies at position `p xor (r / (8 / g) mod g)` of
    the row. So 8 rows of a column of pieces, or of a row of them, lie in
    different banks. Rows of several times 128 bytes lie in panels of 128 bytes a
    row, one panel behind the other, each swizzled by itself: that is the layout
    that `wgmma` reads.

    `!gdn_gpu.shared<32x128xf16, swizzled, apart = 2>`: panels that lie apart, each at
    every second place; what is between them is of no concern to the tile.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
    DefaultValuedParameter<"bool", "false">:$swizzled,
    DefaultValuedParameter<"int64_t", "1">:$apart);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                     "bool":$swizzled), [{
      return $_get($_ctxt, shape, elementType, swizzled, /*apart=*/1);
    }]>,
    TypeBuilderWithInferredContext<(ins "::mlir::VectorType":$tile,
                                        CArg<"bool", "false">:$swizzled,
                                        CArg<"int64_t", "1">:$apart), [{
      return $_get(tile.getContext(), tile.getShape(), tile.getElementType(), swizzled,
                   apart);
    }]>];
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// Bytes of a row; of all of it, for rank 1.
    int64_t getRowBytes() const;
    /// Bytes of the tile, with what is between its panels.
    int64_t getBytes() const;
    /// Bytes of a row in a panel of a swizzled tile: 128, or those of the row
    /// where it is no multiple of that.
    int64_t getPanelRowBytes() const;
    /// Bytes from panel to panel; 0 if there is one.
    int64_t getPanelBytes() const;
  }];
}

def GPU_AsyncTokenType : GPU_Type<"AsyncToken", "async_token"> {
  let summary = "A product under way";
  let description = [{
    `!gdn_gpu.async_token<128x64xf32, #rows>`: the fragment that a
    `gdn_gpu.start_matmul` makes. Nothing but `gdn_gpu.await_matmul` takes it, so no
    program can touch the sums before they are there.
  }];
  let parameters = (ins "FragmentType":$fragment);
  let hasCustomAssemblyFormat = 1;
  let builders = [
    TypeBuilderWithInferredContext<(ins "FragmentType":$fragment), [{
      return $_get(fragment.getContext(), fragment);
    }]>];
}

def GPU_ChannelType : GPU_Type<"Channel", "channel"> {
  let summary = "A ring of tiles in shared memory that roles hand over";
  let description = [{
    `!gdn_gpu.channel<64x128xbf16, depth = 6, parts = 4>`: `depth` tiles of the
    shape, with `swizzled` at the end, and `apart = 2` behind that, laid out as shared tiles that
    are. With `parts` above 1 (1 where it is left out) the rows of a tile are
    cut into as many equal parts, and each goes its own way: warp `p` of a role
    that empties the channel waits for part `p` alone, and gives it back alone.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
    "int64_t":$depth, "int64_t":$parts, "bool":$swizzled,
    DefaultValuedParameter<"int64_t", "1">:$apart);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType,
                     "int64_t":$depth, "int64_t":$parts, "bool":$swizzled), [{
      return $_get($_ctxt, shape, elementType, depth, parts, swizzled, /*apart=*/1);
    }]>];
  let extraClassDeclaration = [{
    /// One tile of the ring.
    SharedType getTile() const;
    /// Bytes of one tile.
    int64_t getTileBytes() const;
  }];
}

class GPU_Op<string mnemonic, list<Trait> traits = []>
    : Op<GPU_Dialect, mnemonic, traits>;

#endif // GDN_DIALECT_GPU_IR_GPUDIALECT_TD
