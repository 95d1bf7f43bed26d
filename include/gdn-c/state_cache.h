/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A prefix cache for models with states: a tree of token ids, in which a node
 * may have a checkpoint, the slot of a pool with the state after exactly the
 * node's tokens, and which keeps the engine's ids of KV pages.
 *
 * Slots. A slot that gdnrt_state_cache_insert takes is the cache's, until the
 * cache evicts the checkpoint and frees the slot in the pool. A sequence that
 * starts from a checkpoint reads the slot (`slots` of an entry) and writes one
 * of its own (`write_slots`); it never writes a slot of the cache.
 *
 * Locks. What is locked is not evicted. A lock of a node keeps the pages of all
 * tokens from the beginning to the end of the node, and the node's checkpoint.
 * A lock must be given back once.
 *
 * Pages. The cache compares ids of pages and hands them out; it touches no
 * memory of theirs. Ids that the engine may free again come back in arrays of
 * the caller.
 *
 * Node ids. They are numbers for the functions below, 0 for no node. An id
 * stays valid as long as its node exists, locked nodes always do. An id of a
 * node that was evicted is an INVALID_ARGUMENT, also after other nodes came in
 * its stead.
 *
 * Host. With a host tier, a checkpoint that loses its slot may go on in a host
 * slot. Copies are on the tier's copy stream, after what was launched on the
 * cache's stream. Functions that evict from slots, copy ahead or fetch are
 * UNSUPPORTED while that stream is being captured, if they have to copy.
 *
 * Threads. One thread at a time calls functions that take a cache without
 * const. Functions that take a const cache may run beside each other, not
 * beside the others. There are no threads and no locks inside.
 *
 * Memory. A cache allocates when it is created, and for error messages.
 */

#ifndef GDN_C_STATE_CACHE_H
#define GDN_C_STATE_CACHE_H

#include "gdn-c/host_tier.h"
#include "gdn-c/state_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gdnrt_state_cache gdnrt_state_cache;

/** Which slots of a pool a cache owns. */
typedef enum gdnrt_slot_kind {
  /** Those for requests: a sequence may hand its own slot over. */
  GDNRT_SLOT_REQUEST = 0,
  /** Track slots. */
  GDNRT_SLOT_TRACK = 1
} gdnrt_slot_kind;

typedef struct gdnrt_state_cache_options {
  size_t struct_size;
  /** Tokens of a KV page, 1 to 4096. Prefixes begin and end at multiples. */
  int64_t page_tokens;
  /** The most nodes, 2 to 2^30; a namespace takes one. A prefix takes one, and
   *  one more where it leaves another prefix. */
  int64_t max_nodes;
  /** The most tokens of all nodes together, 1 to 2^36. */
  int64_t max_tokens;
  /** 1: each page of page_tokens tokens has an id. 0: there are no pages; a
   *  node without a checkpoint and without children is removed at once. */
  int32_t has_pages;
  /** A gdnrt_slot_kind. */
  int32_t slot_kind;
  /** The stream that gdnrt_state_pool_free gets for evicted slots. */
  void *stream;
  /** Called for each checkpoint that is evicted, also by functions that evict
   * to make room, with its node, its tokens and its slot, which is not free
   * yet. The node may be gone when the function returns. Must not call
   * functions of the cache or of the pool. Null: nothing is called. */
  void (*evicted)(void *context, uint64_t node, int64_t tokens, int32_t slot);
  void *context;
  /** The second level: a tier of the cache's pool, where checkpoints go that
   *  lose their slots. It may be destroyed before the cache, which keeps it.
   *  Others may use it, too. Null: there is none, and `evicted` is told of
   *  every slot. With one it gets slot 0 for a checkpoint that was on the host
   *  alone. */
  gdnrt_host_tier *host_tier;
  /** The most bytes of host slots that the cache has, one slot at least; 0: as
   *  many as the tier has. */
  uint64_t host_bytes;
  /** Only a checkpoint goes to the host behind which so many tokens, 0 or more,
   *  would be computed again from the closest checkpoint ahead. 64 tokens take
   *  about as long as a copy there and back. */
  int64_t host_min_tokens;
  /** Called for each checkpoint that goes to the host and loses its slot, which
   *  is not free yet; as `evicted`. */
  void (*moved)(void *context, uint64_t node, int64_t tokens, int32_t slot,
                int32_t host_slot);
} gdnrt_state_cache_options;
GDNRT_STRUCT(gdnrt_state_cache_options)

