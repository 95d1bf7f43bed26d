// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Speed of a layer on the CPU beside what the machine can do, in one process:
// with --benchmark_enable_random_interleaving=true the repetitions of all
// measurements take turns, so that their ratios hold on a busy machine.
//
//   gdnrt_cpu_bench LAYER RULE [--benchmark_...]
//
// LAYER is an image with entries prefill_bf16_f32, decode_bf16_f32 and
// decode_bf16_bf16 of a layer with heads of 128; RULE one of delta_rule.mlir.
// tools/scripts/bench_cpu.py makes the images, runs this, and judges.

#include "baselines.h"
#include "entry_call.h"
#include "measure.h"

#include <CLI/CLI.hpp>
#include <benchmark/benchmark.h>

using namespace gdnbench;

namespace {

constexpr int64_t kKeyHeads = 16, kValueHeads = 32, kHead = 128;
constexpr int64_t kRows = 16, kTokens = 64;
/// Bytes of the state pools of decode: larger than any cache.
constexpr int64_t kPoolBytes = int64_t{5} << 28;

std::string layerPath, rulePath;

Memory &memory() {
  static Memory memory;
  return memory;
}

Runtime &runtime(const std::string &path, int workers) {
  static std::map<std::pair<std::string, int>, std::unique_ptr<Runtime>> known;
  auto &runtime = known[{path, workers}];
  if (!runtime)
    runtime = std::make_unique<Runtime>(path, workers);
  return *runtime;
}

std::unique_ptr<EntryCall> decodeCall(const std::string &state, int workers,
                                      int64_t rows) {
  int64_t slotBytes = kValueHeads * kHead * kHead * (state == "f32" ? 4 : 2);
  return std::make_unique<EntryCall>(runtime(layerPath, workers),
                                     "decode_bf16_" + state,
                                     Symbols{{"N", rows},
                                             {"P", kPoolBytes / slotBytes},
                                             {"Hk", kKeyHeads},
                                             {"Hv", kValueHeads}},
                                     memory(), "decode_" + state);
}

/// Bytes read and written per iteration.
void countBytes(benchmark::State &state, double bytes) {
  state.counters["rows"] = kRows;
  state.counters["bytes"] = bytes;
}

void decode(benchmark::State &state, const std::string &dtype, int workers) {
  auto call = decodeCall(dtype, workers, kRows);
  measure(state, [&] {
    call->advance();
    call->launch();
  });
  countBytes(state, 2.0 * kRows * call->slotBytes());
}

void stream(benchmark::State &state, int threads) {
  auto call = decodeCall("f32", 1, kRows);
  measure(state, [&] {
    call->advance();
    updateInPlace(call->statePool(), call->slotBytes(), call->slots(), threads);
  });
  countBytes(state, 2.0 * kRows * call->slotBytes());
}

/// Flops of the recurrence alone, whatever else the entry does.
void prefill(benchmark::State &state, const std::string &path, int workers) {
  EntryCall call(runtime(path, workers),
                 path == layerPath ? "prefill_bf16_f32" : "prefill",
                 Symbols{{"T", kTokens},
                         {"N", 1},
                         {"P", 2},
                         {"Hk", kKeyHeads},
                         {"Hv", kValueHeads}},
                 memory(), "prefill");
  measure(state, [&] { call.launch(); });
  state.counters["tokens"] = kTokens;
  state.counters["flops"] = 7.0 * kHead * kHead * kTokens * kValueHeads;
}

void sgemm(benchmark::State &state, int threads) {
  constexpr int kProducts = 96;
  MatrixProducts products({kHead, kHead, kHead}, kProducts, threads);
  measure(state, [&] { products.run(); });
  state.counters["flops"] = products.flops();
}

void loadImage(benchmark::State &state) {
  gdnrt_error error;
  measure(state, [&] {
    gdnrt_image *image = nullptr;
    check(gdnrt_image_load_file(layerPath.c_str(), &image, &error), error);
    gdnrt_image_destroy(image);
  });
}

/// One skipped row: what remains is the host's work.
void host(benchmark::State &state, void (*step)(EntryCall &)) {
  auto call = decodeCall("f32", 1, 1);
  call->skipAllRows();
  // Steps are shorter than reading the clock is exact.
  constexpr int kSteps = 100;
  measure(state, [&] {
    for (int i = 0; i < kSteps; ++i)
      step(*call);
  });
  for (auto &[name, value] : state.counters)
    value = value / kSteps;
}

void registerAll() {
  auto add = [](const std::string &name, auto function) {
    benchmark::RegisterBenchmark(name.c_str(), function)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  using State = benchmark::State;
  for (int n : {1, 2}) {
    std::string workers = "/" + std::to_string(n);
    add("stream" + workers, [=](State &s) { stream(s, n); });
    for (std::string dtype : {"f32", "bf16"})
      add("decode_" + dtype + workers, [=](State &s) { decode(s, dtype, n); });
    add("sgemm" + workers, [=](State &s) { sgemm(s, n); });
    add("rule" + workers, [=](State &s) { prefill(s, rulePath, n); });
    add("layer" + workers, [=](State &s) { prefill(s, layerPath, n); });
  }
  add("load_image", loadImage);
  add("bind", [](State &s) { host(s, [](EntryCall &c) { c.bindAgain(); }); });
  add("rebind_slots",
      [](State &s) { host(s, [](EntryCall &c) { c.rebindSlots(); }); });
  add("launch", [](State &s) { host(s, [](EntryCall &c) { c.launch(); }); });
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  CLI::App app("Layers on the CPU, beside memory and OpenBLAS");
  app.add_option("layer", layerPath, "the image of a layer")->required();
  app.add_option("rule", rulePath, "the image of delta_rule.mlir")->required();
  CLI11_PARSE(app, argc, argv);
  benchmark::AddCustomContext("openblas", openblasVersion());
  benchmark::AddCustomContext("gdnrt", gdnrt_version_string());
  registerAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
