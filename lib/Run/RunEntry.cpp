// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one entry; see RunEntry.h.
#include "gdn/Run/RunEntry.h"

#include "gdn/Run/Arguments.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"

#include <chrono>

using namespace gdn;
using namespace gdn::run;

bool EntryRun::ok() const {
  return llvm::all_of(comparisons, [](const Comparison &c) { return c.ok; });
}

llvm::Expected<double> run::timedLaunch(Binding &binding) {
  auto start = std::chrono::steady_clock::now();
  if (llvm::Error error = binding.launch())
    return std::move(error);
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
      .count();
}

/// The pools of `arrays`.
static Arrays poolsOf(const Kernel &kernel, const Arrays &arrays) {
  Arrays pools;
  for (const Parameter &parameter : kernel.getParameters())
    if (parameter.isPool)
      pools[parameter.name] = arrays.at(parameter.name);
  return pools;
}

llvm::Expected<EntryRun> run::runEntry(const Kernel &kernel, Arrays arguments,
                                       const RunOptions &options) {
  EntryRun run;
  run.arrays = std::move(arguments);
  Symbols symbols = solveSymbols(kernel, run.arrays);
  if (llvm::Error error = addOutputs(kernel, symbols, run.arrays))
    return std::move(error);
  llvm::Expected<Binding> binding =
      kernel.bind(run.arrays, options.nullSlot, options.variant);
  if (!binding)
    return binding.takeError();
  run.variant = kernel.getVariants()[binding->variant()].name;
  run.workspaceBytes = binding->workspaceBytes();
  Arrays before = poolsOf(kernel, run.arrays);
  if (llvm::Error error = binding->launch())
    return std::move(error);
  if (llvm::Error error = binding->readResults(run.arrays))
    return std::move(error);

  if (options.check) {
    mlir::MLIRContext context;
    llvm::Expected<ReferenceEntry> reference =
        ReferenceEntry::create(context, kernel);
    if (!reference)
      return reference.takeError();
    Arrays original = run.arrays;
    for (auto &[name, pool] : before)
      original[name] = pool;
    llvm::Expected<Outcome> want =
        reference->evaluate(original, symbols, options.nullSlot);
    if (!want)
      return want.takeError();
    run.comparisons = compareRun(kernel, run.arrays, before, *want);
  }
  if (options.repeat > 0) {
    // Further launches change the pools of the device; nobody reads them.
    std::vector<double> times;
    for (int64_t i = 0; i < options.repeat; ++i) {
      llvm::Expected<double> time = timedLaunch(*binding);
      if (!time)
        return time.takeError();
      times.push_back(*time);
    }
    run.timing = Timing::of(std::move(times));
  }
  return run;
}
