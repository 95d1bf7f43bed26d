// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recorded activations: steps in the order of time, projections put together,
// and states in the layout of pools.
#include "gdn/Run/Recording.h"

#include "gdn/Data/Safetensors.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"

#include <gmock/gmock.h>

using namespace gdn;
using namespace gdn::run;

namespace {

class RecordingTest : public testing::Test {
protected:
  RecordingTest()
      : path(testing::TempDir() + "/gdn-recording-" +
             std::to_string(llvm::sys::Process::getProcessId()) +
             ".safetensors") {}
  ~RecordingTest() override { (void)llvm::sys::fs::remove(path); }

  void add(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
           std::vector<double> values = {}) {
    int64_t size = *data::elementCount(shape);
    for (int64_t i = values.size(); i < size; ++i)
      values.push_back(i);
    values.resize(size);
    tensors.arrays[name.str()] =
        data::Array::fromDoubles(data::DType::f32, shape, values);
  }
  /// One layer with Hk = Hv = 1, dk = 2, dv = 3, K = 4; two tokens, then one.
  void addLayer(llvm::StringRef layer) {
    add(("weights." + layer + ".A_log").str(), {1});
    add(("weights." + layer + ".conv1d.weight").str(), {7, 1, 4});
    for (auto [phase, tokens] :
         {std::pair("prefill", 2), {"decode0", 1}, {"decode1", 1}}) {
      std::string prefix = (llvm::Twine(phase) + "." + layer + ".").str();
      add(prefix + "core_pre_norm", {tokens, 3});
      add(prefix + "in_proj_b", {1, tokens, 1}, {10, 11});
      add(prefix + "in_proj_a", {1, tokens, 1}, {20, 21});
    }
  }
  llvm::Expected<Recording> load() {
    llvm::cantFail(data::writeSafetensors(path, tensors));
    return Recording::load(path);
  }
  static Parameter parameter(llvm::StringRef name,
                             llvm::ArrayRef<llvm::StringRef> dims,
                             bool isPool = false) {
    Parameter parameter;
    parameter.name = name.str();
    parameter.isPool = isPool;
    for (llvm::StringRef dim : dims)
      parameter.dims.push_back(llvm::cantFail(LinearForm::parse(dim)));
    return parameter;
  }

