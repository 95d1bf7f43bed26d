// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// operator new, replaced for the whole program. The array and nothrow forms of
// the standard library end here as well.

#include "counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<uint64_t> count{0};

uint64_t gdnrt::test::numAllocations() { return count.load(); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GDNRT_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GDNRT_SANITIZED
#endif
#endif

#ifdef GDNRT_SANITIZED
bool gdnrt::test::countsAllocations() { return false; }
#else
bool gdnrt::test::countsAllocations() { return true; }

void *operator new(std::size_t size) {
  ++count;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}

void *operator new(std::size_t size, std::align_val_t alignment) {
  ++count;
  auto step = static_cast<std::size_t>(alignment);
  if (void *memory = std::aligned_alloc(step, (size + step - 1) / step * step))
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
