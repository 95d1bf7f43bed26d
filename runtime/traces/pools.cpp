// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How pools are made, and slots read from the device: planes into numbers,
// pending tokens into states.

#include "pools.h"

#include "arguments.h"
#include "failed.h"

#include <algorithm>
#include <cmath>

using namespace gdnrt::traces;

Pools::Pools(const Kernels &kernels, const LayerSizes &sizes,
             const Trace &trace)
    : kernels_(kernels), sizes_(sizes) {
  states_ = make(trace, trace.numRequests, kernels.keepPending());
  if (kernels.verifyKind() == VerifyKind::buffer)
    tokens_ = make(trace, trace.numRequests * trace.verifyTokens, false);
}

gdnrt_state_pool_options Pools::optionsFor(const Trace &trace,
                                           bool pending) const {
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = kNumLayers;
  options.num_key_heads = sizes_.keyHeads;
  options.num_value_heads = sizes_.valueHeads;
  options.key_dim = sizes_.keyDim;
  options.value_dim = sizes_.valueDim;
  options.conv_width = sizes_.width;
  options.state_planes = kernels_.statePlanes();
  options.decay_per_channel = sizes_.decayPerChannel;
  options.pending_tokens = pending ? trace.verifyTokens : 0;
  if (pending && kernels_.pendingRoom() > 0) {
    options.pending_tokens = kernels_.pendingRoom();
    options.deferred_writes = 1;
    options.pending_dtype = kernels_.isPendingNarrow() ? GDNRT_F16 : GDNRT_F32;
  }
  options.conv_extra = kernels_.verifyKind() == VerifyKind::lazy
                           ? trace.verifyTokens
                           : trace.convExtra;
  options.conv_layout = trace.isSD ? GDNRT_CONV_SD : GDNRT_CONV_DS;
  options.debug_checks = 1;
  return options;
}

Pools::Pool Pools::makeOfRank(const Trace &trace, int64_t ranks) const {
  const int64_t keys = sizes_.keyHeads, values = sizes_.valueHeads;
  if (values % ranks != 0 || (keys % ranks != 0 && ranks % keys != 0))
    return nullptr;
  gdnrt_state_pool_options options = optionsFor(trace, kernels_.keepPending());
  options.num_requests = 1;
  options.num_key_heads = std::max<int64_t>(keys / ranks, 1);
  options.num_value_heads = values / ranks;
  options.conv_layout = trace.isSD ? GDNRT_CONV_DS : GDNRT_CONV_SD;
  gdnrt_error error;
  gdnrt_state_pool *made = nullptr;
  check(gdnrt_state_pool_create(kernels_.device(), &options, &made, &error),
        error);
  return Pool(made);
}

Pools::Pool Pools::make(const Trace &trace, int64_t requests,
                        bool pending) const {
  gdnrt_state_pool_options options = optionsFor(trace, pending);
  options.num_requests = requests;
  options.num_track = trace.numTrack;
  // GPUs load 16 bytes at a time, so slots have to begin at such multiples.
  const int64_t block = kernels_.isHost()            ? 1
                        : kernels_.statePlanes() > 0 ? 16
                                                     : 4;
  const int64_t padding = (trace.padding + block - 1) / block * block;
  options.state_slot_stride = sizes_.outputs() * sizes_.keyDim + padding;
  options.conv_slot_stride =
      sizes_.channels() * (sizes_.width - 1 + options.conv_extra) + padding;
  gdnrt_error error;
  gdnrt_state_pool *made = nullptr;
  check(gdnrt_state_pool_create(kernels_.device(), &options, &made, &error),
        error);
  Pool pool(made);
  if (trace.movesByKernels && kernels_.copySlots && kernels_.zeroSlots)
    check(gdnrt_state_pool_use_kernels(made, kernels_.copySlots,
                                       kernels_.zeroSlots, &error),
          error);
  return pool;
}

static gdnrt_arg viewOf(gdnrt_state_pool *pool, int32_t buffer, int64_t layer) {
  gdnrt_error error;
  gdnrt_arg arg;
  check(gdnrt_state_pool_view(pool, buffer, layer, &arg, &error), error);
  return arg;
}

gdnrt_arg Pools::view(int32_t buffer, int64_t layer) const {
  return viewOf(states_.get(), buffer, layer);
}

