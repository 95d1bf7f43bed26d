// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX as LLVM prints it, one directive or instruction a line, cut into kernels.
#ifndef GDN_TARGET_PTXTEXT_H
#define GDN_TARGET_PTXTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gdn {

/// Whether names in PTX have this character.
bool isPtxNameCharacter(char c);

/// The lines of PTX, each with the kernel whose definition it is part of. The
/// text must live as long.
class PtxLines {
public:
  explicit PtxLines(llvm::StringRef ptx);

  /// All lines but for those of kernels that `keeps` does not want, in order.
  llvm::SmallVector<llvm::StringRef>
  keep(llvm::function_ref<bool(llvm::StringRef kernel)> keeps) const;

private:
  struct Line {
    llvm::StringRef text, kernel; // empty outside of kernels
  };
  std::vector<Line> lines;
};

/// `ptx` where the directive `.minnctapersm` of `kernel` says `blocks`. Nothing
/// changes where the kernel, or its directive, is not there.
std::string withBlocksPerSm(llvm::StringRef ptx, llvm::StringRef kernel,
                            int64_t blocks);

/// One text of several for the same target, whose kernels share nothing: the
/// first one's lines up to `.address_size` hold for all.
std::string joinPtx(llvm::ArrayRef<std::string> parts);

} // namespace gdn

#endif // GDN_TARGET_PTXTEXT_H
