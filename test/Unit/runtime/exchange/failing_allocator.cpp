// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// operator new and aligned_alloc, replaced for the whole program, libraries
// included. The array and nothrow forms end here as well.
#include "failing_allocator.h"

#include <cstdlib>
#include <new>

namespace {

struct Failing {
  bool isOn = false, isOnce = false, hasFailed = false;
  int64_t left = 0;
};
thread_local Failing failing;

} // namespace

gdnrt::test::FailingAllocations::FailingAllocations(int64_t successes,
                                                    bool once) {
  failing = {true, once, false, successes};
}

gdnrt::test::FailingAllocations::~FailingAllocations() { failing = {}; }

bool gdnrt::test::FailingAllocations::hasFailed() const {
  return failing.hasFailed;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GDNRT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GDNRT_SANITIZED
#endif
#endif

#ifdef GDNRT_SANITIZED
bool gdnrt::test::failsAllocations() { return false; }
#else
bool gdnrt::test::failsAllocations() { return true; }

/// Whether memory is to be refused now.
static bool refuses() {
  if (!failing.isOn || failing.left-- > 0)
    return false;
  if (failing.isOnce && failing.hasFailed)
    return false;
  failing.hasFailed = true;
  return true;
}

static void *aligned(std::size_t alignment, std::size_t size) {
  void *memory = nullptr;
  if (refuses() || posix_memalign(&memory, alignment, size) != 0)
    return nullptr;
  return memory;
}

extern "C" __attribute__((visibility("default"))) void *
aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return aligned(alignment, size);
}

void *operator new(std::size_t size) {
  if (void *memory = refuses() ? nullptr : std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}

void *operator new(std::size_t size, std::align_val_t alignment) {
  if (void *memory = aligned(static_cast<std::size_t>(alignment), size))
    return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void *memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#endif
