// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a history the window after a token is the rows from the next one on.
#include "Tokens/TokenWindows.h"

using namespace mlir;
using namespace gdn;

/// Steps of a convolution's window.
static int64_t countSteps(Value window) {
  return cast<VectorType>(window.getType()).getDimSize(0);
}

/// Whether a history has the window, of a convolution of the role.
static bool hasHistory(TokenProgram &p, ScanRole role, Value window) {
  tile::Conv1dOp carried = p.findCarriedConv(role);
  return carried && window == carried.getNewWindow();
}

void gdn::placeWindows(TokenProgram &p, ScanRole role) {
  SetVector<Value> kept = findStoredWindows(p.roles[role].stores);
  if (p.keepsPending() || p.preparesByHistory()) // inputs are kept
    if (tile::Conv1dOp carried = p.findCarriedConv(role))
      kept.insert(carried.getNewWindow());
  for (Value window : kept) {
    int64_t steps = countSteps(window);
    p.shared[window] = p.allocateRows(window, hasHistory(p, role, window)
                                                  ? steps + p.blockTokens
                                                  : steps * p.blockTokens);
  }
}

void gdn::storeHistory(TokenProgram &p, tile::Conv1dOp conv, Value window,
                       Value inputs, Value at, Value isFirst) {
  Value history = p.shared[conv.getNewWindow()];
  p.emitIf(isFirst, [&] {
    gpu::StoreSharedOp::create(p.b, p.loc, window, history, p.index(0));
  });
  gpu::StoreSharedOp::create(p.b, p.loc, inputs, history,
                             p.add(at, p.index(countSteps(conv.getWindow()))));
}

void gdn::loadInputs(TokenProgram &p, FragmentEmitter &emitter,
                     tile::Conv1dOp conv, Value at) {
  Value row = p.add(at, p.index(countSteps(conv.getWindow())));
  p.loadTile(emitter, conv.getInput(), row, conv.getNewWindow());
}

void gdn::storeWindows(TokenProgram &p, ScanRole role, FragmentEmitter &emitter,
                       Value at) {
  for (Value window : findStoredWindows(p.roles[role].stores))
    if (!hasHistory(p, role, window))
      gpu::StoreSharedOp::create(p.b, p.loc, emitter[window], p.shared[window],
                                 p.mul(at, countSteps(window)));
}

void gdn::emitWindowStores(TokenProgram &p, LastReaders &readers, Value first,
                           Value count, int64_t firstWarp,
                           const IRMapping &values) {
  OpBuilder &b = p.b;
  for (ScanRole role : convRoles) {
    ArrayRef<Operation *> stores = p.roles[role].stores;
    SetVector<Value> stored = findStoredWindows(stores);
    if (stores.empty())
      continue;
    gpu::WarpsOp warps = p.enterWarp(firstWarp + int64_t(role));
    IRMapping known = values;
    for (Operation *op : stores)
      for (Operation *last : findLastInGroup(op))
        if (!known.contains(last->getResult(0)))
          known.map(last->getResult(0),
                    readers.emitAnswer(cast<tile::LastInGroupOp>(last),
                                       stored.front(), first));
    auto tokens = scf::ForOp::create(b, p.loc, p.index(0), count, p.index(1));
    b.setInsertionPointToStart(tokens.getBody());
    Value at = tokens.getInductionVar();
    FragmentEmitter emitter(b, p.atToken(p.add(first, at), known));
    for (Value window : stored) {
      const bool inHistory = hasHistory(p, role, window);
      Value row = p.mul(at, inHistory ? 1 : countSteps(window));
      p.loadTile(emitter, window, p.add(row, p.index(inHistory ? 1 : 0)));
    }
    for (Operation *op : stores)
      emitter.emitStores(op, {});
    p.leave(warps);
  }
}
