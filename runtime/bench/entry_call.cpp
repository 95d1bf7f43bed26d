// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments from a schema. Numbers are normal, as after a projection, except
// where a name says more: gates, decay rates, row bounds and slots.
#include "entry_call.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <sstream>
#include <sys/mman.h>

using namespace gdnbench;

void gdnbench::check(gdnrt_status status, const gdnrt_error &error) {
  if (status == GDNRT_OK)
    return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(1);
}

Runtime::Runtime(const std::string &imagePath, int workers) {
  gdnrt_error error;
  check(gdnrt_image_load_file(imagePath.c_str(), &image, &error), error);
  gdnrt_cpu_options options = gdnrt_cpu_options_default();
  options.num_workers = workers;
  check(gdnrt_device_create_cpu(&options, &device, &error), error);
}

Runtime::~Runtime() {
  gdnrt_device_destroy(device);
  gdnrt_image_destroy(image);
}

void Memory::Unmap::operator()(void *data) const { munmap(data, bytes); }

void *Memory::get(const std::string &key, size_t bytes, bool &isNew) {
  auto found = blocks.find(key);
  isNew = found == blocks.end();
  if (!isNew)
    return found->second.get();
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    std::fprintf(stderr, "no memory for %zu bytes of %s\n", bytes, key.c_str());
    std::exit(1);
  }
  madvise(data, bytes, MADV_HUGEPAGE);
  blocks.emplace(key, std::unique_ptr<void, Unmap>(data, Unmap{bytes}));
  return data;
}

/// The value of a form such as "256*Hk + 1".
static int64_t evaluate(const char *form, const Symbols &symbols) {
  std::istringstream terms(form);
  std::string term;
  int64_t value = 0;
  while (terms >> term) {
    if (term == "+")
      continue;
    size_t star = term.find('*');
    std::string symbol =
        star == std::string::npos ? term : term.substr(star + 1);
    auto known = symbols.find(symbol);
    int64_t factor =
        known == symbols.end() ? std::atoll(symbol.c_str()) : known->second;
    value +=
        star == std::string::npos ? factor : factor * std::atoll(term.c_str());
  }
  return value;
}

static size_t elementBytes(gdnrt_dtype dtype) {
  switch (dtype) {
  case GDNRT_F32:
  case GDNRT_I32:
    return 4;
  case GDNRT_BF16:
  case GDNRT_F16:
    return 2;
  case GDNRT_I64:
  case GDNRT_F64:
    return 8;
  case GDNRT_I1:
  case GDNRT_U8:
    return 1;
  }
  return 0;
}

static void put(void *data, gdnrt_dtype dtype, int64_t i, float value) {
  if (dtype == GDNRT_F32) {
    static_cast<float *>(data)[i] = value;
  } else if (dtype == GDNRT_BF16) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    static_cast<uint16_t *>(data)[i] = static_cast<uint16_t>(bits >> 16);
  } else {
    std::fprintf(stderr, "no random numbers of this element type\n");
    std::exit(1);
  }
}

/// Random numbers as the parameter `name` has them. The delta rule wants keys
/// of length 1, so that states stay bounded.
static void fillRandom(const std::string &name, void *data, gdnrt_dtype dtype,
                       int64_t count) {
  std::mt19937 engine(std::hash<std::string>()(name) & 0xffff);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int64_t i = 0; i < count; ++i) {
    float x = normal(engine);
    if (name == "A_log")
      x = std::log(1 + 15 * uniform(engine));
    else if (name == "g")
      x = -0.5f * uniform(engine);
    else if (name == "beta")
      x = uniform(engine);
    else if (name == "q" || name == "k" || name == "conv_weight")
      x /= 11.3f;
    put(data, dtype, i, x);
  }
}

void EntryCall::addParam(const gdnrt_param_info &info, Memory &memory,
                         const std::string &poolKey) {
  std::vector<int64_t> &size = sizes.emplace_back();
  int64_t count = 1;
  for (int32_t i = 0; i < info.rank; ++i) {
    size.push_back(evaluate(info.dims[i], symbols));
    count *= size.back();
  }
  std::string name = info.name;
  size_t bytes = count * elementBytes(info.dtype);
  void *data = nullptr;
  bool isNew = true;
  if (info.kind == GDNRT_POOL) {
    data = memory.get(poolKey + "." + name, bytes, isNew);
    // One page after another: a pool is larger than the caches.
    if (isNew)
      std::memset(data, 0, bytes);
    if (name == "state_pool") {
      states = data;
      stateSlotBytes = bytes / size[0];
    }
  } else if (name == "slots") {
    slotsParam = args.size();
    slotIds.assign(count, 0);
    data = slotIds.data();
  } else {
    buffers.push_back(std::make_unique<char[]>(bytes + 64));
    data = reinterpret_cast<void *>(
        (reinterpret_cast<uintptr_t>(buffers.back().get()) + 63) / 64 * 64);
    if (name == "cu_seqlens") {
      for (int64_t n = 0; n < count; ++n)
        static_cast<int32_t *>(data)[n] =
            static_cast<int32_t>(n * symbols.at("T") / (count - 1));
    } else if (info.access == GDNRT_READ) {
      fillRandom(name, data, info.dtype, count);
    }
  }
  args.push_back({data, info.dtype, info.rank, nullptr, nullptr, 0});
}

EntryCall::EntryCall(Runtime &runtime, const std::string &entryName,
                     const Symbols &symbols, Memory &memory,
                     const std::string &poolKey)
    : symbols(symbols) {
  gdnrt_error error;
  check(gdnrt_kernel_create(runtime.device, runtime.image, entryName.c_str(),
                            &kernel, &error),
        error);
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernel);
  for (size_t i = 0; i < gdnrt_entry_param_count(entry); ++i) {
    gdnrt_param_info info = gdnrt_param_info_default();
    check(gdnrt_entry_param(entry, i, &info, &error), error);
    addParam(info, memory, poolKey);
  }
  for (size_t i = 0; i < args.size(); ++i)
    args[i].sizes = sizes[i].data();
  // Slot 0 is the null slot.
  order.resize(symbols.at("P") - 1);
  std::iota(order.begin(), order.end(), 1);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  advance();
  check(gdnrt_kernel_bind(kernel, args.data(), args.size(), &binding, &error),
        error);
}

EntryCall::~EntryCall() {
  gdnrt_binding_destroy(binding);
  gdnrt_kernel_destroy(kernel);
}

void EntryCall::launch() {
  gdnrt_error error;
  check(gdnrt_launch(binding, nullptr, &error), error);
}

void EntryCall::advance() {
  for (int32_t &id : slotIds) {
    id = order[next];
    next = (next + 1) % order.size();
  }
}

void EntryCall::skipAllRows() { std::fill(slotIds.begin(), slotIds.end(), 0); }

void EntryCall::bindAgain() {
  gdnrt_error error;
  gdnrt_binding *other = nullptr;
  check(gdnrt_kernel_bind(kernel, args.data(), args.size(), &other, &error),
        error);
  gdnrt_binding_destroy(other);
}

void EntryCall::rebindSlots() {
  gdnrt_error error;
  check(
      gdnrt_binding_rebind(binding, &slotsParam, &args[slotsParam], 1, &error),
      error);
}
