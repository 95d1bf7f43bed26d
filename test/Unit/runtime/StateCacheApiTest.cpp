// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of state caches: a prefix and what is known of it, structs of all
// sizes, and nulls everywhere.

#include "gdn-c/state_cache.h"
#include "struct_growth.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class StateCacheApi : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    gdnrt_state_pool_options sizes = gdnrt_state_pool_options_default();
    sizes.num_layers = sizes.num_key_heads = sizes.num_value_heads = 1;
    sizes.num_requests = 8;
    sizes.key_dim = sizes.value_dim = 4;
    sizes.conv_width = 4;
    ASSERT_EQ(gdnrt_state_pool_create(device, &sizes, &pool, &error), GDNRT_OK);
    options.page_tokens = 1;
    options.max_nodes = 32;
    options.max_tokens = 100;
    options.has_pages = 1;
    ASSERT_EQ(gdnrt_state_cache_create(pool, &options, &cache, &error),
              GDNRT_OK);
    tokens.tokens = ids;
    tokens.count = 3;
    tokens.token_bytes = 4;
    entry.pages = pages;
    entry.num_pages = 3;
    ASSERT_EQ(insert(&entry, &error), GDNRT_OK) << error.message;
  }
  void TearDown() override {
    gdnrt_state_cache_destroy(cache);
    gdnrt_state_pool_destroy(pool);
    gdnrt_device_destroy(device);
  }
  gdnrt_status insert(gdnrt_cache_entry *given, gdnrt_error *e) {
    return gdnrt_state_cache_insert(cache, &tokens, given, freed, 8, &inserted,
                                    e);
  }
  void expectNull(gdnrt_status status, const std::string &what) {
    EXPECT_EQ(status, GDNRT_INVALID_ARGUMENT) << what;
    EXPECT_EQ(error.message,
              "INVALID_ARGUMENT: " + what + ": expected a pointer, got null");
  }

  const int32_t ids[3] = {5, 6, 7};
  int64_t pages[3] = {1, 2, 3}, freed[8] = {};
  int32_t freeSlots[8] = {};
  gdnrt_device *device = nullptr;
  gdnrt_state_pool *pool = nullptr;
  gdnrt_state_cache *cache = nullptr;
  gdnrt_state_cache_options options = gdnrt_state_cache_options_default();
  gdnrt_cache_tokens tokens = gdnrt_cache_tokens_default();
  gdnrt_cache_entry entry = gdnrt_cache_entry_default();
  gdnrt_cache_inserted inserted = gdnrt_cache_inserted_default();
  gdnrt_error error = {};
};

} // namespace

TEST_F(StateCacheApi, WhatItKnows) {
  gdnrt_cache_match match = gdnrt_cache_match_default();
  ASSERT_EQ(gdnrt_state_cache_match(cache, &tokens, &match, &error), GDNRT_OK);
  EXPECT_EQ(match.tokens, 0);
  EXPECT_EQ(match.known_tokens, 3);
  EXPECT_EQ(match.known_node, inserted.node);
  gdnrt_cache_node_info info = gdnrt_cache_node_info_default();
  ASSERT_EQ(gdnrt_state_cache_node(cache, inserted.node, &info, &error),
            GDNRT_OK);
  EXPECT_EQ(info.tokens, 3);
  EXPECT_EQ(info.slot, 0);
  gdnrt_state_cache_info all = gdnrt_state_cache_info_default();
  ASSERT_EQ(gdnrt_state_cache_describe(cache, &all, &error), GDNRT_OK);
  EXPECT_EQ(all.num_nodes, 2);
  EXPECT_EQ(all.num_tokens, 3);
  EXPECT_GT(all.bytes, 0u);
  EXPECT_EQ(gdnrt_state_cache_audit(cache, &error), GDNRT_OK);
}

TEST_F(StateCacheApi, ThePoolMayBeDestroyedFirst) {
  int32_t slot = 0, taken = 0;
  ASSERT_EQ(gdnrt_state_cache_take_slots(cache, 1, 0, &slot, &taken, &error),
            GDNRT_OK);
  entry.slot = slot;
  ASSERT_EQ(insert(&entry, &error), GDNRT_OK) << error.message;
  EXPECT_EQ(inserted.slot_taken, 1);
  gdnrt_state_pool_destroy(pool);
  gdnrt_device_destroy(device);
  pool = nullptr;
  device = nullptr;
  // It still has its slots, and frees them in the end.
  ASSERT_EQ(
      gdnrt_state_cache_take_slots(cache, 8, 1, freeSlots, &taken, &error),
      GDNRT_OK);
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(gdnrt_state_cache_audit(cache, &error), GDNRT_OK);
}

