// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The base class of attention backends, with the methods that a backend may
// leave out, and the dispatch by mode. The meaning of the methods is in
// gdn-c/attention.h.

#ifndef GDNRT_ATTENTION_BACKEND_H
#define GDNRT_ATTENTION_BACKEND_H

#include "gdn-c/attention.h"
#include "gdnrt/gdn_layer.h"
#include "gdnrt/status.h"

#include <cstdint>
#include <memory>
#include <set>

namespace gdnrt {

// The structs are plain data, so the runtime uses those of the C ABI.
using ForwardBatch = gdnrt_forward_batch;
using GraphBatch = gdnrt_graph_batch;
using AttentionCall = gdnrt_attention_call;
using GDNForwardMetadata = gdnrt_gdn_forward_metadata;

bool isExtend(int32_t mode);
bool isDecode(int32_t mode);
bool isIdle(int32_t mode);
/// INVALID_ARGUMENT for what is none of these: an engine's own modes may have
/// other numbers.
Status checkMode(int32_t mode);

class AttentionBackend {
public:
  explicit AttentionBackend(std::shared_ptr<Device> device)
      : device_(std::move(device)) {}
  virtual ~AttentionBackend();

  virtual Status initForwardMetadata(const ForwardBatch &batch) = 0;
  virtual Status forwardDecode(const AttentionCall &call,
                               const ForwardBatch &batch) = 0;
  virtual Status forwardExtend(const AttentionCall &call,
                               const ForwardBatch &batch) = 0;

  /// Calls forwardDecode or forwardExtend by the mode of the batch. For an idle
  /// batch fills `out` with zeros and calls neither.
  Status forward(const AttentionCall &call, const ForwardBatch &batch);

  // Methods that a backend may leave out: they are UNSUPPORTED then.
  virtual Status forwardGdn(GDNLayer &layer, const ForwardBatch &batch,
                            const gdnrt_named_arg *tokens, size_t count);
  virtual Result<int64_t> getCudaGraphSeqLenFillValue();
  virtual Status initCudaGraphState(int64_t maxBs, int64_t maxNumTokens);
  virtual Status initForwardMetadataCaptureCudaGraph(const GraphBatch &batch);
  virtual Status initForwardMetadataReplayCudaGraph(const GraphBatch &batch);

  /// The last metadata of linear attention, or null if there is none or if the
  /// backend has no linear attention.
  virtual const GDNForwardMetadata *forwardMetadata() const { return nullptr; }
  Device &device() const { return *device_; }
  const std::shared_ptr<Device> &sharedDevice() const { return device_; }

private:
  std::shared_ptr<Device> device_;
};

/// Makes a backend that the caller implements in C.
Result<std::shared_ptr<AttentionBackend>>
makeCustomBackend(std::shared_ptr<Device> device,
                  const gdnrt_attention_callbacks &callbacks);

/// Makes a backend for attention over a paged cache on a CPU. UNSUPPORTED if
/// the device is not a CPU.
Result<std::shared_ptr<AttentionBackend>>
makePagedBackend(std::shared_ptr<Device> device);

/// Makes a backend for linear attention on pooled states.
std::shared_ptr<AttentionBackend>
makeGDNBackend(std::shared_ptr<Device> device);

/// A backend that uses one backend for full attention and another one for
/// linear attention.
class HybridAttnBackend final : public AttentionBackend {
public:
  HybridAttnBackend(std::shared_ptr<AttentionBackend> full,
                    std::shared_ptr<AttentionBackend> gdn,
                    std::set<int64_t> fullAttnLayerIds);

  Status initForwardMetadata(const ForwardBatch &batch) override;
  Status forwardDecode(const AttentionCall &call,
                       const ForwardBatch &batch) override;
  Status forwardExtend(const AttentionCall &call,
                       const ForwardBatch &batch) override;
  Status forwardGdn(GDNLayer &layer, const ForwardBatch &batch,
                    const gdnrt_named_arg *tokens, size_t count) override;
  Result<int64_t> getCudaGraphSeqLenFillValue() override;
  Status initCudaGraphState(int64_t maxBs, int64_t maxNumTokens) override;
  Status initForwardMetadataCaptureCudaGraph(const GraphBatch &batch) override;
  Status initForwardMetadataReplayCudaGraph(const GraphBatch &batch) override;
  const GDNForwardMetadata *forwardMetadata() const override {
    return gdn_->forwardMetadata();
  }
  const std::set<int64_t> &fullAttnLayerIds() const { return layerIds_; }

private:
  std::shared_ptr<AttentionBackend> full_, gdn_;
  std::set<int64_t> layerIds_;
};

} // namespace gdnrt

#endif // GDNRT_ATTENTION_BACKEND_H
