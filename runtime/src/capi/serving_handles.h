// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands behind the handles of gdn-c/serving.h, gdn-c/state_pool.h and
// gdn-c/host_tier.h.

#ifndef GDNRT_SRC_CAPI_SERVING_HANDLES_H
#define GDNRT_SRC_CAPI_SERVING_HANDLES_H

#include "handles.h"
#include "sized_struct.h"

#include "gdn-c/host_tier.h"
#include "gdn-c/serving.h"
#include "gdn-c/state_pool.h"
#include "gdnrt/gdn_layer.h"
#include "gdnrt/host_tier.h"
#include "gdnrt/metadata_builder.h"
#include "gdnrt/state_pool.h"

struct gdnrt_metadata_builder {
  std::unique_ptr<gdnrt::MetadataBuilder> builder;
};

struct gdnrt_gdn_layer {
  std::unique_ptr<gdnrt::GDNLayer> layer;
};

struct gdnrt_state_pool {
  /// Of the caller, of caches and of host tiers.
  std::shared_ptr<gdnrt::StatePool> pool;
};

struct gdnrt_host_tier {
  /// Of the caller and of caches.
  std::shared_ptr<gdnrt::HostTier> tier;
};

struct gdnrt_workspace {
  std::shared_ptr<const gdnrt::Workspace> workspace;
};

namespace gdnrt {

/// Refuses arguments that C++ would trip over.
Status checkNamedArgs(const char *what, const gdnrt_named_arg *args,
                      size_t count);

} // namespace gdnrt

#endif // GDNRT_SRC_CAPI_SERVING_HANDLES_H