TEST_F(StateCacheApi, ACheckpointGoesToTheHostAndComesBack) {
  gdnrt_host_tier_options sizes = gdnrt_host_tier_options_default();
  sizes.num_slots = 1;
  gdnrt_host_tier *tier = nullptr;
  ASSERT_EQ(gdnrt_host_tier_create(pool, &sizes, &tier, &error), GDNRT_OK);
  gdnrt_state_cache_destroy(cache);
  std::vector<int64_t> moved;
  options.host_tier = tier;
  options.host_min_tokens = 3;
  options.context = &moved;
  options.moved = [](void *context, uint64_t node, int64_t tokens, int32_t slot,
                     int32_t host_slot) {
    *static_cast<std::vector<int64_t> *>(context) = {static_cast<int64_t>(node),
                                                     tokens, slot, host_slot};
  };
  ASSERT_EQ(gdnrt_state_cache_create(pool, &options, &cache, &error), GDNRT_OK);
  // The cache keeps it.
  gdnrt_host_tier_destroy(tier);
  int32_t slot = 0, taken = 0, fetched = 0;
  ASSERT_EQ(gdnrt_state_cache_take_slots(cache, 1, 1, &slot, &taken, &error),
            GDNRT_OK);
  entry.slot = slot;
  entry.num_accepted = 5;
  ASSERT_EQ(insert(&entry, &error), GDNRT_OK) << error.message;
  int64_t count = 0;
  ASSERT_EQ(gdnrt_state_cache_copy_ahead(cache, 2, &count, &error), GDNRT_OK);
  EXPECT_EQ(count, 1);
  ASSERT_EQ(gdnrt_state_cache_evict_checkpoints(cache, 2, &count, &error),
            GDNRT_OK);
  EXPECT_EQ(count, 1);
  const auto node = static_cast<int64_t>(inserted.node);
  EXPECT_EQ(moved, (std::vector<int64_t>{node, 3, slot, 0}));
  gdnrt_cache_match match = gdnrt_cache_match_default();
  ASSERT_EQ(gdnrt_state_cache_match(cache, &tokens, &match, &error), GDNRT_OK);
  EXPECT_EQ(match.tokens, 3);
  EXPECT_EQ(match.slot, 0);
  EXPECT_EQ(match.on_host, 1);
  EXPECT_EQ(match.num_accepted, 5);
  gdnrt_cache_lock lock = gdnrt_cache_lock_default();
  ASSERT_EQ(gdnrt_state_cache_lock(cache, match.node, &lock, &error), GDNRT_OK);
  EXPECT_EQ(lock.on_host, 1);
  ASSERT_EQ(gdnrt_state_cache_fetch(cache, &lock, &fetched, &error), GDNRT_OK);
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(lock.on_host, 0);
  EXPECT_GT(lock.slot, 0);
  EXPECT_EQ(lock.num_accepted, 5);
  gdnrt_cache_node_info info = gdnrt_cache_node_info_default();
  ASSERT_EQ(gdnrt_state_cache_node(cache, match.node, &info, &error), GDNRT_OK);
  EXPECT_EQ(info.slot, lock.slot);
  EXPECT_EQ(info.host_slot, 0);
  gdnrt_state_cache_info all = gdnrt_state_cache_info_default();
  ASSERT_EQ(gdnrt_state_cache_describe(cache, &all, &error), GDNRT_OK);
  EXPECT_EQ(all.num_host_copies, 1);
  EXPECT_EQ(all.num_on_host, 0);
  EXPECT_EQ(all.num_stored, 1u);
  EXPECT_EQ(all.num_fetched, 1u);
  EXPECT_GT(all.host_bytes, 0u);
  ASSERT_EQ(gdnrt_state_cache_unlock(cache, &lock, &error), GDNRT_OK);
  ASSERT_EQ(gdnrt_state_cache_evict_host(cache, 2, &count, &error), GDNRT_OK);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(gdnrt_state_cache_audit(cache, &error), GDNRT_OK) << error.message;
}

