// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form against the reference.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;
using data::GateKind;

static void fill(Call &call, const char *name, double value) {
  call[name].fill(value);
}
static void repeatKeys(Call &call) {
  const std::vector<double> key = call["k"].row(0);
  for (int64_t t = 0; t < call["k"].dim(0); ++t)
    call["k"].assignRows(t, key);
}
static void scale(Call &call, const char *name, double factor) {
  std::vector<double> values = call[name].values();
  for (double &value : values)
    value *= factor;
  call[name].assign(values);
}
TEST(Explore, Errors) {
  for (FloatKind io : {FloatKind::bf16, FloatKind::f16, FloatKind::f32})
    for (auto [dk, dv] : {std::pair<int64_t, int64_t>{128, 128}}) {
      for (Form form : {Form::plain, Form::layer})
        for (GateKind gates : {GateKind::nearOne, GateKind::realistic,
                               GateKind::strong, GateKind::veryStrong})
          for (int edit : {0, 1, 2, 3, 4, 5}) {
            if (form == Form::layer && edit)
              continue;
            Config config(dk, dv);
            config.form = form;
            config.options.io = io;
            config.options.outputs = EntryOutputs::core;
            config.layout = InputLayout::separate;
            config.pipeline.chunkFrom = 0;
            config.pipeline.precision = Precision::mixed;
            for (int64_t T : {17, 64, 129, 1000}) {
              Batch batch;
              batch.lengths = {T};
              batch.ratio = 2;
              batch.inputs.gates = gates;
              Call call(config, "prefill", batch);
              if (edit == 1)
                scale(call, "v", 1e4);
              if (edit == 2)
                repeatKeys(call), fill(call, "beta", 1);
              if (edit == 3)
                scale(call, "v", 1e-4);
              if (edit == 4)
                repeatKeys(call), fill(call, "beta", 1), scale(call, "v", 1e4);
              if (edit == 5)
                fill(call, "beta", 1);
              call.run();
              call.check({1, 1, 1});
              printf("%s form%d %s edit%d T=%ld core %.2e state %.2e\n",
                     stringify(io).str().c_str(), int(form),
                     data::name(gates).str().c_str(), edit, T,
                     call.errors().core, call.errors().state);
            }
          }
    }
}

TEST(Ablate, Errors) {
  for (Form form : {Form::plain, Form::layer})
    for (GateKind gates : {GateKind::nearOne, GateKind::realistic})
      for (int edit : {0, 2}) {
        if (form == Form::layer && edit)
          continue;
        Config config(128, 128);
        config.form = form;
        config.options.io = FloatKind::f32;
        config.options.outputs = EntryOutputs::core;
        config.layout = InputLayout::separate;
        config.pipeline.chunkFrom = 0;
        config.pipeline.precision = Precision::mixed;
        for (int64_t T : {64, 1000}) {
          Batch batch;
          batch.lengths = {T};
          batch.ratio = 2;
          batch.inputs.gates = gates;
          Call call(config, "prefill", batch);
          if (edit == 2)
            repeatKeys(call), fill(call, "beta", 1);
          call.run();
          call.check({1, 1, 1});
          printf("%s %s %s T=%ld core %.2e state %.2e\n",
                 form == Form::plain ? "plain" : "layer",
                 data::name(gates).str().c_str(), edit ? "same" : "",
                 T, call.errors().core, call.errors().state);
        }
      }
}
