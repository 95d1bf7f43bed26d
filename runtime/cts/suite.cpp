// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The conformance suite: what every device must do with the entries of an
// image that the compiler made, beyond being accurate.
//
//   gdnrt_cts --image=FILE [--device=cpu|cuda[:N]] [--decode=NAME]
//             [--prefill=NAME] [--verify=NAME] [--commit=NAME] [--copy=NAME]
//             [--zero=NAME] [--variant=NAME] [--windows=channel|position]
//
// Without --variant, launches on a CPU have no workspace and take what needs
// none; on a GPU they have what they ask for. Windows of convolutions lie
// channel by channel, or position by position. Options of googletest follow.
// Where there is no such device it prints why and exits with 77.

#include "suite.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace gdnrt::cts;

SuiteOptions gdnrt::cts::suiteOptions;

static void check(gdnrt_status status, const gdnrt_error &error) {
  if (status == GDNRT_OK)
    return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(2);
}

int gdnrt::cts::ordinal() {
  const std::string &name = suiteOptions.device;
  return name == "cuda" ? 0 : int(std::strtol(name.c_str() + 5, nullptr, 10));
}

bool gdnrt::cts::hasGraphs() { return suiteOptions.device != "cpu"; }

static gdnrt_status createDevice(int workers, bool debugChecks,
                                 gdnrt_device **device, gdnrt_error *error) {
  if (suiteOptions.device == "cpu") {
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = workers;
    options.debug_checks = debugChecks;
    return gdnrt_device_create_cpu(&options, device, error);
  }
  gdnrt_cuda_options options = gdnrt_cuda_options_default();
  options.ordinal = ordinal();
  options.debug_checks = debugChecks;
  return gdnrt_device_create_cuda(&options, device, error);
}

gdnrt_device *gdnrt::cts::makeDevice(int workers) {
  gdnrt_device *device = nullptr;
  gdnrt_error error;
  check(createDevice(workers, /*debugChecks=*/true, &device, &error), error);
  return device;
}

Kernel::Kernel(EntryKind kind, int workers, bool debugChecks) {
  gdnrt_error error;
  check(gdnrt_image_load_file(suiteOptions.image.c_str(), &image_, &error),
        error);
  check(createDevice(workers, debugChecks, &device_, &error), error);
  load(kind);
}

Kernel::Kernel(EntryKind kind, const Kernel &other)
    : image_(other.image_), device_(other.device_), isOwner_(false) {
  load(kind);
}

void Kernel::load(EntryKind kind) {
  gdnrt_error error;
  const std::string &name = kind == EntryKind::decode    ? suiteOptions.decode
                            : kind == EntryKind::prefill ? suiteOptions.prefill
                            : kind == EntryKind::verify  ? suiteOptions.verify
                            : kind == EntryKind::commit  ? suiteOptions.commit
                            : kind == EntryKind::copy    ? suiteOptions.copy
                                                         : suiteOptions.zero;
  gdnrt_status status =
      gdnrt_kernel_create(device_, image_, name.c_str(), &kernel_, &error);
  if (status == GDNRT_NOT_FOUND || status == GDNRT_UNSUPPORTED)
    refusal_ = status == GDNRT_NOT_FOUND ? "the image has no such entry"
                                         : error.message;
  else
    check(status, error);
}

Kernel::~Kernel() {
  gdnrt_kernel_destroy(kernel_);
  if (!isOwner_)
    return;
  gdnrt_device_destroy(device_);
  gdnrt_image_destroy(image_);
}

void *Kernel::giveWorkspace(gdnrt_binding *binding) const {
  gdnrt_error error;
  if (batchInvariant_)
    check(gdnrt_binding_set_batch_invariant(binding, 1, &error), error);
  size_t code = gdnrt_kernel_code(kernel_);
  for (size_t i = 0; i < gdnrt_entry_variant_count(entry(), code); ++i) {
    gdnrt_variant_info info = gdnrt_variant_info_default();
    check(gdnrt_entry_variant(entry(), code, i, &info, &error), error);
    if (suiteOptions.variant == info.name)
      check(
          gdnrt_binding_force_variant(binding, static_cast<int64_t>(i), &error),
          error);
  }
  if (suiteOptions.variant.empty() && suiteOptions.device == "cpu")
    return nullptr;
  uint64_t bytes = 0;
  check(gdnrt_binding_workspace_bytes(binding, &bytes, &error), error);
  if (bytes == 0)
    return nullptr;
  void *memory = nullptr;
  check(gdnrt_device_allocate(device_, bytes, &memory, &error), error);
  std::vector<uint8_t> nan(bytes, 0xff);
  check(gdnrt_device_write(device_, memory, nan.data(), bytes, &error), error);
  check(gdnrt_binding_set_workspace(binding, memory, bytes, nullptr, &error),
        error);
  return memory;
}

