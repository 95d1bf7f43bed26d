// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI: reflection, binding by name, debug checks, handles that die in
// any order, and every refusal that only the ABI makes. null never crashes.

#include "arrays.h"
#include "gdn-c/runtime.h"
#include "gdnrt/aligned_bytes.h"
#include "test_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class CApiTest : public ::testing::Test {
protected:
  void SetUp() override {
    bytes = testImage().build();
    ASSERT_EQ(
        gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
        GDNRT_OK)
        << error.message;
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = 2;
    options.debug_checks = 1;
    ASSERT_EQ(gdnrt_device_create_cpu(&options, &device, &error), GDNRT_OK);
    ASSERT_EQ(gdnrt_kernel_create(device, image, "accumulate", &kernel, &error),
              GDNRT_OK)
        << error.message;
    named = {{"out", Array(out, DType::f32, {2, 2})},
             {"x", Array(x, DType::f32, {2, 2})},
             {"scale", Array(scale, DType::f32, {2})},
             {"slots", Array(slots, DType::i32, {2})},
             {"state_pool", Array(pool, DType::f32, {3, 2})}};
  }
  void TearDown() override {
    gdnrt_binding_destroy(binding);
    gdnrt_kernel_destroy(kernel);
    gdnrt_device_destroy(device);
    gdnrt_image_destroy(image);
  }

  struct NamedArray {
    const char *name;
    Array array;
  };
  std::vector<gdnrt_named_arg> args() const {
    std::vector<gdnrt_named_arg> list;
    for (const NamedArray &each : named)
      list.push_back({each.name, each.array});
    return list;
  }
  gdnrt_status bind() {
    gdnrt_binding_destroy(binding);
    binding = nullptr;
    std::vector<gdnrt_named_arg> list = args();
    return gdnrt_kernel_bind_named(kernel, list.data(), list.size(), &binding,
                                   &error);
  }

  Bytes bytes;
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  gdnrt_kernel *kernel = nullptr;
  gdnrt_binding *binding = nullptr;
  gdnrt_error error = {};
  std::vector<NamedArray> named;
  float x[4] = {1, 2, 3, 4}, scale[2] = {1, 10}, pool[6] = {}, out[4] = {};
  int32_t slots[2] = {1, 2};
};

} // namespace

TEST_F(CApiTest, Versions) {
  EXPECT_EQ(gdnrt_version(), 200u);
  EXPECT_STREQ(gdnrt_version_string(), "0.2.0");
  EXPECT_STREQ(gdnrt_status_name(GDNRT_NOT_FOUND), "NOT_FOUND");
}

TEST_F(CApiTest, Reflection) {
  EXPECT_STREQ(gdnrt_image_producer(image), "gdn test");
  ASSERT_EQ(gdnrt_image_entry_count(image), 5u);
  const gdnrt_entry *entry = gdnrt_image_entry(image, 0);
  EXPECT_STREQ(gdnrt_entry_name(entry), "accumulate_f32");
  EXPECT_EQ(gdnrt_image_entry(image, 5), nullptr);
  ASSERT_EQ(gdnrt_entry_param_count(entry), 5u);
  gdnrt_param_info info = gdnrt_param_info_default();
  ASSERT_EQ(gdnrt_entry_param(entry, 3, &info, &error), GDNRT_OK);
  EXPECT_STREQ(info.name, "state_pool");
  EXPECT_EQ(info.kind, GDNRT_POOL);
  EXPECT_EQ(info.access, GDNRT_READ_WRITE);
  EXPECT_EQ(info.dtype, GDNRT_F32);
  EXPECT_EQ(info.rank, 2);
  EXPECT_STREQ(info.dims[0], "P");
  EXPECT_EQ(info.dims[2], nullptr);
  EXPECT_EQ(info.unit_stride_last, 0);
  EXPECT_EQ(info.optional, 0);
  size_t index = 0;
  ASSERT_EQ(gdnrt_entry_find_param(entry, "out", &index, &error), GDNRT_OK);
  EXPECT_EQ(index, 4u);
  ASSERT_EQ(gdnrt_entry_symbol_count(entry), 3u);
  EXPECT_STREQ(gdnrt_entry_symbol(entry, 1), "D");
  EXPECT_EQ(gdnrt_entry_symbol(entry, 3), nullptr);
  ASSERT_EQ(gdnrt_entry_attribute_count(entry), 1u);
  EXPECT_STREQ(gdnrt_entry_attribute_key(entry, 0), "model");
  EXPECT_STREQ(gdnrt_entry_attribute_value(entry, 0), "test");
  EXPECT_EQ(gdnrt_entry_attribute_key(entry, 1), nullptr);
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "model"), "test");
  EXPECT_EQ(gdnrt_entry_attribute(entry, "no"), nullptr);
  ASSERT_EQ(gdnrt_entry_code_count(entry), 1u);
  gdnrt_code_info code = gdnrt_code_info_default();
  ASSERT_EQ(gdnrt_entry_code(entry, 0, &code, &error), GDNRT_OK);
  EXPECT_STREQ(code.target, "x86-64");
  EXPECT_STREQ(code.features, "");
  EXPECT_EQ(code.scratch_bytes, 4096u);
  gdnrt_device_info deviceInfo = gdnrt_device_info_default();
  ASSERT_EQ(gdnrt_device_describe(device, &deviceInfo, &error), GDNRT_OK);
  EXPECT_STREQ(deviceInfo.kind, "cpu");
  EXPECT_EQ(deviceInfo.num_workers, 2);
}

