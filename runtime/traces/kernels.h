// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries of an image on a device, and what they expect of pools.

#ifndef GDNRT_TRACES_KERNELS_H
#define GDNRT_TRACES_KERNELS_H

#include "gdn-c/runtime.h"
#include "model.h"
#include "trace.h"

#include <string>

namespace gdnrt::traces {

/// How an image's verify entry keeps states to go back to.
enum class VerifyKind {
  none,
  /// The state after each token in a slot of its own.
  slots,
  /// The same, and tokens have parents.
  tree,
  /// Tokens stay pending in the slot until it is known how many were right.
  lazy,
  /// States after tokens go to a buffer, from where the right one is copied.
  buffer,
};

/// An image on a device: what all traces share.
class Kernels {
public:
  /// `debugChecks` false is for graphs, which launches with checks refuse.
  Kernels(const std::string &image, const std::string &device,
          bool debugChecks);
  ~Kernels();
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;

  gdnrt_device *device() const { return device_; }
  bool isHost() const { return isHost_; }
  /// Whether launches may be captured.
  bool haveGraphs() const { return !isHost_ && !debugChecks_; }
  /// How far numbers may be from the model's, in parts of the largest: at first
  /// far above what rounding does, far below what a wrong state does. From
  /// states of f32 the model is float64 from the first token on; with states in
  /// planes it goes on from what the last step left in a slot (audit.cpp), and
  /// a step rounds twice at most, in a commit and behind it.
  double tolerance = 1e-4;
  VerifyKind verifyKind() const { return verifyKind_; }
  /// How many tokens a slot may count that its state lacks, over several steps;
  /// 0 where a state lacks no more than what is to be committed.
  int64_t pendingRoom() const { return pendingRoom_; }
  /// Whether keys and deltas of these tokens are f16, with scales for deltas.
  bool isPendingNarrow() const { return isPendingNarrow_; }
  /// Planes of bytes that states are in; 0 where they are numbers of f32.
  int32_t statePlanes() const { return statePlanes_; }
  /// Whether slots of the pool have memory for tokens that their states lack.
  bool keepPending() const {
    return verifyKind_ == VerifyKind::lazy || pendingRoom_ > 0;
  }
  /// Whether a row may write another slot than it reads.
  bool moveStates() const { return moveStates_; }
  /// Whether prefill keeps states inside of rows.
  bool takeCheckpoints() const { return takeCheckpoints_; }
  /// Whether prefill and verify take the same arrays, each its own rows.
  bool isMixed() const { return isMixed_; }
  /// Whether accepted tokens have to be put into the states of rows.
  bool hasCommits() const {
    return verifyKind_ == VerifyKind::lazy || verifyKind_ == VerifyKind::buffer;
  }
  /// Sizes of a head and of the convolution, with the heads of a trace.
  LayerSizes sizesOf(const Trace &trace) const;
  /// Any but decode may be missing; only a GPU has no prefill.
  gdnrt_kernel *prefill = nullptr, *decode = nullptr, *verify = nullptr,
               *commit = nullptr;
  /// Those that move slots, for the pool; both or none.
  gdnrt_kernel *copySlots = nullptr, *zeroSlots = nullptr;
  /// Makes metadata on the device; of some images with mixed batches.
  gdnrt_kernel *plan = nullptr;

private:
  void readSizes();
  gdnrt_kernel *find(const char *name);
  gdnrt_image *image_ = nullptr;
  gdnrt_device *device_ = nullptr;
  bool isHost_ = false, debugChecks_ = true;
  VerifyKind verifyKind_ = VerifyKind::none;
  bool isMixed_ = false, moveStates_ = false, takeCheckpoints_ = false;
  int64_t pendingRoom_ = 0;
  bool isPendingNarrow_ = false;
  int32_t statePlanes_ = 0;
  LayerSizes sizes_;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_KERNELS_H
