// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays recorded activations of a model through an image: for every layer
// the prefill and then each decode step, on states that carry over.
#ifndef GDN_RUN_REPLAY_H
#define GDN_RUN_REPLAY_H

#include "gdn/Run/Recording.h"
#include "gdn/Run/Report.h"

#include <optional>

namespace gdn::run {

/// One tensor after one step of one layer.
struct ReplayRow {
  std::string phase, layer, tensor;
  std::string device;                  // that ran the step
  std::optional<Comparison> model;     // against the recording, where there is
  std::optional<Comparison> reference; // against float64
  double microseconds = 0;             // of the step's launch

  bool ok() const {
    return (!model || model->ok) && (!reference || reference->ok);
  }
};

/// Runs `prefill` and `decode` of `program` on everything in `recording`.
///
/// Inputs are rounded to the entries' types. Entries in f32 are held against
/// the recording and against float64; others against float64 of the same
/// rounded inputs only. Float64 keeps states of its own from step to step.
llvm::Expected<std::vector<ReplayRow>> replay(const Program &program,
                                              const Recording &recording);

/// One line per row.
void printReplay(llvm::ArrayRef<ReplayRow> rows, llvm::raw_ostream &stream);
llvm::json::Value toJson(const ReplayRow &row);

} // namespace gdn::run

#endif // GDN_RUN_REPLAY_H