TEST_F(CApiTest, BindLaunchRebind) {
  ASSERT_EQ(bind(), GDNRT_OK) << error.message;
  EXPECT_EQ(gdnrt_binding_units(binding), 2);
  int64_t value = 0;
  ASSERT_EQ(gdnrt_binding_symbol(binding, "P", &value, &error), GDNRT_OK);
  EXPECT_EQ(value, 3);
  ASSERT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK) << error.message;
  ASSERT_EQ(gdnrt_device_synchronize(device, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[3], 40);
  // Another input for the next launch.
  float y[4] = {1, 1, 1, 1};
  Array layout(y, DType::f32, {2, 2});
  gdnrt_arg arg = layout;
  size_t index = 0;
  ASSERT_EQ(gdnrt_binding_rebind(binding, &index, &arg, 1, &error), GDNRT_OK);
  ASSERT_EQ(gdnrt_launch(binding, nullptr, nullptr), GDNRT_OK);
  EXPECT_EQ(out[3], 50);
}

TEST_F(CApiTest, DebugChecksRefuseRaces) {
  slots[1] = 1;
  ASSERT_EQ(bind(), GDNRT_OK); // binding does not read slots
  EXPECT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: slots: rows 0 and 1 both "
                              "write slot 1 of state_pool");
  EXPECT_EQ(pool[2], 0); // nothing ran
  slots[1] = -1;
  ASSERT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK);
  gdnrt_slot_report report = gdnrt_slot_report_default();
  ASSERT_EQ(gdnrt_binding_slot_report(binding, &report, &error), GDNRT_OK);
  EXPECT_EQ(report.live, 1);
  EXPECT_EQ(report.skipped_negative, 1);
  slots[1] = 7;
  ASSERT_EQ(gdnrt_binding_check_slots(binding, &report, &error), GDNRT_OK);
  EXPECT_EQ(report.skipped_past_end, 1);
}

TEST_F(CApiTest, HandlesDieInAnyOrder) {
  ASSERT_EQ(bind(), GDNRT_OK);
  gdnrt_image_destroy(image);
  image = nullptr;
  std::fill(bytes.begin(), bytes.end(), 0);
  gdnrt_device_destroy(device);
  device = nullptr;
  gdnrt_kernel_destroy(kernel);
  kernel = nullptr;
  ASSERT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(out[3], 40);
}

