/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The runtime of gdn: load an image, create kernels, bind arrays, launch.
 *
 * Calls. Functions that can fail return a gdnrt_status and take a gdnrt_error,
 * which the caller owns and which may be null. Outputs are written on success
 * only. No function throws, aborts, keeps hidden per-thread state or reads the
 * environment. Passing null where a function does not allow it is an
 * INVALID_ARGUMENT, never a crash; passing a destroyed handle is undefined.
 *
 * Handles. gdnrt_image, gdnrt_device, gdnrt_kernel and gdnrt_binding belong to
 * the caller, who destroys each once, in any order: a kernel keeps alive what
 * it needs of its device and image, and a binding what it needs of its kernel.
 * Destroying null does nothing. A gdnrt_entry and all strings are borrowed and
 * live as long as the handle they were asked of.
 *
 * Threads. Images, devices, kernels and entries may be used by any number of
 * threads at once. A binding is used by one thread at a time. A process that
 * forks uses in the child no device that the parent created.
 *
 * Structs that begin with struct_size may grow: see status.h.
 */

#ifndef GDN_C_RUNTIME_H
#define GDN_C_RUNTIME_H

#include "gdn-c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Images ------------------------------------------------------------===*/

typedef struct gdnrt_image gdnrt_image;
/** One entry of an image: the schema of a call. Borrowed. */
typedef struct gdnrt_entry gdnrt_entry;

/** Maps the image file at `path` and checks all of it. The file must not
 *  change while the image lives; install a new one by renaming. */
GDNRT_API gdnrt_status gdnrt_image_load_file(const char *path,
                                             gdnrt_image **image,
                                             gdnrt_error *error);

/** Reads an image of `size` bytes at `data`. The memory stays the caller's
 *  and must not change while the image lives. Data that is not 64-byte aligned
 *  is copied. */
GDNRT_API gdnrt_status gdnrt_image_load_memory(const void *data, size_t size,
                                               gdnrt_image **image,
                                               gdnrt_error *error);

/** Destroys the image. Kernels made from it go on working. */
GDNRT_API void gdnrt_image_destroy(gdnrt_image *image);

/** Who wrote the image, or "". */
GDNRT_API const char *gdnrt_image_producer(const gdnrt_image *image);

/** The number of entries. */
GDNRT_API size_t gdnrt_image_entry_count(const gdnrt_image *image);

/** Entry `index`, or null past the last. */
GDNRT_API const gdnrt_entry *gdnrt_image_entry(const gdnrt_image *image,
                                               size_t index);

/** The entry called `name`, or else the only one whose name is `name`, "_" and
 *  more: "decode" finds decode_bf16_f32. Otherwise NOT_FOUND, and the message
 *  lists the names. */
GDNRT_API gdnrt_status gdnrt_image_find_entry(const gdnrt_image *image,
                                              const char *name,
                                              const gdnrt_entry **entry,
                                              gdnrt_error *error);

/** The entry of a kind, "decode", "prefill" and so on, for a type of inputs and
 *  outputs and a type of states, both a gdnrt_dtype or -1 for whichever there
 *  is. Names have types in them only where an image has several pairs; this
 *  finds an entry either way. NOT_FOUND lists what there is, or what fits
 *  where that is more than one. */
GDNRT_API gdnrt_status gdnrt_image_find_kind(const gdnrt_image *image,
                                             const char *kind, int32_t io,
                                             int32_t state,
                                             const gdnrt_entry **entry,
                                             gdnrt_error *error);

/*===-- Entries: what a call looks like -----------------------------------===*/

/** Element types; i1 takes one byte per element. */
typedef enum gdnrt_dtype {
  GDNRT_F32 = 0,
  GDNRT_BF16 = 1,
  GDNRT_F16 = 2,
  GDNRT_I32 = 3,
  GDNRT_I64 = 4,
  GDNRT_I1 = 5,
  GDNRT_F64 = 6
} gdnrt_dtype;

typedef enum gdnrt_param_kind {
  GDNRT_TENSOR = 0,
  /** Dimension 0 counts slots; the argument has a null slot. */
  GDNRT_POOL = 1
} gdnrt_param_kind;

typedef enum gdnrt_access {
  GDNRT_READ = 0,
  GDNRT_WRITE = 1,
  GDNRT_READ_WRITE = 2
} gdnrt_access;

/** The most dimensions of a parameter. */
#define GDNRT_MAX_RANK 8

