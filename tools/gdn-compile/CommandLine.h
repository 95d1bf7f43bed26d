// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the command line of gdn-compile asks for.
#ifndef GDN_TOOLS_GDNCOMPILE_COMMANDLINE_H
#define GDN_TOOLS_GDNCOMPILE_COMMANDLINE_H

#include "gdn/Conversion/Precision.h"
#include "gdn/Model/Engine.h"
#include "gdn/Model/ModelConfig.h"

#include <string>
#include <vector>

namespace gdn {

/// What to write: an image, or one of the stages on the way to it.
enum class Emit {
  image,
  gdn,
  // for CPUs
  tile,
  llvm,
  assembly,
  // for CPUs and GPUs
  llvmIr,
  // for GPUs
  gpu,
  nvvm,
  ptx,
  sass,
  report,
  digest,
};

/// Formats of states: docs/spec/slots.md.
enum class StateFormat { f32, bf16, f16, i8x2, i8x2Upper, i8 };

struct CommandLine {
  // Exactly one of these says which layer to compile.
  std::string layerPath;  // a gdn module
  std::string configPath; // a model's config.json, or a .safetensors with one
  std::string preset;     // a model by name

  std::vector<std::string> targets;
  std::string output; // "-" is standard output
  Emit emit = Emit::image;
  std::string ptxas; // path; empty: find it; "none": do without
  std::string cache; // a folder; empty: none
  int64_t tokens = 16;
  int64_t chunk = 64;
  int64_t chunkFrom = 0;
  Precision precision = Precision::f32;
  ChunkStages chunkStages = ChunkStages::onePass;
  int64_t segments = -1;
  int64_t segmentsFrom = -1;
  bool segmentMaps = false;
  bool everyThreadArrives = false;
  bool verifyEach = false;
  bool lineInfo = false;

  // The entries to generate: one variant for each io type and state type.
  // Empty lists mean what the model says.
  std::vector<FloatKind> io;
  std::vector<StateFormat> state;
  EntryOptions entries;
  std::optional<Engine> engine;  // that the entries are for
  std::vector<std::string> only; // entries that are made; empty: all
  bool changesEntries = false;   // an option about entries was given

  /// Whether each entry has to have code for each target.
  bool needsAllEntries() const { return engine || !only.empty(); }
  /// What the input is called in messages.
  llvm::StringRef getInputName() const;

  /// The variants for a model.
  std::vector<EntryOptions> variants(const ModelConfig &config) const;
};

/// Parses the command line. Prints help or an error and exits where the
/// process should end; a contradiction between options is an error.
llvm::Expected<CommandLine> parseCommandLine(int argc, char **argv);

} // namespace gdn

#endif // GDN_TOOLS_GDNCOMPILE_COMMANDLINE_H
