/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Devices: a CPU, a GPU, or one that only measures; their memory. runtime.h
 * says what holds of all functions, handles and threads.
 */

#ifndef GDN_C_DEVICE_H
#define GDN_C_DEVICE_H

#include "gdn-c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Devices -----------------------------------------------------------===*/

typedef struct gdnrt_device gdnrt_device;

typedef enum gdnrt_log_level {
  /** Something was created: a device; code, with its target and the
   *  milliseconds that loading took; memory of workspaces and pools, in bytes.
   */
  GDNRT_LOG_INFO = 0,
  /** Something works but is slower than necessary: PTX that the driver had to
   *  assemble. */
  GDNRT_LOG_WARNING = 1
} gdnrt_log_level;

/** Receives one message, without a newline at its end. The string is valid
 *  during the call. The function is called on the thread of a function that
 *  creates something with the device, never by a launch. It must not throw. It
 *  may call any function of the runtime. */
typedef void (*gdnrt_log_function)(void *user, gdnrt_log_level level,
                                   const char *message);

typedef struct gdnrt_cpu_options {
  size_t struct_size;
  /** The number of threads of a launch, the calling thread included, at most
   *  1024. 1 runs everything on the calling thread. 0 means one for each
   *  hardware thread. A launch never has more threads than there are hardware
   *  threads (see gdnrt_device_info). */
  int32_t num_workers;
  /** 1: every launch first reads the slot ids and the starts of sequences,
   *  refuses sequences that race on a slot and starts that are out of order or
   *  behind the tokens, and counts skipped ids; see gdnrt_binding_slot_report.
   */
  int32_t debug_checks;
  /** Receives messages about what is created with the device. Null: no
   *  messages. */
  gdnrt_log_function log;
  /** The first argument of `log`. */
  void *log_user;
} gdnrt_cpu_options;
GDNRT_STRUCT(gdnrt_cpu_options)

