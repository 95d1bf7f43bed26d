// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a captured launch needs lives as long as the graph, through the driver's
// user objects. Their destructors may not call the driver: they put what they
// held aside, and calls of the runtime that may unload and free release it.

#ifndef GDNRT_CUDA_GRAPH_H
#define GDNRT_CUDA_GRAPH_H

#include "gdnrt/cuda_driver.h"

#include <memory>

namespace gdnrt::cuda {

/// If `stream` is captured, `object` lives as long as the graph and what is
/// made of it; otherwise, and where the driver has no user objects, nothing is
/// done. The context is current. Messages begin with `what`.
Status keepForGraph(const Driver &driver, Stream stream,
                    const std::shared_ptr<const void> &object,
                    std::string_view what);

/// Releases what graphs held that are gone, also while another thread captures.
/// Called where nothing is locked.
void releaseOfGraphs(const Driver &driver);

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_GRAPH_H
