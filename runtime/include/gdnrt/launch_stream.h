// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a launch goes.

#ifndef GDNRT_LAUNCH_STREAM_H
#define GDNRT_LAUNCH_STREAM_H

#include <cstdint>

namespace gdnrt {

/// The stream of a launch, and whether it is being captured into a graph: a
/// graph begins when all that is ahead of it has ended, so its launches are
/// ordered on their own.
struct LaunchStream {
  void *stream;
  bool capturing;
  /// What launches are ordered on. Streams are aligned, so the two differ.
  void *order() const {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(stream) |
                                    uintptr_t{capturing});
  }
};

} // namespace gdnrt

#endif // GDNRT_LAUNCH_STREAM_H
