// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-tile-products: products of tiles on the tensor cores of a block.
// See Passes.td. A program is the work of all warps (WarpProgram.cpp), or of
// roles (WarpRoles.cpp).
#include "Kernel/KernelFunction.h"
#include "Products/ProductForm.h"
#include "Products/RegisterModel.h"
#include "Products/RolePlan.h"
#include "Products/WarpProgram.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include <numeric>

namespace gdn {
#define GEN_PASS_DEF_SCHEDULETILEPRODUCTS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

struct ScheduleTileProducts final
    : gdn::impl::ScheduleTileProductsBase<ScheduleTileProducts> {
  using ScheduleTileProductsBase::ScheduleTileProductsBase;

  void runOnOperation() override;
  void keepIfSmall(func::FuncOp func, func::FuncOp kernel);
};

} // namespace

/// ptxas takes all registers that there are to ask early for operands. Wanted
/// are no matrix elements then, but scalars of entries that ask for states
/// inside sequences: one word with 64 x 64 heads, 144 bytes of loads with 96 x
/// 192 (16/64 heads, 4 x 8,192 tokens from packed projections: 2,877 us, where
/// parts of the values, which spill nothing, take 3,363).
constexpr StringLiteral allowedProductSpills =
    "spills up to 256 bytes: scalars of recurrences with states inside "
    "sequences; one with 144 bytes of loads took 2,877 us where parts without "
    "took 3,363";

/// Where each warp makes its own products fewer scalars find no register, in
/// the same entries, which have no other variant. What sm_86 loads for each
/// chunk is half of a stride.
constexpr StringLiteral allowedTurnSpills =
    "spills up to 84 bytes: scalars of recurrences with states inside "
    "sequences, on sm_86, sm_100a and sm_103a; stored once and loaded between "
    "states, but for one word for each chunk on sm_86; not measured there";

/// A few words that four blocks on a multiprocessor have no registers for.
constexpr StringLiteral allowedChannelSpills =
    "spills up to 320 bytes: of four blocks on a multiprocessor, 28 bytes with "
    "log decays from memory, where three take 6 % more time, and 32 and 260 "
    "with gates that are computed, where three take 2 % and none to 1.5 % "
    "more (32 heads, H200)";

/// A few words of what operands in two parts keep beside each other.
constexpr StringLiteral allowedPartsSpills =
    "spills up to 96 bytes: of chunks whose operands have two parts, stored "
    "and loaded once for each chunk";

/// Elements of the largest matrix that `loop` carries, whose rows take
/// registers of their own beside those of the products; 0 if it carries none.
static int64_t countCarried(scf::ForOp loop) {
  int64_t elements = 0;
  for (Type type : loop.getResultTypes())
    if (auto tile = dyn_cast<VectorType>(type); tile && tile.getRank() == 2)
      elements = std::max(elements, tile.getNumElements());
  return elements;
}

/// The same of all loops of `func`.
static int64_t countCarried(func::FuncOp func) {
  int64_t elements = 0;
  func.walk([&](scf::ForOp loop) {
    elements = std::max(elements, countCarried(loop));
  });
  return elements;
}

/// Whether a recurrence stops inside of sequences: its loop stands in another
/// that carries the state.
static bool hasStatesInside(func::FuncOp func) {
  bool found = false;
  func.walk([&](scf::ForOp loop) {
    auto around = loop->getParentOfType<scf::ForOp>();
    found |= around && countCarried(loop) != 0 && countCarried(around) != 0;
  });
  return found;
}

/// Whether right sides of products are parts of what arrays of matrices hold in
/// f32: maps of tokens.
static bool splitsLoaded(func::FuncOp func) {
  auto isOfArray = [](Value tile) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    return load && isa<BlockArgument>(load.getView()) &&
           vectorType(tile).getElementType().isF32() &&
           cast<MemRefType>(load.getView().getType()).getRank() >= 4;
  };
  bool found = false;
  func.walk([&](tile::MatmulOp matmul) {
    auto map = matmul.getRhs().getDefiningOp<tile::MapRowsOp>();
    found |= map && llvm::any_of(map.getInputs(), isOfArray);
  });
  return found;
}