void Kernel::launch(const std::vector<gdnrt_named_arg> &args) const {
  gdnrt_error error;
  gdnrt_binding *binding = nullptr;
  ASSERT_EQ(gdnrt_kernel_bind_named(kernel_, args.data(), args.size(), &binding,
                                    &error),
            GDNRT_OK)
      << error.message;
  void *workspace = giveWorkspace(binding);
  EXPECT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK) << error.message;
  EXPECT_EQ(gdnrt_device_synchronize(device_, nullptr, &error), GDNRT_OK)
      << error.message;
  gdnrt_binding_destroy(binding);
  EXPECT_EQ(gdnrt_device_free(device_, workspace, &error), GDNRT_OK);
}

void Kernel::run(const Problem &problem) const {
  onDevice(problem, [&](const auto &args) { launch(args); });
}

void Kernel::onDevice(
    const Problem &problem,
    const std::function<void(const std::vector<gdnrt_named_arg> &)> &body)
    const {
  std::vector<gdnrt_named_arg> args = problem.args();
  if (suiteOptions.device == "cpu")
    return body(args);
  gdnrt_error error;
  std::vector<gdnrt_named_arg> onDevice = args;
  for (gdnrt_named_arg &named : onDevice) {
    size_t bytes = problem[named.name].bytes().size();
    void *data = nullptr;
    ASSERT_EQ(gdnrt_device_allocate(device_, bytes, &data, &error), GDNRT_OK)
        << error.message;
    EXPECT_EQ(gdnrt_device_write(device_, data, named.arg.data, bytes, &error),
              GDNRT_OK)
        << error.message;
    named.arg.data = data;
  }
  // Streams of graphs do not wait for that of the copies.
  EXPECT_EQ(gdnrt_device_synchronize(device_, nullptr, &error), GDNRT_OK);
  body(onDevice);
  readBack(problem, onDevice);
  for (const gdnrt_named_arg &named : onDevice)
    EXPECT_EQ(gdnrt_device_free(device_, named.arg.data, &error), GDNRT_OK);
}

void Kernel::readBack(const Problem &problem,
                      const std::vector<gdnrt_named_arg> &onDevice) const {
  if (suiteOptions.device == "cpu")
    return;
  gdnrt_error error;
  std::vector<gdnrt_named_arg> args = problem.args();
  for (size_t i = 0; i < args.size(); ++i)
    EXPECT_EQ(gdnrt_device_read(device_, args[i].arg.data, onDevice[i].arg.data,
                                problem[args[i].name].bytes().size(), &error),
              GDNRT_OK)
        << error.message;
}

std::string Kernel::runBehind(const Problem &problem, int64_t first) const {
  Problem shifted = problem;
  for (const char *name : {"slots", "write_slots"})
    if (shifted.has(name))
      shifted[name].shiftIntegers(first);
  std::vector<gdnrt_named_arg> args = shifted.args();
  std::vector<Sizes> sizes;
  sizes.reserve(args.size());
  std::vector<uint8_t *> elements; // the problem's own, in the device's memory
  std::vector<void *> blocks;
  std::string refusal;
  gdnrt_error error;
  for (gdnrt_named_arg &named : args) {
    const std::vector<std::string> &pools = shifted.pools();
    const bool isPool =
        std::find(pools.begin(), pools.end(), named.name) != pools.end();
    size_t bytes = shifted[named.name].bytes().size();
    size_t before = isPool ? bytes / kNumSlots * static_cast<size_t>(first) : 0;
    void *block = nullptr;
    if (gdnrt_device_allocate(device_, before + bytes, &block, &error) !=
        GDNRT_OK) {
      refusal = error.message;
      break;
    }
    blocks.push_back(block);
    elements.push_back(static_cast<uint8_t *>(block) + before);
    EXPECT_EQ(gdnrt_device_write(device_, elements.back(), named.arg.data,
                                 bytes, &error),
              GDNRT_OK)
        << error.message;
    named.arg.data = block;
    if (isPool) {
      sizes.emplace_back(named.arg.sizes, named.arg.sizes + named.arg.rank);
      sizes.back()[0] += first;
      named.arg.sizes = sizes.back().data();
    }
  }
  if (refusal.empty()) {
    launch(args);
    std::vector<gdnrt_named_arg> own = problem.args();
    for (size_t i = 0; i < own.size(); ++i)
      if (!std::strstr(own[i].name, "slots"))
        EXPECT_EQ(gdnrt_device_read(device_, own[i].arg.data, elements[i],
                                    problem[own[i].name].bytes().size(),
                                    &error),
                  GDNRT_OK)
            << error.message;
  }
  for (void *block : blocks)
    EXPECT_EQ(gdnrt_device_free(device_, block, &error), GDNRT_OK);
  return refusal;
}

