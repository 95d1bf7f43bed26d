// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an instruction was made of: a line of a file that the compiler has
// written, with the op that stands there.

#include "Program.h"

#include <fstream>

using namespace ptx;

/// The name of the op in line `number` of a file of MLIR; empty if there is no
/// such file or line.
static std::string readOp(const std::string &file, int number) {
  std::ifstream stream(file);
  std::string line;
  for (int i = 0; i < number; ++i)
    if (!std::getline(stream, line))
      return "";
  size_t begin = line.find_first_not_of(' ');
  if (begin != std::string::npos && line[begin] == '%') // its results
    begin = line.find_first_not_of("= ", line.find(" = ", begin));
  if (begin == std::string::npos)
    return "";
  return line.substr(begin, line.find_first_of(" (\"", begin) - begin);
}

std::string ptx::nameOrigin(const Kernel &kernel,
                            const Instruction &instruction) {
  auto file = kernel.files->find(instruction.origin.file);
  if (instruction.origin.line == 0 || file == kernel.files->end())
    return "";
  const std::string &path = file->second;
  int line = instruction.origin.line;
  std::string place =
      path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
  std::string op = readOp(path, line);
  return op.empty() ? place : op + " (" + place + ")";
}

std::string ptx::describe(const Kernel &kernel,
                          const Instruction &instruction) {
  std::string text = "PTX line " + std::to_string(instruction.line) + ": " +
                     instruction.opcode;
  std::string origin = nameOrigin(kernel, instruction);
  return origin.empty() ? text : text + ", from " + origin;
}
