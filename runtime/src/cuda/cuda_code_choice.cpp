// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rules of compute capabilities.

#include "gdnrt/cuda_code_choice.h"

#include <cctype>

using namespace gdnrt;
using namespace gdnrt::cuda;

namespace {

struct Target {
  Capability capability;
  /// "sm_90a": for this capability and no other.
  bool isExact = false;
};

/// Reads "sm_90", "sm_103a"; nothing for other texts.
std::optional<Target> parseTarget(const std::string &text) {
  if (text.rfind("sm_", 0) != 0)
    return std::nullopt;
  Target target;
  size_t end = 3;
  int number = 0;
  while (end < text.size() && end < 7 &&
         std::isdigit(static_cast<unsigned char>(text[end])))
    number = number * 10 + (text[end++] - '0');
  if (end < 5)
    return std::nullopt;
  target.isExact = end + 1 == text.size() && text[end] == 'a';
  if (end != text.size() && !target.isExact)
    return std::nullopt;
  target.capability = {number / 10, number % 10};
  return target;
}

std::string describe(const CodeSchema &code) {
  if (code.format == CodeFormat::sharedObject)
    return code.target;
  return code.target + " (" + toString(code.format) + ")";
}

} // namespace

bool cuda::canRun(const CodeSchema &code, Capability gpu) {
  std::optional<Target> target = parseTarget(code.target);
  if (!target || code.format == CodeFormat::sharedObject)
    return false;
  const Capability &needs = target->capability;
  if (needs.major == gpu.major && needs.minor == gpu.minor)
    return true;
  if (target->isExact)
    return false;
  if (code.format == CodeFormat::cubin)
    return needs.major == gpu.major && needs.minor <= gpu.minor;
  return needs.major < gpu.major ||
         (needs.major == gpu.major && needs.minor <= gpu.minor);
}

::gdnrt::Result<size_t> cuda::chooseCode(const EntrySchema &entry,
                                         Capability gpu,
                                         std::optional<size_t> forced) {
  if (forced && *forced >= entry.codes.size())
    return invalid(entry.name, ": code index ", *forced, " is past the ",
                   entry.codes.size(), " codes");
  for (size_t i = 0; i < entry.codes.size(); ++i)
    if ((!forced || *forced == i) && canRun(entry.codes[i], gpu))
      return i;
  std::string gpuName =
      "sm_" + std::to_string(gpu.major) + std::to_string(gpu.minor);
  if (forced)
    return failure(StatusCode::unsupported, entry.name, ": code ", *forced,
                   " is for ", describe(entry.codes[*forced]),
                   ", and this GPU is ", gpuName);
  std::vector<std::string> targets;
  for (const CodeSchema &code : entry.codes)
    targets.push_back(describe(code));
  return failure(StatusCode::unsupported, entry.name,
                 ": the image has no code for ", gpuName, "; it has code for: ",
                 targets.empty() ? "none" : joinNames(targets));
}
