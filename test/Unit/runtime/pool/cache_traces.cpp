// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random traces of a state cache against a naive model.
//
//   gdnrt_cache_traces [--traces=200] [--seed=1]
//
// Plays traces number seed, seed + 1, ... and stops at the first that fails.

#include "cache_model.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace gdnrt::test;

int main(int argc, char **argv) {
  uint64_t traces = 200, seed = 1;
  CLI::App app("Random traces of a state cache against a naive model");
  app.add_option("--traces", traces, "how many traces");
  app.add_option("--seed", seed, "the number of the first");
  CLI11_PARSE(app, argc, argv);
  CacheCoverage all;
  for (uint64_t i = 0; i < traces; ++i)
    if (std::string wrong = playCacheTrace(seed + i, all); !wrong.empty()) {
      std::cout << wrong << "\n";
      return 1;
    }
  std::cout << traces << " traces passed: " << all.steps << " steps, "
            << all.inserted << " prefixes inserted, " << all.duplicates
            << " duplicate pages, " << all.full << " times full, " << all.hits
            << " hits, " << all.locks << " locks, " << all.evictedPages
            << " pages and " << all.evictedCheckpoints
            << " checkpoints evicted, room made " << all.madeRoom << " times, "
            << all.moved << " checkpoints moved to the host, " << all.fetched
            << " fetched, " << all.leftHost << " evicted there\n";
  return 0;
}
