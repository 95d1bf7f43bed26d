// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one entry of an image on given arguments, and checks what it did.
#ifndef GDN_RUN_RUNENTRY_H
#define GDN_RUN_RUNENTRY_H

#include "gdn/Run/Report.h"

#include <optional>

namespace gdn::run {

/// What one call was given and what came of it.
struct EntryRun {
  Arrays arrays;                       // after the call
  std::vector<Comparison> comparisons; // empty unless it was checked
  std::optional<Timing> timing;        // of `repeat` further launches
  std::string variant;                 // that ran
  size_t workspaceBytes = 0;

  /// True if nothing was out of bounds.
  bool ok() const;
};

struct RunOptions {
  int64_t nullSlot = 0;
  bool check = false;
  int64_t repeat = 0;  // launches to time after the first
  std::string variant; // that has to run; "": the device chooses
};

/// Runs `kernel` on `arguments` (everything that it reads).
llvm::Expected<EntryRun> runEntry(const Kernel &kernel, Arrays arguments,
                                  const RunOptions &options);

/// Launches `binding` once and gives the time in microseconds.
llvm::Expected<double> timedLaunch(Binding &binding);

} // namespace gdn::run

#endif // GDN_RUN_RUNENTRY_H
