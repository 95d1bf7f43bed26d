// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The workspaces of a layer's kernel. Launches on two streams may run at the
// same time, so each stream has one of its own.

#ifndef GDNRT_LAYER_WORKSPACES_H
#define GDNRT_LAYER_WORKSPACES_H

#include "gdnrt/binding.h"
#include "gdnrt/launch_stream.h"
#include "gdnrt/workspace.h"

#include <memory>
#include <optional>
#include <vector>

namespace gdnrt {

class LayerWorkspaces {
public:
  /// The workspace for launches on all streams but those that have another one;
  /// null: memory that is taken when a kernel needs it.
  void share(std::shared_ptr<const Workspace> workspace);
  /// The workspace for launches on `stream`; null: that for all streams.
  void shareOn(void *stream, std::shared_ptr<const Workspace> workspace);

  /// Whether launches on the stream use a workspace that was given.
  bool isShared(const LaunchStream &stream) const {
    return sharedOn(stream.stream) != nullptr;
  }
  /// Makes the binding use the workspace of the stream, if it does not. A
  /// stream that is captured is often another one than that of the steps ahead
  /// of the capture, so memory that was taken for those is used there, too.
  Status give(Device &device, Binding &binding, const LaunchStream &stream);
  /// Takes memory for launches on the stream, for more sequences than the
  /// binding has, and fills its counters with zeros.
  Status take(const std::shared_ptr<Device> &device, Binding &binding,
              void *stream);
  /// Takes memory if the variant that the binding prefers needs more than it
  /// has. Launches take a later variant where there is no such memory, and on
  /// streams that are captured or use a workspace that was given.
  Status prefer(const std::shared_ptr<Device> &device, Binding &binding,
                const LaunchStream &stream);
  /// What a graph that is captured on the stream must keep; null for nothing.
  std::shared_ptr<const void> kept(const LaunchStream &stream) const;

private:
  struct Shared {
    void *stream;
    std::shared_ptr<const Workspace> workspace;
  };
  struct Own {
    void *stream;
    std::shared_ptr<void> memory;
    uint64_t bytes;
  };
  const std::shared_ptr<const Workspace> *sharedOn(void *stream) const;

  std::shared_ptr<const Workspace> shared_;
  std::vector<Shared> sharedOn_;
  /// The last one of a stream counts. Earlier ones are kept, because launches
  /// and graphs may use them.
  std::vector<Own> own_;
  /// The memory that the binding uses, null for none, and what keeps it; no
  /// value before the first launch, and after another workspace was given.
  std::optional<std::shared_ptr<const void>> given_;
  bool givesOwn_ = false;
};

} // namespace gdnrt

#endif // GDNRT_LAYER_WORKSPACES_H
