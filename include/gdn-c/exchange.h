/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An exchange of buffers among ranks: for context parallelism, where each rank
 * has a part of the tokens of a sequence. On NCCL, which is found when it is
 * asked for, or among threads of one process, on the host or on a device.
 *
 * All ranks make the same calls in the same order. One thread at a time calls
 * the functions of an exchange.
 *
 * Failures. In eager steps gdnrt_exchange_wait is where a rank that failed, or
 * did not come before the time-out, becomes an IO_ERROR or a DEVICE_ERROR on
 * every rank that lives. After that every call of the exchange fails with the
 * same message. A communicator that the exchange made is aborted, which ends
 * the kernels that wait on the device; a communicator of the caller is left to
 * the caller, who has to abort it. A graph that is replayed calls no function
 * of the exchange: there the caller's watchdog sees that the stream does not
 * end, and calls gdnrt_exchange_abort or aborts its communicator.
 *
 * NCCL keeps a communicator while a graph has gathers of it. Such graphs are
 * destroyed before the exchange is. After a failure they may be there still:
 * then what the communicator has is given back when they are destroyed.
 */

#ifndef GDN_C_EXCHANGE_H
#define GDN_C_EXCHANGE_H

#include "gdn-c/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The bytes of an id of a communicator. */
#define GDNRT_NCCL_ID_BYTES 128

typedef struct gdnrt_exchange gdnrt_exchange;

typedef struct gdnrt_nccl_options {
  size_t struct_size;
  /** The name or path of NCCL's library; null: "libnccl.so.2". */
  const char *library;
  /** An ncclComm_t of the caller, which outlives the exchange; or null. */
  void *communicator;
  /** If `communicator` is null: the GDNRT_NCCL_ID_BYTES bytes of
   *  gdnrt_nccl_id, the same on all ranks. The communicator is made for the
   *  CUDA device that is current. */
  const uint8_t *id;
  /** 0 to num_ranks - 1. */
  int32_t rank;
  int32_t num_ranks;
  /** How long a call waits for other ranks, in milliseconds, 2^31 - 1 at most;
   *  0: 60000. */
  int64_t timeout_ms;
} gdnrt_nccl_options;
GDNRT_STRUCT(gdnrt_nccl_options)

/** Makes an id, on one rank, which gives it to the others. `library` as in the
 *  options. UNSUPPORTED if there is no NCCL, or one older than 2.18. */
GDNRT_API gdnrt_status gdnrt_nccl_id(const char *library, uint8_t *id,
                                     gdnrt_error *error);

/** Creates the exchange of one rank on a GPU. With an id it returns when all
 *  ranks have called it, or IO_ERROR after the time-out. INVALID_ARGUMENT if
 *  the caller's communicator has another size or rank. */
GDNRT_API gdnrt_status gdnrt_exchange_create_nccl(
    gdnrt_device *device, const gdnrt_nccl_options *options,
    gdnrt_exchange **exchange, gdnrt_error *error);

/** Creates `num_ranks` exchanges, 1 to 65536, one for each of as many threads,
 *  for memory of the host; their streams are null. `timeout_ms` as in the
 *  options. */
GDNRT_API gdnrt_status gdnrt_exchange_create_threads(int32_t num_ranks,
                                                     int64_t timeout_ms,
                                                     gdnrt_exchange **exchanges,
                                                     gdnrt_error *error);

/** Creates `num_ranks` exchanges, one for each of as many threads, for memory
 *  of `device`, which outlives them: several ranks on one GPU, which NCCL does
 *  not have, for tests. Each rank has a stream of its own, or all the null
 *  stream. Gathers may be captured if all streams are of one capture: the
 * caller captures a stream, orders the others behind it, and it behind them at
 * the end. UNSUPPORTED if the device has no events. */
GDNRT_API gdnrt_status gdnrt_exchange_create_streams(gdnrt_device *device,
                                                     int32_t num_ranks,
                                                     int64_t timeout_ms,
                                                     gdnrt_exchange **exchanges,
                                                     gdnrt_error *error);

/** Destroys an exchange. One with a communicator of its own waits for its work
 *  to end and for graphs with gathers of it to be destroyed; after the time-out
 *  it aborts the communicator. */
GDNRT_API void gdnrt_exchange_destroy(gdnrt_exchange *exchange);

/** The rank, and the number of ranks. */
GDNRT_API gdnrt_status gdnrt_exchange_describe(const gdnrt_exchange *exchange,
                                               int32_t *rank,
                                               int32_t *num_ranks,
                                               gdnrt_error *error);

/** `receive`, num_ranks * bytes bytes, gets `send` of each rank in the order of
 *  ranks, in the order of `stream`. `bytes` is the same on all ranks; among
 *  threads another number is an INVALID_ARGUMENT on all of them. `send` may be
 *  the rank's own part of `receive`. The stream may be being captured. */
GDNRT_API gdnrt_status gdnrt_exchange_all_gather(gdnrt_exchange *exchange,
                                                 const void *send,
                                                 void *receive, uint64_t bytes,
                                                 void *stream,
                                                 gdnrt_error *error);

/** Returns when `stream` has done what was launched on it; IO_ERROR after the
 *  time-out, DEVICE_ERROR if NCCL tells of a failure. UNSUPPORTED while the
 *  stream is being captured. */
GDNRT_API gdnrt_status gdnrt_exchange_wait(gdnrt_exchange *exchange,
                                           void *stream, gdnrt_error *error);

/** Makes all later calls of this exchange fail, and those of other ranks that
 *  wait for it: threads at once, NCCL's after their time-out. */
GDNRT_API gdnrt_status gdnrt_exchange_abort(gdnrt_exchange *exchange,
                                            gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_EXCHANGE_H */
