// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random programs of row maps and nested loops with permuted carried tiles, run
// on the CPU and by an interpreter of values, which has no places.
#include "TileProgram.h"

#include "gtest/gtest.h"

#include <random>

using namespace gdn::test;

namespace {

/// Writes a program and computes its values; each tile is four equal elements.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  struct Op {
    std::vector<int> inputs, results; // numbers of tiles
    bool isLoop = false;
    std::vector<int> arguments, yields; // of a loop
    std::vector<Op> body;
  };

  int pick(size_t size) { return random() % size; }

  /// Ops on the tiles `known`, which grows.
  std::vector<Op> block(std::vector<int> &known, int depth) {
    std::vector<Op> ops;
    for (int i = 0, count = 2 + pick(4); i < count; ++i) {
      Op op;
      op.isLoop = depth < 2 && pick(3) == 0;
      for (int k = 0, arity = 1 + pick(3); k < arity; ++k)
        op.inputs.push_back(known[pick(known.size())]);
      if (op.isLoop) {
        std::vector<int> inside = known;
        for (size_t k = 0; k < op.inputs.size(); ++k) {
          op.arguments.push_back(next++);
          inside.push_back(op.arguments.back());
        }
        op.body = block(inside, depth + 1);
        // Mostly recent tiles: arguments and what was made of them.
        for (size_t k = 0; k < op.inputs.size(); ++k)
          op.yields.push_back(inside[inside.size() - 1 -
                                     pick(std::min<size_t>(6, inside.size()))]);
      }
      size_t results = op.isLoop ? op.inputs.size() : 1 + pick(2);
      for (size_t k = 0; k < results; ++k) {
        op.results.push_back(next++);
        known.push_back(op.results.back());
      }
      ops.push_back(std::move(op));
    }
    return ops;
  }

  static std::string list(const std::vector<int> &tiles, const char *prefix) {
    std::string text;
    for (int tile : tiles)
      text += (text.empty() ? "" : ", ") + (prefix + std::to_string(tile));
    return text;
  }
  static std::string types(size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += i ? ", vector<4xf32>" : "vector<4xf32>";
    return text;
  }

  /// Result `k` of a map is the sum of the inputs halved, plus k + 1.
  static std::string print(const std::vector<Op> &ops) {
    std::string text;
    for (const Op &op : ops) {
      text += list(op.results, "%v") + " = ";
      size_t n = op.inputs.size();
      if (op.isLoop) {
        std::string carried;
        for (size_t k = 0; k < n; ++k)
          carried += (k ? ", %v" : "%v") + std::to_string(op.arguments[k]) +
                     " = %v" + std::to_string(op.inputs[k]);
        text += "scf.for %t" + std::to_string(op.results[0]) +
                " = %c0 to %n step %c1 iter_args(" + carried + ") -> (" +
                types(n) + ") {\n" + print(op.body) + "scf.yield " +
                list(op.yields, "%v") + " : " + types(n) + "\n}\n";
        continue;
      }
      text += "gdn_tile.map_rows " + list(op.inputs, "%v") + " : " + types(n) +
              " -> " + types(op.results.size()) + " {\n^bb0(%i: index";
      for (size_t k = 0; k < n; ++k)
        text += ", %e" + std::to_string(k) + ": f32";
      text += "):\n%half = arith.constant 0.5 : f32\n%s0 = arith.mulf %e0, "
              "%half : f32\n";
      for (size_t k = 1; k < n; ++k) {
        std::string now = std::to_string(k), old = std::to_string(k - 1);
        text += "%p" + now + " = arith.mulf %e" + now + ", %half : f32\n%s" +
                now + " = arith.addf %s" + old + ", %p" + now + " : f32\n";
      }
      std::string yields, kinds;
      for (size_t k = 0; k < op.results.size(); ++k) {
        std::string now = std::to_string(k);
        text += "%q" + now + " = arith.constant " + std::to_string(k + 1) +
                ".0 : f32\n%y" + now + " = arith.addf %s" +
                std::to_string(n - 1) + ", %q" + now + " : f32\n";
        yields += (k ? ", %y" : "%y") + now;
        kinds += k ? ", f32" : "f32";
      }
      text += "gdn_tile.yield " + yields + " : " + kinds + "\n}\n";
    }
    return text;
  }

  static void evaluate(const std::vector<Op> &ops, std::vector<float> &values,
                       int64_t n) {
    for (const Op &op : ops) {
      std::vector<float> carried;
      for (int input : op.inputs)
        carried.push_back(values[input]);
      if (op.isLoop) {
        for (int64_t round = 0; round < n; ++round) {
          for (size_t k = 0; k < carried.size(); ++k)
            values[op.arguments[k]] = carried[k];
          evaluate(op.body, values, n);
          for (size_t k = 0; k < carried.size(); ++k)
            carried[k] = values[op.yields[k]];
        }
        for (size_t k = 0; k < carried.size(); ++k)
          values[op.results[k]] = carried[k];
        continue;
      }
      float sum = carried[0] * 0.5f;
      for (size_t k = 1; k < carried.size(); ++k)
        sum = sum + carried[k] * 0.5f;
      for (size_t k = 0; k < op.results.size(); ++k)
        values[op.results[k]] = sum + float(k + 1);
    }
  }

  int next = 3; // tiles 0 to 2 are loaded

private:
  std::mt19937 random;
};

TEST(RandomProgramsTest, AgreeWithValues) {
  const std::string view = "memref<4xf32>", tile = "vector<4xf32>";
  for (unsigned seed = 0; seed < 60; ++seed) {
    Generator generator(seed);
    std::vector<int> known = {0, 1, 2};
    std::vector<Generator::Op> ops = generator.block(known, 0);
    std::string body, views;
    for (int i = 0; i < 3; ++i) {
      std::string x = "%x" + std::to_string(i);
      views += (i ? ", " : "") + x + ": " + view;
      body += "%v" + std::to_string(i) + " = gdn_tile.load " + x +
              "[%c0] dims [0] : " + view + ", " + tile + "\n";
    }
    body += Generator::print(ops);
    std::vector<int> last(known.end() - 3, known.end());
    for (int i = 0; i < 3; ++i)
      body += "gdn_tile.store %v" + std::to_string(last[i]) + ", %x" +
              std::to_string(i) + "[%c0] dims [0] : " + tile + ", " + view +
              "\n";
    Program program(views, body, 8);
    ASSERT_TRUE(program.compiled()) << "seed " << seed;
    for (int64_t n : {0, 1, 3}) {
      std::vector<float> x[3] = {std::vector<float>(4, 1),
                                 std::vector<float>(4, 100),
                                 std::vector<float>(4, -1000)};
      std::vector<float> values(generator.next);
      values[0] = 1, values[1] = 100, values[2] = -1000;
      Generator::evaluate(ops, values, n);
      program.run(n, {{x[0].data(), {4}, {1}},
                      {x[1].data(), {4}, {1}},
                      {x[2].data(), {4}, {1}}});
      for (int i = 0; i < 3; ++i)
        for (float got : x[i])
          ASSERT_EQ(got, values[last[i]])
              << "seed " << seed << ", N = " << n << ", output " << i << "\n"
              << body;
    }
  }
}

} // namespace