/** What an argument must be. Strings are borrowed from the entry. */
typedef struct gdnrt_param_info {
  size_t struct_size;
  const char *name;
  gdnrt_param_kind kind;
  gdnrt_access access;
  gdnrt_dtype dtype;
  int32_t rank;
  /** One form per dimension, for example "256*Hk + 256*Hv". */
  const char *dims[GDNRT_MAX_RANK];
  /** 1 if the last dimension must have stride 1. */
  int32_t unit_stride_last;
  /** 1 if the argument may be left out. */
  int32_t optional;
} gdnrt_param_info;
GDNRT_STRUCT(gdnrt_param_info)

/** Code of an entry for one target. Strings are borrowed from the entry. */
typedef struct gdnrt_code_info {
  size_t struct_size;
  /** "x86-64" for a CPU, "sm_90a" and so on for a GPU. */
  const char *target;
  /** "shared object" for a CPU, "cubin" or "PTX" for a GPU. */
  const char *format;
  /** Names of CPU features joined by ", ", all of which the code needs. */
  const char *features;
  /** Bytes of scratch memory per worker. */
  uint64_t scratch_bytes;
} gdnrt_code_info;
GDNRT_STRUCT(gdnrt_code_info)

/** One way in which code does the work of an entry. Strings are borrowed from
 *  the entry. */
typedef struct gdnrt_variant_info {
  size_t struct_size;
  /** For example "rows" or "segments". */
  const char *name;
  /** When the device takes it, over the entry's symbols and the workers of the
   *  device: "2*N * Hk <= workers, (1024*N <= T or N <= 2 and 64 <= T)", all of
   *  which hold. "" means always. What it asks of how arrays lie is not in it.
   */
  const char *conditions;
  /** Passes that run one after another in a launch. */
  size_t stage_count;
  /** 1 if it is taken only by bindings that were given a workspace. */
  int32_t needs_workspace;
  /** Bytes of scratch memory per worker. */
  uint64_t scratch_bytes;
  /** Variants of the code with the same text give a sequence the same bits. */
  const char *bits;
} gdnrt_variant_info;
GDNRT_STRUCT(gdnrt_variant_info)

/** The name of the entry. */
GDNRT_API const char *gdnrt_entry_name(const gdnrt_entry *entry);

/** The number of parameters: arguments of the call, in order. */
GDNRT_API size_t gdnrt_entry_param_count(const gdnrt_entry *entry);

/** Describes parameter `index`; `info` is a gdnrt_param_info_default() at
 *  first, as of all functions that describe. */
GDNRT_API gdnrt_status gdnrt_entry_param(const gdnrt_entry *entry, size_t index,
                                         gdnrt_param_info *info,
                                         gdnrt_error *error);

/** The index of the parameter called `name`. */
GDNRT_API gdnrt_status gdnrt_entry_find_param(const gdnrt_entry *entry,
                                              const char *name, size_t *index,
                                              gdnrt_error *error);

/** The number of symbols: sizes that binding finds out. */
GDNRT_API size_t gdnrt_entry_symbol_count(const gdnrt_entry *entry);

/** The name of symbol `index`, or null past the last. */
GDNRT_API const char *gdnrt_entry_symbol(const gdnrt_entry *entry,
                                         size_t index);

/** The number of attributes: facts about the entry, for people and tools. */
GDNRT_API size_t gdnrt_entry_attribute_count(const gdnrt_entry *entry);

/** Key and value of attribute `index`; null past the last. */
GDNRT_API const char *gdnrt_entry_attribute_key(const gdnrt_entry *entry,
                                                size_t index);
GDNRT_API const char *gdnrt_entry_attribute_value(const gdnrt_entry *entry,
                                                  size_t index);

/** The value of the attribute `key`, or null if there is none. */
GDNRT_API const char *gdnrt_entry_attribute(const gdnrt_entry *entry,
                                            const char *key);

/** The number of codes, the most demanding first. */
GDNRT_API size_t gdnrt_entry_code_count(const gdnrt_entry *entry);

/** Describes code `index`. */
GDNRT_API gdnrt_status gdnrt_entry_code(const gdnrt_entry *entry, size_t index,
                                        gdnrt_code_info *info,
                                        gdnrt_error *error);

/** The number of variants of code `code`: a launch takes the first whose
 *  conditions hold, whose workspace fits and as which the arrays lie. */
GDNRT_API size_t gdnrt_entry_variant_count(const gdnrt_entry *entry,
                                           size_t code);

