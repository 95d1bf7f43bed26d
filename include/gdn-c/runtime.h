/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The runtime of gdn: load an image, create kernels, bind arrays, launch.
 *
 * Calls. A function that can fail returns a gdnrt_status and takes a
 * gdnrt_error, which the caller owns and which may be null. Outputs are written
 * on success only. No function throws, aborts, keeps hidden per-thread state or
 * reads the environment. A null pointer is an INVALID_ARGUMENT where the
 * function does not allow it, never a crash. Passing a destroyed handle is
 * undefined behaviour.
 *
 * Handles. gdnrt_image, gdnrt_device, gdnrt_kernel and gdnrt_binding belong to
 * the caller, who destroys each once, in any order. A kernel keeps what it
 * needs of its device and image alive, and a binding what it needs of its
 * kernel. Destroying null does nothing. A gdnrt_entry and all strings are
 * borrowed: they are valid as long as the handle that returned them.
 *
 * Threads. Any number of threads may use images, devices, kernels and entries
 * at once. A binding is used by one thread at a time. After a fork, the child
 * process must not use devices that the parent created.
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
/** One entry of an image, with the schema of its arguments. Borrowed from an
 *  image or a kernel. */
typedef struct gdnrt_entry gdnrt_entry;

/** Maps the image file at `path` and checks all of it. The file must not change
 *  while the image exists. To install a new version, write another file and
 *  rename it to `path`. IO_ERROR if the file cannot be read, CORRUPT if it is
 *  damaged, UNSUPPORTED if its format has another version. */
GDNRT_API gdnrt_status gdnrt_image_load_file(const char *path,
                                             gdnrt_image **image,
                                             gdnrt_error *error);

/** Loads an image of `size` bytes at `data`. The memory stays the caller's and
 *  must not change while the image exists. Data that is not 64-byte aligned is
 *  copied. Errors are those of gdnrt_image_load_file. */
GDNRT_API gdnrt_status gdnrt_image_load_memory(const void *data, size_t size,
                                               gdnrt_image **image,
                                               gdnrt_error *error);

/** Destroys the image. Kernels made from it stay valid. */
GDNRT_API void gdnrt_image_destroy(gdnrt_image *image);

/** The program that wrote the image, or "". */
GDNRT_API const char *gdnrt_image_producer(const gdnrt_image *image);

/** The number of entries. */
GDNRT_API size_t gdnrt_image_entry_count(const gdnrt_image *image);

/** Entry `index`, or null if `index` is past the last entry. */
GDNRT_API const gdnrt_entry *gdnrt_image_entry(const gdnrt_image *image,
                                               size_t index);

/** Finds the entry called `name`, or else the only entry whose name begins with
 *  `name` and "_": "decode" finds decode_bf16_f32. NOT_FOUND if there is none
 *  or more than one; the message lists the names. */
GDNRT_API gdnrt_status gdnrt_image_find_entry(const gdnrt_image *image,
                                              const char *name,
                                              const gdnrt_entry **entry,
                                              gdnrt_error *error);

/** Finds the entry of a kind, such as "decode" or "prefill", with the type `io`
 *  of inputs and outputs and the type `state` of states. Each type is a
 *  gdnrt_dtype, or -1 for any. The name of an entry has types in it only if the
 *  image has several pairs of types; this function finds the entry with and
 *  without them. NOT_FOUND if no entry fits or more than one; the message lists
 *  the entries. */
GDNRT_API gdnrt_status gdnrt_image_find_kind(const gdnrt_image *image,
                                             const char *kind, int32_t io,
                                             int32_t state,
                                             const gdnrt_entry **entry,
                                             gdnrt_error *error);

/*===-- Entries: what a call looks like -----------------------------------===*/

/** Element types. An element of i1 takes one byte. */
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
  /** A pool: dimension 0 counts slots, and the argument has a null slot. */
  GDNRT_POOL = 1
} gdnrt_param_kind;