TEST_F(StateCacheApi, StructsOfAllSizes) {
  takes<gdnrt_state_cache_options>(
      "options", options, offsetof(gdnrt_state_cache_options, stream),
      [&](gdnrt_state_cache_options *given, gdnrt_error *e) {
        gdnrt_state_cache *made = nullptr;
        gdnrt_status status = gdnrt_state_cache_create(pool, given, &made, e);
        gdnrt_state_cache_destroy(made);
        return status;
      });
  takes<gdnrt_cache_tokens>(
      "tokens", tokens, offsetof(gdnrt_cache_tokens, adapter),
      [&](gdnrt_cache_tokens *given, gdnrt_error *e) {
        gdnrt_cache_match match = gdnrt_cache_match_default();
        return gdnrt_state_cache_match(cache, given, &match, e);
      });
  takes<gdnrt_cache_entry>("entry", entry, offsetof(gdnrt_cache_entry, slot),
                           [&](gdnrt_cache_entry *given, gdnrt_error *e) {
                             return insert(given, e);
                           });
  fills<gdnrt_cache_match>(
      "match", [&](gdnrt_cache_match *match, gdnrt_error *e) {
        return gdnrt_state_cache_match(cache, &tokens, match, e);
      });
  fills<gdnrt_cache_inserted>(
      "inserted", [&](gdnrt_cache_inserted *filled, gdnrt_error *e) {
        return gdnrt_state_cache_insert(cache, &tokens, &entry, freed, 8,
                                        filled, e);
      });
  fills<gdnrt_cache_node_info>(
      "info", [&](gdnrt_cache_node_info *info, gdnrt_error *e) {
        return gdnrt_state_cache_node(cache, inserted.node, info, e);
      });
  fills<gdnrt_state_cache_info>(
      "info", [&](gdnrt_state_cache_info *info, gdnrt_error *e) {
        return gdnrt_state_cache_describe(cache, info, e);
      });
  fills<gdnrt_state_cache_policy>(
      "policy", [&](gdnrt_state_cache_policy *policy, gdnrt_error *e) {
        return gdnrt_state_cache_policy_recommended(policy, e);
      });
  fills<gdnrt_cache_lock>("lock", [&](gdnrt_cache_lock *lock, gdnrt_error *e) {
    return gdnrt_state_cache_lock(cache, inserted.node, lock, e);
  });
  gdnrt_state_cache_policy policy = gdnrt_state_cache_policy_default();
  gdnrt_cache_piece piece = gdnrt_cache_piece_default();
  int64_t position;
  size_t count;
  takes<gdnrt_state_cache_policy>(
      "policy", policy, offsetof(gdnrt_state_cache_policy, reserve_slots),
      [&](gdnrt_state_cache_policy *given, gdnrt_error *e) {
        return gdnrt_state_cache_checkpoints_to_take(
            cache, &tokens, given, &piece, &position, 1, &count, e);
      });
  takes<gdnrt_cache_piece>("piece", piece, offsetof(gdnrt_cache_piece, count),
                           [&](gdnrt_cache_piece *given, gdnrt_error *e) {
                             return gdnrt_state_cache_checkpoints_to_take(
                                 cache, &tokens, &policy, given, &position, 1,
                                 &count, e);
                           });
}

