// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The linear attention of a hybrid model: one slot per request, decode or
// extend. It says so in the metadata that layers take, and leaves the rest to
// them. A graph has the same launches for all batches, whose rows and tokens it
// has room for.
#include "batch_limits.h"
#include "gdnrt/attention_backend.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace gdnrt;

namespace {

/// The arrays of a batch: those that kernels read in one arena, with a copy on
/// the device where that has memory of its own.
class BatchArrays {
public:
  explicit BatchArrays(Device &device) : device_(device) {}
  ~BatchArrays() { release(); }
  BatchArrays(const BatchArrays &) = delete;
  BatchArrays &operator=(const BatchArrays &) = delete;

  /// Makes room for `rows` sequences. Keeps nothing that was there, but memory
  /// that metadata showed. Without memory all stays as it was.
  Status reserve(int64_t rows, void *stream);
  int64_t capacity() const { return capacity_; }

  void setSlots(const int64_t *ids, int64_t rows);
  /// Rows behind the first `rows` have no tokens. Those without tokens commit
  /// nothing: they leave their slots, which others may have, too.
  void setStarts(const int32_t *lengths, int64_t rows);
  Status upload(bool withStarts, void *stream);

  int32_t *slots() { return ints_.data(); }
  int32_t *starts() { return ints_.data() + capacity_; }
  int32_t *commitSlots() { return starts() + capacity_ + 1; }
  uint8_t *hasInitial() {
    return reinterpret_cast<uint8_t *>(commitSlots() + capacity_);
  }
  int32_t *zeros() { return commitSlots() + capacity_ + (capacity_ + 3) / 4; }
  const void *deviceArena() const { return deviceArena_; }

  std::vector<int64_t> cacheIndices, cuSeqlens;

private:
  void release() {
    if (deviceArena_)
      (void)device_.free(deviceArena_);
    deviceArena_ = nullptr;
  }
  size_t bytes() const { return ints_.size() * sizeof(int32_t); }

  Device &device_;
  std::vector<int32_t> ints_;
  void *deviceArena_ = nullptr;
  int64_t capacity_ = 0;
  /// What callers may still look at.
  std::vector<std::vector<int64_t>> outgrown_;
};

class GDNAttnBackend final : public AttentionBackend {
public:
  explicit GDNAttnBackend(std::shared_ptr<Device> device)
      : AttentionBackend(std::move(device)), eager_(this->device()),
        graph_(this->device()) {}

  Status initForwardMetadata(const ForwardBatch &batch) override;
  Status forwardDecode(const AttentionCall &, const ForwardBatch &) override;
  Status forwardExtend(const AttentionCall &, const ForwardBatch &) override;
  Status forwardGdn(GDNLayer &layer, const ForwardBatch &batch,
                    const gdnrt_named_arg *tokens, size_t count) override;
  Result<int64_t> getCudaGraphSeqLenFillValue() override { return 1; }
  Status initCudaGraphState(int64_t maxBs, int64_t maxNumTokens) override;
  Status initForwardMetadataCaptureCudaGraph(const GraphBatch &batch) override {
    return setGraph(batch);
  }
  Status initForwardMetadataReplayCudaGraph(const GraphBatch &batch) override {
    return setGraph(batch);
  }
  const GDNForwardMetadata *forwardMetadata() const override {
    return current_ ? &metadata_ : nullptr;
  }

private:
  Status setGraph(const GraphBatch &batch);
  Status checkGraph(const GraphBatch &batch) const;
  void publish(BatchArrays &arrays, int64_t rows, int64_t tokens, bool extend);

  BatchArrays eager_, graph_;
  int64_t maxGraphTokens_ = 0;
  /// Those of the last batch, and its tokens.
  BatchArrays *current_ = nullptr;
  int64_t numTokens_ = 0;
  GDNForwardMetadata metadata_ = {};
};

} // namespace

Status BatchArrays::reserve(int64_t rows, void *stream) {
  if (rows <= capacity_)
    return {};
  std::vector<int32_t> ints(static_cast<size_t>(4 * rows + 2 + (rows + 3) / 4));
  std::vector<int64_t> indices(static_cast<size_t>(rows));
  std::vector<int64_t> sums(static_cast<size_t>(rows) + 1);
  outgrown_.reserve(outgrown_.size() + 2);
  void *arena = nullptr;
  if (!device_.properties().hostReadable) {
    // Batches that were launched still read what is there.
    if (deviceArena_)
      if (Status s = device_.synchronize(stream); !s.isOk())
        return s;
    auto memory = device_.allocate(ints.size() * sizeof(int32_t));
    if (!memory.isOk())
      return memory.status();
    arena = *memory;
  }
  release();
  deviceArena_ = arena;
  capacity_ = rows;
  ints_ = std::move(ints);
  cacheIndices.swap(indices);
  cuSeqlens.swap(sums);
  outgrown_.push_back(std::move(indices));
  outgrown_.push_back(std::move(sums));
  // Admission zeroes a slot, so there is a state to read always.
  std::fill_n(hasInitial(), rows, uint8_t{1});
  if (!deviceArena_)
    return {};
  return device_.upload(deviceArena_, ints_.data(), bytes(), stream);
}

