// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests tell the stand-in of NCCL, and what it tells them.

#ifndef GDN_TEST_UNIT_RUNTIME_EXCHANGE_FAKE_NCCL_H
#define GDN_TEST_UNIT_RUNTIME_EXCHANGE_FAKE_NCCL_H

#include "gdnrt/nccl_library.h"

#include <atomic>

namespace gdnrt::test {

struct FakeNccl {
  std::atomic<int> version{22700};
  /// Of every communicator, if it is not 0.
  std::atomic<int> asyncError{0};
  /// Of gathers, if it is not 0.
  std::atomic<int> gatherResult{0};
  std::atomic<int> aborted{0}, destroyed{0};
  /// Graphs that have kernels of communicators. While there are any, none ends:
  /// ncclCommFinalize is under way, and ncclCommAbort does not return.
  std::atomic<int> graphs{0};
};

} // namespace gdnrt::test

extern "C" {
extern gdnrt::test::FakeNccl fakeNccl;
gdnrt::nccl::Result ncclCommInitRankConfig(gdnrt::nccl::Comm *comm, int size,
                                           gdnrt::nccl::UniqueId id, int rank,
                                           gdnrt::nccl::Config *config);
gdnrt::nccl::Result ncclCommDestroy(gdnrt::nccl::Comm comm);
}

#endif // GDN_TEST_UNIT_RUNTIME_EXCHANGE_FAKE_NCCL_H