  data::Tensors tensors;
  std::string path;
};

TEST_F(RecordingTest, StepsInTheOrderOfTime) {
  addLayer("layer1");
  addLayer("layer0");
  Recording recording = llvm::cantFail(load());
  std::vector<std::string> steps;
  for (const RecordedStep &step : recording.getSteps())
    steps.push_back(step.phase + "." + step.layer);
  EXPECT_THAT(steps, testing::ElementsAre("prefill.layer0", "decode0.layer0",
                                          "decode1.layer0", "prefill.layer1",
                                          "decode0.layer1", "decode1.layer1"));
}

TEST_F(RecordingTest, SizesComeFromTheWeights) {
  addLayer("layer0");
  Recording recording = llvm::cantFail(load());
  auto symbols = recording.symbols(recording.getSteps()[0], /*valueDim=*/3,
                                   /*keyDim=*/2, /*slots=*/3);
  ASSERT_TRUE(bool(symbols));
  EXPECT_EQ(*symbols,
            (Symbols{{"T", 2}, {"N", 1}, {"P", 3}, {"Hk", 1}, {"Hv", 1}}));
}

TEST_F(RecordingTest, HeadsOfALogOfRankFour) {
  addLayer("layer0");
  add("weights.layer0.A_log", {1, 1, 2, 1});
  add("weights.layer0.conv1d.weight", {14, 1, 4});
  add("prefill.layer0.core_pre_norm", {4, 3});
  Recording recording = llvm::cantFail(load());
  const RecordedStep &step = recording.getSteps()[0];
  auto symbols = recording.symbols(step, /*valueDim=*/3, /*keyDim=*/2,
                                   /*slots=*/3);
  ASSERT_TRUE(bool(symbols)) << llvm::toString(symbols.takeError());
  EXPECT_EQ(symbols->at("Hv"), 2);
  EXPECT_EQ(symbols->at("Hk"), 2);
  EXPECT_EQ(symbols->at("T"), 2);
  // Not a number for each head.
  add("weights.layer0.A_log", {2, 2});
  Recording wrong = llvm::cantFail(load());
  auto none = wrong.symbols(step, 3, 2, 3);
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(llvm::toString(none.takeError()),
            path + ": expects the tensor 'weights.layer0.A_log', but it is not "
                   "there");
}

TEST_F(RecordingTest, GatesOfEachChannel) {
  addLayer("layer0");
  tensors.arrays.erase("prefill.layer0.in_proj_a");
  add("prefill.layer0.f_b_proj", {1, 2, 2}, {30, 31, 32, 33});
  add("prefill.layer0.g_b_proj", {1, 2, 3});
  Recording recording = llvm::cantFail(load());
  const RecordedStep &step = recording.getSteps()[0];
  Symbols symbols = {{"T", 2}, {"Hv", 1}};
  auto a = recording.argument(step, parameter("a", {"T", "Hv", "2"}), symbols);
  ASSERT_TRUE(bool(a)) << llvm::toString(a.takeError());
  EXPECT_THAT(a->shape, testing::ElementsAre(2, 1, 2));
  EXPECT_THAT(a->toDoubles(), testing::ElementsAre(30, 31, 32, 33));
  auto z = recording.argument(step, parameter("z", {"T", "Hv", "3"}), symbols);
  ASSERT_TRUE(bool(z)) << llvm::toString(z.takeError());
}

TEST_F(RecordingTest, ProjectionsSideBySide) {
  addLayer("layer0");
  Recording recording = llvm::cantFail(load());
  Symbols symbols = {{"T", 2}, {"Hv", 1}};
  auto ba = recording.argument(recording.getSteps()[0],
                               parameter("ba", {"T", "2*Hv"}), symbols);
  ASSERT_TRUE(bool(ba)) << llvm::toString(ba.takeError());
  EXPECT_THAT(ba->toDoubles(), testing::ElementsAre(10, 20, 11, 21));
}

TEST_F(RecordingTest, StatesInTheLayoutOfPools) {
  addLayer("layer0");
  add("prefill.layer0.conv_states", {1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  add("prefill.layer0.recurrent_states", {1, 1, 2, 3}, {0, 1, 2, 3, 4, 5});
  Recording recording = llvm::cantFail(load());
  const RecordedStep &step = recording.getSteps()[0];
  auto conv = recording.result(step, parameter("conv_pool", {}, true));
  ASSERT_TRUE(conv.has_value());
  EXPECT_THAT(conv->toDoubles(), testing::ElementsAre(1, 2, 3, 5, 6, 7));
  auto state = recording.result(step, parameter("state_pool", {}, true));
  ASSERT_TRUE(state.has_value());
  EXPECT_THAT(state->shape, testing::ElementsAre(1, 3, 2));
  EXPECT_THAT(state->toDoubles(), testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_FALSE(recording.result(step, parameter("out", {})).has_value());
}

TEST_F(RecordingTest, SaysWhatIsMissing) {
  add("other", {1});
  auto none = load();
  ASSERT_FALSE(bool(none));
  EXPECT_EQ(llvm::toString(none.takeError()),
            path + ": expects recorded activations (prefill.<layer>."
                   "core_pre_norm and others), but got none");
  addLayer("layer0");
  Recording recording = llvm::cantFail(load());
  auto qkvz = recording.argument(recording.getSteps()[0],
                                 parameter("qkvz", {"T", "9"}), {{"T", 2}});
  ASSERT_FALSE(bool(qkvz));
  EXPECT_EQ(llvm::toString(qkvz.takeError()),
            path + ": prefill.layer0: nothing was recorded for the entry's "
                   "parameter 'qkvz'");
  auto wide = recording.argument(recording.getSteps()[0],
                                 parameter("b", {"T", "2"}), {{"T", 2}});
  ASSERT_FALSE(bool(wide));
  EXPECT_EQ(llvm::toString(wide.takeError()),
            path + ": prefill.layer0: expects [2, 2] elements for the entry's "
                   "parameter 'b', but got f32[2, 1]");
}

} // namespace
