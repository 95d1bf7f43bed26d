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
  GDNRT_F64 = 6,
  /** A byte without a sign: of a plane of states. */
  GDNRT_U8 = 7
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
  /** Another dimension that must have stride 1; 0: none. States that lie as
   *  [dk, dv] have it in dimension 2. */
  int32_t unit_stride_dim;
  int32_t reserved;
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

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_IMAGE_H */
