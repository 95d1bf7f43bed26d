// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-gdn-gpu-to-nvvm: one walk over a program that writes its kernel. A
// fragment becomes the vector of the elements that a thread holds, a shared
// tile a pointer, gdn_gpu.warps a branch. See Passes.td.
#include "CheckGPUProgram.h"
#include "Copies/Channels.h"
#include "Copies/TileCopy.h"
#include "Fragments/SharedMatrix.h"
#include "Kernel/KernelEntry.h"
#include "Kernel/NarrowDivision.h"
#include "Kernel/OptimizationBarrier.h"
#include "Kernel/RoleEntry.h"
#include "Kernel/ViewMemory.h"
#include "Products/SplitMma.h"
#include "Rows/RowWork.h"
#include "Sync/LaunchOrder.h"

#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace gdn {
#define GEN_PASS_DEF_CONVERTGPUTONVVM
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

/// Shared memory that a kernel may declare without asking for it at launch.
static constexpr int64_t maxStaticShared = 48 * 1024;

namespace {

class KernelLowering {
public:
  KernelLowering(func::FuncOp source, bool hasDependentLaunch,
                 bool everyThreadArrives)
      : source(source), b(source), hasDependentLaunch(hasDependentLaunch),
        memory(source), channels(source, everyThreadArrives), divisions(source),
        numThreads(
            source->getAttrOfType<IntegerAttr>("gdn_gpu.threads").getInt()) {}

  void run();

private:
  void placeSharedTiles();
  void lower(Operation &op);
  void lowerBlock(Block &block);
  template <typename OpTy> void lowerWarps(OpTy warps);
  void lowerRoles(gdn::gpu::RolesOp roles);
  void recomputeThread(Location loc);
  void recomputeSharedNumbers(Region &role);
  void lowerUnits(gdn::gpu::UnitsOp units);
  void lowerLoop(scf::ForOp loop);
  void lowerIf(scf::IfOp branch);
  void lowerAwait(Location loc);
  TileMemory sharedMemory(Location loc, Value buffer,
                          gdn::gpu::FragmentType type, Value row);

  Value get(Value value) { return values.lookupOrDefault(value); }
  Value getIf(Value value) { return value ? get(value) : Value(); }
  SmallVector<Value> get(ValueRange range) {
    return llvm::map_to_vector(range, [&](Value value) { return get(value); });
  }
  Type convert(Type type) {
    auto fragment = dyn_cast<gdn::gpu::FragmentType>(type);
    return fragment ? Type(getLocalType(fragment)) : type;
  }
  /// Values and types on their way across the border of a block.
  SmallVector<Type> convert(TypeRange types) {
    return llvm::map_to_vector(
        types, [&](Type type) { return getCarriedType(convert(type)); });
  }
  SmallVector<Value> carry(Location loc, ValueRange range) {
    return llvm::map_to_vector(
        range, [&](Value value) { return toCarried(b, loc, get(value)); });
  }
  void take(Location loc, ValueRange outer, ValueRange carried) {
    for (auto [value, got] : llvm::zip_equal(outer, carried))
      values.map(value, fromCarried(b, loc, got, convert(value.getType())));
  }