std::vector<int32_t> Pools::buffers() const {
  std::vector<int32_t> all = {GDNRT_POOL_STATE, GDNRT_POOL_CONV_HISTORY};
  if (kernels_.statePlanes() > 0)
    all.push_back(GDNRT_POOL_STATE_SCALES);
  if (kernels_.statePlanes() == 2)
    all.push_back(GDNRT_POOL_STATE_LOW);
  if (kernels_.pendingRoom() > 0)
    all.insert(all.end(),
               {GDNRT_POOL_PENDING_KEYS, GDNRT_POOL_PENDING_DELTAS,
                GDNRT_POOL_PENDING_DECAYS, GDNRT_POOL_PENDING_COUNTS});
  if (kernels_.isPendingNarrow())
    all.push_back(GDNRT_POOL_PENDING_SCALES);
  return all;
}

void Pools::addTo(Arguments &args, int64_t layer, bool withTokens,
                  bool withPending, bool withWindows) const {
  const bool isLazy = kernels_.verifyKind() == VerifyKind::lazy && withTokens;
  args.addPool("state_pool", view(GDNRT_POOL_STATE, layer));
  if (kernels_.statePlanes() > 0)
    args.addPool("state_scales", view(GDNRT_POOL_STATE_SCALES, layer));
  if (kernels_.statePlanes() == 2)
    args.addPool("state_low", view(GDNRT_POOL_STATE_LOW, layer));
  if (withWindows)
    args.addPool(
        "conv_pool",
        view(isLazy ? GDNRT_POOL_CONV_HISTORY : GDNRT_POOL_CONV, layer));
  if (withPending) {
    args.addPool("pending_keys", view(GDNRT_POOL_PENDING_KEYS, layer));
    args.addPool("pending_deltas", view(GDNRT_POOL_PENDING_DELTAS, layer));
    args.addPool("pending_decays", view(GDNRT_POOL_PENDING_DECAYS, layer));
  }
  if (withPending && kernels_.pendingRoom() > 0)
    args.addPool("pending_counts", view(GDNRT_POOL_PENDING_COUNTS, layer));
  if (withPending && kernels_.isPendingNarrow())
    args.addPool("pending_scales", view(GDNRT_POOL_PENDING_SCALES, layer));
  if (!tokens_ || !withTokens)
    return;
  args.addPool("token_state_pool",
               viewOf(tokens_.get(), GDNRT_POOL_STATE, layer));
  args.addPool("token_conv_pool",
               viewOf(tokens_.get(), GDNRT_POOL_CONV, layer));
}

template <typename T>
std::vector<T> Pools::readSlot(int32_t buffer, int64_t layer,
                               int32_t slot) const {
  const gdnrt_arg arg = view(buffer, layer);
  int64_t count = 1;
  for (int32_t d = 1; d < arg.rank; ++d)
    count *= arg.sizes[d];
  std::vector<T> values(static_cast<size_t>(count));
  gdnrt_error error;
  check(gdnrt_device_read(kernels_.device(), values.data(),
                          static_cast<T *>(arg.data) + slot * arg.strides[0],
                          values.size() * sizeof(T), &error),
        error);
  return values;
}

std::vector<double> Pools::readState(int64_t layer, int32_t slot) const {
  if (kernels_.statePlanes() == 0) {
    const auto state = readSlot<float>(GDNRT_POOL_STATE, layer, slot);
    return {state.begin(), state.end()};
  }
  const auto upper = readSlot<uint8_t>(GDNRT_POOL_STATE, layer, slot);
  const auto scales = readSlot<float>(GDNRT_POOL_STATE_SCALES, layer, slot);
  std::vector<uint8_t> low(upper.size(), 128);
  if (kernels_.statePlanes() == 2)
    low = readSlot<uint8_t>(GDNRT_POOL_STATE_LOW, layer, slot);
  std::vector<double> state(upper.size());
  for (size_t i = 0; i < state.size(); ++i) {
    const double scale = scales[i / static_cast<size_t>(sizes_.keyDim)];
    // Whatever the bytes are where there is no state.
    if (scale != 0)
      state[i] = scale * ((upper[i] - 128) + (low[i] - 128) / 256.0);
  }
  return state;
}

LayerState Pools::read(int64_t layer, int32_t slot) const {
  LayerState result(sizes_);
  result.state = readState(layer, slot);
  const gdnrt_arg conv = view(GDNRT_POOL_CONV_HISTORY, layer);
  const auto window = readSlot<float>(GDNRT_POOL_CONV_HISTORY, layer, slot);
  size_t i = 0;
  for (int64_t c = 0; c < sizes_.channels(); ++c)
    for (int64_t j = 0; j < sizes_.width - 1; ++j)
      result.window[i++] = window[static_cast<size_t>(c * conv.strides[1] +
                                                      j * conv.strides[2])];
  if (kernels_.pendingRoom() > 0)
    foldPending(layer, slot, result);
  return result;
}

