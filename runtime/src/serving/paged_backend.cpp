// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attention over a paged cache on a CPU, query by query: for tests, and for
// models whose few full layers are small beside the rest. Scores and sums are
// f32; the maximum is taken first, so no exponential overflows.

#include "gdnrt/attention_backend.h"

#include "float_bits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

using namespace gdnrt;

namespace {

/// A [rows, heads, dim] view of an array [rows, heads * dim] or of that shape.
struct Heads {
  char *data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0, rowStride = 0, headStride = 0;

  static Result<Heads> of(const char *name, const gdnrt_arg &arg, int64_t heads,
                          int64_t dim);
  char *at(int64_t row, int64_t head, int64_t element) const {
    return data +
           (row * rowStride + head * headStride + element) * sizeInBytes(dtype);
  }
};

class PagedBackend final : public AttentionBackend {
public:
  using AttentionBackend::AttentionBackend;

  Status initForwardMetadata(const ForwardBatch &) override { return {}; }
  Status forwardDecode(const AttentionCall &call,
                       const ForwardBatch &batch) override;
  Status forwardExtend(const AttentionCall &call,
                       const ForwardBatch &batch) override;
  Result<int64_t> getCudaGraphSeqLenFillValue() override { return 1; }
  Status initCudaGraphState(int64_t, int64_t) override { return {}; }
  Status initForwardMetadataCaptureCudaGraph(const GraphBatch &) override {
    return {};
  }
  Status initForwardMetadataReplayCudaGraph(const GraphBatch &) override {
    return {};
  }

private:
  struct Arrays {
    Heads q, k, v, out, keys, values;
  };
  Result<Arrays> open(const AttentionCall &call, const ForwardBatch &batch,
                      int64_t tokens);
  static bool saves(const AttentionCall &call) {
    return call.save_kv_cache && call.k.data && call.v.data;
  }
  /// Refuses places that are not in the cache before anything is written.
  static Status checkPlaces(const AttentionCall &call,
                            const ForwardBatch &batch, const Arrays &arrays,
                            int64_t tokens);
  static void save(const gdnrt_radix_attention &layer,
                   const ForwardBatch &batch, const Arrays &arrays,
                   int64_t tokens);
  void attend(const gdnrt_radix_attention &layer, const ForwardBatch &batch,
              const Arrays &arrays, int64_t request, int64_t token,
              int64_t length);

  std::vector<float> scores_, sum_;
};

} // namespace

Result<Heads> Heads::of(const char *name, const gdnrt_arg &arg, int64_t heads,
                        int64_t dim) {
  Heads view;
  if (arg.dtype != GDNRT_F32 && arg.dtype != GDNRT_BF16 &&
      arg.dtype != GDNRT_F16)
    return invalid(name, ": expected f32, bf16 or f16, got dtype ", arg.dtype);
  bool flat = arg.rank == 2;
  if (!arg.sizes || (!flat && arg.rank != 3) ||
      (flat ? arg.sizes[1] != heads * dim
            : arg.sizes[1] != heads || arg.sizes[2] != dim))
    return invalid(name, ": expected [rows, ", heads * dim, "] or [rows, ",
                   heads, ", ", dim, "]");
  if (!arg.data && arg.sizes[0] > 0)
    return invalid(name, ": expected a pointer to the data of ", arg.sizes[0],
                   " rows, got null");
  view.data = static_cast<char *>(arg.data);
  view.dtype = static_cast<DType>(arg.dtype);
  view.rows = arg.sizes[0];
  view.rowStride = arg.strides ? arg.strides[0] : heads * dim;
  view.headStride = flat || !arg.strides ? dim : arg.strides[1];
  if (arg.strides && arg.strides[arg.rank - 1] != 1 && view.rows > 0)
    return invalid(name, ": expected neighbouring elements of a head");
  return view;
}

