// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What each engine's steps ask of entries; see Engine.h.
#include "gdn/Model/Engine.h"

#include "llvm/Support/ErrorHandling.h"

using namespace gdn;

EntryOptions gdn::getEntryOptions(Engine engine) {
  EntryOptions options;
  switch (engine) {
  case Engine::vllm:
    // New requests have slots that nobody zeroed, also those of one token that
    // a graph of decodes takes, and sequences read another slot than they write
    // behind drafts.
    options.hasInitial = options.decodeInitial = options.writeSlots = true;
    options.verify = VerifyStates::slots;
    return options;
  case Engine::sglang:
    // Projections come without z, the norm is the model's; states that a tree
    // of prefixes shares are kept on the way, those of drafts in a buffer.
    options.layout = InputLayout::split;
    options.outputs = EntryOutputs::core;
    options.hasInitial = options.checkpoints = true;
    options.verify = VerifyStates::buffer;
    return options;
  case Engine::pymllm:
    // Slots hold what admission put there.
    options.layout = InputLayout::split;
    options.outputs = EntryOutputs::core;
    return options;
  case Engine::c:
    options.hasInitial = options.writeSlots = true;
    return options;
  }
  llvm_unreachable("an Engine outside its enumeration");
}

EntryOptions gdn::getPendingEntryOptions(Engine engine, bool defersWrites) {
  EntryOptions options = getEntryOptions(engine);
  if (options.verify != VerifyStates::none)
    options.verify = VerifyStates::lazy;
  if (defersWrites)
    options.writeSlots = options.decodeInitial = false;
  return options;
}
