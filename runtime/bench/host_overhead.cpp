// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Costs of the host through the C ABI: loading, binding, rebinding, launching
// a kernel that does nothing, with one worker and with two.
//
//   gdnrt_host_overhead IMAGE [--benchmark_...]
//
// IMAGE is the test image, whose entry `empty` has two parameters and does
// nothing.

#include "gdn-c/runtime.h"

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string imagePath;
constexpr const char *kEntry = "empty";

void check(gdnrt_status status, const gdnrt_error &error) {
  if (status == GDNRT_OK)
    return;
  std::fprintf(stderr, "%s\n", error.message);
  std::exit(1);
}

/// The image, a kernel, and arguments for it: x and out, [4, 4] f32.
struct Setup {
  explicit Setup(int workers) {
    check(gdnrt_image_load_file(imagePath.c_str(), &image, &error), error);
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = workers;
    check(gdnrt_device_create_cpu(&options, &device, &error), error);
    check(gdnrt_kernel_create(device, image, kEntry, &kernel, &error), error);
    args[0] = {x, GDNRT_F32, 2, sizes, nullptr, 0};
    args[1] = {out, GDNRT_F32, 2, sizes, nullptr, 0};
    check(gdnrt_kernel_bind(kernel, args, 2, &binding, &error), error);
  }
  ~Setup() {
    gdnrt_binding_destroy(binding);
    gdnrt_kernel_destroy(kernel);
    gdnrt_device_destroy(device);
    gdnrt_image_destroy(image);
  }
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  gdnrt_kernel *kernel = nullptr;
  gdnrt_binding *binding = nullptr;
  int64_t sizes[2] = {4, 4};
  float x[16] = {}, out[16] = {};
  gdnrt_arg args[2];
};

void loadImage(benchmark::State &state) {
  gdnrt_error error;
  for (auto _ : state) {
    gdnrt_image *image = nullptr;
    check(gdnrt_image_load_file(imagePath.c_str(), &image, &error), error);
    gdnrt_image_destroy(image);
  }
}
BENCHMARK(loadImage);

void createKernel(benchmark::State &state) {
  Setup setup(1);
  // Without the kernel that setup holds, each round loads the code anew.
  gdnrt_binding_destroy(setup.binding);
  gdnrt_kernel_destroy(setup.kernel);
  setup.binding = nullptr;
  setup.kernel = nullptr;
  for (auto _ : state) {
    gdnrt_kernel *kernel = nullptr;
    check(gdnrt_kernel_create(setup.device, setup.image, kEntry, &kernel,
                              &setup.error),
          setup.error);
    gdnrt_kernel_destroy(kernel);
  }
}
BENCHMARK(createKernel);

void bind(benchmark::State &state) {
  Setup setup(1);
  for (auto _ : state) {
    gdnrt_binding *binding = nullptr;
    check(
        gdnrt_kernel_bind(setup.kernel, setup.args, 2, &binding, &setup.error),
        setup.error);
    gdnrt_binding_destroy(binding);
  }
}
BENCHMARK(bind);

void rebindOne(benchmark::State &state) {
  Setup setup(1);
  size_t param = 0;
  for (auto _ : state)
    check(gdnrt_binding_rebind(setup.binding, &param, setup.args, 1,
                               &setup.error),
          setup.error);
}
BENCHMARK(rebindOne);

void launch(benchmark::State &state) {
  Setup setup(static_cast<int>(state.range(0)));
  for (auto _ : state)
    check(gdnrt_launch(setup.binding, nullptr, &setup.error), setup.error);
}
BENCHMARK(launch)->ArgName("workers")->Arg(1)->Arg(2)->UseRealTime();

void rebindAndLaunch(benchmark::State &state) {
  Setup setup(static_cast<int>(state.range(0)));
  size_t params[] = {0, 1};
  for (auto _ : state) {
    check(gdnrt_binding_rebind(setup.binding, params, setup.args, 2,
                               &setup.error),
          setup.error);
    check(gdnrt_launch(setup.binding, nullptr, &setup.error), setup.error);
  }
}
BENCHMARK(rebindAndLaunch)->ArgName("workers")->Arg(1)->Arg(2)->UseRealTime();

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  CLI::App app("Costs of the host through the C ABI");
  app.add_option("image", imagePath, "the test image")->required();
  CLI11_PARSE(app, argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
