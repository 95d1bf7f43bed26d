/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What all headers of the C interface share: structs that may grow, versions
 * and errors.
 *
 * A struct that may grow begins with struct_size, the sizeof of the struct in
 * the caller's header. gdnrt_x_default() returns a gdnrt_x with struct_size set
 * and all other members 0. Later versions add members at the end, where 0 means
 * what the earlier versions did. So a library and a caller of different
 * versions work together. If the caller is older, the library takes the missing
 * members as 0 and never writes them. If the caller is newer, the library
 * refuses an unknown member that is not 0 (UNSUPPORTED), and sets unknown
 * members to 0 in a struct that it fills. A struct_size that is not a multiple
 * of 8 from 16 to 4096 is an INVALID_ARGUMENT. A member `reserved` that is not
 * 0 in a struct that the library reads is UNSUPPORTED: later versions may give
 * it a meaning.
 *
 * A struct without struct_size never changes. These structs are elements of
 * arrays or members of other structs: gdnrt_error, gdnrt_arg, gdnrt_named_arg,
 * gdnrt_i32_array, gdnrt_bool_array, gdnrt_run, gdnrt_slice, gdnrt_byte_writer
 * and gdnrt_byte_reader. Later versions may add values to an enum.
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

/** Defines TYPE_default(), which returns a TYPE with its struct_size set and
 *  all other members 0. */
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

/** The version as text, for example "0.2.0". Never freed. */
GDNRT_API const char *gdnrt_version_string(void);

/*===-- Errors ------------------------------------------------------------===*/

typedef enum gdnrt_status {
  GDNRT_OK = 0,
  /** An argument is invalid, or what it describes does not fit the entry. */
  GDNRT_INVALID_ARGUMENT = 1,
  /** There is no entry, parameter, symbol or weight of this name. */
  GDNRT_NOT_FOUND = 2,
  /** The image is damaged, or the data is not an image. */
  GDNRT_CORRUPT = 3,
  /** The request is valid, but this runtime, device, image or kernel does not
   *  support it. */
  GDNRT_UNSUPPORTED = 4,
  GDNRT_OUT_OF_MEMORY = 5,
  /** A call of the operating system failed. The message has its error. */
  GDNRT_IO_ERROR = 6,
  /** A bug in the runtime. */
  GDNRT_INTERNAL = 7,
  /** A call of the device's driver failed. The message has the name of the
   *  call, the name of its error, and the kernel. */
  GDNRT_DEVICE_ERROR = 8
} gdnrt_status;

#define GDNRT_MESSAGE_SIZE 1024

/** A function that fails fills it. A function that succeeds leaves it
 *  unchanged. */
typedef struct gdnrt_error {
  gdnrt_status status;
  /** For example "INVALID_ARGUMENT: slots: expected dtype i32, got i64". Always
   *  ends with a 0 byte. A message that is too long is cut and ends with "...".
   */
  char message[GDNRT_MESSAGE_SIZE];
} gdnrt_error;

/** The name of a status, for example "INVALID_ARGUMENT". Never freed. */
GDNRT_API const char *gdnrt_status_name(gdnrt_status status);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_STATUS_H */