/// The kernel of `source`, ahead of it, without roles.
static FailureOr<func::FuncOp> emitKernel(func::FuncOp source, int64_t numWarps,
                                          int64_t minBlocks,
                                          int64_t blocksAhead) {
  OpBuilder b(source.getContext());
  IRMapping scalars;
  func::FuncOp kernel = createKernel(b, source, scalars);
  gpu::KernelFields fields(kernel);
  fields.setThreads(numWarps * gpu::warpThreads);
  fields.setMinBlocks(minBlocks);
  WarpProgram program(b, scalars, &kernel.front(), numWarps);
  program.prefetchAhead(blocksAhead);
  if (splitsLoaded(source))
    program.splitLoaded();
  if (failed(program.emitBlock(source.front())))
    return failure();
  func::ReturnOp::create(b, source.getLoc());
  return kernel;
}

/// True if the schedule takes ops like `op`.
static bool isKnown(Operation *op) {
  if (auto conv = dyn_cast<tile::Conv1dOp>(op))
    return ConvolvedValues::find(conv).has_value();
  return !isa<tile::TileDialect>(op->getDialect()) ||
         isa<tile::BlockIdOp, tile::LoadOp, tile::StoreOp, tile::FillOp,
             tile::MapRowsOp, tile::YieldOp, tile::MatmulOp, tile::TransposeOp,
             tile::TriInverseOp, tile::DecayMatrixOp, tile::DecayOperandsOp,
             tile::PrefixSumOp, tile::SuffixSumOp, tile::SumOfPairOp,
             tile::SignalOp>(op);
}

/// Warps for the products of `func`: 16 rows of each for a warp. None if there
/// is a product that tensor cores do not take, or an op that it does not take.
static std::optional<int64_t> countWarps(func::FuncOp func) {
  int64_t rows = 0;
  bool isPossible = bool(tile::StageFields(func).getGrid());
  func.walk([&](Operation *op) { isPossible &= isKnown(op); });
  func.walk([&](tile::MatmulOp matmul) {
    auto lhs = cast<VectorType>(matmul.getLhs().getType());
    auto result = cast<VectorType>(matmul.getResult().getType());
    int64_t inner = lhs.getDimSize(matmul.getTransposeLhs() ? 0 : 1);
    isPossible &= lhs.getElementTypeBitWidth() == 16 && inner % 16 == 0 &&
                  result.getDimSize(1) % 16 == 0;
    rows = std::gcd(rows, result.getDimSize(0));
  });
  if (!isPossible || rows == 0 || rows % 16 != 0)
    return std::nullopt;
  return std::min<int64_t>(rows / 16, 32);
}

/// Warps per multiprocessor at most, where each thread has all the registers
/// that it can have.
static constexpr int64_t fewestWarps = 8;

/// Whether operands have a decay per channel, which warps make by mma.sync: the
/// few products behind them are made likewise.
static bool hasChannels(func::FuncOp func) {
  bool found = false;
  func.walk([&](tile::DecayOperandsOp) { found = true; });
  return found;
}

/// Whether a block says what it has stored.
static bool hasSignals(func::FuncOp func) {
  bool found = false;
  func.walk([&](tile::SignalOp) { found = true; });
  return found;
}

/// Tokens of a chunk whose operands with a decay per channel are not 16 rows
/// for each of the warps, so that roles alone can make them; 0 if there is
/// none.
static int64_t countUnevenTokens(func::FuncOp func, int64_t numWarps) {
  int64_t tokens = 0;
  func.walk([&](tile::DecayOperandsOp operands) {
    const int64_t rows = vectorType(operands.getLogDecay()).getDimSize(0);
    if (rows != 16 * numWarps)
      tokens = rows;
  });
  return tokens;
}

/// Whether operands have two parts, whose products add up.
static bool hasParts(func::FuncOp func) {
  bool found = false;
  func.walk([&](tile::MatmulOp matmul) {
    found |= matmul.getAcc() && matmul.getAcc().getDefiningOp<tile::MatmulOp>();
  });
  return found;
}

/// Registers of a state beside which a thread has room for all else.
static constexpr int64_t mostOfState = 64;

