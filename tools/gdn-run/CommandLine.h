// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the command line of gdn-run asks for.
#ifndef GDN_TOOLS_GDNRUN_COMMANDLINE_H
#define GDN_TOOLS_GDNRUN_COMMANDLINE_H

#include "llvm/Support/Error.h"

#include <optional>
#include <string>

namespace gdn {

struct CommandLine {
  std::string imagePath;
  std::string entry;                   // "" shows what the image has
  std::string inputPath;               // safetensors
  std::optional<std::string> generate; // what to make up
  std::string outputPath;              // safetensors
  std::string replayPath;              // safetensors with a recording
  bool check = false;
  bool convert = false;
  bool json = false;
  int64_t repeat = 0;
  std::string device = "cpu";
  int workers = 0;
  int64_t nullSlot = 0;
  std::string variant;     // "": the device chooses
  bool byPosition = false; // windows of convolutions
};

/// Parses the command line. Prints help or an error and exits where the
/// process should end; a contradiction between options is an error.
llvm::Expected<CommandLine> parseCommandLine(int argc, char **argv);

} // namespace gdn

#endif // GDN_TOOLS_GDNRUN_COMMANDLINE_H
