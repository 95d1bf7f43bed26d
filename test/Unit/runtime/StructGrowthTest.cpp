// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Callers that were built with older or newer headers than the library: every
// struct that may grow, at every size that one of them could give it.

#include "struct_growth.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class StructGrowth : public ::testing::Test {
protected:
  void SetUp() override {
    bytes = testImage().build();
    ASSERT_EQ(
        gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
        GDNRT_OK);
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    entry = gdnrt_image_entry(image, 0);
  }
  void TearDown() override {
    gdnrt_device_destroy(device);
    gdnrt_image_destroy(image);
  }

  Bytes bytes;
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  const gdnrt_entry *entry = nullptr;
  gdnrt_error error = {};
};

} // namespace

TEST_F(StructGrowth, Entries) {
  fills<gdnrt_param_info>("info", [&](gdnrt_param_info *info, gdnrt_error *e) {
    return gdnrt_entry_param(entry, 3, info, e);
  });
  fills<gdnrt_code_info>("info", [&](gdnrt_code_info *info, gdnrt_error *e) {
    return gdnrt_entry_code(entry, 0, info, e);
  });
  fills<gdnrt_variant_info>("info",
                            [&](gdnrt_variant_info *info, gdnrt_error *e) {
                              return gdnrt_entry_variant(entry, 0, 0, info, e);
                            });
}

