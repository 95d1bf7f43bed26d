/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The runtime of gdn: load an image (image.h), create a device (device.h) and
 * kernels, bind arrays, launch. This header has all of it.
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

#include "gdn-c/device.h"
#include "gdn-c/image.h"
#include "gdn-c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

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
