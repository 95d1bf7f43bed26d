// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a host does for one step through the C ABI: metadata, its upload, and
// the launches of each layer, on slots of a pool.

#ifndef GDNRT_BENCH_SERVED_STEP_H
#define GDNRT_BENCH_SERVED_STEP_H

#include "gdn-c/batch_planner.h"
#include "gdn-c/serving.h"
#include "gdn-c/state_pool.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// The sequences of a step: decodes alone, or with others, in turns, for an
/// image of gdn-compile --mixed-batch --verify=slots.
struct StepShape {
  int64_t decodes = 1, verifies = 0, prefills = 0;
  /// The tokens of a verified sequence, and of a prefill.
  int64_t columns = 4, prompt = 1024;
  int64_t layers = 1, keyHeads = 1, valueHeads = 2;
  /// The arrays are on the device, and metadata comes from the entry plan.
  bool isPlanned = false;

  bool isMixed() const { return verifies + prefills > 0; }
  int64_t rows() const { return decodes + verifies + prefills; }
  int64_t tokens() const {
    return decodes + verifies * columns + prefills * prompt;
  }
};

class ServedStep {
public:
  /// Makes everything that a step needs. The device must outlive the step.
  ServedStep(gdnrt_device *device, const std::string &image,
             const StepShape &shape, void *stream = nullptr);
  ~ServedStep();
  ServedStep(const ServedStep &) = delete;
  ServedStep &operator=(const ServedStep &) = delete;

  /// Makes the metadata, or launches its plan.
  void build();
  void upload();
  /// Runs all layers. Arrays of activations that move make each bind anew.
  void forward(bool arraysMove = false);
  void run(bool arraysMove) {
    build();
    upload();
    forward(arraysMove);
  }
  /// The launches of a layer alone, without a layer around them: those of
  /// bindings, which are made by the first call, of the step built last.
  void launch();
  void synchronize();
  void *stream() const { return stream_; }
  /// A request leaves, and another takes its place.
  void exchangeRequest();
  /// The first sequence gets the null slot, or its own again: what has to be
  /// copied to the device differs from the step before.
  void changeSlot() { std::swap(slots_[0], otherSlot_); }

private:
  struct Kernel {
    int32_t kind; // a gdnrt_run_kind
    gdnrt_kernel *kernel = nullptr;
  };
  void makeKernels(const std::string &image);
  void makePool();
  void makeRows();
  void makeBuilder();
  void makePlanner();
  void *allocate(int64_t bytes);
  void makeTokens();
  void makeLayers();
  int64_t evaluate(const char *form) const;
  std::vector<gdnrt_named_arg> fixedOf(int64_t layer) const;
  void bind(const gdnrt_run &run);
  void bindPlan();

  gdnrt_device *device_;
  StepShape shape_;
  void *stream_;
  gdnrt_image *image_ = nullptr;
  std::vector<Kernel> kernels_;
  gdnrt_state_pool *pool_ = nullptr;
  gdnrt_metadata_builder *builder_ = nullptr;
  /// Of a planned step: the kernel, its arguments, and the step that they are.
  gdnrt_kernel *plan_ = nullptr;
  gdnrt_batch_planner *planner_ = nullptr;
  std::vector<std::vector<int64_t>> planSizes_;
  std::vector<gdnrt_named_arg> planArgs_;
  gdnrt_device_batch batch_ = gdnrt_device_batch_default();
  gdnrt_gdn_metadata metadata_ = gdnrt_gdn_metadata_default();
  gdnrt_workspace *workspace_ = nullptr;
  std::vector<gdnrt_gdn_layer *> layers_;
  std::vector<gdnrt_binding *> bindings_;
  void *arena_ = nullptr;

  /// By rows of the step; slots by rows and columns.
  std::vector<int32_t> slots_, seqLens_, queryStartLoc_, accepted_, drafts_;
  int32_t otherSlot_ = 0;
  int64_t slotColumns_ = 1;
  /// Activations, twice, by turns if they move.
  std::vector<std::vector<int64_t>> sizes_;
  std::vector<gdnrt_named_arg> tokens_[2], fixed_;
  std::vector<void *> memory_;
  size_t turn_ = 0, nextToLeave_ = 0;
};

#endif // GDNRT_BENCH_SERVED_STEP_H
