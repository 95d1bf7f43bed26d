// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dispatch by mode, what backends refuse by default, and the hybrid one,
// which does nothing but ask the two that it has.

#include "gdnrt/attention_backend.h"
#include "gdnrt/zero_rows.h"

using namespace gdnrt;

bool gdnrt::isExtend(int32_t mode) {
  return mode == GDNRT_MODE_EXTEND || mode == GDNRT_MODE_MIXED;
}
bool gdnrt::isDecode(int32_t mode) { return mode == GDNRT_MODE_DECODE; }
bool gdnrt::isIdle(int32_t mode) { return mode == GDNRT_MODE_IDLE; }

Status gdnrt::checkMode(int32_t mode) {
  if (isExtend(mode) || isDecode(mode) || isIdle(mode))
    return {};
  return invalid("forward_mode: expected 0 (extend), 1 (decode), 2 (mixed) or "
                 "3 (idle), got ",
                 mode);
}

AttentionBackend::~AttentionBackend() = default;

Status AttentionBackend::forward(const AttentionCall &call,
                                 const ForwardBatch &batch) {
  if (Status s = checkMode(batch.forward_mode); !s.isOk())
    return s;
  if (isIdle(batch.forward_mode))
    return zeroRows(device(), "out", call.out, 0, batch.stream);
  if (isDecode(batch.forward_mode))
    return forwardDecode(call, batch);
  return forwardExtend(call, batch);
}

static Status refused(const char *method) {
  return failure(StatusCode::unsupported, method,
                 ": the backend does not implement it");
}

Status AttentionBackend::forwardGdn(GDNLayer &, const ForwardBatch &,
                                    const gdnrt_named_arg *, size_t) {
  return refused("forward_gdn");
}
Result<int64_t> AttentionBackend::getCudaGraphSeqLenFillValue() {
  return refused("get_cuda_graph_seq_len_fill_value");
}
Status AttentionBackend::initCudaGraphState(int64_t, int64_t) {
  return refused("init_cuda_graph_state");
}
Status
AttentionBackend::initForwardMetadataCaptureCudaGraph(const GraphBatch &) {
  return refused("init_forward_metadata_capture_cuda_graph");
}
Status
AttentionBackend::initForwardMetadataReplayCudaGraph(const GraphBatch &) {
  return refused("init_forward_metadata_replay_cuda_graph");
}

HybridAttnBackend::HybridAttnBackend(std::shared_ptr<AttentionBackend> full,
                                     std::shared_ptr<AttentionBackend> gdn,
                                     std::set<int64_t> fullAttnLayerIds)
    : AttentionBackend(full->sharedDevice()), full_(std::move(full)),
      gdn_(std::move(gdn)), layerIds_(std::move(fullAttnLayerIds)) {}

Status HybridAttnBackend::initForwardMetadata(const ForwardBatch &batch) {
  if (Status s = full_->initForwardMetadata(batch); !s.isOk())
    return s;
  return gdn_->initForwardMetadata(batch);
}

Status HybridAttnBackend::forwardDecode(const AttentionCall &call,
                                        const ForwardBatch &batch) {
  return full_->forwardDecode(call, batch);
}

Status HybridAttnBackend::forwardExtend(const AttentionCall &call,
                                        const ForwardBatch &batch) {
  return full_->forwardExtend(call, batch);
}

Status HybridAttnBackend::forwardGdn(GDNLayer &layer, const ForwardBatch &batch,
                                     const gdnrt_named_arg *tokens,
                                     size_t count) {
  return gdn_->forwardGdn(layer, batch, tokens, count);
}

Result<int64_t> HybridAttnBackend::getCudaGraphSeqLenFillValue() {
  return full_->getCudaGraphSeqLenFillValue();
}

Status HybridAttnBackend::initCudaGraphState(int64_t maxBs,
                                             int64_t maxNumTokens) {
  if (Status s = full_->initCudaGraphState(maxBs, maxNumTokens); !s.isOk())
    return s;
  return gdn_->initCudaGraphState(maxBs, maxNumTokens);
}

/// What the linear side takes of a graph's batch.
static GraphBatch linearPart(const GraphBatch &batch) {
  GraphBatch part = gdnrt_graph_batch_default();
  part.bs = batch.bs;
  part.num_reqs = batch.num_reqs;
  part.req_pool_indices = batch.req_pool_indices;
  part.seq_lens = batch.seq_lens;
  part.forward_mode =
      isIdle(batch.forward_mode) ? GDNRT_MODE_DECODE : batch.forward_mode;
  part.stream = batch.stream;
  if (isExtend(batch.forward_mode)) {
    part.num_tokens = batch.num_tokens;
    part.extend_seq_lens = batch.extend_seq_lens;
  }
  return part;
}

Status HybridAttnBackend::initForwardMetadataCaptureCudaGraph(
    const GraphBatch &batch) {
  if (Status s = full_->initForwardMetadataCaptureCudaGraph(batch); !s.isOk())
    return s;
  return gdn_->initForwardMetadataCaptureCudaGraph(linearPart(batch));
}

Status
HybridAttnBackend::initForwardMetadataReplayCudaGraph(const GraphBatch &batch) {
  if (Status s = full_->initForwardMetadataReplayCudaGraph(batch); !s.isOk())
    return s;
  return gdn_->initForwardMetadataReplayCudaGraph(linearPart(batch));
}