typedef enum gdnrt_access {
  GDNRT_READ = 0,
  GDNRT_WRITE = 1,
  GDNRT_READ_WRITE = 2
} gdnrt_access;

/** The maximum number of dimensions of a parameter. */
#define GDNRT_MAX_RANK 8

/** A parameter: what its argument must be. Strings are borrowed from the entry.
 */
typedef struct gdnrt_param_info {
  size_t struct_size;
  const char *name;
  gdnrt_param_kind kind;
  gdnrt_access access;
  gdnrt_dtype dtype;
  int32_t rank;
  /** The size of each dimension as a linear form, for example "256*Hk +
   *  256*Hv". */
  const char *dims[GDNRT_MAX_RANK];
  /** 1 if the last dimension must have stride 1. */
  int32_t unit_stride_last;
  /** 1 if the caller may leave the argument out. */
  int32_t optional;
} gdnrt_param_info;
GDNRT_STRUCT(gdnrt_param_info)

/** The code of an entry for one target. Strings are borrowed from the entry. */
typedef struct gdnrt_code_info {
  size_t struct_size;
  /** "x86-64" for a CPU, "sm_90a" and so on for a GPU. */
  const char *target;
  /** "shared object" for a CPU, "cubin" or "PTX" for a GPU. */
  const char *format;
  /** The CPU features that the code needs, joined by ", ". */
  const char *features;
  /** Bytes of scratch memory per worker. */
  uint64_t scratch_bytes;
} gdnrt_code_info;
GDNRT_STRUCT(gdnrt_code_info)

/** A variant: one way in which the code computes the entry. Strings are
 *  borrowed from the entry. */
typedef struct gdnrt_variant_info {
  size_t struct_size;
  /** For example "rows" or "segments". */
  const char *name;
  /** The conditions under which a launch takes the variant, all of which must
   *  hold, over the symbols of the entry and the workers of the device: "2*N *
   *  Hk <= workers, (1024*N <= T or N <= 2 and 64 <= T)". "" means always. Also
   *  lists what the variant asks of the alignment and the strides of arrays. */
  const char *conditions;
  /** The number of stages, which run one after another in a launch. */
  size_t stage_count;
  /** 1 if only a binding with a workspace can take it. */
  int32_t needs_workspace;
  /** Bytes of scratch memory per worker. */
  uint64_t scratch_bytes;
  /** Variants of one code with the same text here give a sequence the same
   *  bits. */
  const char *bits;
} gdnrt_variant_info;
GDNRT_STRUCT(gdnrt_variant_info)

/** The name of the entry. */
GDNRT_API const char *gdnrt_entry_name(const gdnrt_entry *entry);

/** The number of parameters. A call has one argument for each, in this order.
 */
GDNRT_API size_t gdnrt_entry_param_count(const gdnrt_entry *entry);

/** Describes parameter `index`. `info` is a gdnrt_param_info_default() before
 *  the call; so it is for all functions that fill such a struct.
 *  INVALID_ARGUMENT if `index` is past the last parameter. */
GDNRT_API gdnrt_status gdnrt_entry_param(const gdnrt_entry *entry, size_t index,
                                         gdnrt_param_info *info,
                                         gdnrt_error *error);

/** Finds the index of the parameter called `name`. NOT_FOUND if there is none.
 */
GDNRT_API gdnrt_status gdnrt_entry_find_param(const gdnrt_entry *entry,
                                              const char *name, size_t *index,
                                              gdnrt_error *error);

/** The number of symbols. A symbol is a size whose value follows from the sizes
 *  of the arguments when they are bound. */
GDNRT_API size_t gdnrt_entry_symbol_count(const gdnrt_entry *entry);

/** The name of symbol `index`, or null if `index` is past the last symbol. */
GDNRT_API const char *gdnrt_entry_symbol(const gdnrt_entry *entry,
                                         size_t index);