/// Whether products are added to matrices from memory, of which the next is on
/// its way then.
static bool addsToLoaded(func::FuncOp func) {
  bool found = false;
  func.walk([&](tile::MatmulOp matmul) {
    found |= matmul.getAcc() && matmul.getAcc().getDefiningOp<tile::LoadOp>();
  });
  return found;
}

/// Whether products are to be done where a barrier follows: few warps copy so
/// much each that ptxas spills where it moves products behind one and keeps
/// what they multiply. Beside a larger state it has less ahead by itself.
static bool finishesProducts(func::FuncOp func, int64_t numWarps) {
  int64_t state = countCarried(func) / (numWarps * gpu::warpThreads);
  return numWarps < fewestWarps && state != 0 && state <= mostOfState;
}

/// Replaces the program by its kernel, or says what it would take.
void ScheduleTileProducts::keepIfSmall(func::FuncOp func, func::FuncOp kernel) {
  if (int64_t bytes = countSharedBytes(kernel); bytes > sharedBytes) {
    func.emitRemark() << "'" << func.getName() << "' would take " << bytes
                      << " bytes of shared memory, of which a block has "
                      << sharedBytes.getValue();
    return kernel.erase();
  }
  func.erase();
  ++numKernels;
}

void ScheduleTileProducts::runOnOperation() {
  SmallVector<std::pair<func::FuncOp, int64_t>> programs;
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (std::optional<int64_t> warps = countWarps(func))
      programs.push_back({func, *warps});
  for (auto [func, numWarps] : programs) {
    bringIntoForm(func);
    std::optional<RolePlan> plan = RolePlan::find(func);
    if (plan && (warpgroups || !plan->isPrepared)) {
      FailureOr<func::FuncOp> kernel = emitInRoles(func, *plan);
      if (failed(kernel))
        return signalPassFailure();
      keepIfSmall(func, *kernel);
      continue;
    }
    if (hasSignals(func)) {
      func.emitRemark() << "'" << func.getName() << "' signals, which is for "
                        << "consumers of roles";
      continue;
    }
    if (int64_t tokens = countUnevenTokens(func, numWarps)) {
      func.emitRemark() << "'" << func.getName() << "' has decays per channel "
                        << "of " << tokens << " tokens for " << numWarps
                        << " warps, which have 16 each without roles";
      continue;
    }
    // Warps that have too few registers for a product together make their own.
    bool together = warpgroups && !hasChannels(func) &&
                    countRegisters(func, numWarps, /*together=*/true) <=
                        getMostRegisters(numWarps, /*numBlocks=*/1);
    int64_t residentWarps = countCarried(func) != 0 || addsToLoaded(func)
                                ? std::min<int64_t>(warps, fewestWarps)
                                : warps;
    if (hasChannels(func))
      residentWarps = warps * 4 / 3; // most of their time is latency
    int64_t needed = countRegisters(func, numWarps, together);
    int64_t blocks = std::max<int64_t>(1, residentWarps / numWarps);
    while (blocks > 1 && getMostRegisters(numWarps, blocks) < needed)
      --blocks;
    if (int64_t most = getMostRegisters(numWarps, blocks); most < needed) {
      func.emitRemark() << "'" << func.getName() << "' would take about "
                        << needed << " registers, of which a thread of "
                        << numWarps << " warps has " << most;
      continue;
    }
    FailureOr<func::FuncOp> kernel =
        emitKernel(func, numWarps, blocks, blocksAhead);
    if (failed(kernel))
      return signalPassFailure();
    if (warpgroups && !together)
      gpu::KernelFields(*kernel).setSingleWarps();
    auto allow = [&](StringRef spills) {
      (*kernel)->setAttr("gdn_gpu.allow",
                         StringAttr::get(&getContext(), spills));
    };
    if (hasChannels(func))
      allow(allowedChannelSpills);
    else if (hasParts(func))
      allow(allowedPartsSpills);
    else if (warpgroups && countCarried(func) != 0)
      allow(allowedProductSpills);
    else if (hasStatesInside(func))
      allow(allowedTurnSpills);
    if ((!warpgroups || numWarps < gpu::groupWarps) &&
        finishesProducts(func, numWarps))
      gpu::KernelFields(*kernel).setFinishProducts();
    keepIfSmall(func, *kernel);
  }
}
