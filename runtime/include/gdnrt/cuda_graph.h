// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps what a captured launch needs alive as long as the graph, with user
// objects of the driver. The destructor of a user object must not call the
// driver. So it moves its content to a list, and later calls of the runtime
// that may unload and free release the list.

#ifndef GDNRT_CUDA_GRAPH_H
#define GDNRT_CUDA_GRAPH_H

#include "gdnrt/cuda_driver.h"

#include <memory>

namespace gdnrt::cuda {

/// If `stream` is being captured, keeps `object` alive as long as the graph and
/// everything that is instantiated from it. Does nothing if the stream is not
/// captured or if the driver has no user objects. The context is current.
/// Messages begin with `what`.
Status keepForGraph(const Driver &driver, Stream stream,
                    const std::shared_ptr<const void> &object,
                    std::string_view what);

/// Releases what destroyed graphs kept. It may be called while another thread
/// captures, but not with a lock held.
void releaseOfGraphs(const Driver &driver);

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_GRAPH_H
