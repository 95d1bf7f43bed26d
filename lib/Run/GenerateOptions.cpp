// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what to make up from text such as `seed=1,lens=5:0:17,gates=strong`.
#include "gdn/Run/Arguments.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace gdn;
using namespace gdn::run;

/// Sequence lengths and head counts beyond this are a slip of the pen.
static constexpr int64_t maxSize = int64_t(1) << 24;

llvm::StringRef GenerateOptions::help() {
  return "seed=<n>, lens=<n>:<n>:... (tokens of each sequence), rows=<n> "
         "(sequences of "
         "one token), pad=<n> (tokens after the last sequence), Hk=<n>, "
         "Hv=<n>, "
         "slots=<n>, skip=<n> (sequences whose slot is to be skipped), "
         "checkpoints=<n> (tokens from one to the next of a sequence, 0 for "
         "none), "
         "gates=realistic|near_one|strong|very_strong, scale=<x>, "
         "correlation=<x> (of keys, 0 to 1)";
}

static llvm::Error expected(llvm::StringRef key, llvm::StringRef what,
                            llvm::StringRef value) {
  return llvm::createStringError(llvm::formatv(
      "--generate: {0}: expects {1}, but got '{2}'", key, what, value));
}

static llvm::Error readSize(llvm::StringRef key, llvm::StringRef value,
                            int64_t least, int64_t &size) {
  int64_t read;
  if (value.getAsInteger(10, read) || read < least || read > maxSize)
    return expected(
        key, llvm::formatv("a number from {0} to {1}", least, maxSize).str(),
        value);
  size = read;
  return llvm::Error::success();
}

static llvm::Error readLengths(llvm::StringRef value,
                               std::vector<int64_t> &lengths) {
  lengths.clear();
  if (value.empty())
    return llvm::Error::success();
  for (llvm::StringRef length : llvm::split(value, ':')) {
    lengths.emplace_back();
    if (llvm::Error error = readSize("lens", length, 0, lengths.back()))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error readOption(llvm::StringRef key, llvm::StringRef value,
                              GenerateOptions &options) {
  if (key == "lens")
    return readLengths(value, options.lengths);
  if (key == "rows") {
    int64_t sequences = 0;
    if (llvm::Error error = readSize(key, value, 0, sequences))
      return error;
    options.lengths.assign(sequences, 1);
    return llvm::Error::success();
  }
  if (key == "pad")
    return readSize(key, value, 0, options.padding);
  if (key == "Hk")
    return readSize(key, value, 1, options.keyHeads);
  if (key == "Hv")
    return readSize(key, value, 1, options.valueHeads);
  if (key == "slots")
    return readSize(key, value, 1, options.slots);
  if (key == "skip")
    return readSize(key, value, 0, options.skipped);
  if (key == "checkpoints")
    return readSize(key, value, 0, options.checkpoints);
  if (key == "seed") {
    if (value.getAsInteger(10, options.inputs.seed))
      return expected(key, "a number", value);
    return llvm::Error::success();
  }
  if (key == "gates") {
    std::optional<data::GateKind> kind = data::parseGateKind(value);
    if (!kind)
      return expected(key, "realistic, near_one, strong or very_strong", value);
    options.inputs.gates = *kind;
    return llvm::Error::success();
  }
  if (key == "scale") {
    if (value.getAsDouble(options.inputs.scale) ||
        !std::isfinite(options.inputs.scale))
      return expected(key, "a finite number", value);
    return llvm::Error::success();
  }
  if (key == "correlation") {
    double &place = options.inputs.keyCorrelation;
    if (value.getAsDouble(place) || !(place >= 0 && place <= 1))
      return expected(key, "a number from 0 to 1", value);
    return llvm::Error::success();
  }
  return llvm::createStringError(
      llvm::formatv("--generate: unknown key '{0}'; keys: {1}", key,
                    GenerateOptions::help()));
}

llvm::Expected<GenerateOptions> GenerateOptions::parse(llvm::StringRef text) {
  GenerateOptions options;
  llvm::SmallVector<llvm::StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef item : items) {
    auto [key, value] = item.split('=');
    if (llvm::Error error = readOption(key.trim(), value.trim(), options))
      return std::move(error);
  }
  return options;
}
