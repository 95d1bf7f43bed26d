// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the steps of a builder ask of a layer's kernels, said when both are made
// and not when such a sequence comes.

#include "layer_steps.h"

#include "gdnrt/gdn_layer.h"
#include "gdnrt/metadata_builder.h"

using namespace gdnrt;

namespace {

/// Collects what is missing, for one message.
class Wants {
public:
  /// Returns whether there is such a kernel.
  bool kernel(const LayerKernel *kernel, const char *name) {
    if (!kernel)
      add(std::string("no kernel ") + name);
    return kernel != nullptr;
  }
  void param(const LayerKernel *kernel, const char *name, const char *option) {
    if (kernel && !kernel->entry().findParam(name))
      add(kernel->entry().name + " has no " + name + " (" + option + ")");
  }
  void add(const std::string &what) {
    text_ += (text_.empty() ? "" : "; ") + what;
  }
  Status status() const {
    if (text_.empty())
      return {};
    return failure(StatusCode::unsupported,
                   "layer: expected kernels for all steps of the builder, got "
                   "others, which gdn-compile makes with the options in "
                   "brackets: ",
                   text_);
  }

private:
  std::string text_;
};

} // namespace

/// Kernels and steps agree on whether slots count tokens that states lack.
static void wantDeferred(Wants &wants, const LayerKernels &layer,
                         bool deferred) {
  if (deferred)
    wants.kernel(layer.commit, "commit (--defer-writes)");
  for (const LayerKernel *kernel : {layer.decode, layer.verify, layer.commit})
    if (kernel && deferred)
      wants.param(kernel, "pending_counts", "--defer-writes");
    else if (kernel && layer.defersWrites)
      wants.add(kernel->entry().name +
                " has pending_counts (no --defer-writes, or a builder with "
                "deferred_writes)");
}

Status gdnrt::checkKernels(const LayerKernels &layer,
                           const MetadataBuilder &builder) {
  const MetadataOptions &options = builder.options();
  Wants wants;
  const bool isMixed = options.mixed_batch != 0;
  if (!isMixed)
    wants.kernel(layer.decode, "decode");
  wants.kernel(layer.prefill, "prefill");
  wants.param(layer.prefill, "has_initial", "--has-initial");
  if (builder.movesStates()) {
    if (!isMixed)
      wants.param(layer.decode, "write_slots", "--write-slots");
    wants.param(layer.prefill, "write_slots", "--write-slots");
  }
  if (options.mamba_cache_mode == GDNRT_CACHE_ALL)
    wants.param(layer.prefill, "cu_checkpoints", "--checkpoints");
  for (const LayerKernel *kernel : {layer.prefill, layer.verify})
    if (isMixed)
      wants.param(kernel, "is_prefill", "--mixed-batch");
    else if (kernel && kernel->entry().findParam("is_prefill"))
      wants.add(kernel->entry().name + " has is_prefill (no --mixed-batch)");
  wantDeferred(wants, layer, options.deferred_writes != 0);
  if (options.num_speculative_tokens == 0 && !isMixed)
    return wants.status();
  const std::string kind = nameOfVerifyStates(options.verify_states);
  if (wants.kernel(layer.verify, ("verify (--verify=" + kind + ")").c_str())) {
    if (layer.verifyStates != options.verify_states)
      wants.add(layer.verify->entry().name + " keeps states as " +
                nameOfVerifyStates(layer.verifyStates) + " (--verify=" + kind +
                ")");
    const int64_t most = layer.verify->entry().maxRowTokens,
                  tokens = options.num_speculative_tokens + 1;
    if (most != 0 && most < tokens)
      wants.add(layer.verify->entry().name + " takes " + std::to_string(most) +
                " tokens of a row, not " + std::to_string(tokens) +
                " (--verify-tokens=" + std::to_string(tokens) + ")");
    if (const auto kept = layer.verify->keptTokens(); kept && *kept < tokens)
      wants.add("the pools keep " + std::to_string(*kept) +
                " tokens of a row of " + layer.verify->entry().name + ", not " +
                std::to_string(tokens) +
                " (pending_tokens or conv_extra of the "
                "pool)");
  }
  if (!options.deferred_writes &&
      (options.verify_states == GDNRT_VERIFY_LAZY ||
       options.verify_states == GDNRT_VERIFY_BUFFER))
    wants.kernel(layer.commit, ("commit (--verify=" + kind + ")").c_str());
  return wants.status();
}
