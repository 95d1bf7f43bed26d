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
  /** What was made: a device; code, with its target and the milliseconds that
   *  it took to load; memory of workspaces and pools, in bytes. */
  GDNRT_LOG_INFO = 0,
  /** What works and costs more than it has to: PTX that the driver assembled.
   */
  GDNRT_LOG_WARNING = 1
} gdnrt_log_level;

/** Takes one message, without a newline at its end, that lives during the call.
 *  It is called on the thread of the functions that create something with the
 *  device, never by launches; it must not throw, and may call anything. */
typedef void (*gdnrt_log_function)(void *user, gdnrt_log_level level,
                                   const char *message);

typedef struct gdnrt_cpu_options {
  size_t struct_size;
  /** Threads of a launch, the caller included: 1 runs everything on the
   *  caller, 0 means one for each hardware thread. At most 1024; what is past
   *  the hardware threads is not given (see gdnrt_device_info). */
  int32_t num_workers;
  /** 1: every launch first reads the slot tensors, refuses sequences that race
   *  on a slot and counts skipped ids; see gdnrt_binding_slot_report. */
  int32_t debug_checks;
  /** Takes messages about what is made with the device; null: nobody does. */
  gdnrt_log_function log;
  /** The first argument of `log`. */
  void *log_user;
} gdnrt_cpu_options;
GDNRT_STRUCT(gdnrt_cpu_options)

/** What a device is. Strings are borrowed from the device. */
typedef struct gdnrt_device_info {
  size_t struct_size;
  /** "cpu", "cuda" or "null". */
  const char *kind;
  /** For people: "x86-64 CPU, 2 workers". */
  const char *name;
  /** Features that code may need, joined by ", ". */
  const char *features;
  /** Threads of a CPU, multiprocessors of a GPU. */
  int32_t num_workers;
  /** 0. */
  int32_t reserved;
} gdnrt_device_info;
GDNRT_STRUCT(gdnrt_device_info)

/** Creates a device that runs on this CPU. `options` null means
 *  gdnrt_cpu_options_default(). */
GDNRT_API gdnrt_status gdnrt_device_create_cpu(const gdnrt_cpu_options *options,
                                               gdnrt_device **device,
                                               gdnrt_error *error);

/** Zero options mean GPU 0 with its primary context. */
typedef struct gdnrt_cuda_options {
  size_t struct_size;
  /** The number of the GPU, as the driver counts. */
  int32_t ordinal;
  /** As for a CPU. Each launch then waits for its stream and copies the slots
   *  to the host, so that it cannot be captured into a graph. */
  int32_t debug_checks;
  /** The driver's library, or null for "libcuda.so.1". For tests. */
  const char *driver;
  /** As for a CPU. */
  gdnrt_log_function log;
  void *log_user;
} gdnrt_cuda_options;
GDNRT_STRUCT(gdnrt_cuda_options)

/** Creates a device that runs on an NVIDIA GPU. `options` null means
 *  gdnrt_cuda_options_default(). The driver's library is looked for here and
 * not before: without one, or without a GPU, this is UNSUPPORTED.
 *
 *  Contexts. If a context of this GPU is current on the calling thread, the
 *  device uses it, and it must live as long as what is made of the device;
 *  otherwise the device retains the primary context, which is that of the CUDA
 *  runtime and of PyTorch. Every function may be called with any context or
 *  none current, and leaves it current.
 *
 *  Streams are CUstream (or cudaStream_t) of that context; null is the legacy
 *  default stream. Launches neither wait nor allocate, and may be captured into
 *  a graph; the arguments and the workspace of a captured launch are those that
 *  the binding had. A graph, and what is instantiated from it, keeps alive the
 *  code of its launches, though kernels and bindings are destroyed (user
 * objects of the driver, CUDA 11.3; a driver without them keeps nothing, and
 * then kernels have to outlive graphs). Memory of arguments and workspaces that
 * the caller gave stays his to keep. What graphs kept is given back within
 * later calls that create kernels, allocate, synchronize or destroy a device.
 * Code is loaded, and PTX assembled, when kernels are created, also while
 * another thread captures. */
GDNRT_API gdnrt_status
gdnrt_device_create_cuda(const gdnrt_cuda_options *options,
                         gdnrt_device **device, gdnrt_error *error);

/** Creates a device that takes launches and runs nothing, for measuring hosts:
 *  any code will do, streams do not matter, and memory holds what is written to
 *  it. */
GDNRT_API gdnrt_status gdnrt_device_create_null(gdnrt_device **device,
                                                gdnrt_error *error);

/** Destroys the device. Its kernels go on working. */
GDNRT_API void gdnrt_device_destroy(gdnrt_device *device);

/** Describes the device. */
GDNRT_API gdnrt_status gdnrt_device_describe(const gdnrt_device *device,
                                             gdnrt_device_info *info,
                                             gdnrt_error *error);

/** Waits until all that was launched on `stream` has run. A CPU has one queue,
 *  whose stream is null, and its launches have run when they return. */
GDNRT_API gdnrt_status gdnrt_device_synchronize(gdnrt_device *device,
                                                void *stream,
                                                gdnrt_error *error);

/*===-- Memory of a device, for tools -------------------------------------===*/

/* Engines bring their own memory. These serve programs that run on any device
 * and care neither for streams nor for speed. */

/** Takes `bytes` bytes of the device's memory, aligned to at least 64. */
GDNRT_API gdnrt_status gdnrt_device_allocate(gdnrt_device *device, size_t bytes,
                                             void **data, gdnrt_error *error);

/** Gives back what gdnrt_device_allocate gave; null is nothing. */
GDNRT_API gdnrt_status gdnrt_device_free(gdnrt_device *device, void *data,
                                         gdnrt_error *error);

/** Copies `bytes` bytes of the host to the device, after what was launched on
 *  the null stream, and waits until that is done. */
GDNRT_API gdnrt_status gdnrt_device_write(gdnrt_device *device, void *to,
                                          const void *from, size_t bytes,
                                          gdnrt_error *error);

/** The same from the device to the host. */
GDNRT_API gdnrt_status gdnrt_device_read(gdnrt_device *device, void *to,
                                         const void *from, size_t bytes,
                                         gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_DEVICE_H */