std::string gdnrt::cts::nameOf(
    const ::testing::TestParamInfo<std::tuple<EntryKind, int>> &info) {
  const EntryKind kind = std::get<0>(info.param);
  std::string name = kind == EntryKind::decode    ? "decode"
                     : kind == EntryKind::prefill ? "prefill"
                     : kind == EntryKind::verify  ? "verify"
                     : kind == EntryKind::commit  ? "commit"
                     : kind == EntryKind::copy    ? "copy_slots"
                                                  : "zero_slots";
  return name + std::to_string(std::get<1>(info.param));
}

void gdnrt::cts::expectZeroRow(const Problem &problem, int64_t row) {
  for (const std::string &output : problem.outputs()) {
    Bytes bytes = problem.outputOfRow(output, row);
    EXPECT_EQ(bytes, Bytes(bytes.size(), 0)) << output << ", row " << row;
  }
}

void gdnrt::cts::expectSameOutputs(const Problem &a, const Problem &b) {
  for (const std::string &output : a.outputs())
    EXPECT_TRUE(a[output].elements() == b[output].elements()) << output;
}

void gdnrt::cts::expectSamePools(const Problem &a, const Problem &b) {
  for (const std::string &pool : a.pools())
    EXPECT_TRUE(a[pool].elements() == b[pool].elements()) << pool;
}

void gdnrt::cts::expectNear(const Problem &got, const Problem &want,
                            double limit) {
  std::vector<std::string> names = want.outputs();
  names.insert(names.end(), want.pools().begin(), want.pools().end());
  for (const std::string &name : names) {
    double differences = 0, squares = 0;
    for (int64_t i = 0; i < want[name].count(); ++i) {
      const double a = got[name].number(i), b = want[name].number(i);
      differences += (a - b) * (a - b);
      squares += b * b;
    }
    EXPECT_LE(std::sqrt(differences / std::max(squares, 1e-30)), limit) << name;
  }
}

void gdnrt::cts::expectPaddingIntact(const Problem &problem) {
  for (const std::string &output : problem.outputs())
    EXPECT_TRUE(problem[output].paddingIsIntact()) << output;
  for (const std::string &pool : problem.pools())
    EXPECT_TRUE(problem[pool].paddingIsIntact()) << pool;
}

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  CLI::App app("The conformance suite of the runtime");
  app.add_option("--image", suiteOptions.image, "the image")->required();
  app.add_option("--device", suiteOptions.device, "cpu, cuda or cuda:N")
      ->check([](const std::string &device) {
        return device == "cpu" || device.rfind("cuda", 0) == 0
                   ? std::string()
                   : "expects cpu, cuda or cuda:N, but got " + device;
      });
  const std::pair<const char *, std::string *> entries[] = {
      {"--decode", &suiteOptions.decode},
      {"--prefill", &suiteOptions.prefill},
      {"--verify", &suiteOptions.verify},
      {"--commit", &suiteOptions.commit},
      {"--copy", &suiteOptions.copy},
      {"--zero", &suiteOptions.zero},
      {"--variant", &suiteOptions.variant},
  };
  for (auto [name, value] : entries)
    app.add_option(name, *value, "its name in the image");
  std::string windows = "channel";
  app.add_option("--windows", windows, "the order of windows in a slot")
      ->check(CLI::IsMember({"channel", "position"}));
  CLI11_PARSE(app, argc, argv);
  suiteOptions.byPosition = windows == "position";
  gdnrt_device *device = nullptr;
  gdnrt_error error;
  constexpr int kSkipped = 77; // as automake and CTest know it
  if (createDevice(1, /*debugChecks=*/false, &device, &error) ==
      GDNRT_UNSUPPORTED) {
    std::printf("skipped: %s\n", error.message);
    return kSkipped;
  }
  // Cases have devices of their own; this one keeps what they share, such as a
  // GPU's context, from being made again for each of them.
  const int failed = RUN_ALL_TESTS();
  gdnrt_device_destroy(device);
  return failed;
}
