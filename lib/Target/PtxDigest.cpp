// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text of a kernel without what depends on its place in a module; see
// PtxDigest.h.
#include "gdn/Target/PtxDigest.h"

#include "gdn/Target/PtxText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/SHA256.h"

using namespace gdn;

namespace {
/// Renames as it copies.
class Normalizer {
public:
  explicit Normalizer(llvm::StringRef kernel) : kernel(kernel) {}
  void add(llvm::StringRef line);
  std::string take() { return std::move(text); }

private:
  void addName(llvm::StringRef name);

  llvm::StringRef kernel;
  llvm::StringMap<unsigned> labels;
  std::string text;
};
} // namespace

void Normalizer::addName(llvm::StringRef name) {
  if (name.starts_with("$L_")) {
    // $L__BB3_7 has the number of the function among those of the module.
    unsigned number = labels.try_emplace(name, labels.size()).first->second;
    text += "$L" + std::to_string(number);
  } else if (name == kernel) {
    text += "kernel";
  } else if (llvm::StringRef rest = name;
             rest.consume_front(kernel) &&
             (rest.starts_with("_param_") || rest == "_shared")) {
    text += "kernel";
    text += rest;
  } else {
    text += name;
  }
}

/// Locations of instructions, and labels that only debug information needs.
static bool isDebug(llvm::StringRef line) {
  for (const char *begin : {".file", ".loc", ".section", "$L__func_begin",
                            "$L__func_end", "$L__tmp"})
    if (line.starts_with(begin))
      return true;
  return false;
}

void Normalizer::add(llvm::StringRef line) {
  line = line.split("//").first.trim();
  if (line.empty() || line.starts_with(".version") || isDebug(line))
    return;
  bool wasSpace = false;
  for (size_t at = 0; at < line.size();) {
    if (llvm::isSpace(line[at])) {
      if (!wasSpace)
        text += ' ';
      wasSpace = true;
      ++at;
      continue;
    }
    wasSpace = false;
    size_t end = at;
    while (end < line.size() && isPtxNameCharacter(line[end]))
      ++end;
    if (end == at) {
      text += line[at++];
      continue;
    }
    addName(line.slice(at, end));
    at = end;
  }
  text += '\n';
}

/// The variable that this line declares to be elsewhere, dynamic shared memory;
/// empty if it declares none.
static llvm::StringRef externName(llvm::StringRef line) {
  line = line.split("//").first.trim();
  if (!line.starts_with(".extern .shared"))
    return {};
  line = line.take_until([](char c) { return c == '[' || c == ';'; }).rtrim();
  return line.substr(line.find_last_of(' ') + 1);
}

llvm::Expected<std::string> gdn::normalizePtx(const PtxLines &ptx,
                                              llvm::StringRef kernel) {
  Normalizer normalizer(kernel);
  bool found = false;
  // The kernel's, and the module's.
  llvm::SmallVector<llvm::StringRef> lines =
      ptx.keep([&](llvm::StringRef name) {
        found |= name == kernel;
        return name == kernel;
      });
  if (!found)
    return llvm::createStringError("expects a kernel '" + kernel +
                                   "' in the PTX, but got none");
  for (llvm::StringRef line : lines) {
    // What only other kernels use of dynamic shared memory does not count.
    llvm::StringRef name = externName(line);
    bool isUsed = llvm::any_of(lines, [&](llvm::StringRef other) {
      return other.data() != line.data() && other.contains(name);
    });
    if (name.empty() || isUsed)
      normalizer.add(line);
  }
  return normalizer.take();
}

llvm::Expected<std::string> gdn::digestPtx(const PtxLines &ptx,
                                           llvm::StringRef kernel) {
  llvm::Expected<std::string> text = normalizePtx(ptx, kernel);
  if (!text)
    return text.takeError();
  llvm::SHA256 hash;
  hash.update(*text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}
