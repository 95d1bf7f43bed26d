// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reference against activations recorded from transformers: prefill, then
// every decode step, through the entries in test/data/entries. The recording is
// float32, which rounds to about 1e-6; states of the convolution are raw inputs
// and must be the same bits.
#include "EvaluatorTest.h"

#include "gdn/Data/Compare.h"
#include "gdn/Data/Safetensors.h"

using namespace gdn::reference;
using gdn::data::Array;

namespace {
struct Model {
  const char *name;
  std::vector<std::string> layers;
  int64_t prompt, steps, keyHeads, valueHeads, dk, dv;
  /// Parameters of the entry that vary with tokens, and the recorded modules.
  std::vector<std::pair<std::string, std::string>> projections;
  const char *norm; ///< weight of the norm

  int64_t channels() const { return 2 * keyHeads * dk + valueHeads * dv; }
};

/// The largest error of each kind over all phases of a layer.
struct Errors {
  double core = 0, out = 0, state = 0;
};

class Golden : public EvaluatorTest,
               public ::testing::WithParamInterface<Model> {
protected:
  /// The recorded values in another shape.
  Tensor recorded(const std::string &name, llvm::ArrayRef<int64_t> shape);
  bool has(const std::string &name) { return file.find(name); }
  void runLayer(mlir::ModuleOp entries, const std::string &layer,
                Errors &errors);
  void compareStates(const std::string &prefix, const Pool &conv,
                     const Pool &state, Errors &errors);

  gdn::data::Tensors file;
};
} // namespace

Tensor Golden::recorded(const std::string &name,
                        llvm::ArrayRef<int64_t> shape) {
  auto array = file.get(name);
  if (!array) {
    ADD_FAILURE() << llvm::toString(array.takeError());
    return Tensor::zeros(shape);
  }
  EXPECT_EQ((*array)->size(), *gdn::data::elementCount(shape)) << name;
  return {shape, (*array)->toDoubles()};
}

/// Raises `worst` to the relative RMSE of `got` and checks the bound.
static void compareTo(const Tensor &got, const Tensor &want, double &worst,
                      const std::string &what) {
  ASSERT_EQ(got.data.size(), want.data.size()) << what;
  const double error = gdn::data::compare(got.data, want.data).relativeRMSE;
  EXPECT_LE(error, 2e-6) << what;
  worst = std::max(worst, error);
}

void Golden::compareStates(const std::string &prefix, const Pool &conv,
                           const Pool &state, Errors &errors) {
  const Model &m = GetParam();
  // Recorded: the last 4 raw inputs; ours are the last 3.
  Tensor inputs = recorded(prefix + "conv_states", {m.channels(), 4});
  std::vector<double> last;
  for (int64_t c = 0; c < m.channels(); ++c)
    llvm::append_range(last, inputs.row(c).drop_front());
  expectSame(conv.data.row(1), last);

  // Recorded: [dk, dv] per head; ours is [dv, dk].
  Tensor kMajor =
      recorded(prefix + "recurrent_states", {m.valueHeads, m.dk, m.dv});
  Tensor vMajor = Tensor::zeros({m.valueHeads, m.dv, m.dk});
  for (int64_t h = 0; h < m.valueHeads; ++h)
    for (int64_t i = 0; i < m.dk; ++i)
      for (int64_t j = 0; j < m.dv; ++j)
        vMajor.row(h)[j * m.dk + i] = kMajor.row(h)[i * m.dv + j];
  Tensor got = {vMajor.shape, state.data.row(1).vec()};
  compareTo(got, vMajor, errors.state, prefix + "recurrent_states");
}

