// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches of a step: one for each run, on slices of the arrays; rows of
// the outputs behind the last run are zeroed.

#include "gdnrt/gdn_layer.h"
#include "gdnrt/zero_rows.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;

Result<std::unique_ptr<GDNLayer>>
GDNLayer::make(std::shared_ptr<LoadedKernel> decode,
               std::shared_ptr<LoadedKernel> prefill,
               std::shared_ptr<LoadedKernel> verify,
               const gdnrt_named_arg *fixed, size_t count) {
  auto layer = std::unique_ptr<GDNLayer>(new GDNLayer());
  for (auto [kernel, target] : {std::pair(&decode, &layer->decode_),
                                {&prefill, &layer->prefill_},
                                {&verify, &layer->verify_}}) {
    if (!*kernel)
      continue;
    if (layer->device_ && layer->device_ != (*kernel)->device)
      return invalid((*kernel)->entry->name,
                     ": expected a kernel of the device of the others");
    layer->device_ = (*kernel)->device;
    auto made = LayerKernel::make(*kernel, fixed, count);
    if (!made.isOk())
      return made.status();
    *target = std::move(*made);
  }
  if (!layer->device_)
    return invalid("kernels: expected at least one");
  for (size_t i = 0; i < count; ++i) {
    bool known = false;
    for (const auto *kernel :
         {&layer->decode_, &layer->prefill_, &layer->verify_})
      known |= *kernel && (*kernel)->entry().findParam(fixed[i].name);
    if (!known)
      return failure(StatusCode::notFound, fixed[i].name,
                     ": no kernel of the layer has this parameter");
  }
  return layer;
}

LayerKernel *GDNLayer::kernelFor(int32_t kind) const {
  switch (kind) {
  case GDNRT_RUN_DECODE:
    return decode_.get();
  case GDNRT_RUN_PREFILL:
    return prefill_.get();
  default:
    return verify_.get();
  }
}

static const char *nameOf(int32_t kind) {
  switch (kind) {
  case GDNRT_RUN_DECODE:
    return "decode";
  case GDNRT_RUN_PREFILL:
    return "prefill";
  default:
    return "verify";
  }
}

/// Names are known, and there are rows for all tokens of the step.
Status GDNLayer::checkTokens(const gdnrt_named_arg *tokens, size_t count,
                             int64_t needed) const {
  for (size_t i = 0; i < count; ++i) {
    const gdnrt_named_arg &each = tokens[i];
    if (!each.name)
      return invalid("tokens: expected a name, got null");
    bool known = false;
    for (const auto *kernel : {&decode_, &prefill_, &verify_})
      known |= *kernel && (*kernel)->tokenParam(each.name);
    if (!known)
      return failure(StatusCode::notFound, each.name,
                     ": no kernel of the layer takes this in every step");
    if (each.arg.rank < 1 || each.arg.rank > kMaxRank || !each.arg.sizes)
      return invalid(each.name, ": expected a rank of 1 to ", kMaxRank,
                     ", got ", each.arg.rank);
    if (each.arg.sizes[0] < needed)
      return invalid(each.name, ": expected at least ", needed,
                     " rows, the tokens of the step, got ", each.arg.sizes[0]);
  }
  return {};
}

Status GDNLayer::forward(const gdnrt_gdn_metadata *metadata,
                         const void *deviceArena, const gdnrt_named_arg *tokens,
                         size_t count, void *stream) {
  int64_t needed = metadata ? metadata->num_run_tokens : 0;
  if (Status s = checkTokens(tokens, count, needed); !s.isOk())
    return s;
  if (!device_->properties().hostReadable && !deviceArena && needed > 0)
    return invalid("device_arena: expected the metadata in memory of the "
                   "device, got null");
  // Nothing is launched if a part of the step cannot be.
  for (int64_t r = 0; metadata && r < metadata->num_runs; ++r)
    if (int32_t kind = metadata->runs[r].kind; !kernelFor(kind))
      return failure(StatusCode::unsupported, nameOf(kind), ": the step has ",
                     metadata->runs[r].num_rows,
                     " rows of that kind, but the layer has no such kernel");
  if (sizes_.size() < count) {
    slices_.resize(count);
    sizes_.resize(count);
    strides_.resize(count);
  }
  for (int64_t r = 0; metadata && r < metadata->num_runs; ++r) {
    const gdnrt_run &run = metadata->runs[r];
    for (size_t i = 0; i < count; ++i) {
      const gdnrt_arg &arg = tokens[i].arg;
      int64_t dense = 1;
      for (int d = arg.rank; d-- > 0;) {
        sizes_[i][d] = arg.sizes[d];
        strides_[i][d] = arg.strides ? arg.strides[d] : dense;
        dense *= arg.sizes[d];
      }
      sizes_[i][0] = run.num_tokens;
      slices_[i] = tokens[i];
      slices_[i].arg.sizes = sizes_[i].data();
      slices_[i].arg.strides = strides_[i].data();
      if (arg.data)
        slices_[i].arg.data = static_cast<char *>(arg.data) +
                              run.first_token * strides_[i][0] *
                                  sizeInBytes(static_cast<DType>(arg.dtype));
    }
    if (Status s = kernelFor(run.kind)->launch({*metadata, deviceArena}, run,
                                               slices_.data(), count, stream);
        !s.isOk())
      return s;
  }
  for (size_t i = 0; i < count; ++i) {
    bool written = false;
    for (const auto *kernel : {&decode_, &prefill_, &verify_})
      if (*kernel)
        if (const ParamSchema *param = (*kernel)->tokenParam(tokens[i].name))
          written |= param->isWritten();
    if (written)
      if (Status s =
              zeroRows(*device_, tokens[i].name, tokens[i].arg, needed, stream);
          !s.isOk())
        return s;
  }
  return {};
}