/** The number of attributes, which are facts about the entry for people and
 *  tools. */
GDNRT_API size_t gdnrt_entry_attribute_count(const gdnrt_entry *entry);

/** The key and the value of attribute `index`, or null if `index` is past the
 *  last attribute. */
GDNRT_API const char *gdnrt_entry_attribute_key(const gdnrt_entry *entry,
                                                size_t index);
GDNRT_API const char *gdnrt_entry_attribute_value(const gdnrt_entry *entry,
                                                  size_t index);

/** The value of the attribute `key`, or null if there is none. */
GDNRT_API const char *gdnrt_entry_attribute(const gdnrt_entry *entry,
                                            const char *key);

/** The number of codes. They are in order of preference: the code that needs
 *  the most of a device comes first. */
GDNRT_API size_t gdnrt_entry_code_count(const gdnrt_entry *entry);

/** Describes code `index`. INVALID_ARGUMENT if `index` is past the last code.
 */
GDNRT_API gdnrt_status gdnrt_entry_code(const gdnrt_entry *entry, size_t index,
                                        gdnrt_code_info *info,
                                        gdnrt_error *error);

/** The number of variants of code `code`. A launch takes the first variant
 *  whose conditions hold, whose workspace fits, and whose demands on alignment
 *  and strides the arrays meet. 0 if `code` is past the last code. */
GDNRT_API size_t gdnrt_entry_variant_count(const gdnrt_entry *entry,
                                           size_t code);

/** Describes variant `index` of code `code`. INVALID_ARGUMENT if there is no
 *  such variant. */
GDNRT_API gdnrt_status gdnrt_entry_variant(const gdnrt_entry *entry,
                                           size_t code, size_t index,
                                           gdnrt_variant_info *info,
                                           gdnrt_error *error);

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
  /** 1: every launch first reads the slot ids, refuses sequences that race on a
   *  slot, and counts skipped ids; see gdnrt_binding_slot_report. */
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

/** Destroys the device. Its kernels stay valid. */
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

/*===-- Kernels -----------------------------------------------------------===*/

typedef struct gdnrt_kernel gdnrt_kernel;

/** Creates a kernel: loads the code of the entry that gdnrt_image_find_entry
 *  finds for `entry_name`. An entry may have several codes; this function takes
 *  the first that the device can run. UNSUPPORTED if the device can run none.
 *  Everything that launches need is allocated here. */
GDNRT_API gdnrt_status gdnrt_kernel_create(gdnrt_device *device,
                                           const gdnrt_image *image,
                                           const char *entry_name,
                                           gdnrt_kernel **kernel,
                                           gdnrt_error *error);

/** As gdnrt_kernel_create, with code `code` of the entry. For tests and
 *  measurements of code that gdnrt_kernel_create would not choose. UNSUPPORTED
 *  if the device cannot run it. */
GDNRT_API gdnrt_status gdnrt_kernel_create_from_code(
    gdnrt_device *device, const gdnrt_image *image, const char *entry_name,
    size_t code, gdnrt_kernel **kernel, gdnrt_error *error);

/** Destroys the kernel. Its bindings stay valid. */
GDNRT_API void gdnrt_kernel_destroy(gdnrt_kernel *kernel);

/** The entry of the kernel, valid as long as the kernel. */
GDNRT_API const gdnrt_entry *gdnrt_kernel_entry(const gdnrt_kernel *kernel);

/** The index of the code that the device chose, for gdnrt_entry_code. */
GDNRT_API size_t gdnrt_kernel_code(const gdnrt_kernel *kernel);

/*===-- Bindings ----------------------------------------------------------===*/

typedef struct gdnrt_binding gdnrt_binding;

/** An array. `data` is the address of the element whose indices are all 0.
 *  `sizes` and `strides` have `rank` values each, in elements, and are read
 *  during the call only. Null strides mean row-major. Data of an array without
 *  elements may be null. Null data with rank 0 leaves out an optional
 *  parameter.
 *
 *  The elements of a written parameter must share no memory with each other or
 *  with another parameter. Other parameters may broadcast (stride 0), have
 *  negative strides, and overlap. */