/** Describes variant `index` of code `code`. */
GDNRT_API gdnrt_status gdnrt_entry_variant(const gdnrt_entry *entry,
                                           size_t code, size_t index,
                                           gdnrt_variant_info *info,
                                           gdnrt_error *error);

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

/*===-- Kernels -----------------------------------------------------------===*/

typedef struct gdnrt_kernel gdnrt_kernel;

/** Loads the code of the entry that `entry_name` finds (see
 *  gdnrt_image_find_entry): of its codes the first that the device can run.
 *  All memory of later launches is taken here. */
GDNRT_API gdnrt_status gdnrt_kernel_create(gdnrt_device *device,
                                           const gdnrt_image *image,
                                           const char *entry_name,
                                           gdnrt_kernel **kernel,
                                           gdnrt_error *error);

/** The same with code `code` of the entry, which the device must be able to
 *  run: for tests and measurements of code that would not be chosen. */
GDNRT_API gdnrt_status gdnrt_kernel_create_from_code(
    gdnrt_device *device, const gdnrt_image *image, const char *entry_name,
    size_t code, gdnrt_kernel **kernel, gdnrt_error *error);

/** Destroys the kernel. Its bindings go on working. */
GDNRT_API void gdnrt_kernel_destroy(gdnrt_kernel *kernel);

/** The entry of the kernel; lives as long as the kernel. */
GDNRT_API const gdnrt_entry *gdnrt_kernel_entry(const gdnrt_kernel *kernel);

/** The index of the code that the device chose, for gdnrt_entry_code. */
GDNRT_API size_t gdnrt_kernel_code(const gdnrt_kernel *kernel);

/*===-- Bindings ----------------------------------------------------------===*/

typedef struct gdnrt_binding gdnrt_binding;

/** One array. `data` is the address of the element whose indices are all 0.
 *  Sizes and strides count elements, `rank` of each, and are read during the
 *  call only; null strides mean row-major. Data of an array without elements
 *  may be null. Null data with rank 0 leaves out an optional parameter.
 *
 *  A parameter that is written must have elements that share no memory, with
 *  one another or with any other parameter; others may broadcast (stride 0),
 *  run backwards (negative strides) and overlap as they like. */
typedef struct gdnrt_arg {
  void *data;
  /** A gdnrt_dtype. */
  int32_t dtype;
  int32_t rank;
  const int64_t *sizes;
  const int64_t *strides;
  /** Pools only: the slot that counts as no slot; -1 for none. */
  int64_t null_slot;
} gdnrt_arg;

typedef struct gdnrt_named_arg {
  const char *name;
  gdnrt_arg arg;
} gdnrt_named_arg;

/** Binds `count` arguments in parameter order. Never reads or writes what they
 *  point at; that memory stays the caller's and must be valid during launches
 *  and until they have run. */
GDNRT_API gdnrt_status gdnrt_kernel_bind(gdnrt_kernel *kernel,
                                         const gdnrt_arg *args, size_t count,
                                         gdnrt_binding **binding,
                                         gdnrt_error *error);

/** The same by name, in any order. Optional parameters may be missing. */
GDNRT_API gdnrt_status gdnrt_kernel_bind_named(gdnrt_kernel *kernel,
                                               const gdnrt_named_arg *args,
                                               size_t count,
                                               gdnrt_binding **binding,
                                               gdnrt_error *error);

/** Replaces the arguments of the `count` parameters whose indices are in
 *  `params`, and checks the whole again. On failure the binding is as it was.
 *  Launches made before are not affected. */
GDNRT_API gdnrt_status gdnrt_binding_rebind(gdnrt_binding *binding,
                                            const size_t *params,
                                            const gdnrt_arg *args, size_t count,
                                            gdnrt_error *error);

/** Destroys the binding. Its launches must have run. */
GDNRT_API void gdnrt_binding_destroy(gdnrt_binding *binding);

/** The value that the sizes of the arguments gave to the symbol `name`. */
GDNRT_API gdnrt_status gdnrt_binding_symbol(const gdnrt_binding *binding,
                                            const char *name, int64_t *value,
                                            gdnrt_error *error);

/** The bytes of workspace with which a launch takes the variant that it would
 *  take if memory did not matter; 0 if that variant works in place. Sizes of
 *  arguments change the answer, what they point at does not. */
GDNRT_API gdnrt_status gdnrt_binding_workspace_bytes(
    const gdnrt_binding *binding, uint64_t *bytes, gdnrt_error *error);

