// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the kernels of PTX by their first lines and by braces; see PtxText.h.
#include "gdn/Target/PtxText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <algorithm>

using namespace gdn;

bool gdn::isPtxNameCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$';
}

/// The name of the kernel whose definition begins in this line; empty if none
/// does.
static llvm::StringRef entryName(llvm::StringRef line) {
  size_t at = line.find(".entry ");
  if (at == llvm::StringRef::npos || line.trim().starts_with("//"))
    return {};
  return line.drop_front(at + 7).ltrim().take_while(isPtxNameCharacter);
}

PtxLines::PtxLines(llvm::StringRef ptx) {
  llvm::StringRef kernel;
  bool opened = false;
  int depth = 0;
  for (llvm::StringRef line : llvm::split(ptx, '\n')) {
    if (depth == 0)
      if (llvm::StringRef name = entryName(line); !name.empty()) {
        kernel = name;
        opened = false;
      }
    llvm::StringRef code = line.split("//").first;
    depth += int(code.count('{')) - int(code.count('}'));
    opened |= code.contains('{');
    lines.push_back({line, kernel});
    if (opened && depth == 0)
      kernel = {};
  }
}

llvm::SmallVector<llvm::StringRef>
PtxLines::keep(llvm::function_ref<bool(llvm::StringRef)> keeps) const {
  llvm::SmallVector<llvm::StringRef> kept;
  llvm::StringRef last; // kernel that was asked for
  bool isKept = true;
  for (const Line &line : lines) {
    if (line.kernel.data() != last.data()) {
      last = line.kernel;
      isKept = last.empty() || keeps(last);
    }
    if (isKept)
      kept.push_back(line.text);
  }
  return kept;
}

std::string gdn::withBlocksPerSm(llvm::StringRef ptx, llvm::StringRef kernel,
                                 int64_t blocks) {
  constexpr llvm::StringLiteral directive(".minnctapersm ");
  std::string text;
  llvm::StringRef rest = ptx;
  bool inHead = false; // between the kernel's name and its body
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    llvm::StringRef line = rest.take_front(end);
    rest = rest.drop_front(end);
    if (llvm::StringRef name = entryName(line); !name.empty())
      inHead = name == kernel;
    inHead &= !line.contains('{');
    if (inHead && line.starts_with(directive))
      text += (directive + llvm::Twine(blocks) + "\n").str();
    else
      text += line;
  }
  return text;
}

std::string gdn::joinPtx(llvm::ArrayRef<std::string> parts) {
  std::string text;
  for (llvm::StringRef part : parts) {
    if (!text.empty()) {
      part = part.drop_front(part.find(".address_size"));
      part = part.drop_front(part.find('\n') + 1);
    }
    text += part;
  }
  return text;
}