void Golden::runLayer(mlir::ModuleOp entries, const std::string &layer,
                      Errors &errors) {
  const Model &m = GetParam();
  // Slot 1 of three; the others must stay as they are.
  Pool conv = {Tensor::zeros({3, m.channels(), 3}), 0};
  Pool state = {Tensor::zeros({3, m.valueHeads, m.dv, m.dk}), 0};
  const std::string weights = "weights." + layer + ".";
  std::map<std::string, Argument> arguments = {
      {"Hk", m.keyHeads},
      {"Hv", m.valueHeads},
      {"conv_weight", recorded(weights + "conv1d.weight", {m.channels(), 4})},
      {"A_log", recorded(weights + "A_log", {m.valueHeads})},
      {"dt_bias", recorded(weights + "dt_bias", {m.valueHeads})},
      {"norm_weight", recorded(weights + m.norm, {m.dv})},
      {"slots", vector({1})},
      {"cu_seqlens", vector({0, double(m.prompt)})},
      {"conv_pool", &conv},
      {"state_pool", &state}};

  for (int64_t step = -1; step < m.steps; ++step) {
    const bool first = step < 0;
    std::string prefix = first ? "prefill" : "decode" + std::to_string(step);
    prefix.append(".").append(layer).append(".");
    SCOPED_TRACE(prefix);
    const int64_t tokens = first ? m.prompt : 1;
    for (const auto &[parameter, module] : m.projections) {
      const Array *array = file.find(prefix + module);
      ASSERT_TRUE(array) << prefix + module;
      arguments[parameter] =
          recorded(prefix + module, {tokens, array->shape.back()});
    }
    auto results =
        runByName(function(entries, first ? "prefill" : "decode"), arguments);
    ASSERT_EQ(results.size(), 2u);
    const llvm::SmallVector<int64_t> shape = {tokens, m.valueHeads, m.dv};
    compareTo(results[0], recorded(prefix + "core_pre_norm", shape),
              errors.core, prefix + "core_pre_norm");
    compareTo(results[1], recorded(prefix + "post_norm", shape), errors.out,
              prefix + "post_norm");
    const bool statesExpected = first || step == 0 || step == m.steps - 1;
    EXPECT_EQ(has(prefix + "conv_states"), statesExpected);
    if (statesExpected)
      compareStates(prefix, conv, state, errors);
  }
  for (int64_t slot : {0, 2}) {
    expectSame(conv.data.row(slot), Tensor::zeros({m.channels(), 3}).data);
    expectSame(state.data.row(slot),
               Tensor::zeros({m.valueHeads, m.dv, m.dk}).data);
  }
}

TEST_P(Golden, EveryLayerAndPhase) {
  const Model &m = GetParam();
  const std::string data = GDN_TEST_DATA;
  auto read =
      gdn::data::readSafetensors(data + "/" + m.name + "_tiny.safetensors");
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  file = std::move(*read);
  mlir::ModuleOp entries = parseFile(data + "/entries/" + m.name + ".mlir");
  ASSERT_TRUE(entries);
  for (const std::string &layer : m.layers) {
    Errors errors;
    runLayer(entries, layer, errors);
    printf("%s %s: relative RMSE of core %.2e, out %.2e, state %.2e\n", m.name,
           layer.c_str(), errors.core, errors.out, errors.state);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Golden,
    ::testing::Values(Model{"qwen3_next",
                            {"layer0", "layer1"},
                            150,
                            8,
                            2,
                            4,
                            128,
                            128,
                            {{"qkvz", "in_proj_qkvz"}, {"ba", "in_proj_ba"}},
                            "norm.weight"},
                      Model{"qwen3_5",
                            {"layer0"},
                            130,
                            8,
                            2,
                            4,
                            128,
                            128,
                            {{"qkv", "in_proj_qkv"},
                             {"z", "in_proj_z"},
                             {"b", "in_proj_b"},
                             {"a", "in_proj_a"}},
                            "norm.weight"},
                      Model{"olmo_hybrid",
                            {"layer0"},
                            100,
                            6,
                            3,
                            3,
                            96,
                            192,
                            {{"q", "q_proj"},
                             {"k", "k_proj"},
                             {"v", "v_proj"},
                             {"z", "g_proj"},
                             {"b", "b_proj"},
                             {"a", "a_proj"}},
                            "o_norm.weight"}),
    [](const auto &info) { return std::string(info.param.name); });
