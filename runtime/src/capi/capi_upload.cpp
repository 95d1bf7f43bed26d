// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI that copies metadata to a device.

#include "serving_handles.h"

#include <algorithm>
#include <cstring>

using namespace gdnrt;

/// Copies the arrays that kernels read. `changed`: unless they are there.
static gdnrt_status upload(gdnrt_device *device,
                           const gdnrt_gdn_metadata *metadata,
                           void *device_arena, void *stream, bool changed,
                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    gdnrt_gdn_metadata known;
    if (Status s = readStruct("metadata", metadata, known); !s.isOk())
      return s;
    if (known.on_device)
      return {};
    if (!device_arena)
      return nullPointer("device_arena");
    if (!known.arena && known.device_bytes != 0)
      return nullPointer("metadata: arena");
    auto *last = changed ? static_cast<Uploaded *>(known.uploaded) : nullptr;
    const size_t bytes = known.device_bytes;
    if (last && last->arena == device_arena && last->stream == stream &&
        last->bytes >= bytes &&
        std::memcmp(last->copy.data(), known.arena, bytes) == 0)
      return refuseCapture(*device->device, stream, "upload");
    const Range range(device->device->ranges(), "gdn.upload");
    if (Status s =
            device->device->upload(device_arena, known.arena, bytes, stream);
        !s.isOk())
      return s;
    if (last) {
      std::memcpy(last->copy.data(), known.arena, bytes);
      // What an earlier one copied behind it is still there.
      const bool isSame = last->arena == device_arena && last->stream == stream;
      last->bytes = isSame ? std::max(last->bytes, bytes) : bytes;
      last->arena = device_arena;
      last->stream = stream;
    }
    return {};
  });
}

gdnrt_status gdnrt_metadata_upload(gdnrt_device *device,
                                   const gdnrt_gdn_metadata *metadata,
                                   void *device_arena, void *stream,
                                   gdnrt_error *error) {
  return upload(device, metadata, device_arena, stream, /*changed=*/false,
                error);
}

gdnrt_status gdnrt_metadata_upload_changed(gdnrt_device *device,
                                           const gdnrt_gdn_metadata *metadata,
                                           void *device_arena, void *stream,
                                           gdnrt_error *error) {
  return upload(device, metadata, device_arena, stream, /*changed=*/true,
                error);
}