Result<PagedBackend::Arrays> PagedBackend::open(const AttentionCall &call,
                                                const ForwardBatch &batch,
                                                int64_t tokens) {
  const gdnrt_radix_attention *layer = call.layer;
  if (!layer)
    return invalid("layer: expected a pointer, got null");
  if (layer->tp_q_head_num < 1 || layer->tp_k_head_num < 1 ||
      layer->tp_k_head_num != layer->tp_v_head_num || layer->head_dim < 1 ||
      layer->v_head_dim < 1 || layer->tp_q_head_num % layer->tp_k_head_num != 0)
    return invalid("layer: expected heads of keys and values alike, and a "
                   "multiple of them for queries, got ",
                   layer->tp_q_head_num, ", ", layer->tp_k_head_num, " and ",
                   layer->tp_v_head_num);
  constexpr int64_t most = int64_t{1} << 20;
  for (auto [name, value] : {std::pair("tp_q_head_num", layer->tp_q_head_num),
                             {"head_dim", layer->head_dim},
                             {"v_head_dim", layer->v_head_dim}})
    if (value > most)
      return invalid("layer: ", name, ": expected 1 to ", most, ", got ",
                     value);
  if (batch.batch_size < 0)
    return invalid("batch_size: expected 0 or more, got ", batch.batch_size);
  if (batch.batch_size > 0 &&
      (!batch.req_to_token || !batch.seq_lens || !batch.req_pool_indices))
    return invalid("batch: expected req_to_token, seq_lens and "
                   "req_pool_indices, got null");
  Arrays arrays;
  struct Field {
    const char *name;
    const gdnrt_arg *arg;
    Heads *view;
    int64_t heads, dim;
  };
  bool given = call.k.data || call.v.data;
  for (const Field &field :
       {Field{"q", &call.q, &arrays.q, layer->tp_q_head_num, layer->head_dim},
        {"out", &call.out, &arrays.out, layer->tp_q_head_num,
         layer->v_head_dim},
        {"k_buffer", &layer->k_buffer, &arrays.keys, layer->tp_k_head_num,
         layer->head_dim},
        {"v_buffer", &layer->v_buffer, &arrays.values, layer->tp_v_head_num,
         layer->v_head_dim},
        {"k", &call.k, &arrays.k, layer->tp_k_head_num, layer->head_dim},
        {"v", &call.v, &arrays.v, layer->tp_v_head_num, layer->v_head_dim}}) {
    bool isNew = field.view == &arrays.k || field.view == &arrays.v;
    if (isNew && !given)
      continue;
    auto view = Heads::of(field.name, *field.arg, field.heads, field.dim);
    if (!view.isOk())
      return view.status();
    *field.view = *view;
    bool isCache = field.view == &arrays.keys || field.view == &arrays.values;
    if (!isCache && view->rows < tokens)
      return invalid(field.name, ": expected ", tokens, " rows, got ",
                     view->rows);
  }
  return arrays;
}

Status PagedBackend::checkPlaces(const AttentionCall &call,
                                 const ForwardBatch &batch,
                                 const Arrays &arrays, int64_t tokens) {
  int64_t locations = std::min(arrays.keys.rows, arrays.values.rows);
  auto check = [&](const char *name, int64_t place) -> Status {
    if (place < 0 || place >= locations)
      return invalid(name, ": expected 0 to ", locations - 1, ", got ", place);
    return {};
  };
  if (saves(call)) {
    if (!batch.out_cache_loc && tokens > 0)
      return invalid("out_cache_loc: expected an array, got null");
    for (int64_t t = 0; t < tokens; ++t)
      if (Status s = check("out_cache_loc", batch.out_cache_loc[t]); !s.isOk())
        return s;
  }
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    int64_t length = batch.seq_lens[row];
    if (length < 0 || length > batch.req_to_token_stride)
      return invalid("seq_lens: expected 0 to ", batch.req_to_token_stride,
                     ", the columns of req_to_token, got ", length);
    if (batch.req_pool_indices[row] < 0)
      return invalid("req_pool_indices: expected at least 0, got ",
                     batch.req_pool_indices[row]);
    const int32_t *table = batch.req_to_token + batch.req_pool_indices[row] *
                                                    batch.req_to_token_stride;
    for (int64_t i = 0; i < length; ++i)
      if (Status s = check("req_to_token", table[i]); !s.isOk())
        return s;
  }
  return {};
}

/// Puts keys and values of the step into the cache.
void PagedBackend::save(const gdnrt_radix_attention &layer,
                        const ForwardBatch &batch, const Arrays &arrays,
                        int64_t tokens) {
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t to = batch.out_cache_loc[t];
    for (int64_t h = 0; h < layer.tp_k_head_num; ++h) {
      for (int64_t d = 0; d < layer.head_dim; ++d)
        writeFloat(arrays.keys.at(to, h, d),
                   readFloat(arrays.k.at(t, h, d), arrays.k.dtype),
                   arrays.keys.dtype);
      for (int64_t d = 0; d < layer.v_head_dim; ++d)
        writeFloat(arrays.values.at(to, h, d),
                   readFloat(arrays.v.at(t, h, d), arrays.v.dtype),
                   arrays.values.dtype);
    }
  }
}

