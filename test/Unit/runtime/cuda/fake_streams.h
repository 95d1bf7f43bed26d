// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams of the stand-in that do nothing before they have to: work runs when
// somebody waits for its stream, and of other streams only what an event that
// was waited for demands. So an order that the runtime forgot is not there.

#ifndef GDN_TEST_UNIT_RUNTIME_CUDA_FAKE_STREAMS_H
#define GDN_TEST_UNIT_RUNTIME_CUDA_FAKE_STREAMS_H

#include "gdnrt/cuda_abi.h"

#include <functional>

namespace gdnrt::test {

/// Whether work waits; at first it runs when it is launched.
void setFakeStreamsLazy(bool isLazy);

/// Work on a stream.
void runOnFakeStream(cuda::Stream stream, std::function<void()> work);

/// All work of a stream that has not run.
void finishFakeStream(cuda::Stream stream);

/// How much work of all streams has not run.
size_t fakeWorkLeft();

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_CUDA_FAKE_STREAMS_H
