/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * States of a pool in memory of the host: host slots, copies to and from them
 * beside the steps, and files that ranks of another tensor parallelism can
 * read. For preemption, for prefix caches, and to move sequences.
 *
 * Order. All copies of a tier are on one stream, its copy stream. A copy begins
 * after what was launched before it on the stream that the call is given.
 * Launches after it do not wait. So until gdnrt_host_tier_wait a slot of the
 * pool that is stored may be read and not written, and a slot that is loaded
 * may be neither. Either may be freed: the pool makes the stream wait that
 * gdnrt_state_pool_allocate, _reset, _copy, _fork and _free are given. A caller
 * that gives out the slots of a pool itself (foreign_requests) calls
 * gdnrt_host_tier_wait before the next sequence uses a slot. Host slots may be
 * freed while copies are under way, for those of the next owner follow. On a
 * CPU, where streams are null, copies have ended when a function returns.
 *
 * Threads. Any number of threads may call any functions at once, except create
 * and destroy. While a file is written from a host slot, it may be loaded;
 * freeing or storing to it is an INVALID_ARGUMENT. While it is read from a
 * file, all of these are.
 *
 * Memory. After it is created, a tier allocates memory for files and for error
 * messages only.
 *
 * A stream that is being captured is UNSUPPORTED in all functions, and in those
 * of the pool if a copy of one of their slots is under way.
 */

#ifndef GDN_C_HOST_TIER_H
#define GDN_C_HOST_TIER_H

#include "gdn-c/state_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What states are kept as in host slots and files. */
typedef enum gdnrt_host_format {
  /** As the pool has them, bit for bit. */
  GDNRT_HOST_AS_POOL = 0,
  /** For pools with states of f32: rounded to nearest. F16 has infinity for
   *  elements of 65520 or more. */
  GDNRT_HOST_BF16 = 1,
  GDNRT_HOST_F16 = 2,
  /** For pools with states of f32: in planes, as state_planes of pools. A row
   *  of zeros is exact; one with an element that is not finite is NaN. */
  GDNRT_HOST_I8X2 = 3,
  GDNRT_HOST_I8 = 4
} gdnrt_host_format;