TEST_F(StateCacheApi, Nulls) {
  gdnrt_cache_match match = gdnrt_cache_match_default();
  gdnrt_cache_lock lock = gdnrt_cache_lock_default();
  gdnrt_state_cache *made = nullptr;
  int64_t number = 0;
  size_t size = 0;
  int32_t slot = 0, taken = 0;
  gdnrt_error *e = &error;
  expectNull(gdnrt_state_cache_create(nullptr, &options, &made, e), "pool");
  expectNull(gdnrt_state_cache_create(pool, &options, nullptr, e), "cache");
  expectNull(gdnrt_state_cache_match(nullptr, &tokens, &match, e), "cache");
  expectNull(gdnrt_state_cache_match(cache, nullptr, &match, e), "tokens");
  expectNull(gdnrt_state_cache_pages(nullptr, 1, 1, pages, 3, e), "cache");
  expectNull(gdnrt_state_cache_pages(cache, inserted.node, 1, nullptr, 3, e),
             "pages");
  expectNull(gdnrt_state_cache_lock(nullptr, 0, &lock, e), "cache");
  expectNull(gdnrt_state_cache_unlock(nullptr, &lock, e), "cache");
  expectNull(gdnrt_state_cache_unlock(cache, nullptr, e), "lock");
  expectNull(gdnrt_state_cache_unlock_slot(nullptr, &lock, e), "cache");
  expectNull(gdnrt_state_cache_insert(nullptr, &tokens, &entry, freed, 8,
                                      &inserted, e),
             "cache");
  expectNull(insert(nullptr, e), "entry");
  expectNull(gdnrt_state_cache_evict_pages(nullptr, 0, pages, 3, &size, e),
             "cache");
  expectNull(gdnrt_state_cache_evict_pages(cache, 0, pages, 3, nullptr, e),
             "num_pages");
  expectNull(gdnrt_state_cache_evict_checkpoints(nullptr, 0, &number, e),
             "cache");
  expectNull(gdnrt_state_cache_evict_checkpoints(cache, 0, nullptr, e),
             "evicted");
  expectNull(gdnrt_state_cache_copy_ahead(nullptr, 0, &number, e), "cache");
  expectNull(gdnrt_state_cache_copy_ahead(cache, 0, nullptr, e), "copied");
  expectNull(gdnrt_state_cache_evict_host(nullptr, 0, &number, e), "cache");
  expectNull(gdnrt_state_cache_evict_host(cache, 0, nullptr, e), "evicted");
  expectNull(gdnrt_state_cache_fetch(nullptr, &lock, &taken, e), "cache");
  expectNull(gdnrt_state_cache_fetch(cache, nullptr, &taken, e), "lock");
  expectNull(gdnrt_state_cache_fetch(cache, &lock, nullptr, e), "fetched");
  expectNull(gdnrt_state_cache_drop(nullptr, 0, e), "cache");
  expectNull(gdnrt_state_cache_set_priority(nullptr, 0, 0, e), "cache");
  expectNull(gdnrt_state_cache_take_slots(nullptr, 1, 0, &slot, &taken, e),
             "cache");
  expectNull(gdnrt_state_cache_take_slots(cache, 1, 0, nullptr, &taken, e),
             "slots");
  expectNull(gdnrt_state_cache_take_slots(cache, 1, 0, &slot, nullptr, e),
             "taken");
  expectNull(gdnrt_state_cache_check_writes(nullptr, &slot, 1, e), "cache");
  expectNull(gdnrt_state_cache_check_writes(cache, nullptr, 1, e),
             "write_slots");
  expectNull(gdnrt_state_cache_audit(nullptr, e), "cache");
  gdnrt_state_cache_destroy(nullptr);
  tokens.tokens = nullptr;
  expectNull(gdnrt_state_cache_match(cache, &tokens, &match, e), "tokens");
  tokens.tokens = ids;
  tokens.salt_bytes = 1;
  expectNull(gdnrt_state_cache_match(cache, &tokens, &match, e), "salt");
}

TEST_F(StateCacheApi, NumbersThatAreRefused) {
  gdnrt_cache_match match = gdnrt_cache_match_default();
  tokens.token_bytes = 2;
  EXPECT_EQ(gdnrt_state_cache_match(cache, &tokens, &match, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: state_cache: token_bytes: "
                              "expected 4 or 8, got 2");
  options.slot_kind = 2;
  gdnrt_state_cache *made = nullptr;
  EXPECT_EQ(gdnrt_state_cache_create(pool, &options, &made, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: state_cache: slot_kind: expected 0 "
               "(request) or 1 (track), got 2");
  options.slot_kind = GDNRT_SLOT_REQUEST;
  options.page_tokens = 4097;
  EXPECT_EQ(gdnrt_state_cache_create(pool, &options, &made, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: state_cache: page_tokens: "
                              "expected 1 to 4096, got 4097");
}

// A member that came into the padding at the end would not change the size.
#define GDNRT_ENDS_WITH(STRUCT, MEMBER)                                        \
  static_assert(offsetof(STRUCT, MEMBER) + sizeof(STRUCT::MEMBER) ==           \
                    sizeof(STRUCT),                                            \
                "padding at the end of " #STRUCT)
GDNRT_ENDS_WITH(gdnrt_state_cache_options, moved);
GDNRT_ENDS_WITH(gdnrt_cache_match, reserved);
GDNRT_ENDS_WITH(gdnrt_cache_lock, reserved);
GDNRT_ENDS_WITH(gdnrt_cache_entry, num_accepted);
GDNRT_ENDS_WITH(gdnrt_state_cache_policy, at_branches);
GDNRT_ENDS_WITH(gdnrt_cache_node_info, reserved);