/// The number that bits of f16 stand for.
static double fromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double number = exponent == 0    ? std::ldexp(fraction, -24)
                  : exponent == 31 ? (fraction ? std::nan("") : HUGE_VAL)
                                   : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -number : number;
}

std::vector<double> Pools::readPending(int32_t buffer, int64_t layer,
                                       int32_t slot) const {
  if (!kernels_.isPendingNarrow()) {
    const auto numbers = readSlot<float>(buffer, layer, slot);
    return {numbers.begin(), numbers.end()};
  }
  std::vector<double> numbers;
  for (uint16_t bits : readSlot<uint16_t>(buffer, layer, slot))
    numbers.push_back(fromHalf(bits));
  return numbers;
}

void Pools::foldPending(int64_t layer, int32_t slot, LayerState &state) const {
  const auto keys = readPending(GDNRT_POOL_PENDING_KEYS, layer, slot),
             deltas = readPending(GDNRT_POOL_PENDING_DELTAS, layer, slot);
  const auto logs = readSlot<float>(GDNRT_POOL_PENDING_DECAYS, layer, slot);
  const auto channels = static_cast<size_t>(sizes_.decays());
  std::vector<float> scales(logs.size() / channels, 1);
  if (kernels_.isPendingNarrow())
    scales = readSlot<float>(GDNRT_POOL_PENDING_SCALES, layer, slot);
  const auto counts = readSlot<int32_t>(GDNRT_POOL_PENDING_COUNTS, layer, slot);
  const auto dk = static_cast<size_t>(sizes_.keyDim),
             dv = static_cast<size_t>(sizes_.valueDim),
             room = static_cast<size_t>(kernels_.pendingRoom());
  const auto heads = static_cast<size_t>(sizes_.valueHeads);
  for (size_t h = 0; h < heads; ++h) {
    const size_t keyHead = h * static_cast<size_t>(sizes_.keyHeads) / heads;
    const int32_t count = counts[keyHead];
    if (count < 0 || count > kernels_.pendingRoom())
      throw Failed("slot " + std::to_string(slot) + " counts " +
                   std::to_string(count) + " tokens");
    for (size_t t = 0; t < static_cast<size_t>(count); ++t) {
      std::vector<double> decays(dk);
      for (size_t i = 0; i < dk; ++i)
        decays[i] =
            std::exp(double(logs[(h * room + t) * channels + i % channels]));
      const double scale = scales[h * room + t];
      const double *key = &keys[(keyHead * room + t) * dk];
      const double *delta = &deltas[(h * room + t) * dv];
      for (size_t i = 0; i < dv * dk; ++i) {
        double &element = state.state[h * dv * dk + i];
        element =
            decays[i % dk] * element + scale * delta[i / dk] * key[i % dk];
      }
    }
  }
}

bool Pools::hasPending(int32_t slot) const {
  if (kernels_.pendingRoom() == 0)
    return false;
  uint8_t pending = 1;
  gdnrt_error error;
  check(gdnrt_state_pool_has_pending(states(), &slot, 1, nullptr, &pending,
                                     &error),
        error);
  return pending != 0;
}

/// Bytes of a slot that no kernel and no pool writes: a NaN of f32.
constexpr uint8_t kPaint = 0xff;

/// The bytes of the null slot, which is the first of its buffer.
static std::vector<uint8_t> nullSlotOf(const gdnrt_arg &arg) {
  int64_t count = arg.dtype == GDNRT_U8 ? 1 : 4;
  for (int32_t d = 1; d < arg.rank; ++d)
    count *= arg.sizes[d];
  return std::vector<uint8_t>(static_cast<size_t>(count), kPaint);
}

void Pools::paintNullSlot() {
  gdnrt_error error;
  for (int32_t buffer : buffers())
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      const gdnrt_arg arg = view(buffer, layer);
      const std::vector<uint8_t> painted = nullSlotOf(arg);
      check(gdnrt_device_write(kernels_.device(), arg.data, painted.data(),
                               painted.size(), &error),
            error);
    }
}

bool Pools::nullSlotIsIntact() const {
  gdnrt_error error;
  for (int32_t buffer : buffers())
    for (int64_t layer = 0; layer < kNumLayers; ++layer) {
      const gdnrt_arg arg = view(buffer, layer);
      const std::vector<uint8_t> painted = nullSlotOf(arg);
      std::vector<uint8_t> found(painted.size());
      check(gdnrt_device_read(kernels_.device(), found.data(), arg.data,
                              found.size(), &error),
            error);
      if (found != painted)
        return false;
    }
  return true;
}