  func::FuncOp source;
  OpBuilder b;
  bool hasDependentLaunch;
  ViewMemory memory;
  Channels channels;
  /// Products of warpgroups in the order in which they begin, and their sums.
  SmallVector<std::pair<Value, SmallVector<Value>>> products;
  NarrowDivision divisions;
  int64_t numThreads;
  KernelEntry entry;
  BlockThreads threads; // that run the op at hand
  IRMapping values;
  int64_t sharedBytes = 0;
  bool isDependent = false;
};

struct ConvertGPUToNVVM final
    : gdn::impl::ConvertGPUToNVVMBase<ConvertGPUToNVVM> {
  using ConvertGPUToNVVMBase::ConvertGPUToNVVMBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("gdn_gpu.threads") && !function.isExternal())
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(checkGPUProgram(program)) ||
          failed(checkKernel(program, bulkCopies)))
        return signalPassFailure();
    for (func::FuncOp program : programs) {
      KernelLowering(program, dependentLaunch, everyThreadArrives).run();
      ++numKernels;
    }
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// One block of shared memory for the kernel, and a pointer for each tile. What
/// a kernel may not declare is asked for at launch.
void KernelLowering::placeSharedTiles() {
  SmallVector<std::pair<gdn::gpu::AllocOp, int64_t>> tiles;
  // Warpgroups want the swizzle's unit at a multiple of its size.
  bool hasGroups = source->hasAttr("gdn_gpu.warpgroups");
  auto alignmentOf = [&](gdn::gpu::AllocOp alloc) -> int64_t {
    return hasGroups && alloc.getTile().getType().getSwizzled() ? 1024 : 16;
  };
  for (int64_t alignment : {1024, 16})
    source.walk([&](gdn::gpu::AllocOp alloc) {
      if (alignmentOf(alloc) != alignment)
        return;
      sharedBytes = llvm::alignTo(sharedBytes, alignment);
      tiles.push_back({alloc, sharedBytes});
      sharedBytes =
          llvm::alignTo(sharedBytes + alloc.getTile().getType().getBytes(), 16);
    });
  sharedBytes = channels.assign(sharedBytes);
  if (sharedBytes == 0)
    return;
  Location loc = source.getLoc();
  bool isStatic = sharedBytes <= maxStaticShared;
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(source);
    auto type =
        LLVM::LLVMArrayType::get(b.getI8Type(), isStatic ? sharedBytes : 0);
    global = LLVM::GlobalOp::create(
        b, loc, type, /*isConstant=*/false,
        isStatic ? LLVM::Linkage::Internal : LLVM::Linkage::External,
        (source.getName() + "_shared").str(), Attribute(),
        /*alignment=*/hasGroups ? 1024 : 16,
        /*addrSpace=*/unsigned(NVVM::NVVMMemorySpace::Shared));
  }
  Value base = LLVM::AddressOfOp::create(b, loc, global);
  for (auto [alloc, offset] : tiles)
    values.map(alloc.getTile(),
               LLVM::GEPOp::create(b, loc, base.getType(), b.getI8Type(), base,
                                   ArrayRef<LLVM::GEPArg>{int32_t(offset)})
                   .getResult());
  channels.begin(b, loc, base);
  if (isStatic)
    sharedBytes = 0;
}

TileMemory KernelLowering::sharedMemory(Location loc, Value buffer,
                                        gdn::gpu::FragmentType type,
                                        Value row) {
  auto shared = cast<gdn::gpu::SharedType>(buffer.getType());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t columns = shared.getShape().back();
  TileMemory tile;
  tile.pointer = values.lookup(buffer);
  tile.row = {type.isPerRow() ? bytes : columns * bytes, Value()};
  tile.column = {bytes, Value()};
  // Rows begin at multiples of their size.
  int64_t rowBytes = columns * bytes;
  tile.aligned = shared.getShape().size() == 1
                     ? 16
                     : std::min<int64_t>(16, rowBytes & -rowBytes);
  if (row) {
    Arithmetic a{b, loc};
    Value offset = a.mul(a.toI64(get(row)), a.i64(rowBytes));
    tile.pointer =
        LLVM::GEPOp::create(b, loc, tile.pointer.getType(), b.getI8Type(),
                            tile.pointer, ArrayRef<LLVM::GEPArg>{offset});
  }
  return tile;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

void KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      lower(op);
}

void KernelLowering::recomputeThread(Location loc) {
  for (Value *number : {&threads.lane, &threads.warp})
    if (!matchPattern(*number, m_Constant()))
      *number = optimizationBarrier(b, loc, *number);
}

/// Makes the work of a role compute its addresses itself. Beside a state in
/// registers there is no room for those that several roles have in common.
void KernelLowering::recomputeSharedNumbers(Region &role) {
  Location loc = role.getLoc();
  recomputeThread(loc);
  SetVector<Value> used;
  getUsedValuesDefinedAbove(role, used);
  for (Value value : used)
    if (Value known = values.lookupOrNull(value);
        known && known.getType().isIndex() &&
        !matchPattern(known, m_Constant()))
      values.map(value, optimizationBarrier(b, loc, known));
}

