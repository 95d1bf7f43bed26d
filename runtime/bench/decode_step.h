// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a host does for one decode step, through the C ABI and on a device that
// runs nothing: metadata, its upload, and the launch of each layer, on slots of
// a pool.

#ifndef GDNRT_BENCH_DECODE_STEP_H
#define GDNRT_BENCH_DECODE_STEP_H

#include "gdn-c/serving.h"
#include "gdn-c/state_pool.h"

#include <cstdint>
#include <string>
#include <vector>

class DecodeStep {
public:
  /// Makes everything that a step needs, for up to `batch` rows.
  DecodeStep(const std::string &image, int64_t batch, int64_t layers);
  ~DecodeStep();
  DecodeStep(const DecodeStep &) = delete;
  DecodeStep &operator=(const DecodeStep &) = delete;

  /// One step. Arrays of activations that move make every layer bind anew.
  void run(bool arraysMove);
  /// A request leaves, and another takes its place.
  void exchangeRequest();

private:
  void makePool();
  void makeTokens();

  int64_t batch_, numLayers_;
  gdnrt_device *device_ = nullptr;
  gdnrt_image *image_ = nullptr;
  gdnrt_kernel *kernel_ = nullptr;
  gdnrt_state_pool *pool_ = nullptr;
  gdnrt_metadata_builder *builder_ = nullptr;
  std::vector<gdnrt_gdn_layer *> layers_;
  void *arena_ = nullptr;

  /// By rows of the batch.
  std::vector<int32_t> slots_, seqLens_, queryStartLoc_;
  /// Activations, twice, by turns if they move.
  std::vector<std::vector<int64_t>> sizes_;
  std::vector<gdnrt_named_arg> tokens_[2], fixed_;
  std::vector<void *> memory_;
  size_t turn_ = 0, nextToLeave_ = 0;
};

#endif // GDNRT_BENCH_DECODE_STEP_H