/** Tokens of a prompt, and the namespace in which they are looked up. Prefixes
 *  of two namespaces have nothing in common. */
typedef struct gdnrt_cache_tokens {
  size_t struct_size;
  /** [count], int32_t or int64_t. Ids that are kept fit an int32_t. */
  const void *tokens;
  size_t count;
  /** The size of an id: 4 or 8. */
  int32_t token_bytes;
  /** Reserved: 0. */
  int32_t reserved;
  /** The namespace: a number, such as an adapter's, and bytes, such as a salt;
   *  0 to 240 of them. They are compared, not hashed alone. */
  uint64_t adapter;
  const void *salt;
  size_t salt_bytes;
} gdnrt_cache_tokens;
GDNRT_STRUCT(gdnrt_cache_tokens)

/** Creates a cache of slots of `pool` and takes all memory that it will need.
 *  The pool may be destroyed before the cache, which keeps it; memory that the
 *  pool wraps must be there until both are destroyed. */
GDNRT_API gdnrt_status gdnrt_state_cache_create(
    gdnrt_state_pool *pool, const gdnrt_state_cache_options *options,
    gdnrt_state_cache **cache, gdnrt_error *error);

/** Destroys the cache and frees its slots in the pool and on the host, locked
 * or not. A host slot that a file is written from is free when that has ended.
 */
GDNRT_API void gdnrt_state_cache_destroy(gdnrt_state_cache *cache);

/*===-- Looking up --------------------------------------------------------===*/