/// The warps take one way, the others hold nothing.
template <typename OpTy> void KernelLowering::lowerWarps(OpTy warps) {
  Location loc = warps.getLoc();
  Arithmetic a{b, loc};
  BlockThreads around = threads;
  IRMapping valuesAround = values;
  threads.warp = around.warp;
  if (warps.getFirst() != 0)
    threads.warp =
        arith::SubIOp::create(b, loc, around.warp, a.i32(warps.getFirst()));
  Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       threads.warp, a.i32(warps.getCount()));
  SmallVector<Type> types = convert(warps.getResultTypes());
  auto branch = scf::IfOp::create(b, loc, types, isHere,
                                  /*withElseRegion=*/!types.empty());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Block &body = warps.getBody().front();
    if (auto role = dyn_cast<gdn::gpu::WarpsOp>(warps.getOperation());
        role && isa<gdn::gpu::RolesOp>(role->getParentOp())) {
      enterRole(b, role, numThreads, threads);
      channels.enterRole(b, role);
    }
    if (source->hasAttr("gdn_gpu.keep_loops"))
      recomputeSharedNumbers(warps.getBody());
    if (body.getNumArguments() == 1) { // each by itself
      values.map(body.getArgument(0), a.toIndex(threads.warp));
      threads.warp = a.i32(0);
    }
    lowerBlock(body);
    if (!types.empty()) {
      scf::YieldOp::create(b, loc,
                           carry(loc, body.getTerminator()->getOperands()));
      b.setInsertionPointToStart(branch.elseBlock());
      SmallVector<Value> nothing;
      for (Type type : types)
        nothing.push_back(LLVM::PoisonOp::create(b, loc, type));
      scf::YieldOp::create(b, loc, nothing);
    }
  }
  values = valuesAround;
  take(loc, warps.getResults(), branch.getResults());
  threads = around;
}

/// One role after another in the code; at run time each warp goes into its own.
void KernelLowering::lowerRoles(gdn::gpu::RolesOp roles) {
  channels.initialise(b, roles.getLoc(), threads,
                      numThreads / gdn::gpu::warpThreads);
  for (auto role : roles.getBody().getOps<gdn::gpu::WarpsOp>()) {
    memory.enterRole();
    setGroupRegisters(b, role, numThreads, threads.warp);
    lowerWarps(role);
  }
  memory.enterAwaited(); // some have
}

void KernelLowering::lowerUnits(gdn::gpu::UnitsOp units) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> around = entry.blockIds;
  entry.blockIds = beginUnits(b, entry, source, units);
  lowerBlock(units.getBody().front());
  entry.blockIds = around;
}

void KernelLowering::lowerLoop(scf::ForOp loop) {
  Location loc = loop.getLoc();
  auto copy = scf::ForOp::create(b, loc, get(loop.getLowerBound()),
                                 get(loop.getUpperBound()), get(loop.getStep()),
                                 carry(loc, loop.getInitArgs()));
  const bool keeps = source->hasAttr("gdn_gpu.keep_loops") && !hasRoom(loop);
  if (keeps)
    keepInside(copy);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    values.map(loop.getInductionVar(), copy.getInductionVar());
    take(loc, loop.getRegionIterArgs(), copy.getRegionIterArgs());
    BlockThreads around = threads;
    IRMapping valuesAround = values;
    if (keeps)
      recomputeSharedNumbers(loop.getRegion());
    lowerBlock(*loop.getBody());
    if (loop.getNumResults() > 0)
      scf::YieldOp::create(
          b, loc, carry(loc, loop.getBody()->getTerminator()->getOperands()));
    threads = around;
    values = valuesAround;
  }
  take(loc, loop.getResults(), copy.getResults());
}

