// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile programs as text, compiled for this machine and called like an entry.
#ifndef GDN_TEST_UNIT_TILETOCPU_TILEPROGRAM_H
#define GDN_TEST_UNIT_TILETOCPU_TILEPROGRAM_H

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace gdn::test {

/// A view of floats that a program gets as an argument.
struct View {
  float *data;
  std::vector<int64_t> sizes, strides;
};

/// The code of one tile function `@f(%n: index, views...)` with the grid
/// ["N"], the symbols ["N"], and `body` as its body. The constants %c0 and %c1
/// are there.
class Program {
public:
  Program(const std::string &views, const std::string &body, int64_t lanes);
  ~Program();

  /// Runs one block with N = `n`.
  void run(int64_t n, const std::vector<View> &views) const;

  bool compiled() const { return entry != nullptr; }

private:
  void compile(const std::string &views, const std::string &body,
               int64_t lanes);

  struct Jit;
  std::unique_ptr<Jit> jit;
  void (*entry)(const int64_t *, int64_t, int64_t, void *) = nullptr;
  int64_t scratchBytes = 0;
};

/// Text for matrices of f32: the type of a view, the type of a tile, `%NAMEt`
/// loaded from view `%NAME`, and `%VALUE` stored to it.
std::string view(int64_t rows, int64_t columns);
std::string tile(int64_t rows, int64_t columns);
std::string load(const std::string &name, int64_t rows, int64_t columns);
std::string store(const std::string &value, const std::string &name,
                  int64_t rows, int64_t columns);
/// The argument for such a view.
View of(std::vector<float> &data, int64_t rows, int64_t columns);

/// `count` values from a normal distribution times `scale`.
std::vector<float> randomValues(size_t count, float scale, unsigned seed);

/// Root of the summed squared differences over that of `want`.
double relativeError(const std::vector<float> &got,
                     const std::vector<double> &want);

} // namespace gdn::test

#endif // GDN_TEST_UNIT_TILETOCPU_TILEPROGRAM_H
