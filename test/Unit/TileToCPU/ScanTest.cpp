// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// conv1d and delta_scan in CPU code against plain loops in double, for head
// sizes, vector widths and tails.
#include "TileProgram.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace gdn::test;

namespace {

std::string number(int64_t value) { return std::to_string(value); }

std::string vec(std::vector<int64_t> shape) {
  std::string text = "vector<";
  for (int64_t size : shape)
    text += number(size) + "x";
  return text + "f32>";
}

std::string mem(std::vector<int64_t> shape) {
  return "memref" + vec(shape).substr(6);
}

std::string load(const std::string &name, std::vector<int64_t> shape) {
  bool matrix = shape.size() == 2;
  return "%" + name + " = gdn_tile.load %m_" + name +
         (matrix ? "[%c0, %c0] dims [0, 1] : " : "[%c0] dims [0] : ") +
         mem(shape) + ", " + vec(shape) + "\n";
}

std::string store(const std::string &name, std::vector<int64_t> shape,
                  const std::string &rows = "") {
  return "gdn_tile.store %" + name + ", %m_" + name + "[%c0, %c0] dims [0, 1]" +
         rows + " : " + vec(shape) + ", " + mem(shape) + "\n";
}

View view(std::vector<float> &data, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (int64_t i = sizes.size() - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * sizes[i + 1];
  return {data.data(), sizes, strides};
}

struct ScanCase {
  int64_t dk, dv, tokens, valid, lanes;
  bool perChannel;
  bool hasBeta = true; // else values are written as they are
};

class ScanTest : public ::testing::TestWithParam<ScanCase> {};

TEST_P(ScanTest, AgreesWithLoops) {
  auto [dk, dv, tokens, valid, lanes, perChannel, hasBeta] = GetParam();
  // Known to be one token: the state passes from view to view.
  bool oneToken = tokens == 1 && valid == 1;
  std::vector<int64_t> gShape = {tokens};
  if (perChannel)
    gShape.push_back(dk);
  std::string args =
      "%m_m: " + mem({dv, dk}) + ", %m_q: " + mem({tokens, dk}) +
      ", %m_k: " + mem({tokens, dk}) + ", %m_v: " + mem({tokens, dv}) +
      ", %m_g: " + mem(gShape) + ", %m_b: " + mem({tokens}) +
      ", %m_next: " + mem({dv, dk}) + ", %m_o: " + mem({tokens, dv});
  Program program(
      args,
      load("m", {dv, dk}) + load("q", {tokens, dk}) + load("k", {tokens, dk}) +
          load("v", {tokens, dv}) + load("g", gShape) + load("b", {tokens}) +
          "%next, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g" +
          (hasBeta ? ", %b" : "") + ") valid(" + (oneToken ? "%c1" : "%n") +
          ") : " + vec({dv, dk}) + ", " + vec({tokens, dk}) + ", " +
          vec({tokens, dv}) + ", " + vec(gShape) + "\n" +
          store("next", {dv, dk}) + store("o", {tokens, dv}, " rows(%n)"),
      lanes);
  ASSERT_TRUE(program.compiled());

  std::vector<float> m = randomValues(dv * dk, 1, 1),
                     q = randomValues(tokens * dk, 1 / std::sqrt(dk), 2),
                     k = randomValues(tokens * dk, 1 / std::sqrt(dk), 3),
                     v = randomValues(tokens * dv, 1, 4),
                     g = randomValues(perChannel ? tokens * dk : tokens, 1, 5),
                     b = randomValues(tokens, 1, 6), next(dv * dk, -7),
                     o(tokens * dv, -7);
  for (float &x : g)
    x = -std::fabs(x);
  for (float &x : b)
    x = 1 / (1 + std::exp(-x));
  std::vector<double> state(m.begin(), m.end()), out(valid * dv);
  for (int64_t t = 0; t < valid; ++t)
    for (int64_t i = 0; i < dv; ++i) {
      double *row = &state[i * dk], predicted = 0, sum = 0;
      for (int64_t j = 0; j < dk; ++j) {
        row[j] *= std::exp(double(perChannel ? g[t * dk + j] : g[t]));
        predicted += row[j] * k[t * dk + j];
      }
      double delta = v[t * dv + i];
      if (hasBeta)
        delta = b[t] * (delta - predicted);
      for (int64_t j = 0; j < dk; ++j) {
        row[j] += delta * k[t * dk + j];
        sum += row[j] * q[t * dk + j];
      }
      out[t * dv + i] = sum;
    }
  program.run(valid,
              {view(m, {dv, dk}), view(q, {tokens, dk}), view(k, {tokens, dk}),
               view(v, {tokens, dv}), view(g, gShape), view(b, {tokens}),
               view(next, {dv, dk}), view(o, {tokens, dv})});
  EXPECT_LE(relativeError(next, state), 1e-6);
  EXPECT_LE(relativeError(o, out), 1e-6);
  for (size_t i = valid * dv; i < o.size(); ++i)
    ASSERT_EQ(o[i], -7) << "row past the valid ones";
}

std::vector<ScanCase> scanCases() {
  std::vector<ScanCase> cases;
  for (auto [dk, dv] : std::vector<std::pair<int64_t, int64_t>>{
           {8, 8}, {24, 40}, {64, 128}, {96, 192}, {128, 128}, {256, 256}})
    for (int64_t lanes : {4, 8, 16})
      for (bool perChannel : {false, true})
        for (auto [tokens, valid] : std::vector<std::pair<int64_t, int64_t>>{
                 {16, 16}, {16, 11}, {1, 1}, {1, 0}, {4, 0}})
          if (dk * dv <= 8192 || (lanes == 8 && tokens * valid != 256))
            cases.push_back({dk, dv, tokens, valid, lanes, perChannel});
  for (bool perChannel : {false, true})
    for (int64_t tokens : {16, 1})
      cases.push_back({24, 40, tokens, std::min<int64_t>(tokens, 11), 8,
                       perChannel, /*hasBeta=*/false});
  return cases;
}

std::string scanName(const ::testing::TestParamInfo<ScanCase> &info) {
  const ScanCase &c = info.param;
  return "k" + number(c.dk) + "v" + number(c.dv) + "t" + number(c.tokens) +
         "n" + number(c.valid) + "l" + number(c.lanes) +
         (c.perChannel ? "c" : "h") + (c.hasBeta ? "" : "v");
}

INSTANTIATE_TEST_SUITE_P(Shapes, ScanTest, ::testing::ValuesIn(scanCases()),
                         scanName);

/// A scan of `tokens` tokens with sizes 96 x 128, per head.
std::unique_ptr<Program> scanOf(int64_t tokens) {
  std::vector<int64_t> m = {128, 96}, k = {tokens, 96}, v = {tokens, 128};
  return std::make_unique<Program>(
      "%m_m: " + mem(m) + ", %m_k: " + mem(k) + ", %m_v: " + mem(v) +
          ", %m_g: " + mem({tokens}) + ", %m_o: " + mem(v),
      load("m", m) + load("k", k) + load("v", v) + load("g", {tokens}) +
          "%o1 = gdn_tile.map_rows %g : " + vec({tokens}) + " -> " +
          vec({tokens}) + " {\n^bb0(%i: index, %e: f32):\n" +
          "%b = arith.negf %e : f32\ngdn_tile.yield %b : f32\n}\n" +
          "%next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %o1) "
          "valid(" +
          (tokens == 1 ? "%c1" : "%n") + ") : " + vec(m) + ", " + vec(k) +
          ", " + vec(v) + ", " + vec({tokens}) + "\n" +
          "gdn_tile.store %next, %m_m[%c0, %c0] dims [0, 1] : " + vec(m) +
          ", " + mem(m) + "\n" + store("o", v),
      8);
}

/// A token gives the same bits alone, in place, and in a block of tokens.
TEST(ScanBitsTest, OneByOneEqualsAtOnce) {
  const int64_t tokens = 7;
  std::vector<float> m = randomValues(128 * 96, 1, 1), one = m,
                     k = randomValues(tokens * 96, 0.1, 2),
                     v = randomValues(tokens * 128, 1, 3),
                     g = randomValues(tokens, 0.3, 4), all(tokens * 128),
                     single(tokens * 128);
  for (float &x : g)
    x = -std::fabs(x);
  auto whole = scanOf(tokens), step = scanOf(1);
  ASSERT_TRUE(whole->compiled() && step->compiled());
  whole->run(tokens,
             {view(m, {128, 96}), view(k, {tokens, 96}), view(v, {tokens, 128}),
              view(g, {tokens}), view(all, {tokens, 128})});
  for (int64_t t = 0; t < tokens; ++t)
    step->run(1, {view(one, {128, 96}),
                  {k.data() + t * 96, {1, 96}, {96, 1}},
                  {v.data() + t * 128, {1, 128}, {128, 1}},
                  {g.data() + t, {1}, {1}},
                  {single.data() + t * 128, {1, 128}, {128, 1}}});
  EXPECT_EQ(m, one);
  EXPECT_EQ(all, single);
}

struct ConvCase {
  int64_t channels, width, tokens, valid, lanes;
  bool bias;
};

class ConvTest : public ::testing::TestWithParam<ConvCase> {};

TEST_P(ConvTest, AgreesWithLoops) {
  auto [d, width, tokens, valid, lanes, bias] = GetParam();
  int64_t kept = width - 1;
  Program program(
      "%m_x: " + mem({tokens, d}) + ", %m_p: " + mem({kept, d}) +
          ", %m_w: " + mem({width, d}) + ", %m_b: " + mem({d}) +
          ", %m_y: " + mem({tokens, d}) + ", %m_next: " + mem({kept, d}),
      load("x", {tokens, d}) + load("p", {kept, d}) + load("w", {width, d}) +
          load("b", {d}) + "%y, %next = gdn_tile.conv1d %x, %p, %w " +
          (bias ? "bias(%b : " + vec({d}) + ") " : "") +
          "valid(%n) : " + vec({tokens, d}) + ", " + vec({kept, d}) + ", " +
          vec({width, d}) + "\n" + store("y", {tokens, d}, " rows(%n)") +
          store("next", {kept, d}),
      lanes);
  ASSERT_TRUE(program.compiled());
  std::vector<float> x = randomValues(tokens * d, 1, 1),
                     p = randomValues(kept * d, 1, 2),
                     w = randomValues(width * d, 1, 3),
                     b = randomValues(d, 1, 4), y(tokens * d, -7),
                     next(kept * d, -7);
  std::vector<float> history = p;
  history.insert(history.end(), x.begin(), x.end());
  std::vector<double> want(valid * d);
  for (int64_t t = 0; t < valid; ++t)
    for (int64_t c = 0; c < d; ++c) {
      double sum = bias ? b[c] : 0;
      for (int64_t j = 0; j < width; ++j)
        sum += double(w[j * d + c]) * history[(t + j) * d + c];
      want[t * d + c] = sum;
    }
  program.run(valid,
              {view(x, {tokens, d}), view(p, {kept, d}), view(w, {width, d}),
               view(b, {d}), view(y, {tokens, d}), view(next, {kept, d})});
  EXPECT_LE(relativeError(y, want), 3e-7);
  for (int64_t i = 0; i < kept * d; ++i)
    ASSERT_EQ(next[i], history[valid * d + i]) << "a window is never rounded";
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvTest,
                         ::testing::Values(ConvCase{8, 4, 1, 1, 8, false},
                                           ConvCase{40, 4, 16, 16, 16, true},
                                           ConvCase{128, 4, 16, 2, 8, false},
                                           ConvCase{128, 4, 16, 0, 8, true},
                                           ConvCase{96, 2, 5, 5, 4, false},
                                           ConvCase{24, 8, 16, 3, 16, true},
                                           ConvCase{3, 4, 4, 4, 8, false}));

} // namespace
