/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Images and their entries: what code there is, and what a call of it takes.
 * runtime.h says what holds of all functions, handles and threads.
 */

#ifndef GDN_C_IMAGE_H
#define GDN_C_IMAGE_H

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

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_IMAGE_H */
