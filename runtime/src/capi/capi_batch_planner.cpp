// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of batch planners.

#include "gdnrt/batch_planner.h"

#include "handles.h"
#include "sized_struct.h"

using namespace gdnrt;

struct gdnrt_batch_planner {
  std::unique_ptr<gdnrt::BatchPlanner> planner;
};

gdnrt_status
gdnrt_batch_planner_create(gdnrt_kernel *plan,
                           const gdnrt_batch_planner_options *options,
                           gdnrt_batch_planner **planner, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!plan)
      return nullPointer("plan");
    if (!planner)
      return nullPointer("planner");
    gdnrt_batch_planner_options known;
    if (Status s = readStruct("options", options, known); !s.isOk())
      return s;
    auto made = BatchPlanner::make(plan->loaded, known);
    if (made.isOk())
      *planner = new gdnrt_batch_planner{std::move(*made)};
    return made.status();
  });
}

void gdnrt_batch_planner_destroy(gdnrt_batch_planner *planner) {
  delete planner;
}

gdnrt_status gdnrt_batch_planner_plan(gdnrt_batch_planner *planner,
                                      const gdnrt_device_batch *batch,
                                      void *stream,
                                      gdnrt_gdn_metadata *metadata,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!planner)
      return nullPointer("planner");
    gdnrt_device_batch known;
    if (Status s = readStruct("batch", batch, known); !s.isOk())
      return s;
    if (Status s = checkStruct("metadata", metadata); !s.isOk())
      return s;
    gdnrt_gdn_metadata filled;
    Status s = planner->planner->plan(known, stream, filled);
    if (s.isOk())
      writeStruct(filled, metadata);
    return s;
  });
}
