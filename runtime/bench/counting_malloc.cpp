// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// glibc calls the malloc of the program, if it has one, from everywhere; the
// library's own is behind another name.

#include "counting_malloc.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <features.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)

static std::atomic<int64_t> count{0};

int64_t numMallocs() { return count.load(); }

// Names are those of the C library.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *data, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  ++count;
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  ++count;
  return __libc_calloc(number, size);
}

void *realloc(void *data, size_t size) {
  ++count;
  return __libc_realloc(data, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **data, size_t alignment, size_t size) {
  ++count;
  *data = __libc_memalign(alignment, size);
  return *data ? 0 : ENOMEM;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#else

int64_t numMallocs() { return -1; }

#endif