TEST_F(CApiTest, NamesOfArguments) {
  named.push_back({"x", named[1].array});
  EXPECT_EQ(bind(), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: x: the argument is given twice");
  named.back().name = "y";
  EXPECT_EQ(bind(), GDNRT_NOT_FOUND);
  EXPECT_STREQ(error.message,
               "NOT_FOUND: y: accumulate_f32 has no such parameter; it has: x, "
               "scale, slots, state_pool, out");
  named.back().name = nullptr;
  EXPECT_EQ(bind(), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: args: name: expected a pointer, got null");
  named.pop_back();
  named.pop_back();
  EXPECT_EQ(bind(), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: state_pool: the argument is missing");
}

TEST_F(CApiTest, Refusals) {
  std::vector<gdnrt_named_arg> list = args();
  gdnrt_arg first = list[0].arg;
  gdnrt_binding *none = nullptr;
  EXPECT_EQ(gdnrt_kernel_bind(kernel, &first, 1, &none, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: accumulate_f32: expected 5 "
                              "arguments, got 1");
  gdnrt_param_info info = gdnrt_param_info_default();
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernel);
  EXPECT_EQ(gdnrt_entry_param(entry, 5, &info, &error), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: accumulate_f32: parameter "
                              "index 5 is past the 5 parameters");
  gdnrt_code_info code = gdnrt_code_info_default();
  EXPECT_EQ(gdnrt_entry_code(entry, 1, &code, &error), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: accumulate_f32: code index 1 "
                              "is past the 1 codes");
  ASSERT_EQ(bind(), GDNRT_OK);
  int64_t value;
  EXPECT_EQ(gdnrt_binding_symbol(binding, "Q", &value, &error),
            GDNRT_NOT_FOUND);
  EXPECT_STREQ(error.message, "NOT_FOUND: Q: accumulate_f32 has no such "
                              "symbol; it has: N, D, P");
  EXPECT_EQ(gdnrt_launch(binding, &value, &error), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: stream: expected null, as a "
                              "CPU has one queue");
  gdnrt_cpu_options options = gdnrt_cpu_options_default();
  options.struct_size = 0;
  gdnrt_device *other = nullptr;
  EXPECT_EQ(gdnrt_device_create_cpu(&options, &other, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(
      error.message,
      "INVALID_ARGUMENT: options: expected the struct_size of "
      "gdnrt_cpu_options to be a multiple of 8 from 16 to 4096, got 0");
}

TEST_F(CApiTest, Variants) {
  const gdnrt_entry *entry = nullptr;
  ASSERT_EQ(gdnrt_image_find_entry(image, "neighbours", &entry, &error),
            GDNRT_OK);
  ASSERT_EQ(gdnrt_entry_variant_count(entry, 0), 2u);
  EXPECT_EQ(gdnrt_entry_variant_count(entry, 1), 0u);
  gdnrt_variant_info info = gdnrt_variant_info_default();
  ASSERT_EQ(gdnrt_entry_variant(entry, 0, 0, &info, &error), GDNRT_OK);
  EXPECT_STREQ(info.name, "staged");
  EXPECT_STREQ(info.conditions, "2 <= workers, 8 * workers <= N");
  EXPECT_EQ(info.stage_count, 2u);
  EXPECT_EQ(info.needs_workspace, 1);
  EXPECT_EQ(info.scratch_bytes, 64u);
  ASSERT_EQ(gdnrt_entry_variant(entry, 0, 1, &info, &error), GDNRT_OK);
  EXPECT_STREQ(info.name, "rows");
  EXPECT_STREQ(info.bits, "those of rows");
  EXPECT_STREQ(info.conditions, "");
  EXPECT_EQ(info.needs_workspace, 0);
  EXPECT_EQ(gdnrt_entry_variant(entry, 0, 2, &info, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: neighbours: variant index 2 "
                              "is past the 2 variants");
  EXPECT_EQ(gdnrt_entry_variant(entry, 1, 0, &info, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: neighbours: code index 1 is "
                              "past the 1 codes");
}

TEST_F(CApiTest, WorkspaceOfABinding) {
  gdnrt_kernel *neighbours = nullptr;
  ASSERT_EQ(
      gdnrt_kernel_create(device, image, "neighbours", &neighbours, &error),
      GDNRT_OK);
  std::vector<int64_t> in(100, 1), sums(100);
  Array inArray(in.data(), DType::i64, {100}),
      outArray(sums.data(), DType::i64, {100});
  std::vector<gdnrt_arg> list = {inArray, outArray};
  gdnrt_binding *bound = nullptr;
  ASSERT_EQ(gdnrt_kernel_bind(neighbours, list.data(), 2, &bound, &error),
            GDNRT_OK)
      << error.message;
  gdnrt_device_info described = gdnrt_device_info_default();
  ASSERT_EQ(gdnrt_device_describe(device, &described, &error), GDNRT_OK);
  if (described.num_workers < 2) // then conditions cannot hold
    ASSERT_EQ(gdnrt_binding_force_variant(bound, 0, &error), GDNRT_OK);
  uint64_t bytes = 0;
  ASSERT_EQ(gdnrt_binding_workspace_bytes(bound, &bytes, &error), GDNRT_OK);
  EXPECT_EQ(bytes, 64u + 832u);
  alignas(64) uint8_t memory[1024];
  std::memset(memory, 0xff, sizeof(memory));
  ASSERT_EQ(gdnrt_binding_set_workspace(bound, memory, bytes, nullptr, &error),
            GDNRT_OK);
  EXPECT_EQ(gdnrt_binding_variant(bound), 0u);
  EXPECT_EQ(gdnrt_binding_units(bound), 200);
  ASSERT_EQ(gdnrt_launch(bound, nullptr, &error), GDNRT_OK) << error.message;
  EXPECT_EQ(sums, std::vector<int64_t>(100, 7));
  EXPECT_EQ(gdnrt_binding_force_variant(bound, -2, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: index: expected -1 or a "
                              "variant, got -2");
  ASSERT_EQ(gdnrt_binding_force_variant(bound, 1, &error), GDNRT_OK);
  EXPECT_EQ(gdnrt_binding_variant(bound), 1u);
  EXPECT_EQ(gdnrt_binding_units(bound), 100);
  ASSERT_EQ(gdnrt_binding_workspace_bytes(bound, &bytes, &error), GDNRT_OK);
  EXPECT_EQ(bytes, 0u);
  gdnrt_binding_destroy(bound);
  gdnrt_kernel_destroy(neighbours);
}

TEST_F(CApiTest, KindsAndTypes) {
  // One pair of types has no types in names, several have.
  auto make = [](std::vector<std::vector<std::string>> entries) {
    ImageBuilder builder;
    for (const std::vector<std::string> &each : entries)
      builder.entry(each[0])
          .tensor("out", fb::Access::write, fb::DType::f32, {"N"})
          .code("any", {"N"})
          .attribute("io", each[1])
          .attribute("state", each[2]);
    builder.blob({1});
    return builder.build();
  };
  auto find = [&](const Bytes &of, const char *kind, int32_t io,
                  int32_t state) -> std::string {
    gdnrt_image *loaded = nullptr;
    EXPECT_EQ(gdnrt_image_load_memory(of.data(), of.size(), &loaded, &error),
              GDNRT_OK)
        << error.message;
    const gdnrt_entry *found = nullptr;
    gdnrt_status status =
        gdnrt_image_find_kind(loaded, kind, io, state, &found, &error);
    std::string text =
        status == GDNRT_OK ? gdnrt_entry_name(found) : error.message;
    gdnrt_image_destroy(loaded);
    return text;
  };
  const Bytes one =
      make({{"decode", "bf16", "f32"}, {"decode_more", "bf16", "f32"}});
  const Bytes two = make({{"decode_bf16_f32", "bf16", "f32"},
                          {"decode_bf16_bf16", "bf16", "bf16"},
                          {"prefill_bf16_f32", "bf16", "f32"}});
  EXPECT_EQ(find(one, "decode", GDNRT_BF16, GDNRT_F32), "decode");
  EXPECT_EQ(find(two, "decode", GDNRT_BF16, GDNRT_F32), "decode_bf16_f32");
  EXPECT_EQ(find(one, "decode", -1, -1), "decode");
  EXPECT_EQ(find(two, "decode", -1, GDNRT_BF16), "decode_bf16_bf16");
  EXPECT_EQ(find(two, "prefill", -1, -1), "prefill_bf16_f32");
  EXPECT_EQ(find(one, "decode", GDNRT_F16, GDNRT_F32),
            "NOT_FOUND: decode (io f16, state f32): the image has no such "
            "entry; it has: decode (io bf16, state f32), decode_more (io "
            "bf16, state f32)");
  EXPECT_EQ(find(two, "decode", GDNRT_BF16, -1),
            "NOT_FOUND: decode (io bf16, state any): several entries fit: "
            "decode (io bf16, state f32), decode (io bf16, state bf16)");
  EXPECT_EQ(find(two, "decode", GDNRT_BF16, 9),
            "INVALID_ARGUMENT: state: expected a dtype or -1, got 9");
  // Entries without such facts are found by their names.
  const gdnrt_entry *found = nullptr;
  ASSERT_EQ(gdnrt_image_find_kind(image, "neighbours", -1, -1, &found, &error),
            GDNRT_OK);
  EXPECT_STREQ(gdnrt_entry_name(found), "neighbours");
  EXPECT_EQ(gdnrt_image_find_kind(nullptr, "x", -1, -1, &found, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_image_find_kind(image, nullptr, -1, -1, &found, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_image_find_kind(image, "x", -1, -1, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
}

TEST_F(CApiTest, LongMessagesAreCut) {
  std::string name(3000, 'n');
  const gdnrt_entry *entry = nullptr;
  EXPECT_EQ(gdnrt_image_find_entry(image, name.c_str(), &entry, &error),
            GDNRT_NOT_FOUND);
  std::string message = error.message;
  EXPECT_EQ(message.size(), size_t{GDNRT_MESSAGE_SIZE - 1});
  EXPECT_EQ(message.substr(message.size() - 4), "n...");
}

TEST_F(CApiTest, NullNeverCrashes) {
  gdnrt_status bad = GDNRT_INVALID_ARGUMENT;
  gdnrt_error *e = &error;
  EXPECT_EQ(gdnrt_image_load_file(nullptr, &image, e), bad);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: path: expected a pointer, got null");
  EXPECT_EQ(gdnrt_image_load_file("x", nullptr, nullptr), bad);
  EXPECT_EQ(gdnrt_image_load_memory(nullptr, 0, &image, e), bad);
  EXPECT_EQ(gdnrt_image_load_memory("x", 1, nullptr, e), bad);
  EXPECT_STREQ(gdnrt_image_producer(nullptr), "");
  EXPECT_EQ(gdnrt_image_entry_count(nullptr), 0u);
  EXPECT_EQ(gdnrt_image_entry(nullptr, 0), nullptr);
  const gdnrt_entry *entry = gdnrt_image_entry(image, 0), *found = nullptr;
  EXPECT_EQ(gdnrt_image_find_entry(nullptr, "x", &found, e), bad);
  EXPECT_EQ(gdnrt_image_find_entry(image, nullptr, &found, e), bad);
  EXPECT_EQ(gdnrt_image_find_entry(image, "count", nullptr, e), bad);
  gdnrt_param_info param = gdnrt_param_info_default();
  gdnrt_code_info code = gdnrt_code_info_default();
  size_t index = 0;
  EXPECT_STREQ(gdnrt_entry_name(nullptr), "");
  EXPECT_EQ(gdnrt_entry_param_count(nullptr), 0u);
  EXPECT_EQ(gdnrt_entry_param(nullptr, 0, &param, e), bad);
  EXPECT_EQ(gdnrt_entry_param(entry, 0, nullptr, e), bad);
  EXPECT_EQ(gdnrt_entry_find_param(nullptr, "x", &index, e), bad);
  EXPECT_EQ(gdnrt_entry_find_param(entry, nullptr, &index, e), bad);
  EXPECT_EQ(gdnrt_entry_find_param(entry, "x", nullptr, e), bad);
  EXPECT_EQ(gdnrt_entry_symbol_count(nullptr), 0u);
  EXPECT_EQ(gdnrt_entry_symbol(nullptr, 0), nullptr);
  EXPECT_EQ(gdnrt_entry_attribute_count(nullptr), 0u);
  EXPECT_EQ(gdnrt_entry_attribute_value(nullptr, 0), nullptr);
  EXPECT_EQ(gdnrt_entry_attribute(nullptr, "x"), nullptr);
  EXPECT_EQ(gdnrt_entry_attribute(entry, nullptr), nullptr);
  EXPECT_EQ(gdnrt_entry_code_count(nullptr), 0u);
  EXPECT_EQ(gdnrt_entry_code(nullptr, 0, &code, e), bad);
  EXPECT_EQ(gdnrt_entry_code(entry, 0, nullptr, e), bad);
  EXPECT_EQ(gdnrt_device_create_cpu(nullptr, nullptr, e), bad);
  gdnrt_device_info info = gdnrt_device_info_default();
  EXPECT_EQ(gdnrt_device_describe(nullptr, &info, e), bad);
  EXPECT_EQ(gdnrt_device_describe(device, nullptr, e), bad);
  EXPECT_EQ(gdnrt_device_synchronize(nullptr, nullptr, e), bad);
  gdnrt_kernel *k = nullptr;
  EXPECT_EQ(gdnrt_kernel_create(nullptr, image, "count", &k, e), bad);
  EXPECT_EQ(gdnrt_kernel_create(device, nullptr, "count", &k, e), bad);
  EXPECT_EQ(gdnrt_kernel_create(device, image, nullptr, &k, e), bad);
  EXPECT_EQ(gdnrt_kernel_create(device, image, "count", nullptr, e), bad);
  EXPECT_EQ(gdnrt_kernel_entry(nullptr), nullptr);
  EXPECT_EQ(gdnrt_kernel_code(nullptr), 0u);
  EXPECT_EQ(gdnrt_kernel_bind(nullptr, nullptr, 0, &binding, e), bad);
  EXPECT_EQ(gdnrt_kernel_bind(kernel, nullptr, 5, &binding, e), bad);
  EXPECT_EQ(gdnrt_kernel_bind(kernel, nullptr, 0, nullptr, e), bad);
  EXPECT_EQ(gdnrt_kernel_bind_named(nullptr, nullptr, 0, &binding, e), bad);
  EXPECT_EQ(gdnrt_kernel_bind_named(kernel, nullptr, 5, &binding, e), bad);
  EXPECT_EQ(gdnrt_kernel_bind_named(kernel, nullptr, 0, nullptr, e), bad);
  EXPECT_EQ(gdnrt_binding_units(nullptr), 0);
  gdnrt_variant_info variant = gdnrt_variant_info_default();
  EXPECT_EQ(gdnrt_entry_variant_count(nullptr, 0), 0u);
  EXPECT_EQ(gdnrt_entry_variant(nullptr, 0, 0, &variant, e), bad);
  EXPECT_EQ(gdnrt_entry_variant(entry, 0, 0, nullptr, e), bad);
  uint64_t bytesNeeded;
  EXPECT_EQ(gdnrt_binding_workspace_bytes(nullptr, &bytesNeeded, e), bad);
  EXPECT_EQ(gdnrt_binding_set_workspace(nullptr, nullptr, 0, nullptr, e), bad);
  EXPECT_EQ(gdnrt_binding_force_variant(nullptr, 0, e), bad);
  EXPECT_EQ(gdnrt_binding_set_batch_invariant(nullptr, 1, e), bad);
  EXPECT_EQ(gdnrt_binding_expect_sequences(nullptr, 1, e), bad);
  EXPECT_EQ(gdnrt_binding_force_stage(nullptr, 0, e), bad);
  EXPECT_EQ(gdnrt_binding_variant(nullptr), 0u);
  int64_t value;
  gdnrt_slot_report report = gdnrt_slot_report_default();
  EXPECT_EQ(gdnrt_binding_symbol(nullptr, "N", &value, e), bad);
  EXPECT_EQ(gdnrt_binding_rebind(nullptr, nullptr, nullptr, 0, e), bad);
  EXPECT_EQ(gdnrt_launch(nullptr, nullptr, e), bad);
  EXPECT_EQ(gdnrt_binding_check_slots(nullptr, &report, e), bad);
  EXPECT_EQ(gdnrt_binding_slot_report(nullptr, &report, e), bad);
  ASSERT_EQ(bind(), GDNRT_OK);
  EXPECT_EQ(gdnrt_binding_symbol(binding, nullptr, &value, e), bad);
  EXPECT_EQ(gdnrt_binding_workspace_bytes(binding, nullptr, e), bad);
  EXPECT_EQ(gdnrt_binding_symbol(binding, "N", nullptr, e), bad);
  EXPECT_EQ(gdnrt_binding_rebind(binding, nullptr, nullptr, 1, e), bad);
  EXPECT_EQ(gdnrt_binding_rebind(binding, &index, nullptr, 1, e), bad);
  EXPECT_EQ(gdnrt_binding_check_slots(binding, nullptr, e), bad);
  EXPECT_EQ(gdnrt_binding_slot_report(binding, nullptr, e), bad);
  gdnrt_image_destroy(nullptr);
  gdnrt_device_destroy(nullptr);
  gdnrt_kernel_destroy(nullptr);
  gdnrt_binding_destroy(nullptr);
}