typedef struct gdnrt_host_tier_options {
  size_t struct_size;
  /** The number of host slots, 1 to 2^30. Their ids are 0 to num_slots - 1. */
  int64_t num_slots;
  /** A gdnrt_host_format. */
  int32_t format;
  /** 1: copies are on `copy_stream`. 0: on a stream that the tier creates. */
  int32_t has_copy_stream;
  void *copy_stream;
  /** For files: the number of ranks, 0 for 1, and which one the pool has. */
  int64_t tp_size;
  int64_t tp_rank;
  /** Heads of the whole model; 0: tp_size times those of the pool. If ranks
   *  outnumber key heads, each has one, and num_value_heads is a multiple of
   *  tp_size. */
  int64_t total_key_heads;
  int64_t total_value_heads;
  /** The threads that round states to another format than the pool's, 1 to
   *  1024, of which those work that the machine has; 0: 1. The bytes are the
   *  same. */
  int32_t rounding_threads;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_host_tier_options;
GDNRT_STRUCT(gdnrt_host_tier_options)

typedef struct gdnrt_host_tier gdnrt_host_tier;

/** Creates a tier for the states of a pool, and takes all of its memory, pinned
 *  memory for a GPU. The pool may be destroyed before it. */
GDNRT_API gdnrt_status gdnrt_host_tier_create(
    gdnrt_state_pool *pool, const gdnrt_host_tier_options *options,
    gdnrt_host_tier **tier, gdnrt_error *error);

/** Waits for all copies, destroys the tier and frees its memory. Memory that a
 *  device which fails may still use is not freed. */
GDNRT_API void gdnrt_host_tier_destroy(gdnrt_host_tier *tier);

typedef struct gdnrt_host_tier_info {
  size_t struct_size;
  int64_t num_slots;
  int64_t free_slots;
  /** The bytes that a host slot holds: of all buffers, in all layers. */
  uint64_t slot_bytes;
  /** The memory of the tier. */
  uint64_t bytes;
} gdnrt_host_tier_info;
GDNRT_STRUCT(gdnrt_host_tier_info)

/** Describes the tier. */
GDNRT_API gdnrt_status gdnrt_host_tier_describe(const gdnrt_host_tier *tier,
                                                gdnrt_host_tier_info *info,
                                                gdnrt_error *error);

/*===-- Host slots --------------------------------------------------------===*/

/** Takes `count` host slots, which are empty, and sets `*taken` to 1. If fewer
 *  are free, takes none and sets `*taken` to 0. */
GDNRT_API gdnrt_status gdnrt_host_tier_allocate(gdnrt_host_tier *tier,
                                                size_t count, int32_t *slots,
                                                int32_t *taken,
                                                gdnrt_error *error);

/** Frees host slots. If one of them is free, named twice, or written to or read
 *  from a file by another thread, none is freed (INVALID_ARGUMENT). */
GDNRT_API gdnrt_status gdnrt_host_tier_free(gdnrt_host_tier *tier,
                                            const int32_t *slots, size_t count,
                                            gdnrt_error *error);

/** Sets over[i] to 1 if no copy to or from host slot slots[i] is under way. */
GDNRT_API gdnrt_status gdnrt_host_tier_is_over(gdnrt_host_tier *tier,
                                               const int32_t *slots,
                                               size_t count, uint8_t *over,
                                               gdnrt_error *error);

/** Returns when no copy to or from the host slots is under way. */
GDNRT_API gdnrt_status gdnrt_host_tier_synchronize(gdnrt_host_tier *tier,
                                                   const int32_t *slots,
                                                   size_t count,
                                                   gdnrt_error *error);

/*===-- Copies ------------------------------------------------------------===*/

/* Of all buffers of a slot in all layers, pending tokens and counts included.
 * Slots of the pool have to be in use; padding is an INVALID_ARGUMENT. A call
 * that refuses its arguments has launched nothing. */

/** Copies slot from[i] of the pool to host slot to[i], for i < count. A slot of
 *  the pool may occur several times, a host slot once. */
GDNRT_API gdnrt_status gdnrt_host_tier_store(gdnrt_host_tier *tier,
                                             const int32_t *from,
                                             const int32_t *to, size_t count,
                                             void *stream, gdnrt_error *error);

/** Copies host slot from[i] to slot to[i] of the pool. A host slot may occur
 *  several times, a slot of the pool once. INVALID_ARGUMENT for a host slot
 *  that is empty. */
GDNRT_API gdnrt_status gdnrt_host_tier_load(gdnrt_host_tier *tier,
                                            const int32_t *from,
                                            const int32_t *to, size_t count,
                                            void *stream, gdnrt_error *error);

/** Makes `stream` wait for the copies of slots of the pool that are under way.
 *  Ids that are negative or the null slot are ignored. */
GDNRT_API gdnrt_status gdnrt_host_tier_wait(gdnrt_host_tier *tier,
                                            const int32_t *pool_slots,
                                            size_t count, void *stream,
                                            gdnrt_error *error);

/** Preempts sequences: takes host slots, stores slots of the pool to them and
 *  frees these, and sets `*taken` to 1. If host slots are missing, does nothing
 *  and sets `*taken` to 0. What `stream` launches for the next owners of the
 *  slots waits, once the pool has given them out. INVALID_ARGUMENT, here and in
 *  gdnrt_host_tier_swap_in, for a pool with foreign_requests. */
GDNRT_API gdnrt_status gdnrt_host_tier_swap_out(
    gdnrt_host_tier *tier, const int32_t *pool_slots, size_t count,
    void *stream, int32_t *host_slots, int32_t *taken, gdnrt_error *error);

/** Takes slots for requests, loads host slots into them, makes `stream` wait,
 *  frees the host slots, and sets `*taken` to 1. If slots are missing, does
 *  nothing and sets `*taken` to 0. */
GDNRT_API gdnrt_status gdnrt_host_tier_swap_in(
    gdnrt_host_tier *tier, const int32_t *host_slots, size_t count,
    void *stream, int32_t *pool_slots, int32_t *taken, gdnrt_error *error);

/*===-- Files -------------------------------------------------------------===*/

/** What a caller says of a state. The runtime stores and compares it. */
typedef struct gdnrt_state_tags {
  size_t struct_size;
  /** The tokens that the state has. */
  int64_t num_tokens;
  /** Of the caller's choice: the adapter or user, and the tokens. */
  uint64_t name_space;
  uint64_t token_hash;
} gdnrt_state_tags;
GDNRT_STRUCT(gdnrt_state_tags)

/** Receives bytes in order; returns 0, or else the write fails with an
 *  IO_ERROR. It must not throw. */
typedef struct gdnrt_byte_writer {
  int32_t (*write)(void *user, const void *data, uint64_t bytes);
  void *user;
} gdnrt_byte_writer;

/** Gives bytes in order: returns how many it has copied to `data`, fewer than
 *  `bytes` at the end only, or -1, and then the read fails with an IO_ERROR. It
 *  must not throw. */
typedef struct gdnrt_byte_reader {
  int64_t (*read)(void *user, void *data, uint64_t bytes);
  void *user;
} gdnrt_byte_reader;

/** Writes the state in host slot `slot`, after its copies. The bytes are those
 *  of this rank, with the shape of the model, `tags`, and hashes. */
GDNRT_API gdnrt_status gdnrt_host_tier_write(gdnrt_host_tier *tier,
                                             int32_t slot,
                                             const gdnrt_state_tags *tags,
                                             const gdnrt_byte_writer *writer,
                                             gdnrt_error *error);

/** Fills host slot `slot`, whatever it held, with the state that ranks have
 *  written: `parts` [count] are readers of what each has written, in any order.
 *  The number of ranks then may be another than now; every head of this rank
 *  has to be in a part, and parts without one are read as far as their headers.
 *  All have the same tags, those of `expected` unless it is null, and they go
 *  to `found` unless that is null.
 *
 *  After a failure of a part the host slot is empty. CORRUPT: a part is cut off
 *  or damaged. INVALID_ARGUMENT: a part is of another model or format, or has
 *  other tags. NOT_FOUND: a head is in no part. UNSUPPORTED: another version of
 *  the format. After one of the arguments it is as it was. */
GDNRT_API gdnrt_status gdnrt_host_tier_read(gdnrt_host_tier *tier, int32_t slot,
                                            const gdnrt_byte_reader *parts,
                                            size_t count,
                                            const gdnrt_state_tags *expected,
                                            gdnrt_state_tags *found,
                                            gdnrt_error *error);

/** As gdnrt_host_tier_write, to a file, which has its name, in place of one
 * that had it before, once it is complete; until then it is `path` with
 * .partial and a number. Several may write one `path` at once. A device or a
 * pipe is written as it is. Nothing waits for the disk: a file that an end of
 * the machine has cut is CORRUPT when it is read. IO_ERROR: the file could not
 * be made, written or renamed. */
GDNRT_API gdnrt_status gdnrt_host_tier_write_file(gdnrt_host_tier *tier,
                                                  int32_t slot,
                                                  const gdnrt_state_tags *tags,
                                                  const char *path,
                                                  gdnrt_error *error);

/** As gdnrt_host_tier_read, from files. IO_ERROR: one could not be opened, and
 *  then the host slot is as it was, or not be read. */
GDNRT_API gdnrt_status gdnrt_host_tier_read_files(
    gdnrt_host_tier *tier, int32_t slot, const char *const *paths, size_t count,
    const gdnrt_state_tags *expected, gdnrt_state_tags *found,
    gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_HOST_TIER_H */