static Status checkIds(const int64_t *ids, int64_t rows) {
  if (!ids && rows > 0)
    return invalid("req_pool_indices: expected an array, got null");
  return {};
}

/// What a kernel sees of an id: those that no i32 holds are skipped as well.
static int32_t narrow(int64_t id) {
  if (id < 0)
    return -1;
  return static_cast<int32_t>(
      std::min<int64_t>(id, std::numeric_limits<int32_t>::max()));
}

/// Whatever stood behind the sequences before is padding then: a graph may have
/// more rows than this batch (D8).
void BatchArrays::setSlots(const int64_t *ids, int64_t rows) {
  for (int64_t row = 0; row < capacity_; ++row) {
    cacheIndices[row] = row < rows ? ids[row] : GDNRT_NULL_BLOCK_ID;
    slots()[row] = narrow(cacheIndices[row]);
  }
}

void BatchArrays::setStarts(const int32_t *lengths, int64_t rows) {
  cuSeqlens[0] = starts()[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    cuSeqlens[row + 1] = cuSeqlens[row] + lengths[row];
    starts()[row + 1] = static_cast<int32_t>(cuSeqlens[row + 1]);
    commitSlots()[row] = lengths[row] > 0 ? slots()[row] : GDNRT_NULL_BLOCK_ID;
  }
  for (int64_t row = rows; row < capacity_; ++row) {
    cuSeqlens[row + 1] = cuSeqlens[rows];
    starts()[row + 1] = starts()[rows];
    commitSlots()[row] = GDNRT_NULL_BLOCK_ID;
  }
}

Status BatchArrays::upload(bool withStarts, void *stream) {
  if (!deviceArena_)
    return {};
  int64_t ints = withStarts ? 3 * capacity_ + 1 : capacity_;
  return device_.upload(deviceArena_, ints_.data(),
                        static_cast<uint64_t>(ints) * sizeof(int32_t), stream);
}

void GDNAttnBackend::publish(BatchArrays &arrays, int64_t rows, int64_t tokens,
                             bool extend) {
  current_ = &arrays;
  numTokens_ = tokens;
  metadata_.cache_indices = arrays.cacheIndices.data();
  metadata_.batch_size = rows;
  metadata_.cu_seqlens = extend ? arrays.cuSeqlens.data() : nullptr;
}

/// The sum of lengths, each of which is one.
static Result<int64_t> addLengths(const int32_t *lengths, int64_t rows) {
  if (!lengths && rows > 0)
    return invalid("extend_seq_lens: expected an array, got null");
  int64_t total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (lengths[row] < 0)
      return invalid("extend_seq_lens: expected 0 or more in row ", row,
                     ", got ", lengths[row]);
    total += lengths[row];
  }
  return total;
}

Status GDNAttnBackend::initForwardMetadata(const ForwardBatch &batch) {
  if (Status s = checkMode(batch.forward_mode); !s.isOk())
    return s;
  if (isIdle(batch.forward_mode))
    return {};
  if (Status s = checkRange("batch_size", batch.batch_size, 0, kMost);
      !s.isOk())
    return s;
  bool extend = isExtend(batch.forward_mode);
  int64_t rows = batch.batch_size;
  int64_t tokens = rows;
  if (extend) {
    auto total = addLengths(batch.extend_seq_lens, rows);
    if (!total.isOk())
      return total.status();
    if (*total > std::numeric_limits<int32_t>::max())
      return invalid("extend_seq_lens: expected at most 2^31 - 1 tokens, got ",
                     *total);
    tokens = *total;
  }
  if (Status s = checkIds(batch.req_pool_indices, rows); !s.isOk())
    return s;
  current_ = nullptr;
  // Twice as much, so that little is outgrown.
  const int64_t room = rows > eager_.capacity() ? 2 * eager_.capacity() : 0;
  if (Status s =
          eager_.reserve(std::max<int64_t>({rows, room, 1}), batch.stream);
      !s.isOk())
    return s;
  eager_.setSlots(batch.req_pool_indices, rows);
  if (extend)
    eager_.setStarts(batch.extend_seq_lens, rows);
  if (Status s = eager_.upload(extend, batch.stream); !s.isOk())
    return s;
  publish(eager_, rows, tokens, extend);
  return {};
}

Status GDNAttnBackend::initCudaGraphState(int64_t maxBs, int64_t maxNumTokens) {
  if (Status s = checkRange("max_bs", maxBs, 1, kMost); !s.isOk())
    return s;
  if (graph_.capacity() > 0 && maxBs > graph_.capacity())
    return invalid("max_bs: expected at most ", graph_.capacity(),
                   ", what graphs may have captured, got ", maxBs);
  if (Status s = checkRange("max_num_tokens", maxNumTokens, 0, kMost);
      !s.isOk())
    return s;
  if (Status s = graph_.reserve(maxBs, nullptr); !s.isOk())
    return s;
  maxGraphTokens_ = std::max(maxGraphTokens_, maxNumTokens);
  return {};
}

