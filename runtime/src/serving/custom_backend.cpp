// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A backend that the caller implements with functions of C.

#include "gdnrt/attention_backend.h"

using namespace gdnrt;

namespace {

class CustomBackend final : public AttentionBackend {
public:
  CustomBackend(std::shared_ptr<Device> device,
                const gdnrt_attention_callbacks &callbacks)
      : AttentionBackend(std::move(device)), calls_(callbacks) {}
  ~CustomBackend() override {
    if (calls_.destroy)
      calls_.destroy(calls_.context);
  }

  Status initForwardMetadata(const ForwardBatch &batch) override {
    return call(calls_.init_forward_metadata, &batch);
  }
  Status forwardDecode(const AttentionCall &attention,
                       const ForwardBatch &batch) override {
    return call(calls_.forward_decode, &attention, &batch);
  }
  Status forwardExtend(const AttentionCall &attention,
                       const ForwardBatch &batch) override {
    return call(calls_.forward_extend, &attention, &batch);
  }
  Result<int64_t> getCudaGraphSeqLenFillValue() override {
    if (!calls_.get_cuda_graph_seq_len_fill_value)
      return AttentionBackend::getCudaGraphSeqLenFillValue();
    int64_t value = 0;
    if (Status s = call(calls_.get_cuda_graph_seq_len_fill_value, &value);
        !s.isOk())
      return s;
    return value;
  }
  Status initCudaGraphState(int64_t maxBs, int64_t maxNumTokens) override {
    if (!calls_.init_cuda_graph_state)
      return AttentionBackend::initCudaGraphState(maxBs, maxNumTokens);
    return call(calls_.init_cuda_graph_state, maxBs, maxNumTokens);
  }
  Status initForwardMetadataCaptureCudaGraph(const GraphBatch &b) override {
    if (!calls_.init_forward_metadata_capture_cuda_graph)
      return AttentionBackend::initForwardMetadataCaptureCudaGraph(b);
    return call(calls_.init_forward_metadata_capture_cuda_graph, &b);
  }
  Status initForwardMetadataReplayCudaGraph(const GraphBatch &b) override {
    if (!calls_.init_forward_metadata_replay_cuda_graph)
      return AttentionBackend::initForwardMetadataReplayCudaGraph(b);
    return call(calls_.init_forward_metadata_replay_cuda_graph, &b);
  }

private:
  template <typename... Params, typename... Args>
  Status call(gdnrt_status (*function)(void *, Params...), Args... args) {
    gdnrt_error error = {};
    gdnrt_status status = function(calls_.context, args..., &error);
    if (status == GDNRT_OK)
      return {};
    bool known = status > GDNRT_OK && status <= GDNRT_DEVICE_ERROR;
    error.message[GDNRT_MESSAGE_SIZE - 1] = '\0';
    // A message begins with the name of its status, which ours adds again.
    StatusCode code =
        known ? static_cast<StatusCode>(status) : StatusCode::internal;
    std::string message = error.message;
    std::string prefix = std::string(toString(code)) + ": ";
    if (message.rfind(prefix, 0) == 0)
      message.erase(0, prefix.size());
    return Status(code, message);
  }

  gdnrt_attention_callbacks calls_;
};

} // namespace

Result<std::shared_ptr<AttentionBackend>>
gdnrt::makeCustomBackend(std::shared_ptr<Device> device,
                         const gdnrt_attention_callbacks &callbacks) {
  if (!callbacks.init_forward_metadata || !callbacks.forward_decode ||
      !callbacks.forward_extend)
    return invalid("callbacks: expected init_forward_metadata, forward_decode "
                   "and forward_extend, got null");
  return std::shared_ptr<AttentionBackend>(
      std::make_shared<CustomBackend>(std::move(device), callbacks));
}
