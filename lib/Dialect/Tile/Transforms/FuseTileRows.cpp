// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-tile-fuse-rows: chains of map_rows become one. See Passes.td.
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace gdn {
#define GEN_PASS_DEF_FUSETILEROWS
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Pulls the body of a producer into its only consumer.
struct MergeIntoConsumer final : OpRewritePattern<tile::MapRowsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tile::MapRowsOp consumer,
                                PatternRewriter &rewriter) const override {
    tile::MapRowsOp producer;
    for (Value input : consumer.getInputs()) {
      auto op = input.getDefiningOp<tile::MapRowsOp>();
      if (op && onlyUser(op, consumer)) {
        producer = op;
        break;
      }
    }
    if (!producer)
      return failure();

    // Inputs of the merged op: the producer's, then what the consumer takes
    // from elsewhere.
    SmallVector<Value> inputs(producer.getInputs());
    SmallVector<unsigned> fromConsumer;
    for (auto [i, input] : llvm::enumerate(consumer.getInputs()))
      if (input.getDefiningOp() != producer) {
        fromConsumer.push_back(i);
        inputs.push_back(input);
      }
    auto merged = tile::MapRowsOp::create(rewriter, consumer.getLoc(),
                                          consumer.getResultTypes(), inputs);
    SmallVector<Type> types = {rewriter.getIndexType()};
    for (Value input : inputs)
      types.push_back(tile::getRowType(cast<VectorType>(input.getType())));
    Block *body = rewriter.createBlock(
        &merged.getBody(), {}, types,
        SmallVector<Location>(types.size(), consumer.getLoc()));

    Block &first = producer.getBody().front();
    IRMapping mapping;
    for (auto [i, arg] : llvm::enumerate(first.getArguments()))
      mapping.map(arg, body->getArgument(i));
    for (Operation &op : first.without_terminator())
      rewriter.clone(op, mapping);
    auto yield = cast<tile::YieldOp>(first.getTerminator());

    Block &second = consumer.getBody().front();
    mapping.map(second.getArgument(0), body->getArgument(0));
    unsigned next = first.getNumArguments();
    for (auto [i, input] : llvm::enumerate(consumer.getInputs())) {
      Value row;
      if (input.getDefiningOp() == producer)
        row = mapping.lookupOrDefault(
            yield.getResults()[cast<OpResult>(input).getResultNumber()]);
      else
        row = body->getArgument(next++);
      mapping.map(second.getArgument(i + 1), row);
    }
    for (Operation &op : second)
      rewriter.clone(op, mapping);

    rewriter.replaceOp(consumer, merged.getResults());
    rewriter.eraseOp(producer);
    return success();
  }

  /// True if another block is waited for between the two: work for that time.
  static bool waitsBetween(tile::MapRowsOp producer, tile::MapRowsOp consumer) {
    for (Operation *op = producer->getNextNode(); op && op != consumer;
         op = op->getNextNode())
      if (isa<tile::SumOfPairOp>(op))
        return true;
    return false;
  }

  /// True if every use of `producer` is an input of `consumer`, in the same
  /// block (work is never moved into a loop), and it may run that late.
  static bool onlyUser(tile::MapRowsOp producer, tile::MapRowsOp consumer) {
    if (producer->getBlock() != consumer->getBlock() || producer == consumer ||
        !isMemoryEffectFree(producer) || waitsBetween(producer, consumer))
      return false;
    return llvm::all_of(producer->getUsers(),
                        [&](Operation *user) { return user == consumer; });
  }
};

/// The only input of a map whose body is one op of type `CastOp`, or null.
template <typename CastOp> static Value castInput(tile::MapRowsOp map) {
  if (!map || map.getInputs().size() != 1 || map.getNumResults() != 1)
    return {};
  Block &body = map.getBody().front();
  auto cast = dyn_cast<CastOp>(body.front());
  bool isCast = cast && cast->getNextNode() == body.getTerminator() &&
                cast.getIn() == body.getArgument(1) &&
                body.getTerminator()->getOperand(0) == cast.getResult();
  return isCast ? map.getInputs().front() : Value();
}

/// One token takes its state as it is stored, and gives it back so.
struct MergeStateCasts final : OpRewritePattern<tile::DeltaScanOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tile::DeltaScanOp scan,
                                PatternRewriter &rewriter) const override {
    Value next = scan.getNewState();
    if (cast<VectorType>(scan.getKey().getType()).getDimSize(0) != 1 ||
        !next.hasOneUse() || !scan.getState().hasOneUse())
      return failure();
    auto widen = scan.getState().getDefiningOp<tile::MapRowsOp>();
    auto narrow = dyn_cast<tile::MapRowsOp>(*next.user_begin());
    Value stored = castInput<arith::ExtFOp>(widen);
    if (!stored || widen->getBlock() != scan->getBlock() ||
        !castInput<arith::TruncFOp>(narrow) ||
        narrow.getResult(0).getType() != stored.getType())
      return failure();
    rewriter.modifyOpInPlace(scan, [&] {
      scan.getStateMutable().assign(stored);
      next.setType(cast<VectorType>(stored.getType()));
    });
    rewriter.replaceOp(narrow, next);
    rewriter.eraseOp(widen);
    return success();
  }
};

struct FuseTileRows final : gdn::impl::FuseTileRowsBase<FuseTileRows> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<MergeIntoConsumer, MergeStateCasts>(&getContext());
    int64_t before = count();
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    numMerged += before - count();
  }

  int64_t count() {
    int64_t ops = 0;
    getOperation().walk([&](tile::MapRowsOp) { ++ops; });
    return ops;
  }
};

} // namespace
