// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments for an entry: made up from a seed, or taken from a safetensors
// file, and room for what the entry gives back.
#ifndef GDN_RUN_ARGUMENTS_H
#define GDN_RUN_ARGUMENTS_H

#include "gdn/Data/RandomInputs.h"
#include "gdn/Data/Safetensors.h"
#include "gdn/Run/Session.h"

namespace gdn::run {

/// What to make up: sizes and distributions.
struct GenerateOptions {
  data::InputOptions inputs;
  std::vector<int64_t> lengths = {5, 0, 17}; // of the sequences, in tokens
  int64_t padding = 0;                       // tokens after the last sequence
  int64_t keyHeads = 2;                      // Hk
  int64_t valueHeads = 4;                    // Hv
  int64_t slots = 0;                         // P; 0: those used and three more
  int64_t skipped = 0; // sequences at the end whose slot is to be skipped
  /// Tokens from checkpoint to checkpoint of a sequence; 0 for none. Counts
  /// that are no multiples of 64 write nothing.
  int64_t checkpoints = 0;

  /// Reads `seed=1,lens=5:0:17,Hk=2,Hv=4,slots=9,gates=strong,...`. Keys that
  /// are absent keep their defaults; errors list the keys.
  static llvm::Expected<GenerateOptions> parse(llvm::StringRef text);
  /// One line per key, for a tool's help.
  static llvm::StringRef help();
};

/// Makes up every parameter that `kernel` reads. An entry without sequence
/// bounds gets one token per sequence. Slots that no sequence uses hold NaN, so
/// that a result which depends on them shows.
llvm::Expected<Arrays> generateArguments(const Kernel &kernel,
                                         const GenerateOptions &options,
                                         int64_t nullSlot);

/// Takes the parameters that `kernel` reads from `tensors` into `arrays`. With
/// `required` each has to be there; otherwise `arrays` keeps what it has.
/// Types have to agree, unless `convert` says to round.
llvm::Error takeArguments(const Kernel &kernel, const data::Tensors &tensors,
                          bool required, bool convert, Arrays &arrays);

/// The symbols that the sizes of `arrays` give; the runtime checks the rest.
Symbols solveSymbols(const Kernel &kernel, const Arrays &arrays);

/// Adds an array for every parameter that `kernel` only writes. Its bytes are
/// all 255, a NaN in every float type: a result that was not written shows.
llvm::Error addOutputs(const Kernel &kernel, const Symbols &symbols,
                       Arrays &arrays);

/// `dims` under `symbols`; an error names `what`.
llvm::Expected<std::vector<int64_t>> shapeOf(const Parameter &parameter,
                                             const Symbols &symbols);

} // namespace gdn::run

#endif // GDN_RUN_ARGUMENTS_H
