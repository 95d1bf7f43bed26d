// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program's dlsym is called from everywhere, as its malloc is: here it hands
// out a function that counts, and calls the driver's, for each of its entry
// points that the runtime uses.

#include "counting_driver.h"
#include "counting_malloc.h"
#include "gdnrt/cuda_abi.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

using namespace gdnrt::cuda;

namespace {

enum Call {
#define GDNRT_CALL(MEMBER, SYMBOL, PARAMETERS) call_##MEMBER,
  GDNRT_CUDA_REQUIRED(GDNRT_CALL) GDNRT_CUDA_OPTIONAL(GDNRT_CALL)
#undef GDNRT_CALL
      numCalls
};

struct Counter {
  const char *name;
  void *driver = nullptr;
  int64_t count = 0;
};

Counter counters[numCalls] = {
#define GDNRT_COUNTER(MEMBER, SYMBOL, PARAMETERS) {#SYMBOL},
    GDNRT_CUDA_REQUIRED(GDNRT_COUNTER) GDNRT_CUDA_OPTIONAL(GDNRT_COUNTER)
#undef GDNRT_COUNTER
};
bool isCounting = false;
int64_t mallocsInside = 0;
using SetMemory = Result (*)(Address, unsigned char, size_t, Stream);
SetMemory setMemory = nullptr;
Address room = 0;
constexpr size_t roomBytes = size_t{1} << 30;
double launchUs = 0;

template <Call call, typename Function> struct Counted;

template <Call call, typename... Parameters>
struct Counted<call, Result (*)(Parameters...)> {
  static Result run(Parameters... parameters) {
    auto *driver =
        reinterpret_cast<Result (*)(Parameters...)>(counters[call].driver);
    if (!isCounting)
      return driver(parameters...);
    ++counters[call].count;
    const int64_t mallocs = numMallocs();
    const auto start = std::chrono::steady_clock::now();
    const Result result = driver(parameters...);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    mallocsInside += numMallocs() - mallocs;
    if (call == call_launch)
      launchUs += took.count();
    return result;
  }
};

/// The function that counts by the name of the driver's, which it calls.
void *counted(const char *name, void *driver) {
  // NOLINTBEGIN(bugprone-macro-parentheses): of a list of parameters
#define GDNRT_COUNTED(MEMBER, SYMBOL, PARAMETERS)                              \
  if (std::strcmp(name, #SYMBOL) == 0) {                                       \
    counters[call_##MEMBER].driver = driver;                                   \
    return reinterpret_cast<void *>(                                           \
        &Counted<call_##MEMBER, Result(*) PARAMETERS>::run);                   \
  }
  GDNRT_CUDA_REQUIRED(GDNRT_COUNTED)
  GDNRT_CUDA_OPTIONAL(GDNRT_COUNTED)
#undef GDNRT_COUNTED
  // NOLINTEND(bugprone-macro-parentheses)
  return driver;
}

using Find = void *(*)(void *, const char *);

Find libraryFind() {
  for (const char *version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"})
    if (void *found = dlvsym(RTLD_NEXT, "dlsym", version))
      return reinterpret_cast<Find>(found);
  std::fprintf(stderr, "the C library has no dlsym\n");
  std::abort();
}

} // namespace

// NOLINTNEXTLINE(readability-identifier-naming): that of the C library
extern "C" void *dlsym(void *handle, const char *name) noexcept {
  static const Find find = libraryFind();
  // Which checks the parameters of code as it is loaded. Stand-ins of the
  // driver, which run nothing, know of none.
  if (std::strcmp(name, "cuFuncGetParamInfo") == 0)
    return nullptr;
  void *found = find(handle, name);
  return found ? counted(name, found) : nullptr;
}

int64_t DriverCalls::count(const char *name) const {
  auto found = byName.find(name);
  return found == byName.end() ? 0 : found->second;
}

int64_t DriverCalls::all() const {
  int64_t sum = 0;
  for (const auto &[name, count] : byName)
    sum += count;
  return sum;
}

void startCounting() {
  for (Counter &counter : counters)
    counter.count = 0;
  mallocsInside = 0;
  launchUs = 0;
  isCounting = true;
}

DriverCalls stopCounting() {
  isCounting = false;
  DriverCalls calls;
  for (const Counter &counter : counters)
    if (counter.count > 0)
      calls.byName[counter.name] = counter.count;
  calls.mallocs = mallocsInside;
  calls.launchUs = launchUs;
  return calls;
}

void *makeStream(const char *library) {
  void *driver = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!driver)
    return nullptr; // the runtime says so better
  auto find = [&](const char *name) { return dlsym(driver, name); };
  auto init = reinterpret_cast<Result (*)(unsigned)>(find("cuInit"));
  auto retain = reinterpret_cast<Result (*)(Context *, Device)>(
      find("cuDevicePrimaryCtxRetain"));
  auto push =
      reinterpret_cast<Result (*)(Context)>(find("cuCtxPushCurrent_v2"));
  auto create =
      reinterpret_cast<Result (*)(Stream *, unsigned)>(find("cuStreamCreate"));
  Context context = nullptr;
  if (!init || !retain || !push || init(0) != kSuccess ||
      retain(&context, 0) != kSuccess || push(context) != kSuccess)
    return nullptr;
  static char standIn; // takes any address as a stream
  if (!create)
    return &standIn;
  Stream stream = nullptr;
  constexpr unsigned isNonBlocking = 1;
  if (create(&stream, isNonBlocking) != kSuccess)
    return nullptr;
  auto allocate =
      reinterpret_cast<Result (*)(Address *, size_t)>(find("cuMemAlloc_v2"));
  setMemory = reinterpret_cast<SetMemory>(find("cuMemsetD8Async"));
  if (!allocate || allocate(&room, roomBytes) != kSuccess)
    setMemory = nullptr;
  return stream;
}

void occupy(void *stream) {
  if (setMemory)
    setMemory(room, 0, roomBytes, static_cast<Stream>(stream));
}
