// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The delta rule token by token and in chunks, over lengths of a row, beside
// OpenBLAS at the products of a chunk: one thread, one process, so that with
// --benchmark_enable_random_interleaving=true all take turns.
//
//   gdnrt_form_bench TOKENS CHUNKS CHOSEN DK DV [--benchmark_...]
//
// Images of delta_rule.mlir for heads of DK and DV: one that never uses
// chunks, one that always does, and one that goes by the target's rule.
// tools/scripts/bench_forms.py makes them, runs this, and judges.

#include "baselines.h"
#include "entry_call.h"
#include "measure.h"

#include <CLI/CLI.hpp>

using namespace gdnbench;

namespace {

constexpr int64_t kKeyHeads = 1, kValueHeads = 2, kChunk = 64;
/// Powers of two, the neighbours of whole chunks, and tails of every size.
constexpr int64_t kLengths[] = {
    1,   2,   4,    8,    12,   16,   20,   24,   28,  32,  40,  48,
    56,  63,  64,   65,   72,   80,   88,   96,   112, 127, 128, 129,
    144, 160, 191,  192,  193,  224,  255,  256,  257, 288, 511, 512,
    513, 544, 1023, 1024, 1025, 2048, 2049, 4095, 4096};

Memory &memory() {
  static Memory memory;
  return memory;
}

/// Lengths that are over in no time run several times per iteration.
void row(benchmark::State &state, Runtime &runtime, int64_t tokens) {
  EntryCall call(runtime, "prefill",
                 Symbols{{"T", tokens},
                         {"N", 1},
                         {"P", 2},
                         {"Hk", kKeyHeads},
                         {"Hv", kValueHeads}},
                 memory(), "pool");
  int64_t launches = std::max<int64_t>(1, 16 / tokens);
  measure<ProcessClock>(state, [&] {
    for (int64_t i = 0; i < launches; ++i)
      call.launch();
  });
  for (const char *name : {"us", "us_min", "us_max"})
    state.counters[name] = state.counters[name] / launches;
  state.counters["tokens"] = tokens;
  state.counters["value_heads"] = kValueHeads;
}

void sgemm(benchmark::State &state, int dk, int dv) {
  MatrixProducts products({kChunk, dk, dv}, 96, 1);
  measure<ProcessClock>(state, [&] { products.run(); });
  state.counters["flops"] = products.flops();
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  std::string images[3];
  int dk = 0, dv = 0;
  CLI::App app("The delta rule token by token and in chunks");
  app.add_option("tokens", images[0], "never chunks")->required();
  app.add_option("chunks", images[1], "always chunks")->required();
  app.add_option("chosen", images[2], "by the target's rule")->required();
  app.add_option("dk", dk, "the size of keys")->required();
  app.add_option("dv", dv, "the size of values")->required();
  CLI11_PARSE(app, argc, argv);
  benchmark::AddCustomContext("openblas", openblasVersion());
  benchmark::AddCustomContext("gdnrt", gdnrt_version_string());
  std::vector<std::unique_ptr<Runtime>> runtimes;
  const char *names[] = {"tokens", "chunks", "chosen"};
  for (int i = 0; i < 3; ++i) {
    runtimes.push_back(std::make_unique<Runtime>(images[i], 1));
    Runtime &runtime = *runtimes.back();
    for (int64_t length : kLengths)
      benchmark::RegisterBenchmark(
          (names[i] + ("/" + std::to_string(length))).c_str(),
          [&runtime, length](benchmark::State &s) { row(s, runtime, length); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RegisterBenchmark("sgemm",
                               [=](benchmark::State &s) { sgemm(s, dk, dv); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