/// One query over the first `length` tokens of its request.
void PagedBackend::attend(const gdnrt_radix_attention &layer,
                          const ForwardBatch &batch, const Arrays &arrays,
                          int64_t request, int64_t token, int64_t length) {
  const int32_t *table = batch.req_to_token + batch.req_pool_indices[request] *
                                                  batch.req_to_token_stride;
  scores_.resize(static_cast<size_t>(length));
  sum_.resize(static_cast<size_t>(layer.v_head_dim));
  float scale = static_cast<float>(
      layer.scaling != 0 ? layer.scaling
                         : 1 / std::sqrt(static_cast<double>(layer.head_dim)));
  int64_t share = layer.tp_q_head_num / layer.tp_k_head_num;
  for (int64_t h = 0; h < layer.tp_q_head_num; ++h) {
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < length; ++i) {
      float dot = 0;
      for (int64_t d = 0; d < layer.head_dim; ++d)
        dot += readFloat(arrays.q.at(token, h, d), arrays.q.dtype) *
               readFloat(arrays.keys.at(table[i], h / share, d),
                         arrays.keys.dtype);
      scores_[i] = dot * scale;
      most = std::max(most, scores_[i]);
    }
    std::fill(sum_.begin(), sum_.end(), 0.0f);
    float total = 0;
    for (int64_t i = 0; i < length; ++i) {
      float weight = std::exp(scores_[i] - most);
      total += weight;
      for (int64_t d = 0; d < layer.v_head_dim; ++d)
        sum_[d] += weight * readFloat(arrays.values.at(table[i], h / share, d),
                                      arrays.values.dtype);
    }
    for (int64_t d = 0; d < layer.v_head_dim; ++d)
      writeFloat(arrays.out.at(token, h, d), length ? sum_[d] / total : 0,
                 arrays.out.dtype);
  }
}

Status PagedBackend::forwardDecode(const AttentionCall &call,
                                   const ForwardBatch &batch) {
  auto arrays = open(call, batch, batch.batch_size);
  if (!arrays.isOk())
    return arrays.status();
  Status placed = checkPlaces(call, batch, *arrays, batch.batch_size);
  if (!placed.isOk())
    return placed;
  if (saves(call))
    save(*call.layer, batch, *arrays, batch.batch_size);
  for (int64_t row = 0; row < batch.batch_size; ++row)
    attend(*call.layer, batch, *arrays, row, row, batch.seq_lens[row]);
  return {};
}

Status PagedBackend::forwardExtend(const AttentionCall &call,
                                   const ForwardBatch &batch) {
  if (batch.batch_size > 0 && !batch.extend_seq_lens)
    return invalid("extend_seq_lens: expected an array, got null");
  int64_t tokens = 0;
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    int64_t own = batch.extend_seq_lens[row];
    if (batch.seq_lens && (own < 0 || own > batch.seq_lens[row]))
      return invalid("extend_seq_lens: expected 0 to ", batch.seq_lens[row],
                     ", the tokens of request ", row, ", got ", own);
    tokens += own;
  }
  auto arrays = open(call, batch, tokens);
  if (!arrays.isOk())
    return arrays.status();
  Status placed = checkPlaces(call, batch, *arrays, tokens);
  if (!placed.isOk())
    return placed;
  if (saves(call))
    save(*call.layer, batch, *arrays, tokens);
  int64_t token = 0;
  for (int64_t row = 0; row < batch.batch_size; ++row)
    for (int64_t i = 0, own = batch.extend_seq_lens[row]; i < own; ++i)
      attend(*call.layer, batch, *arrays, row, token++,
             batch.seq_lens[row] - own + i + 1);
  return {};
}

Result<std::shared_ptr<AttentionBackend>>
gdnrt::makePagedBackend(std::shared_ptr<Device> device) {
  if (!device->properties().hostReadable)
    return failure(StatusCode::unsupported,
                   "paged attention: expected a CPU, "
                   "got ",
                   device->properties().name);
  return std::shared_ptr<AttentionBackend>(
      std::make_shared<PagedBackend>(std::move(device)));
}
