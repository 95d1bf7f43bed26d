// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels as rings of mbarriers and tiles in shared memory.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_COPIES_CHANNELS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_COPIES_CHANNELS_H

#include "Fragments/TileAccess.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// The channels of one program, while its kernel is written.
class Channels {
public:
  /// `everyThreadArrives`: for tools that do not follow what one thread does
  /// for its warp.
  Channels(mlir::func::FuncOp program, bool everyThreadArrives);

  /// Assigns buffers from byte `offset` of shared memory on; returns where they
  /// end.
  int64_t assign(int64_t offset);
  /// `base` is the start of shared memory; `b` is where the kernel begins.
  void begin(mlir::OpBuilder &b, mlir::Location loc, mlir::Value base);
  /// Sets up the barriers and lets all threads of the block meet.
  void initialise(mlir::OpBuilder &b, mlir::Location loc,
                  const BlockThreads &threads, int64_t numWarps);
  /// The positions of a role in the rings that it uses; `warp` is the thread's.
  void enterRole(mlir::OpBuilder &b, gpu::WarpsOp role, mlir::Value warp);

  /// Waits; returns the pointer to the tile. `threads` are those of the role.
  mlir::Value acquire(mlir::OpBuilder &b, const BlockThreads &threads,
                      gpu::AcquireOp op);
  mlir::Value receive(mlir::OpBuilder &b, const BlockThreads &threads,
                      gpu::ReceiveOp op);
  /// Returns the pointer to the tile.
  mlir::Value commit(mlir::OpBuilder &b, const BlockThreads &threads,
                     gpu::CommitOp op);
  void release(mlir::OpBuilder &b, const BlockThreads &threads,
               gpu::ReleaseOp op);
  void handOn(mlir::OpBuilder &b, const BlockThreads &threads,
              gpu::HandOnOp op);
  /// The barrier that counts the bytes of a tile that was acquired.
  mlir::Value getFull(mlir::OpBuilder &b, mlir::Location loc,
                      gpu::AcquireOp op);
  /// `tile` points to what was acquired, `source` is where the rows lie.
  void copy(mlir::OpBuilder &b, const BlockThreads &threads, gpu::CopyOp op,
            mlir::Value tile, const TileMemory &source);

private:
  /// A ring: for each stage and part a barrier that the filling role, and one
  /// that the emptying roles arrive at.
  struct Ring {
    gpu::ChannelType type;
    mlir::Value leader;       // channel with the barriers, or null
    mlir::Value memory;       // channel with the tiles, or null: it has them
    bool isZeroed = false;    // tiles are zero before the roles
    bool isCopied = false;    // bytes arrive
    int64_t filling = 0;      // arrivals that make a tile full
    int64_t emptying = 0;     // arrivals that make its stage free
    bool isPaired = false;    // of two blocks
    bool isExchanged = false; // of one role of two blocks, a row for each
    int64_t alternate = 0;    // of `emptying`, by roles that alternate
    int64_t tiles = 0, full = 0, empty = 0; // bytes from the base
    mlir::Value stage, parity;              // of this thread: memory of an i32
  };

  /// A place of a ring, and the parity of the round; i32.
  struct Position {
    mlir::Value stage, parity;
  };
  Position getPosition(mlir::OpBuilder &b, mlir::Location loc, const Ring &ring,
                       bool ahead = false);
  Ring &getRing(mlir::Value channel) { return rings.find(channel)->second; }
  /// That with the tiles.
  const Ring *getMemory(const Ring &ring) {
    return ring.memory ? &getRing(ring.memory) : &ring;
  }
  void countRing(gpu::ChannelOp channel, int64_t perWarp);
  void zero(mlir::OpBuilder &b, mlir::Location loc, const Ring &ring,
            const BlockThreads &threads, int64_t numWarps);
  mlir::Value getPart(mlir::OpBuilder &b, mlir::Location loc, const Ring &ring,
                      const BlockThreads &threads);
  mlir::Value getBarrier(mlir::OpBuilder &b, mlir::Location loc,
                         const Ring &ring, const Position &at, int64_t first,
                         mlir::Value part);
  mlir::Value getTile(mlir::OpBuilder &b, mlir::Location loc, const Ring &ring,
                      const Position &at);
  void arrive(mlir::OpBuilder &b, mlir::Location loc,
              const BlockThreads &threads, mlir::Value barrier,
              bool isOther = false);
  void countArrivals(mlir::OpBuilder &b, mlir::Location loc, const Ring &ring,
                     mlir::Value number, mlir::Value &filling,
                     mlir::Value &emptying);
  void send(mlir::OpBuilder &b, const BlockThreads &threads, gpu::CommitOp op,
            const Ring &leader, const Position &at);
  void advance(mlir::OpBuilder &b, mlir::Location loc, const Ring &ring);

  bool everyThreadArrives;
  bool hasAlternate = false; // whether some role takes every second stage
  bool alternates = false;   // whether the role at hand does
  int64_t turns = 1;         // of warps of the role at hand
  mlir::Value rank;          // of the block in its cluster, i32; null: alone
  llvm::MapVector<mlir::Value, Ring> rings;  // by channel
  llvm::DenseSet<mlir::Operation *> awaited; // receives, by one before them
  mlir::Value base, address;                 // pointer, i32
};

/// The address, an i32, that `shared` has in block `block` of the cluster.
mlir::Value getRemote(mlir::OpBuilder &b, mlir::Location loc,
                      mlir::Value shared, mlir::Value block);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_COPIES_CHANNELS_H