/** Gives launches `bytes` bytes of the device at `data`, 64-byte aligned and
 *  apart from all arguments, to work in; null and 0 take them away. The memory
 *  stays the caller's, who gives it to one running launch at a time; what it
 *  holds before does not matter. If a rebind makes the sizes outgrow it,
 *  launches take a later variant, or fail where none is left.
 *
 *  Some kernels of GPUs keep counters in it, which are zeroed here, in the
 *  order of `stream` (null on a CPU), and which each launch leaves zero. So it
 *  is given once and not per launch; the launches follow on `stream` or behind
 *  it, and nobody writes to it in between. */
GDNRT_API gdnrt_status gdnrt_binding_set_workspace(gdnrt_binding *binding,
                                                   void *data, uint64_t bytes,
                                                   void *stream,
                                                   gdnrt_error *error);

/** Makes launches take variant `index` of the kernel's code whatever its
 *  conditions say, for tests and measurements; -1: the device chooses again.
 *  Where it lacks workspace, or the arrays do not lie as it asks, the launch is
 *  an INVALID_ARGUMENT. */
GDNRT_API gdnrt_status gdnrt_binding_force_variant(gdnrt_binding *binding,
                                                   int64_t index,
                                                   gdnrt_error *error);

/** Makes launches run stage `index` of their variant alone, for measurements;
 * -1: all of them. It reads what the last whole launch left in the workspace. A
 *  stage that the variant lacks runs nothing. */
GDNRT_API gdnrt_status gdnrt_binding_force_stage(gdnrt_binding *binding,
                                                 int64_t index,
                                                 gdnrt_error *error);

/** Whether a sequence's results are the same bits in any batch: alone, beside
 *  other sequences, in any order; off at first. Launches then take only
 *  variants whose bits are those of the first one without conditions, and
 *  refuse a workspace in which none fits (INVALID_ARGUMENT) rather than take
 *  another. What that costs: few long sequences are no longer cut into
 *  segments, and one multiprocessor or a few work on each. A forced variant
 *  goes before. */
GDNRT_API gdnrt_status gdnrt_binding_set_batch_invariant(gdnrt_binding *binding,
                                                         int32_t wanted,
                                                         gdnrt_error *error);

/** The variant that a launch takes as things are; 0 for null. */
GDNRT_API size_t gdnrt_binding_variant(const gdnrt_binding *binding);

/** The units of work of one launch, all stages of its variant, which workers
 *  share; 0 for null. */
GDNRT_API int64_t gdnrt_binding_units(const gdnrt_binding *binding);

/** Whether launches may begin before the kernel ahead of them on the stream
 *  has ended (programmatic dependent launch); off at first. Code that waits for
 *  that kernel by itself then does what needs no result of it, such as reading
 *  weights, in the meantime; other code is launched as ever. Legal only if the
 *  kernel ahead writes nothing that this one reads before it waits: neither the
 *  slot ids, nor the pools' slots that they name, nor the weights. The
 *  variant is chosen again: another may be faster then. */
GDNRT_API gdnrt_status gdnrt_binding_allow_dependent_launch(
    gdnrt_binding *binding, int32_t allowed, gdnrt_error *error);

/** Launches the kernel on `stream` of its device (null on a CPU). A launch of
 *  no units does nothing. With debug checks, sequences that race on a slot are
 *  an INVALID_ARGUMENT and nothing is launched. */
GDNRT_API gdnrt_status gdnrt_launch(gdnrt_binding *binding, void *stream,
                                    gdnrt_error *error);

/** Ids of the parameter `slots`, as kernels see them: a sequence with a skipped
 *  id has an output of zeros and touches no pool. Where pools differ in slots,
 *  the smallest counts. */
typedef struct gdnrt_slot_report {
  size_t struct_size;
  int64_t live;
  int64_t skipped_negative;
  int64_t skipped_null;
  int64_t skipped_past_end;
} gdnrt_slot_report;
GDNRT_STRUCT(gdnrt_slot_report)

/** Reads the slot tensors now, on the host, with or without debug checks; on a
 *  GPU after what was launched on the null stream. An entry without slots
 * reports zeros. Sequences that race on one slot are an INVALID_ARGUMENT. */
GDNRT_API gdnrt_status gdnrt_binding_check_slots(const gdnrt_binding *binding,
                                                 gdnrt_slot_report *report,
                                                 gdnrt_error *error);

/** What the debug checks of the last launch counted; zeros without them. */
GDNRT_API gdnrt_status gdnrt_binding_slot_report(const gdnrt_binding *binding,
                                                 gdnrt_slot_report *report,
                                                 gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_RUNTIME_H */