typedef struct gdnrt_cache_match {
  size_t struct_size;
  /** The longest prefix that ends at a checkpoint: its tokens, its node and
   *  slot, and what gdnrt_cache_entry had as num_accepted. 0, 0, 0, 0 if there
   *  is none. The slot is only safe to use after the node was locked. */
  int64_t tokens;
  uint64_t node;
  int32_t slot;
  int32_t num_accepted;
  /** The longest prefix that the cache has at all, with pages if there are
   *  any, and the node in which it ends, which may have more tokens. */
  int64_t known_tokens;
  uint64_t known_node;
  /** 1: the checkpoint is on the host, and `slot` is 0. After the node was
   *  locked, gdnrt_state_cache_fetch brings it back. */
  int32_t on_host;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_cache_match;
GDNRT_STRUCT(gdnrt_cache_match)

/** Finds the longest prefixes of `tokens`. A request that must compute at least
 *  one token, for its logits, passes one token less than its prompt has. */
GDNRT_API gdnrt_status gdnrt_state_cache_match(const gdnrt_state_cache *cache,
                                               const gdnrt_cache_tokens *tokens,
                                               gdnrt_cache_match *match,
                                               gdnrt_error *error);

/** Writes the ids of the pages of the first `num_tokens` tokens that end in
 *  `node`, num_tokens / page_tokens of them. */
GDNRT_API gdnrt_status gdnrt_state_cache_pages(const gdnrt_state_cache *cache,
                                               uint64_t node,
                                               int64_t num_tokens,
                                               int64_t *pages, size_t capacity,
                                               gdnrt_error *error);

/*===-- Locks -------------------------------------------------------------===*/

/** What a sequence holds of the cache. */
typedef struct gdnrt_cache_lock {
  size_t struct_size;
  /** 0: nothing. */
  uint64_t node;
  /** The checkpoint of the node, to be read and not written; 0 if it has none,
   *  or if this lock does not hold it any more. */
  int32_t slot;
  /** What the checkpoint's gdnrt_cache_entry had. */
  int32_t num_accepted;
  /** 1: it holds a checkpoint on the host. */
  int32_t on_host;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_cache_lock;
GDNRT_STRUCT(gdnrt_cache_lock)

/** Locks a node, and makes it and the nodes ahead of it the last used ones.
 * Node 0 gives a lock of nothing. */
GDNRT_API gdnrt_status gdnrt_state_cache_lock(gdnrt_state_cache *cache,
                                              uint64_t node,
                                              gdnrt_cache_lock *lock,
                                              gdnrt_error *error);

/** Brings the checkpoint of a lock back from the host: takes a slot, evicts a
 * checkpoint if none is free, and copies on the tier's copy stream, after what
 * was launched on the cache's stream. lock->slot has it then, with
 * lock->num_accepted. Call gdnrt_host_tier_wait for that slot with the stream
 * of the launch that reads it, before that launch; until then it may not be
 * read. Functions of the pool wait themselves. `*fetched` is 0, and nothing was
 * done, if no slot is free and none can be. Does nothing, and `*fetched` is 1,
 * for a lock of nothing or of a slot. With a tier in another format than the
 * pool's the state is rounded to that. The copy on the host stays, until its
 * host slot is needed. */
GDNRT_API gdnrt_status gdnrt_state_cache_fetch(gdnrt_state_cache *cache,
                                               gdnrt_cache_lock *lock,
                                               int32_t *fetched,
                                               gdnrt_error *error);

/** Gives up the checkpoint of a lock and keeps its pages: after the launch that
 *  reads the slot, if the next owner of the slot works on the same stream. */
GDNRT_API gdnrt_status gdnrt_state_cache_unlock_slot(gdnrt_state_cache *cache,
                                                     gdnrt_cache_lock *lock,
                                                     gdnrt_error *error);

/** Gives up all of a lock, which is one of nothing afterwards. */
GDNRT_API gdnrt_status gdnrt_state_cache_unlock(gdnrt_state_cache *cache,
                                                gdnrt_cache_lock *lock,
                                                gdnrt_error *error);

/*===-- Inserting ---------------------------------------------------------===*/

typedef struct gdnrt_cache_entry {
  size_t struct_size;
  /** The pages of the tokens, as many as there are whole ones; null and 0
   *  without has_pages. */
  const int64_t *pages;
  size_t num_pages;
  /** A slot in use with the state after all tokens, of the cache's slot_kind,
   * or 0. The count of tokens is then a multiple of page_tokens. */
  int32_t slot;
  /** A number that is kept with the checkpoint. For slots with tokens that wait
   *  for a commit it is the accepted count that the next step needs. */
  int32_t num_accepted;
} gdnrt_cache_entry;
GDNRT_STRUCT(gdnrt_cache_entry)

typedef struct gdnrt_cache_inserted {
  size_t struct_size;
  /** The node in which the tokens end; 0 if nothing was inserted. */
  uint64_t node;
  /** The tokens that were there before. */
  int64_t known_tokens;
  /** 1: the cache owns the slot now. 0: the caller does, because there was a
   *  checkpoint already, no slot was given, or nothing was inserted. */
  int32_t slot_taken;
  /** 1: there was no room and none could be made. Nothing was inserted; what
   *  was evicted to make room stays evicted. */
  int32_t is_full;
  /** The ids in free_pages: first those of num_evicted_pages that were evicted
   *  to make room, then duplicates, which are pages of the caller for tokens
   *  that have another page in the cache. */
  size_t num_free_pages;
  size_t num_evicted_pages;
  int64_t num_evicted_checkpoints;
} gdnrt_cache_inserted;
GDNRT_STRUCT(gdnrt_cache_inserted)

/** Inserts a prefix. Tokens behind the last whole page are left out. `capacity`
 *  is the size of `free_pages`, entry->num_pages or more: room is made only as
 *  far as the evicted ids fit there, too. Pages that the caller got from the
 *  cache for these tokens are no duplicates. */
GDNRT_API gdnrt_status gdnrt_state_cache_insert(
    gdnrt_state_cache *cache, const gdnrt_cache_tokens *tokens,
    const gdnrt_cache_entry *entry, int64_t *free_pages, size_t capacity,
    gdnrt_cache_inserted *inserted, gdnrt_error *error);

/*===-- Evicting ----------------------------------------------------------===*/

/** Evicts at least `count` pages, if so many are not locked, and `capacity` at
 *  most, and writes their ids to `pages`, which may be null without has_pages.
 *  First go the last tokens of prefixes that have no checkpoint behind them,
 *  then prefixes with their checkpoints, those of the lowest priority first,
 * and among them the least recently used. The last prefix is cut if not all of
 * it fits in `pages`, and loses its checkpoint. */
GDNRT_API gdnrt_status gdnrt_state_cache_evict_pages(
    gdnrt_state_cache *cache, int64_t count, int64_t *pages, size_t capacity,
    size_t *num_pages, gdnrt_error *error);

/** Evicts `count` checkpoints from their slots, or as many as are not locked:
 * those of the lowest priority first, and among them the least recently used.
 * Their pages stay. With a host tier those that pay go there: if the host is
 * full, in place of copies of what is in a slot, and then of what is worth
 * less. The slots are free at once; functions of the pool make their stream
 * wait for the copies. An error of a copy ends the call, and the checkpoint
 * stays where it was. */
GDNRT_API gdnrt_status
gdnrt_state_cache_evict_checkpoints(gdnrt_state_cache *cache, int64_t count,
                                    int64_t *evicted, gdnrt_error *error);

/** Copies to the host what goes there next, so that nobody waits for copies
 * when slots are needed: of the next `count` checkpoints in the order of
 * eviction those that pay and have no copy. A step that calls it with about as
 * many as it will need loses nothing. INVALID_ARGUMENT without a host tier. */
GDNRT_API gdnrt_status gdnrt_state_cache_copy_ahead(gdnrt_state_cache *cache,
                                                    int64_t count,
                                                    int64_t *copied,
                                                    gdnrt_error *error);

/** Evicts `count` copies from the host, or as many as are not locked, in the
 *  order in which they make room; for an engine that needs the host slots. */
GDNRT_API gdnrt_status gdnrt_state_cache_evict_host(gdnrt_state_cache *cache,
                                                    int64_t count,
                                                    int64_t *evicted,
                                                    gdnrt_error *error);

/** Evicts the checkpoint of `node`, also from the host. Its pages stay.
 * INVALID_ARGUMENT if it is locked or if the node has none. */
GDNRT_API gdnrt_status gdnrt_state_cache_drop(gdnrt_state_cache *cache,
                                              uint64_t node,
                                              gdnrt_error *error);

/** Sets the priority of the checkpoint of `node`, a finite number, 0 at first.
 *  Checkpoints with a lower one are evicted first, those with the same one in
 *  the order of their last use. INVALID_ARGUMENT if the node has none. */
GDNRT_API gdnrt_status gdnrt_state_cache_set_priority(gdnrt_state_cache *cache,
                                                      uint64_t node,
                                                      double priority,
                                                      gdnrt_error *error);

/** As gdnrt_state_pool_allocate of the cache's slot_kind, and evicts
 * checkpoints if too few slots are free. `*taken` is 0, and nothing was
 * evicted, if that is not enough. The caller owns the slots. */
GDNRT_API gdnrt_status gdnrt_state_cache_take_slots(gdnrt_state_cache *cache,
                                                    size_t count, int32_t zero,
                                                    int32_t *slots,
                                                    int32_t *taken,
                                                    gdnrt_error *error);

/*===-- Which checkpoints to take -----------------------------------------===*/

/** Where prefill writes checkpoints. */
typedef struct gdnrt_state_cache_policy {
  size_t struct_size;
  /** The most checkpoints of a request, 0 to 64. */
  int64_t max_checkpoints;
  /** Slots that stay free for others. Slots of checkpoints that can be evicted
   *  count as free. */
  int64_t reserve_slots;
  /** No checkpoint is taken fewer tokens than this behind another one. */
  int64_t min_gap;
  /** Multiples of so many tokens are taken, spread evenly if there are too
   *  many; 0: none. */
  int64_t block_tokens;
  /** 1: the last position before the end of the prompt is taken. */
  int32_t at_end;
  /** 1: positions are taken where the prompt leaves what the cache knows, and
   *  where other prompts left it before. */
  int32_t at_branches;
} gdnrt_state_cache_policy;
GDNRT_STRUCT(gdnrt_state_cache_policy)

/** Fills a policy with the values that the guide recommends. */
GDNRT_API gdnrt_status gdnrt_state_cache_policy_recommended(
    gdnrt_state_cache_policy *policy, gdnrt_error *error);

/** The part of a prompt that the next call of prefill computes. */
typedef struct gdnrt_cache_piece {
  size_t struct_size;
  /** Tokens that the state has seen. */
  int64_t done;
  /** Tokens of the call. */
  int64_t count;
  /** Checkpoints that earlier pieces of this request took. */
  int64_t taken;
} gdnrt_cache_piece;
GDNRT_STRUCT(gdnrt_cache_piece)

/** Says after how many tokens of the prompt the call should write checkpoints:
 *  ascending, above piece->done and at most done + count, at multiples of 64
 *  from `done` on and of page_tokens, where the cache has none. `tokens` is the
 *  whole prompt. In the order of importance they are the end, the branch points
 *  from the last to the first, and multiples of block_tokens. `capacity` is the
 *  size of `positions`; 64 are enough. */
GDNRT_API gdnrt_status gdnrt_state_cache_checkpoints_to_take(
    const gdnrt_state_cache *cache, const gdnrt_cache_tokens *tokens,
    const gdnrt_state_cache_policy *policy, const gdnrt_cache_piece *piece,
    int64_t *positions, size_t capacity, size_t *num_positions,
    gdnrt_error *error);

/*===-- What there is -----------------------------------------------------===*/

typedef struct gdnrt_state_cache_info {
  size_t struct_size;
  /** Nodes, those of namespaces included. */
  int64_t num_nodes;
  /** Tokens of all nodes, and those of them in locked nodes. */
  int64_t num_tokens;
  int64_t locked_tokens;
  int64_t num_checkpoints;
  int64_t locked_checkpoints;
  int64_t max_nodes;
  int64_t max_tokens;
  /** Bytes of host memory, without those of the host tier. */
  uint64_t bytes;
  /** Checkpoints with a copy on the host, those of them that are there alone,
   *  and the bytes of all. num_checkpoints are those in slots. */
  int64_t num_host_copies;
  int64_t num_on_host;
  uint64_t host_bytes;
  /** Copies to the host, and back, since the cache was created. */
  uint64_t num_stored;
  uint64_t num_fetched;
} gdnrt_state_cache_info;
GDNRT_STRUCT(gdnrt_state_cache_info)

/** What is known of a node. */
typedef struct gdnrt_cache_node_info {
  size_t struct_size;
  /** From the beginning to the end of the node. */
  int64_t tokens;
  /** The tokens of the closest checkpoint ahead of this one; 0 if there is
   * none. Without its checkpoint `tokens - tokens_above` would be computed
   * again. */
  int64_t tokens_above;
  /** 0 if there is no checkpoint, or if it is on the host alone. */
  int32_t slot;
  int32_t num_accepted;
  double priority;
  int64_t num_children;
  /** Locks that hold the node's pages, and those that hold its checkpoint. */
  int32_t num_locks;
  int32_t num_slot_locks;
  /** The slot of the host tier with a copy of the checkpoint; -1: none. */
  int32_t host_slot;
  /** Reserved: 0. */
  int32_t reserved;
} gdnrt_cache_node_info;
GDNRT_STRUCT(gdnrt_cache_node_info)

GDNRT_API gdnrt_status gdnrt_state_cache_node(const gdnrt_state_cache *cache,
                                              uint64_t node,
                                              gdnrt_cache_node_info *info,
                                              gdnrt_error *error);

GDNRT_API gdnrt_status
gdnrt_state_cache_describe(const gdnrt_state_cache *cache,
                           gdnrt_state_cache_info *info, gdnrt_error *error);

/** For debugging. INVALID_ARGUMENT if one of the slots that a batch writes is
 *  the cache's. */
GDNRT_API gdnrt_status gdnrt_state_cache_check_writes(
    const gdnrt_state_cache *cache, const int32_t *write_slots, size_t count,
    gdnrt_error *error);

/** For debugging. Looks at everything and fails with INTERNAL, and the first
 *  thing that is wrong, if tree, locks, orders, slots or counts contradict each
 *  other. Takes time in proportion to what the cache holds, and allocates. */
GDNRT_API gdnrt_status gdnrt_state_cache_audit(const gdnrt_state_cache *cache,
                                               gdnrt_error *error);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_STATE_CACHE_H */
