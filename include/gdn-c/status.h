/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What all of the C interface has: structs that may grow, versions, errors.
 *
 * Structs that may grow begin with struct_size, the sizeof of the caller's
 * header: gdnrt_x_default() makes a gdnrt_x with it and all else 0. Later
 * versions add members at the end, and 0 in them means what the versions before
 * did. So libraries and callers of different versions go together: members
 * that an older caller lacks count as 0 and are never written; of a newer
 * caller the library refuses members that it does not know and that are not 0
 * (UNSUPPORTED), and sets them to 0 where it fills the struct. A struct_size
 * that is no multiple of 8 from 16 to 4096 is an INVALID_ARGUMENT.
 *
 * Structs without struct_size never change. They are elements of arrays or
 * members of others: gdnrt_error, gdnrt_arg, gdnrt_named_arg, gdnrt_i32_array,
 * gdnrt_bool_array, gdnrt_run and gdnrt_slice. Enums may get values.
 */

#ifndef GDN_C_STATUS_H
#define GDN_C_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(GDNRT_BUILDING)
#define GDNRT_API __attribute__((visibility("default")))
#else
#define GDNRT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Structs that may grow ---------------------------------------------===*/

#if defined(__cplusplus)
#define GDNRT_ZERO(TYPE) TYPE()
#else
#define GDNRT_ZERO(TYPE) {0}
#endif

/** Defines TYPE_default(): a TYPE with its struct_size, and all else 0. */
#define GDNRT_STRUCT(TYPE)                                                     \
  static inline TYPE TYPE##_default(void) {                                    \
    TYPE made = GDNRT_ZERO(TYPE);                                              \
    made.struct_size = sizeof(TYPE);                                           \
    return made;                                                               \
  }

/*===-- Versions ----------------------------------------------------------===*/

#define GDNRT_VERSION_MAJOR 0
#define GDNRT_VERSION_MINOR 2
#define GDNRT_VERSION_PATCH 0

/** The version of the library: 10000 * major + 100 * minor + patch. */
GDNRT_API uint32_t gdnrt_version(void);

/** The version as text, for example "0.2.0". Lives for ever. */
GDNRT_API const char *gdnrt_version_string(void);

/*===-- Errors ------------------------------------------------------------===*/

typedef enum gdnrt_status {
  GDNRT_OK = 0,
  /** An argument, or what it describes, does not fit the entry. */
  GDNRT_INVALID_ARGUMENT = 1,
  /** No entry, parameter or symbol has the name. */
  GDNRT_NOT_FOUND = 2,
  /** The image is damaged or is none. */
  GDNRT_CORRUPT = 3,
  /** The image or struct is sound, but not for this runtime or device. */
  GDNRT_UNSUPPORTED = 4,
  GDNRT_OUT_OF_MEMORY = 5,
  /** The operating system refused; the message says what. */
  GDNRT_IO_ERROR = 6,
  /** A defect of the runtime. */
  GDNRT_INTERNAL = 7,
  /** The device's driver refused; the message has its call, the name of its
   *  error and the kernel. */
  GDNRT_DEVICE_ERROR = 8
} gdnrt_status;

#define GDNRT_MESSAGE_SIZE 1024

/** Filled by functions that fail, unchanged by others. */
typedef struct gdnrt_error {
  gdnrt_status status;
  /** "INVALID_ARGUMENT: slots: expected dtype i32, got i64"; always ends with
   *  a 0, and a longer message ends with "...". */
  char message[GDNRT_MESSAGE_SIZE];
} gdnrt_error;

/** The name of a status, for example "INVALID_ARGUMENT". Lives for ever. */
GDNRT_API const char *gdnrt_status_name(gdnrt_status status);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_STATUS_H */
