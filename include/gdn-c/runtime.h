/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The runtime of gdn: load an image (image.h), create a device (device.h) and
 * kernels, bind arrays, launch. This header has all of it.
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

#include "gdn-c/device.h"
#include "gdn-c/image.h"
#include "gdn-c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 *  rounding. With 1, launches take only variants with the same bits: those of
 *  the first variant that the image names for such launches and whose demands
 *  on how arrays lie are met; else those of the first variant that neither has
 *  conditions nor asks anything of how arrays lie. If the workspace is too
 *  small for all of these, a launch is an INVALID_ARGUMENT. The cost: a few
 *  long sequences are no longer cut into segments, so only one or two
 *  multiprocessors work on each head.
 *  gdnrt_binding_force_variant has priority. */
GDNRT_API gdnrt_status gdnrt_binding_set_batch_invariant(gdnrt_binding *binding,
                                                         int32_t wanted,
                                                         gdnrt_error *error);

/** For an entry with the parameter is_prefill: launches take the variant for
 *  `sequences` sequences, those that the entry does not leave to another one.
 *  0, the default: the variant for all. Results are right for any number.
 *  UNSUPPORTED if the entry has no such parameter. */
GDNRT_API gdnrt_status gdnrt_binding_expect_sequences(gdnrt_binding *binding,
                                                      int64_t sequences,
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