/** A description of a device. Strings are borrowed from the device. */
typedef struct gdnrt_device_info {
  size_t struct_size;
  /** "cpu", "cuda" or "null". */
  const char *kind;
  /** A text for people, for example "x86-64 CPU, 2 workers". */
  const char *name;
  /** The features of the device that code may need, joined by ", ". */
  const char *features;
  /** The number of workers: threads of a CPU, multiprocessors of a GPU. */
  int32_t num_workers;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_device_info;
GDNRT_STRUCT(gdnrt_device_info)

/** Creates a device that runs on this CPU. Null `options` means
 *  gdnrt_cpu_options_default(). */
GDNRT_API gdnrt_status gdnrt_device_create_cpu(const gdnrt_cpu_options *options,
                                               gdnrt_device **device,
                                               gdnrt_error *error);

/** Options of a GPU. The default, all 0, is GPU 0 without debug checks. */
typedef struct gdnrt_cuda_options {
  size_t struct_size;
  /** The number of the GPU, as the driver numbers them. */
  int32_t ordinal;
  /** As for a CPU. Each launch then waits for its stream and copies the slot
   *  ids to the host, so it cannot be captured into a graph (UNSUPPORTED). */
  int32_t debug_checks;
  /** The library of the driver, or null for "libcuda.so.1". For tests. */
  const char *driver;
  /** As in gdnrt_cpu_options. */
  gdnrt_log_function log;
  void *log_user;
} gdnrt_cuda_options;
GDNRT_STRUCT(gdnrt_cuda_options)

/** Creates a device that runs on an NVIDIA GPU. Null `options` means
 *  gdnrt_cuda_options_default(). This function loads the driver's library;
 *  nothing before it does. UNSUPPORTED without a driver or without a GPU.
 *
 *  Contexts. If a context of this GPU is current on the calling thread, the
 *  device uses it. That context must then exist as long as everything that is
 *  created with the device. Otherwise the device retains the primary context,
 *  which the CUDA runtime and PyTorch use. Every function may be called with
 *  any context current, or with none, and leaves it current.
 *
 *  Streams. A stream is a CUstream (or cudaStream_t) of that context. Null is
 *  the legacy default stream. A launch neither waits nor allocates, and may be
 *  captured into a graph. A captured launch keeps the arguments and the
 *  workspace that the binding had at the capture.
 *
 *  Graphs. A graph, and what is instantiated from it, keeps the code of its
 *  launches alive, even after kernels and bindings are destroyed. For this the
 *  runtime needs user objects of the driver (CUDA 11.3). With an older driver
 *  kernels must outlive graphs. The memory of arguments, and of workspaces that
 *  the caller gave, stays the caller's responsibility. What destroyed graphs
 *  kept is released in later calls that create kernels, allocate, synchronize
 *  or destroy a device.
 *
 *  Code is loaded, and PTX is assembled, when kernels are created. That is
 *  allowed while another thread captures a graph. */
GDNRT_API gdnrt_status
gdnrt_device_create_cuda(const gdnrt_cuda_options *options,
                         gdnrt_device **device, gdnrt_error *error);

/** Creates a device whose launches do nothing, for measuring the work of the
 *  host. It accepts code for any target and ignores streams. Its memory keeps
 *  what is written to it. */
GDNRT_API gdnrt_status gdnrt_device_create_null(gdnrt_device **device,
                                                gdnrt_error *error);

/** Functions that mark ranges of the host's time for a profiler, such as
 *  nvtxRangePushA and nvtxRangePop of NVTX behind a wrapper each. They are
 *  called on the thread that calls the runtime, in pairs, must not throw, and
 *  may run at the same time on several threads. The name is valid during the
 *  call. */
typedef struct gdnrt_ranges {
  size_t struct_size;
  void (*push)(void *user, const char *name);
  void (*pop)(void *user);
  /** The first argument of both. */
  void *user;
} gdnrt_ranges;
GDNRT_STRUCT(gdnrt_ranges)

/** Marks what is launched with the device from here on: "gdn.layer" is a
 *  gdnrt_gdn_layer_forward, "gdn.upload" a gdnrt_metadata_upload, and the name
 *  of an entry is a launch of it, within "gdn.layer" or by gdnrt_launch. Null
 *  `ranges` ends that; it is off at first. Not while another thread uses the
 *  device. INVALID_ARGUMENT if one of the functions is null. */
GDNRT_API gdnrt_status gdnrt_device_set_ranges(gdnrt_device *device,
                                               const gdnrt_ranges *ranges,
                                               gdnrt_error *error);

/** Gets another handle of the same device, which is destroyed on its own. For
 *  owners of memory of the device that may outlive the handle they were given.
 */
GDNRT_API gdnrt_status gdnrt_device_duplicate(const gdnrt_device *device,
                                              gdnrt_device **duplicate,
                                              gdnrt_error *error);

/** Destroys the device. Its kernels and duplicates stay valid. */
GDNRT_API void gdnrt_device_destroy(gdnrt_device *device);

/** Describes the device. */
GDNRT_API gdnrt_status gdnrt_device_describe(const gdnrt_device *device,
                                             gdnrt_device_info *info,
                                             gdnrt_error *error);

/** Waits until everything that was launched on `stream` has ended. A CPU has
 *  one queue, the null stream, and its launches have ended when they return. */
GDNRT_API gdnrt_status gdnrt_device_synchronize(gdnrt_device *device,
                                                void *stream,
                                                gdnrt_error *error);

/** Says in `capturing` whether launches on `stream` are recorded into a graph,
 *  1 or 0. A CPU has no graphs. */
GDNRT_API gdnrt_status gdnrt_device_is_capturing(gdnrt_device *device,
                                                 void *stream,
                                                 int32_t *capturing,
                                                 gdnrt_error *error);

/*===-- Memory of a device, for tools -------------------------------------===*/

/* Engines allocate memory themselves. These functions are for programs that run
 * on any device and need neither streams nor speed. */

/** Allocates `bytes` bytes of device memory, aligned to at least 64 bytes. */
GDNRT_API gdnrt_status gdnrt_device_allocate(gdnrt_device *device, size_t bytes,
                                             void **data, gdnrt_error *error);

/** Frees memory of gdnrt_device_allocate. Null does nothing. */
GDNRT_API gdnrt_status gdnrt_device_free(gdnrt_device *device, void *data,
                                         gdnrt_error *error);

/** Copies `bytes` bytes from the host to the device, after everything that was
 *  launched on the null stream, and waits until the copy has ended. */
GDNRT_API gdnrt_status gdnrt_device_write(gdnrt_device *device, void *to,
                                          const void *from, size_t bytes,
                                          gdnrt_error *error);

/** As gdnrt_device_write, from the device to the host. */
GDNRT_API gdnrt_status gdnrt_device_read(gdnrt_device *device, void *to,
                                         const void *from, size_t bytes,
                                         gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_DEVICE_H */