TEST_F(StructGrowth, Ranges) {
  gdnrt_ranges ranges = gdnrt_ranges_default();
  EXPECT_EQ(gdnrt_device_set_ranges(device, &ranges, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: push: expected a pointer, got null");
  ranges.push = [](void *, const char *) {};
  EXPECT_EQ(gdnrt_device_set_ranges(device, &ranges, &error),
            GDNRT_INVALID_ARGUMENT);
  ranges.pop = [](void *) {};
  takes<gdnrt_ranges>(
      "ranges", ranges, sizeof(ranges),
      [&](gdnrt_ranges *given, gdnrt_error *e) {
        return gdnrt_device_set_ranges(device, given, e);
      },
      /*nullIsDefault=*/true);
}

TEST_F(StructGrowth, Devices) {
  fills<gdnrt_device_info>("info",
                           [&](gdnrt_device_info *info, gdnrt_error *e) {
                             return gdnrt_device_describe(device, info, e);
                           });
  gdnrt_cpu_options options = gdnrt_cpu_options_default();
  options.num_workers = 1;
  takes<gdnrt_cpu_options>(
      "options", options, offsetof(gdnrt_cpu_options, log),
      [](gdnrt_cpu_options *given, gdnrt_error *e) {
        gdnrt_device *made = nullptr;
        gdnrt_status status = gdnrt_device_create_cpu(given, &made, e);
        gdnrt_device_destroy(made);
        return status;
      },
      /*nullIsDefault=*/true);
}

TEST_F(StructGrowth, SlotReports) {
  // An entry without slots reports zeros.
  gdnrt_kernel *kernel = nullptr;
  ASSERT_EQ(gdnrt_kernel_create(device, image, "neighbours", &kernel, &error),
            GDNRT_OK);
  int64_t in[4] = {}, out[4] = {}, size = 4;
  gdnrt_arg args[] = {{in, GDNRT_I64, 1, &size, nullptr, 0},
                      {out, GDNRT_I64, 1, &size, nullptr, 0}};
  gdnrt_binding *binding = nullptr;
  ASSERT_EQ(gdnrt_kernel_bind(kernel, args, 2, &binding, &error), GDNRT_OK)
      << error.message;
  fills<gdnrt_slot_report>(
      "report", [&](gdnrt_slot_report *report, gdnrt_error *e) {
        return gdnrt_binding_check_slots(binding, report, e);
      });
  fills<gdnrt_slot_report>(
      "report", [&](gdnrt_slot_report *report, gdnrt_error *e) {
        return gdnrt_binding_slot_report(binding, report, e);
      });
  gdnrt_binding_destroy(binding);
  gdnrt_kernel_destroy(kernel);
}

TEST_F(StructGrowth, Metadata) {
  gdnrt_metadata_options options = gdnrt_metadata_options_default();
  options.max_num_seqs = 4;
  options.max_num_tokens = 64;
  takes<gdnrt_metadata_options>(
      "options", options, offsetof(gdnrt_metadata_options, use_full_cuda_graph),
      [](gdnrt_metadata_options *given, gdnrt_error *e) {
        gdnrt_metadata_builder *made = nullptr;
        gdnrt_status status = gdnrt_metadata_builder_create(given, &made, e);
        gdnrt_metadata_builder_destroy(made);
        return status;
      });
  gdnrt_metadata_builder *builder = nullptr;
  ASSERT_EQ(gdnrt_metadata_builder_create(&options, &builder, &error),
            GDNRT_OK);
  const int32_t starts[] = {0, 1, 2}, lengths[] = {3, 4}, table[] = {1, 2};
  gdnrt_common_metadata common = gdnrt_common_metadata_default();
  common.num_reqs = common.num_actual_tokens = 2;
  common.query_start_loc = starts;
  common.seq_lens = lengths;
  common.block_table = table;
  common.block_table_columns = common.block_table_stride = 1;
  auto build = [&](gdnrt_common_metadata *given, gdnrt_gdn_metadata *filled,
                   gdnrt_error *e) {
    return gdnrt_metadata_builder_build(builder, given, filled, e);
  };
  takes<gdnrt_common_metadata>(
      "common", common, offsetof(gdnrt_common_metadata, num_accepted_tokens),
      [&](gdnrt_common_metadata *given, gdnrt_error *e) {
        gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
        return build(given, &metadata, e);
      });
  fills<gdnrt_gdn_metadata>("metadata",
                            [&](gdnrt_gdn_metadata *filled, gdnrt_error *e) {
                              return build(&common, filled, e);
                            });
  // What is filled is taken as well.
  gdnrt_gdn_metadata metadata = gdnrt_gdn_metadata_default();
  ASSERT_EQ(build(&common, &metadata, &error), GDNRT_OK);
  std::vector<char> arena(metadata.arena_bytes);
  takes<gdnrt_gdn_metadata>(
      "metadata", metadata, offsetof(gdnrt_gdn_metadata, moves_states),
      [&](gdnrt_gdn_metadata *given, gdnrt_error *e) {
        return gdnrt_metadata_upload(device, given, arena.data(), nullptr, e);
      });
  // Bytes of nowhere.
  metadata.arena = nullptr;
  EXPECT_EQ(
      gdnrt_metadata_upload(device, &metadata, arena.data(), nullptr, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: metadata: arena: expected a "
                              "pointer, got null");
  gdnrt_metadata_builder_destroy(builder);
}

TEST_F(StructGrowth, LayersAndWorkspaces) {
  gdnrt_layer_heads heads = gdnrt_layer_heads_default();
  heads.num_key_heads = heads.num_value_heads = 2;
  heads.key_dim = heads.value_dim = 8;
  takes<gdnrt_layer_heads>("heads", heads, sizeof(heads),
                           [](gdnrt_layer_heads *given, gdnrt_error *e) {
                             int64_t conv[2], ssm[3];
                             return gdnrt_layer_state_shape(given, 1, 4, 0, 1,
                                                            conv, ssm, e);
                           });
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  size.total_bytes = 64;
  takes<gdnrt_workspace_size>(
      "size", size, offsetof(gdnrt_workspace_size, total_bytes),
      [&](gdnrt_workspace_size *given, gdnrt_error *e) {
        gdnrt_workspace *made = nullptr;
        gdnrt_status status = gdnrt_workspace_create(device, given, &made, e);
        gdnrt_workspace_destroy(made);
        return status;
      });
  // No kernel at all is another error than one that is not known.
  gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
  gdnrt_gdn_layer *layer = nullptr;
  EXPECT_EQ(gdnrt_gdn_layer_create(&kernels, nullptr, 0, &layer, &error),
            GDNRT_INVALID_ARGUMENT);
  OtherStruct<gdnrt_gdn_kernels> newer(kernels, sizeof(kernels) + 8);
  newer.bytes()[sizeof(kernels)] = 1;
  EXPECT_EQ(gdnrt_gdn_layer_create(newer.get(), nullptr, 0, &layer, &error),
            GDNRT_UNSUPPORTED);
  EXPECT_STREQ(error.message,
               "UNSUPPORTED: kernels: gdnrt_gdn_kernels has 48 bytes, of which "
               "this library knows 40; expected 0 behind them, got 1 at offset "
               "40");
}

TEST_F(StructGrowth, StatePools) {
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = 1;
  options.num_requests = 2;
  options.num_key_heads = options.num_value_heads = 1;
  options.key_dim = options.value_dim = 8;
  options.conv_width = 4;
  takes<gdnrt_state_pool_options>(
      "options", options, offsetof(gdnrt_state_pool_options, conv_extra),
      [](gdnrt_state_pool_options *given, gdnrt_error *e) {
        uint64_t needed = 0;
        return gdnrt_state_pool_bytes(given, &needed, e);
      });
  gdnrt_state_pool *pool = nullptr;
  ASSERT_EQ(gdnrt_state_pool_create(device, &options, &pool, &error), GDNRT_OK)
      << error.message;
  fills<gdnrt_state_pool_info>(
      "info", [&](gdnrt_state_pool_info *info, gdnrt_error *e) {
        return gdnrt_state_pool_describe(pool, info, e);
      });
  gdnrt_host_tier_options hosts = gdnrt_host_tier_options_default();
  hosts.num_slots = 1;
  gdnrt_host_tier *tier = nullptr;
  takes<gdnrt_host_tier_options>(
      "options", hosts, offsetof(gdnrt_host_tier_options, format),
      [&](gdnrt_host_tier_options *given, gdnrt_error *e) {
        gdnrt_host_tier_destroy(tier);
        tier = nullptr;
        return gdnrt_host_tier_create(pool, given, &tier, e);
      });
  if (!tier)
    ASSERT_EQ(gdnrt_host_tier_create(pool, &hosts, &tier, &error), GDNRT_OK);
  fills<gdnrt_host_tier_info>("info",
                              [&](gdnrt_host_tier_info *info, gdnrt_error *e) {
                                return gdnrt_host_tier_describe(tier, info, e);
                              });
  gdnrt_host_tier_destroy(tier);
  gdnrt_state_pool_destroy(pool);
}

namespace {

/// What a backend of another version was given.
struct Seen {
  size_t batch = 0, graph = 0, call = 0, layer = 0;
  int32_t mode = -1;
};

gdnrt_attention_callbacks callbacksOf(Seen &seen) {
  gdnrt_attention_callbacks calls = gdnrt_attention_callbacks_default();
  calls.context = &seen;
  calls.init_forward_metadata =
      [](void *context, const gdnrt_forward_batch *batch, gdnrt_error *) {
        static_cast<Seen *>(context)->batch = batch->struct_size;
        static_cast<Seen *>(context)->mode = batch->forward_mode;
        return GDNRT_OK;
      };
  calls.forward_decode = [](void *context, const gdnrt_attention_call *call,
                            const gdnrt_forward_batch *, gdnrt_error *) {
    static_cast<Seen *>(context)->call = call->struct_size;
    static_cast<Seen *>(context)->layer = call->layer->struct_size;
    return GDNRT_OK;
  };
  calls.forward_extend = calls.forward_decode;
  calls.init_forward_metadata_capture_cuda_graph =
      [](void *context, const gdnrt_graph_batch *batch, gdnrt_error *) {
        static_cast<Seen *>(context)->graph = batch->struct_size;
        return GDNRT_OK;
      };
  return calls;
}

} // namespace

TEST_F(StructGrowth, Attention) {
  Seen seen;
  gdnrt_attention_callbacks calls = callbacksOf(seen);
  takes<gdnrt_attention_callbacks>(
      "callbacks", calls,
      offsetof(gdnrt_attention_callbacks, get_cuda_graph_seq_len_fill_value),
      [&](gdnrt_attention_callbacks *given, gdnrt_error *e) {
        gdnrt_attention_backend *made = nullptr;
        gdnrt_status status =
            gdnrt_attention_backend_create_custom(device, given, &made, e);
        gdnrt_attention_backend_destroy(made);
        return status;
      });

  gdnrt_attention_backend *backend = nullptr;
  ASSERT_EQ(
      gdnrt_attention_backend_create_custom(device, &calls, &backend, &error),
      GDNRT_OK);
  gdnrt_forward_batch batch = gdnrt_forward_batch_default();
  batch.forward_mode = GDNRT_MODE_DECODE;
  takes<gdnrt_forward_batch>(
      "batch", batch, 16, [&](gdnrt_forward_batch *given, gdnrt_error *e) {
        return gdnrt_attention_init_forward_metadata(backend, given, e);
      });
  // The backend sees the library's size, whatever the caller had.
  EXPECT_EQ(seen.batch, sizeof(gdnrt_forward_batch));
  EXPECT_EQ(seen.mode, GDNRT_MODE_DECODE);
  gdnrt_graph_batch graph = gdnrt_graph_batch_default();
  takes<gdnrt_graph_batch>(
      "batch", graph, 16, [&](gdnrt_graph_batch *given, gdnrt_error *e) {
        return gdnrt_attention_init_forward_metadata_capture_cuda_graph(
            backend, given, e);
      });
  EXPECT_EQ(seen.graph, sizeof(gdnrt_graph_batch));

  gdnrt_radix_attention layer = gdnrt_radix_attention_default();
  int64_t sizes[] = {0, 8};
  gdnrt_attention_call call = gdnrt_attention_call_default();
  call.layer = &layer;
  call.q = call.k = call.v =
      call.out = {nullptr, GDNRT_F32, 2, sizes, nullptr, 0};
  takes<gdnrt_attention_call>(
      "call", call, offsetof(gdnrt_attention_call, save_kv_cache),
      [&](gdnrt_attention_call *given, gdnrt_error *e) {
        return gdnrt_attention_forward_decode(backend, given, &batch, e);
      });
  EXPECT_EQ(seen.call, sizeof(gdnrt_attention_call));
  takes<gdnrt_radix_attention>(
      "layer", layer, 16,
      [&](gdnrt_radix_attention *given, gdnrt_error *e) {
        gdnrt_attention_call of = call;
        of.layer = given;
        return gdnrt_attention_forward_decode(backend, &of, &batch, e);
      },
      /*nullIsDefault=*/true); // the backend may need none
  EXPECT_EQ(seen.layer, sizeof(gdnrt_radix_attention));
  gdnrt_attention_backend_destroy(backend);

  gdnrt_attention_backend *gdn = nullptr;
  ASSERT_EQ(gdnrt_attention_backend_create_gdn(device, &gdn, &error), GDNRT_OK);
  const int64_t slots[] = {1};
  batch.batch_size = 1;
  batch.req_pool_indices = slots;
  ASSERT_EQ(gdnrt_attention_init_forward_metadata(gdn, &batch, &error),
            GDNRT_OK)
      << error.message;
  fills<gdnrt_gdn_forward_metadata>(
      "metadata", [&](gdnrt_gdn_forward_metadata *metadata, gdnrt_error *e) {
        int32_t known = 0;
        gdnrt_status status =
            gdnrt_attention_forward_metadata(gdn, metadata, &known, e);
        EXPECT_EQ(known, status == GDNRT_OK ? 1 : 0);
        return status;
      });
  gdnrt_attention_backend_destroy(gdn);
}

// A member that came into the padding at the end would not change the size.
#define GDNRT_ENDS_WITH(STRUCT, MEMBER)                                        \
  static_assert(offsetof(STRUCT, MEMBER) + sizeof(STRUCT::MEMBER) ==           \
                    sizeof(STRUCT),                                            \
                "padding at the end of " #STRUCT)
GDNRT_ENDS_WITH(gdnrt_param_info, reserved);
GDNRT_ENDS_WITH(gdnrt_device_info, reserved);
GDNRT_ENDS_WITH(gdnrt_cpu_options, log_user);
GDNRT_ENDS_WITH(gdnrt_cuda_options, log_user);
GDNRT_ENDS_WITH(gdnrt_ranges, user);
GDNRT_ENDS_WITH(gdnrt_metadata_options, max_num_prefills);
GDNRT_ENDS_WITH(gdnrt_gdn_metadata, non_spec_rows);
GDNRT_ENDS_WITH(gdnrt_batch_planner_options, reserved);
GDNRT_ENDS_WITH(gdnrt_device_batch, token_slots_stride);
GDNRT_ENDS_WITH(gdnrt_attention_call, reserved);
GDNRT_ENDS_WITH(gdnrt_state_pool_options, pending_dtype);
GDNRT_ENDS_WITH(gdnrt_host_tier_options, reserved);
GDNRT_ENDS_WITH(gdnrt_nccl_options, timeout_ms);