typedef struct gdnrt_arg {
  void *data;
  /** A gdnrt_dtype. */
  int32_t dtype;
  int32_t rank;
  const int64_t *sizes;
  const int64_t *strides;
  /** For pools: the id of the null slot, or -1 for none. */
  int64_t null_slot;
} gdnrt_arg;

typedef struct gdnrt_named_arg {
  const char *name;
  gdnrt_arg arg;
} gdnrt_named_arg;

/** Creates a binding of `count` arguments, in the order of the parameters. It
 *  never reads or writes the data of the arguments. That memory stays the
 *  caller's. It must be valid during launches and until they have ended.
 *  INVALID_ARGUMENT if an argument does not fit its parameter; the message says
 *  which. */
GDNRT_API gdnrt_status gdnrt_kernel_bind(gdnrt_kernel *kernel,
                                         const gdnrt_arg *args, size_t count,
                                         gdnrt_binding **binding,
                                         gdnrt_error *error);

/** As gdnrt_kernel_bind, by name and in any order. Optional parameters may be
 *  missing. NOT_FOUND for a name that is no parameter. */
GDNRT_API gdnrt_status gdnrt_kernel_bind_named(gdnrt_kernel *kernel,
                                               const gdnrt_named_arg *args,
                                               size_t count,
                                               gdnrt_binding **binding,
                                               gdnrt_error *error);

/** Replaces the arguments of `count` parameters, whose indices are in `params`,
 *  and checks all arguments again. On failure the binding is unchanged. Earlier
 *  launches are not affected. */
GDNRT_API gdnrt_status gdnrt_binding_rebind(gdnrt_binding *binding,
                                            const size_t *params,
                                            const gdnrt_arg *args, size_t count,
                                            gdnrt_error *error);

/** Destroys the binding. Its launches must have ended. */
GDNRT_API void gdnrt_binding_destroy(gdnrt_binding *binding);

/** Gets the value of symbol `name`, which follows from the sizes of the
 *  arguments. NOT_FOUND if there is no such symbol. */
GDNRT_API gdnrt_status gdnrt_binding_symbol(const gdnrt_binding *binding,
                                            const char *name, int64_t *value,
                                            gdnrt_error *error);

/** Gets the bytes of workspace that the preferred variant needs: the variant
 *  that a launch would take with a workspace of any size. 0 if that variant
 *  needs none. The answer depends on the sizes and the layout of the arguments,
 *  not on their data. */
GDNRT_API gdnrt_status gdnrt_binding_workspace_bytes(
    const gdnrt_binding *binding, uint64_t *bytes, gdnrt_error *error);

/** Gives launches a workspace: `bytes` bytes of device memory at `data`,
 *  64-byte aligned, which must not overlap any argument. Null and 0 remove it.
 *  The memory stays the caller's. Only one launch at a time may use it. Its
 *  contents before do not matter. If sizes grow by a rebind so that the
 *  workspace is too small, launches take a later variant, or fail with
 *  INVALID_ARGUMENT if none is left.
 *
 *  Some kernels for GPUs keep counters in the workspace. This function fills
 *  them with zeros in the order of `stream` (null on a CPU), and each launch
 *  leaves them zero. So give the workspace once, not before each launch.
 *  Launches follow on `stream`, or on a stream that waits for it, and nobody
 *  else writes to the memory in between. */
GDNRT_API gdnrt_status gdnrt_binding_set_workspace(gdnrt_binding *binding,
                                                   void *data, uint64_t bytes,
                                                   void *stream,
                                                   gdnrt_error *error);

/** Makes launches take variant `index` of the kernel's code whatever its
 *  conditions say, for tests and measurements. -1: launches choose a variant
 *  again. If the workspace is too small for the variant, or the arrays do not
 *  lie as it asks, a launch is an INVALID_ARGUMENT. */