Status GDNAttnBackend::checkGraph(const GraphBatch &batch) const {
  if (graph_.capacity() == 0)
    return invalid("init_cuda_graph_state: expected a call before graphs");
  if (batch.bs < 0 || batch.bs > graph_.capacity())
    return invalid("bs: expected 0 to ", graph_.capacity(), ", got ", batch.bs);
  const bool extend = isExtend(batch.forward_mode);
  if (!extend && !isDecode(batch.forward_mode))
    return failure(StatusCode::unsupported,
                   "forward_mode: expected decode or extend for a graph, got ",
                   batch.forward_mode);
  if (batch.num_reqs < 0 || batch.num_reqs > batch.bs)
    return invalid("num_reqs: expected 0 to ", batch.bs,
                   ", the rows of the graph, got ", batch.num_reqs);
  if (!extend)
    return {};
  if (batch.num_tokens < 0 || batch.num_tokens > maxGraphTokens_)
    return invalid("num_tokens: expected 0 to ", maxGraphTokens_,
                   ", the max_num_tokens of init_cuda_graph_state, got ",
                   batch.num_tokens);
  auto total = addLengths(batch.extend_seq_lens, batch.num_reqs);
  if (total.isOk() && *total > batch.num_tokens)
    return invalid("extend_seq_lens: expected at most ", batch.num_tokens,
                   " tokens, those of the graph, got ", *total);
  return total.isOk() ? Status() : total.status();
}

Status GDNAttnBackend::setGraph(const GraphBatch &batch) {
  if (Status s = checkGraph(batch); !s.isOk())
    return s;
  const bool extend = isExtend(batch.forward_mode);
  if (Status s = checkIds(batch.req_pool_indices, batch.num_reqs); !s.isOk())
    return s;
  current_ = nullptr;
  graph_.setSlots(batch.req_pool_indices, batch.num_reqs);
  if (extend)
    graph_.setStarts(batch.extend_seq_lens, batch.num_reqs);
  if (Status s = graph_.upload(extend, batch.stream); !s.isOk())
    return s;
  publish(graph_, batch.bs, extend ? batch.num_tokens : batch.bs, extend);
  return {};
}

static Status noFullAttention(const char *method) {
  return failure(StatusCode::unsupported, method,
                 ": the backend has linear attention alone, forward_gdn");
}

Status GDNAttnBackend::forwardDecode(const AttentionCall &,
                                     const ForwardBatch &) {
  return noFullAttention("forward_decode");
}

Status GDNAttnBackend::forwardExtend(const AttentionCall &,
                                     const ForwardBatch &) {
  return noFullAttention("forward_extend");
}

Status GDNAttnBackend::forwardGdn(GDNLayer &layer, const ForwardBatch &batch,
                                  const gdnrt_named_arg *tokens, size_t count) {
  if (Status s = checkMode(batch.forward_mode); !s.isOk())
    return s;
  if (isIdle(batch.forward_mode))
    return layer.forward(nullptr, nullptr, tokens, count, batch.stream);
  if (!current_)
    return invalid("forward_metadata: expected init_forward_metadata before "
                   "forward_gdn");
  bool extend = isExtend(batch.forward_mode);
  if (extend != (metadata_.cu_seqlens != nullptr))
    return invalid("forward_mode: expected that of init_forward_metadata, ",
                   extend ? "decode, got extend" : "extend, got decode");
  int64_t rows = metadata_.batch_size;
  if (numTokens_ == 0)
    return layer.forward(nullptr, nullptr, tokens, count, batch.stream);

  BatchArrays &arrays = *current_;
  // Tokens that are pending in slots go into their states before extend.
  gdnrt_run runs[2] = {};
  const bool commits = extend && layer.defersWrites();
  runs[0].kind = GDNRT_RUN_COMMIT;
  runs[0].num_rows = rows;
  gdnrt_run &run = runs[commits ? 1 : 0];
  run.kind = extend ? GDNRT_RUN_PREFILL : GDNRT_RUN_DECODE;
  run.reads_state = 1;
  run.num_tokens = numTokens_;
  run.num_rows = rows;
  run.query_start_loc = arrays.starts();
  gdnrt_gdn_metadata m = {};
  m.num_actual_tokens = m.num_run_tokens = numTokens_;
  m.prefill_is_bounded = extend && current_ == &graph_;
  m.non_spec_state_indices = m.non_spec_read_indices = {arrays.slots(), rows};
  m.run_has_initial = {arrays.hasInitial(), rows};
  m.zeros = {arrays.zeros(), rows + 1};
  m.arena = arrays.slots();
  m.runs = runs;
  m.num_runs = commits ? 2 : 1;
  if (layer.defersWrites()) {
    m.deferred_writes = 1;
    m.verify_states = GDNRT_VERIFY_LAZY;
    m.commit_slots = {arrays.commitSlots(), rows};
    m.commit_num_accepted = {arrays.zeros(), rows};
  }
  return layer.forward(&m, arrays.deviceArena(), tokens, count, batch.stream);
}

std::shared_ptr<AttentionBackend>
gdnrt::makeGDNBackend(std::shared_ptr<Device> device) {
  return std::make_shared<GDNAttnBackend>(std::move(device));
}