void KernelLowering::lowerIf(scf::IfOp branch) {
  Location loc = branch.getLoc();
  bool hasElse = !branch.getElseRegion().empty();
  auto copy = scf::IfOp::create(b, loc, convert(branch.getResultTypes()),
                                get(branch.getCondition()), hasElse);
  for (unsigned side = 0; side < (hasElse ? 2 : 1); ++side) {
    OpBuilder::InsertionGuard guard(b);
    Block &block = branch->getRegion(side).front();
    b.setInsertionPointToStart(&copy->getRegion(side).front());
    lowerBlock(block);
    if (branch.getNumResults() > 0)
      scf::YieldOp::create(b, loc,
                           carry(loc, block.getTerminator()->getOperands()));
  }
  take(loc, branch.getResults(), copy.getResults());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void KernelLowering::lowerAwait(Location loc) {
  memory.enterAwaited();
  if (!hasDependentLaunch)
    return;
  isDependent = true;
  emitAwaitLaunch(b, loc);
}

void KernelLowering::lower(Operation &op) {
  Location loc = op.getLoc();
  Arithmetic a{b, loc};
  auto rowOf = [&](auto access) -> Value {
    Value row = access.getRow();
    return row ? a.toI32(get(row)) : row;
  };
  auto tileIn = [&](auto access, gdn::gpu::FragmentType type, int64_t aligned) {
    return memory.getTile(b, loc, access.getView(), values,
                          get(access.getIndices()), access.getDims(), type,
                          aligned);
  };
  auto at = [&](auto copy) {
    return memory.getTile(b, loc, copy.getView(), values,
                          get(copy.getIndices()), copy.getDims(),
                          copy.getBuffer().getType());
  };
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](gdn::gpu::BlockIdOp id) {
        values.map(id.getResult(), entry.blockIds[id.getAxis()]);
      })
      .Case([&](gdn::gpu::WarpsOp warps) { lowerWarps(warps); })
      .Case([&](gdn::gpu::RolesOp roles) { lowerRoles(roles); })
      .Case([&](gdn::gpu::UnitsOp units) { lowerUnits(units); })
      .Case([&](gdn::gpu::EachWarpOp warps) { lowerWarps(warps); })
      .Case([&](scf::ForOp loop) { lowerLoop(loop); })
      .Case([&](scf::IfOp branch) { lowerIf(branch); })
      .Case([&](gdn::gpu::LoadOp load) {
        auto type = load.getTile().getType();
        emitLoadOrder(b, load);
        TileMemory tile = tileIn(load, type, load.getAligned());
        tile.begun = getIf(load.getBegun());
        values.map(load.getTile(), loadFragment(b, loc, threads, type, tile,
                                                getIf(load.getRows())));
      })
      .Case([&](gdn::gpu::StoreOp store) {
        auto type = store.getTile().getType();
        storeFragment(b, loc, threads, type, get(store.getTile()),
                      tileIn(store, type, store.getAligned()),
                      getIf(store.getRows()));
      })
      .Case<gdn::gpu::PrefetchOp, gdn::gpu::BeginLoadOp>([&](auto ask) {
        auto type = cast<gdn::gpu::FragmentType>(ask.getTile());
        TileMemory tile = tileIn(ask, type, /*aligned=*/0);
        if (auto begin = dyn_cast<gdn::gpu::BeginLoadOp>(*ask))
          tile.begun = get(begin.getBuffer());
        auto emit = tile.begun ? beginFragment : prefetchFragment;
        emit(b, loc, threads, type, tile);
      })
      .Case([&](memref::LoadOp load) {
        values.map(load.getResult(),
                   memory.loadElement(b, loc, load.getMemRef(), values,
                                      get(load.getIndices())));
      })
      .Case<gdn::gpu::AllocOp, gdn::gpu::ChannelOp>([](auto) {})
      .Case([&](gdn::gpu::ReshapeOp reshape) {
        values.map(reshape.getResult(), get(reshape.getBuffer()));
      })
      .Case([&](gdn::gpu::AcquireOp acquire) {
        values.map(acquire.getTile(), channels.acquire(b, threads, acquire));
      })
      .Case([&](gdn::gpu::CommitOp commit) {
        Value tile = channels.commit(b, threads, commit);
        if (tile)
          values.map(commit.getTile(), tile);
      })
      .Case([&](gdn::gpu::ReceiveOp receive) {
        values.map(receive.getTile(), channels.receive(b, threads, receive));
      })
      .Case([&](gdn::gpu::ReleaseOp release) {
        channels.release(b, threads, release);
      })
      .Case([&](gdn::gpu::CopyOp copy) {
        channels.copy(b, threads, copy, values.lookup(copy.getTile()),
                      memory.getRows(b, loc, copy, values));
      })
      .Case([&](gdn::gpu::StoreSharedOp store) {
        gdn::gpu::FragmentType type = store.getTile().getType();
        gdn::gpu::SharedType buffer = store.getBuffer().getType();
        emitAwaitTensorMapStores(b, store, threads);
        if (buffer.getSwizzled() || store.getTranspose())
          return storeMatrix(b, loc, threads, type, get(store.getTile()),
                             buffer, values.lookup(store.getBuffer()),
                             rowOf(store), store.getTranspose(),
                             source->hasAttr("gdn_gpu.warpgroups"));
        storeFragment(
            b, loc, threads, type, get(store.getTile()),
            sharedMemory(loc, store.getBuffer(), type, store.getRow()),
            Value());
      })
      .Case([&](gdn::gpu::LoadSharedOp load) {
        gdn::gpu::FragmentType type = load.getTile().getType();
        gdn::gpu::SharedType buffer = load.getBuffer().getType();
        if (buffer.getSwizzled() || load.getTranspose())
          return values.map(load.getTile(),
                            loadMatrix(b, loc, threads, type, buffer,
                                       values.lookup(load.getBuffer()),
                                       rowOf(load), load.getTranspose()));
        values.map(load.getTile(),
                   loadFragment(
                       b, loc, threads, type,
                       sharedMemory(loc, load.getBuffer(), type, load.getRow()),
                       Value()));
      })
      .Case([&](gdn::gpu::LoadSharedElementOp load) {
        Type type = load.getValue().getType();
        Value pointer = values.lookup(load.getBuffer());
        pointer = LLVM::GEPOp::create(
            b, loc, pointer.getType(), type, pointer,
            ArrayRef<LLVM::GEPArg>{a.toI64(get(load.getIndex()))});
        values.map(load.getValue(),
                   LLVM::LoadOp::create(b, loc, type, pointer).getResult());
      })
      .Case([&](gdn::gpu::FillOp fill) {
        Type type = getLocalType(fill.getTile().getType());
        values.map(fill.getTile(), Value(vector::BroadcastOp::create(
                                       b, loc, type, get(fill.getValue()))));
      })
      .Case([&](gdn::gpu::MapRowsOp map) {
        values.map(map.getResults(),
                   emitMapRows(b, threads, map, values,
                               source->hasAttr("gdn_gpu.keep_loops"),
                               source->hasAttr("gdn_gpu.rows_apart")));
      })
      .Case([&](gdn::gpu::Conv1dOp conv) {
        values.map(conv.getResults(), emitConv1d(b, conv, values));
      })
      .Case([&](gdn::gpu::BeginCopyOp copy) {
        Value to = values.lookup(copy.getBuffer()),
              rows = getIf(copy.getRows());
        auto pieces = [&] { emitCopy(b, copy, threads, at(copy), rows, to); };
        if (!copy.getTensorMap())
          return pieces();
        emitTensorMapCopy(b, copy, threads, entry.tensorMaps, entry.kernel,
                          channels, get(copy.getIndices()), rows, to, pieces);
      })
      .Case([&](gdn::gpu::CopyOutOp copy) {
        emitCopyOut(b, copy, threads, at(copy), values, entry.tensorMaps,
                    entry.kernel);
      })
      .Case([&](gdn::gpu::AwaitCopiesOp await) {
        emitAwaitCopies(b, await, threads);
      })
      .Case([&](gdn::gpu::ShareProductsOp products) {
        emitShareProducts(b, threads, products, values);
      })
      .Case([&](gdn::gpu::MatmulOp matmul) {
        Value lhs = get(matmul.getLhs()), tile = values.lookup(matmul.getRhs());
        Value acc = getIf(matmul.getAcc());
        if (!matmul.getWarpgroup())
          return values.map(matmul.getResult(),
                            emitMatmul(b, threads, matmul, lhs, tile, acc));
        gdn::gpu::FragmentType type = matmul.getResult().getType();
        auto sums =
            startGroupMatmul(b, loc, matmul.getLhs().getType().getDimSize(1),
                             GroupLhs{gdn::gpu::SharedType(), lhs, false},
                             matmul.getRhs().getType(), type,
                             matmul.getTransposeRhs(), tile, acc);
        values.map(matmul.getResult(),
                   awaitGroupMatmul(b, loc, type, sums, /*left=*/0));
      })
      .Case([&](gdn::gpu::StartMatmulOp start) {
        auto buffer = dyn_cast<gdn::gpu::SharedType>(start.getLhs().getType());
        gdn::gpu::SharedType rhs = start.getRhs().getType();
        products.push_back(
            {start.getResult(),
             startGroupMatmul(
                 b, loc, rhs.getShape()[start.getTransposeRhs() ? 1 : 0],
                 GroupLhs{buffer, get(start.getLhs()), start.getTransposed()},
                 rhs, start.getResult().getType().getFragment(),
                 start.getTransposeRhs(), values.lookup(start.getRhs()),
                 getIf(start.getAcc()))});
      })
      .Case([&](gdn::gpu::AwaitMatmulOp await) {
        // Those begun later may go on.
        auto found = llvm::find_if(products, [&](auto &product) {
          return product.first == await.getProduct();
        });
        values.map(await.getResult(),
                   awaitGroupMatmul(b, loc, await.getResult().getType(),
                                    found->second,
                                    std::distance(found, products.end()) - 1));
      })
      .Case([&](gdn::gpu::TriInverseOp inverse) {
        auto matrices = llvm::map_to_vector(
            inverse.getMatrices(), [&](Value matrix) { return get(matrix); });
        values.map(inverse.getInverses(),
                   emitTriInverse(b, threads, inverse, matrices,
                                  values.lookup(inverse.getScratch())));
      })
      .Case([&](gdn::gpu::RunningSumOp sum) {
        values.map(sum.getResult(),
                   emitRunningSum(b, threads, sum, get(sum.getValues())));
      })
      .Case([&](gdn::gpu::ColumnSumOp sum) {
        values.map(sum.getResult(),
                   emitColumnSum(b, threads, sum, get(sum.getTile()),
                                 values.lookup(sum.getScratch())));
      })
      .Case([&](gdn::gpu::ExtractOp extract) {
        values.map(extract.getValue(),
                   emitExtract(b, extract, get(extract.getTile())));
      })
      .Case<gdn::gpu::BarrierOp, gdn::gpu::ArriveOp, gdn::gpu::AwaitArrivalsOp>(
          [&](Operation *barrier) {
            finishProducts(b, barrier, values, entry);
            emitBarrier(b, barrier, threads);
          })
      .Case([&](gdn::gpu::LastReaderOp last) {
        Value count = get(last.getCount());
        Value ticket =
            emitTicket(b, loc, threads, entry.workspace, get(last.getCounter()),
                       count, get(last.getAfter()));
        values.map(last.getLast(), emitIsLast(b, loc, ticket, count));
      })
      .Case([&](gdn::gpu::TakeTicketOp take) {
        values.map(take.getTicket(),
                   emitTicket(b, loc, threads, entry.workspace,
                              get(take.getCounter()), get(take.getCount()),
                              get(take.getAfter())));
      })
      .Case([&](gdn::gpu::IsLastOp last) {
        values.map(last.getLast(), emitIsLast(b, loc, get(last.getTicket()),
                                              get(last.getCount())));
      })
      .Case([&](gdn::gpu::AwaitLaunchOp) { lowerAwait(loc); })
      .Case([&](gdn::gpu::ReleaseLaunchOp) {
        if (hasDependentLaunch)
          emitReleaseLaunch(b, loc);
      })
      .Default([&](Operation *other) {
        if (divisions.emit(b, *other, values))
          return;
        b.clone(*other, values);
      });
}

void KernelLowering::run() {
  entry = beginKernel(b, source);
  threads = entry.threads;
  threads.numThreads = numThreads;
  values = entry.arguments;
  placeSharedTiles();
  lowerBlock(source.getBody().front());
  finishKernel(b, entry, source, sharedBytes, isDependent);
}