GDNRT_API gdnrt_status gdnrt_binding_force_variant(gdnrt_binding *binding,
                                                   int64_t index,
                                                   gdnrt_error *error);

/** Makes launches run only stage `index` of their variant, for measurements.
 *  -1: all stages. The stage reads what the last complete launch left in the
 *  workspace. If the variant has no such stage, a launch runs nothing. */
GDNRT_API gdnrt_status gdnrt_binding_force_stage(gdnrt_binding *binding,
                                                 int64_t index,
                                                 gdnrt_error *error);

/** 1: the results of a sequence have the same bits in any batch: alone, next to
 *  other sequences, and in any order. 0, the default: they may differ in
 *  rounding. With 1, launches take only variants with the same bits as the
 *  first variant that neither has conditions nor asks anything of how arrays
 *  lie. If the workspace is too small for all of these, a launch is an
 *  INVALID_ARGUMENT. The cost: a few long sequences are no longer cut into
 *  segments, so only one or a few multiprocessors work on each.
 *  gdnrt_binding_force_variant has priority. */
GDNRT_API gdnrt_status gdnrt_binding_set_batch_invariant(gdnrt_binding *binding,
                                                         int32_t wanted,
                                                         gdnrt_error *error);

/** The index of the variant that a launch would take now. 0 if `binding` is
 *  null. */
GDNRT_API size_t gdnrt_binding_variant(const gdnrt_binding *binding);

/** The number of units of one launch, over all stages of its variant. Workers
 *  share them. 0 if `binding` is null. */
GDNRT_API int64_t gdnrt_binding_units(const gdnrt_binding *binding);

/** 1: launches may begin before the previous kernel on the stream has ended
 *  (programmatic dependent launch). 0, the default: they may not. Code that
 *  waits for the previous kernel by itself does work before that wait that
 *  needs no result of it, such as reading weights. Other code is launched as
 *  before. With 1, the previous kernel must not write anything that this kernel
 *  reads before its wait: the slot ids, the slots of the pools that they name,
 *  or the weights. The variant is chosen again, since another one may be
 *  faster. */
GDNRT_API gdnrt_status gdnrt_binding_allow_dependent_launch(
    gdnrt_binding *binding, int32_t allowed, gdnrt_error *error);

/** Launches the kernel on `stream` of its device (null on a CPU). A launch
 *  without units does nothing. With debug checks, sequences that race on a slot
 *  are an INVALID_ARGUMENT, and nothing is launched. */
GDNRT_API gdnrt_status gdnrt_launch(gdnrt_binding *binding, void *stream,
                                    gdnrt_error *error);

/** The number of ids of the parameter `slots` by kind. A sequence whose id is
 *  skipped has outputs of zeros, and its kernel reads and writes no pool for
 *  it. If pools differ in their number of slots, the smallest counts. */
typedef struct gdnrt_slot_report {
  size_t struct_size;
  int64_t live;
  int64_t skipped_negative;
  int64_t skipped_null;
  int64_t skipped_past_end;
} gdnrt_slot_report;
GDNRT_STRUCT(gdnrt_slot_report)

/** Reads and checks the slot ids now, on the host, with and without debug
 *  checks. On a GPU it first waits for the null stream. For an entry without
 *  slots the report is all 0. Sequences that race on a slot are an
 *  INVALID_ARGUMENT. */
GDNRT_API gdnrt_status gdnrt_binding_check_slots(const gdnrt_binding *binding,
                                                 gdnrt_slot_report *report,
                                                 gdnrt_error *error);

/** Gets the counts of the debug checks of the last launch. All 0 without debug
 *  checks. */
GDNRT_API gdnrt_status gdnrt_binding_slot_report(const gdnrt_binding *binding,
                                                 gdnrt_slot_report *report,
                                                 gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_RUNTIME_H */
