// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Single ops of a program, by the rooms that write their code.
#include "Copies/TileCopy.h"
#include "Fragments/SharedMatrix.h"
#include "Kernel/OptimizationBarrier.h"
#include "KernelLowering.h"
#include "Products/ByteMma.h"
#include "Products/ChunkOps.h"
#include "Products/KeyColumns.h"
#include "Products/NarrowMma.h"
#include "Products/PartMma.h"
#include "Products/PlaneFold.h"
#include "Products/ProductFamily.h"
#include "Products/SplitMma.h"
#include "Rows/RowWork.h"
#include "Sync/LaunchOrder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// Whether instructions of matrices take elements of `type`.
static bool hasNarrowElements(gdn::gpu::FragmentType type) {
  return type.getElementType().getIntOrFloatBitWidth() <= 16;
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
  auto operandsOf = [&](auto product) {
    ProductOperands operands;
    operands.lhs = get(product.getLhs());
    operands.rhsTile = product.getRhs().getType();
    operands.rhs = values.lookup(product.getRhs());
    operands.isRhsTransposed = product.getTransposeRhs();
    operands.inner =
        operands.rhsTile.getShape()[product.getTransposeRhs() ? 1 : 0];
    if (product.getFrom()) {
      operands.from = *product.getFrom();
      operands.inner = cast<gdn::gpu::FragmentType>(product.getLhs().getType())
                           .getDimSize(1);
    }
    operands.acc = getIf(product.getAcc());
    return operands;
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
        auto emit = load.getWhole() ? loadFragmentIf : loadFragment;
        values.map(load.getTile(),
                   emit(b, loc, threads, type, tile, getIf(load.getRows())));
      })
      .Case([&](gdn::gpu::StoreOp store) {
        auto type = store.getTile().getType();
        Value local = get(store.getTile()), rows = getIf(store.getRows());
        // Where registers are dealt out, work on rows does not move under their
        // conditions, one row behind the other.
        gdn::gpu::WarpsOp role = gdn::gpu::getRole(store);
        if (rows && role && role.getRegisters() &&
            !gdn::gpu::isInSomeWarps(store) &&
            store.getTile().getDefiningOp<gdn::gpu::MapRowsOp>())
          local = pinHere(b, loc, local);
        storeFragment(b, loc, threads, type, local,
                      tileIn(store, type, store.getAligned()), rows);
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
      .Case([&](gdn::gpu::StoreElementOp store) {
        Value isFirst = arith::CmpIOp::create(
            b, loc, arith::CmpIPredicate::eq,
            arith::OrIOp::create(b, loc, threads.lane, threads.warp), a.i32(0));
        auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToStart(branch.thenBlock());
        memory.storeElement(b, loc, get(store.getValue()), store.getView(),
                            values, get(store.getIndices()));
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
      .Case([&](gdn::gpu::HandOnOp handOn) {
        channels.handOn(b, threads, handOn);
      })
      .Case([&](gdn::gpu::CopyOp copy) {
        channels.copy(b, threads, copy, values.lookup(copy.getTile()),
                      memory.getRows(b, loc, copy, values));
      })
      .Case([&](gdn::gpu::StoreSharedOp store) {
        gdn::gpu::FragmentType type = store.getTile().getType();
        gdn::gpu::SharedType buffer = store.getBuffer().getType();
        emitAwaitTensorMapStores(b, store, threads);
        if (buffer.getSwizzled() ||
            (store.getTranspose() && hasNarrowElements(type)))
          return storeMatrix(b, loc, threads, type, get(store.getTile()),
                             buffer, values.lookup(store.getBuffer()),
                             rowOf(store), store.getTranspose(),
                             gdn::gpu::KernelFields(source).mayStoreMatrices());
        storeFragment(b, loc, threads, type, get(store.getTile()),
                      sharedMemory(loc, store.getBuffer(), type, store.getRow(),
                                   store.getTranspose()),
                      Value());
      })
      .Case([&](gdn::gpu::LoadSharedOp load) {
        gdn::gpu::FragmentType type = load.getTile().getType();
        gdn::gpu::SharedType buffer = load.getBuffer().getType();
        if (buffer.getSwizzled() ||
            (load.getTranspose() && hasNarrowElements(type)))
          return values.map(load.getTile(),
                            loadMatrix(b, loc, threads, type, buffer,
                                       values.lookup(load.getBuffer()),
                                       rowOf(load), load.getTranspose()));
        values.map(
            load.getTile(),
            loadFragment(b, loc, threads, type,
                         sharedMemory(loc, load.getBuffer(), type,
                                      load.getRow(), load.getTranspose()),
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
                               gdn::gpu::KernelFields(source).getKeepLoops(),
                               gdn::gpu::KernelFields(source).getRowsApart()));
      })
      .Case([&](gdn::gpu::Conv1dOp conv) {
        values.map(conv.getResults(), emitConv1d(b, conv, values));
      })
      .Case([&](gdn::gpu::ConvColumnsOp conv) {
        values.map(conv.getNewWindow(),
                   emitConvColumns(b, threads, conv, values));
      })
      .Case([&](gdn::gpu::BeginCopyOp copy) {
        Value to = values.lookup(copy.getBuffer()),
              rows = getIf(copy.getRows());
        BlockThreads mine = threads;
        if (gdn::gpu::isInSomeWarps(copy))
          mine.numThreads =
              copy->getParentOfType<gdn::gpu::WarpsOp>().getCount() *
              gdn::gpu::warpThreads;
        auto pieces = [&] {
          auto indices = llvm::to_vector(get(copy.getIndices()));
          // Nothing of the last tile is computed ahead of it, to be kept.
          if (isRestBesideWork(copy)) {
            for (Value &index : indices)
              if (!matchPattern(index, m_Constant()))
                index = optimizationBarrier(b, loc, index);
            mine.lane = optimizationBarrier(b, loc, mine.lane);
          }
          TileMemory from =
              memory.getTile(b, loc, copy.getView(), values, indices,
                             copy.getDims(), copy.getBuffer().getType());
          emitCopy(b, copy, mine, from, rows, to);
        };
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
      .Case([&](gdn::gpu::ShareByteProductsOp products) {
        emitShareByteProducts(b, threads, products, values);
      })
      .Case([&](gdn::gpu::SharePartProductsOp products) {
        emitSharePartProducts(b, threads, products, values);
      })
      .Case([&](gdn::gpu::ShareColumnPartsOp parts) {
        emitShareColumnParts(b, threads, parts, values);
      })
      .Case([&](gdn::gpu::ShareKeyColumnsOp keys) {
        emitShareKeyColumns(b, threads, keys, values);
      })
      .Case([&](gdn::gpu::TokenUnitOp unit) {
        values.map(unit.getUnit(), emitTokenUnit(b, threads, unit, values));
      })
      .Case([&](gdn::gpu::FoldPlanesOp fold) {
        values.map(fold->getResults(),
                   emitFoldPlanes(b, threads, fold, values));
      })
      .Case([&](gdn::gpu::AddPartProductsOp products) {
        values.map(products.getResult(),
                   emitAddPartProducts(b, threads, products, values));
      })
      .Case([&](gdn::gpu::MatmulOp matmul) {
        const ProductFamily &family =
            matmul.getWarpgroup() ? getWgmma() : getMmaSync();
        ProductOperands operands = operandsOf(matmul);
        operands.result = matmul.getResult().getType();
        auto sums = family.start(b, loc, threads, operands);
        values.map(matmul.getResult(),
                   family.await(b, loc, operands.result, sums, /*left=*/0));
      })
      .Case([&](gdn::gpu::StartMatmulOp start) {
        ProductOperands operands = operandsOf(start);
        operands.lhsTile =
            dyn_cast<gdn::gpu::SharedType>(start.getLhs().getType());
        operands.isLhsTransposed = start.getTransposed();
        operands.result = start.getResult().getType().getFragment();
        products.push_back(
            {start.getResult(), getWgmma().start(b, loc, threads, operands)});
      })
      .Case([&](gdn::gpu::AwaitMatmulOp await) {
        // Those begun later may go on.
        auto found = llvm::find_if(products, [&](auto &product) {
          return product.first == await.getProduct();
        });
        values.map(await.getResult(),
                   getWgmma().await(b, loc, await.getResult().getType(),
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
      .Case([&](gdn::gpu::DecayOperandsOp operands) {
        values.map(operands.getResults(),
                   emitDecayOperands(b, threads, operands, values,
                                     get(operands.getLogDecay())));
      })
      .Case<gdn::gpu::DecayWithinOp, gdn::gpu::DecayBetweenOp,
            gdn::gpu::BlockInversesOp, gdn::gpu::JoinInversesOp>(
          [&](auto step) { emitChunkOp(b, threads, step, values); })
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
      .Case([&](gdn::gpu::WarpBarrierOp) {
        NVVM::SyncWarpOp::create(b, loc, Arithmetic{b, loc}.i32(-1));
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
      .Case([&](gdn::gpu::TakeUnitOp take) {
        values.map(take.getUnit(),
                   emitTakeUnit(b, loc, threads, entry.workspace, entry.units));
      })
      .Case([&](gdn::gpu::IsLastOp last) {
        values.map(last.getLast(), emitIsLast(b, loc, get(last.getTicket()),
                                              get(last.getCount())));
      })
      .Case([&](gdn::gpu::SignalOp signal) {
        // Each lane has a counter; those of the others are not read.
        SmallVector<Value> indices(get(signal.getIndices()));
        indices.front() = arith::SubIOp::create(b, loc, indices.front(),
                                                a.toIndex(threads.lane));
        emitSignal(b, loc, threads,
                   memory.getElement(b, loc, signal.getView(), values, indices),
                   signal.getAmount(), getIf(signal.getCount()));
      })
      .Case([&](gdn::gpu::AwaitSignalsOp await) {
        emitAwaitSignals(b, loc,
                         memory.getElement(b, loc, await.getView(), values,
                                           get(await.getIndices())),
                         await.getTotal());
        memory.enterAwaited();
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
