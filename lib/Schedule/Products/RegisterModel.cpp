// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers by a model that was fitted to what ptxas needs not to spill. In a
// loop that carries a state and whose products are started and awaited: 2.4 for
// each element of it that a thread has (the state, its rounded copy, what comes
// next) and one for each token of a chunk (two results and what is written).
// Where a warp makes its products alone, a piece of the state is rounded where
// it is multiplied: then 1.5 for each element will do, if tokens are few. Else
// the largest result and what stands around it.
#include "Products/RegisterModel.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Target/GpuFacts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// Of a place of a channel: full and empty.
static constexpr int64_t barrierBytes = 2 * 8;

static int64_t countElements(Value tile, int64_t numWarps) {
  auto type = dyn_cast<VectorType>(tile.getType());
  return type && type.getElementType().isF32()
             ? llvm::divideCeil(type.getNumElements(),
                                numWarps * gpu::warpThreads)
             : 0;
}

/// Warps of a multiprocessor that programs with decays by channel leave room
/// for: scores of six kinds are in the registers of each.
static constexpr int64_t channelWarps = 16;

int64_t gdn::countRegisters(func::FuncOp program, int64_t numWarps,
                            bool together) {
  int64_t carried = 0, largest = 0, tokens = 0;
  program.walk([&](scf::ForOp loop) {
    int64_t elements = 0;
    for (Value value : loop.getRegionIterArgs())
      elements += countElements(value, numWarps);
    carried = std::max(carried, elements);
  });
  program.walk([&](tile::MatmulOp matmul) {
    largest = std::max(largest, countElements(matmul.getResult(), numWarps));
    // What is carried on is counted as carried.
    bool isCarried =
        llvm::any_of(matmul->getUsers(), llvm::IsaPred<scf::YieldOp>);
    if (matmul->getParentOfType<scf::ForOp>() && !isCarried)
      tokens =
          std::max(tokens, std::min(matmul.getResult().getType().getDimSize(1),
                                    matmul.getLhs().getType().getDimSize(1)));
  });
  bool hasChannels = false;
  program.walk([&](tile::DecayOperandsOp) { hasChannels = true; });
  if (hasChannels)
    return getMostRegisters(channelWarps, /*numBlocks=*/1);
  if (carried == 0)
    return largest * 6 / 5 + 84;
  int64_t copies = carried * 12 / 5 + tokens * 11 / 10;
  if (together)
    return copies;
  return std::min(copies, carried * 3 / 2 + tokens * 23 / 10 - 34);
}

int64_t gdn::getMostRegisters(int64_t numWarps, int64_t numBlocks) {
  // Each of its parts has the registers of the warps that run there.
  int64_t warps =
      llvm::divideCeil(numWarps * numBlocks, gpufacts::partitionsPerSm);
  int64_t each = gpufacts::registersPerSm / gpufacts::partitionsPerSm /
                 (warps * gpu::warpThreads);
  return std::min(gpufacts::maxRegistersPerThread, each / 8 * 8);
}

int64_t gdn::countSharedBytes(func::FuncOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](gpu::AllocOp alloc) {
    bytes += llvm::alignTo(
        cast<gpu::SharedType>(alloc.getTile().getType()).getBytes(), 16);
  });
  kernel.walk([&](gpu::ChannelOp channel) {
    gpu::ChannelType type = channel.getChannel().getType();
    // Those that are led share the leader's barriers.
    int64_t barriers = channel.getLeader() ? 0 : barrierBytes;
    int64_t tile = channel.getMemory() ? 0 : type.getTileBytes();
    bytes += type.getDepth() * (tile + barriers);
  });
  return bytes;
}
