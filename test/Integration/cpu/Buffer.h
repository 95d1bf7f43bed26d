// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A strided array in memory of its own, as a caller of the C ABI would have it:
// dense, a window into something wider, between guard pages, or sparse.
#ifndef GDN_TEST_INTEGRATION_CPU_BUFFER_H
#define GDN_TEST_INTEGRATION_CPU_BUFFER_H

#include "gdn-c/runtime.h"
#include "gdn/Data/Array.h"

#include <memory>
#include <vector>

namespace gdn::integration {

/// Where the memory of a buffer lies.
enum class Placement {
  heap,
  guardAfter,  ///< the byte behind the memory cannot be accessed
  guardBefore, ///< the byte before the memory cannot be accessed
  sparse       ///< pages that are never touched cost nothing
};

/// Memory that holds a strided array and, where strides leave gaps, more.
/// Copies share the memory; `clone` makes a new one.
class Buffer {
public:
  Buffer() = default;

  /// With null `strides` row-major. Every byte is 0xFF (a NaN in each
  /// floating-point type), but for sparse memory, which is zero.
  Buffer(data::DType dtype, llvm::ArrayRef<int64_t> shape,
         llvm::ArrayRef<int64_t> strides = {},
         Placement placement = Placement::heap);

  /// The same values and gaps in other memory; not for sparse buffers.
  Buffer clone() const;

  data::DType dtype() const { return type; }
  llvm::ArrayRef<int64_t> shape() const { return sizes; }
  int64_t dim(unsigned i) const { return sizes[i]; }
  bool sparse() const { return isSparse; }

  /// All values in row-major order.
  std::vector<double> values() const { return rows(0, sizes[0]); }
  /// The values at indices `begin` to `begin + count` of dimension 0.
  std::vector<double> rows(int64_t begin, int64_t count) const;
  std::vector<double> row(int64_t i) const { return rows(i, 1); }

  /// Rounds values and puts them into place.
  void assign(llvm::ArrayRef<double> values) { assignRows(0, values); }
  void assignRows(int64_t begin, llvm::ArrayRef<double> values);
  /// Element `i` of a vector, or row `i` filled with one value.
  void fillRow(int64_t i, double value);
  void fill(double value);

  /// The elements of row `i` of `other`, of the same shape and type, bit by
  /// bit.
  void copyRow(int64_t i, const Buffer &other);
  /// True if rows `i` hold the same bits.
  bool sameRow(int64_t i, const Buffer &other) const;
  /// True if shape, elements and gaps hold the same bits.
  bool sameMemory(const Buffer &other) const;

  /// For binding; borrows the buffer.
  gdnrt_arg arg(int64_t nullSlot) const;

private:
  data::Array gather(int64_t begin, int64_t count) const;
  void scatter(int64_t begin, const data::Array &array);
  /// Calls `visit` with the byte offset of each element of some rows.
  template <typename Visitor>
  void forEach(int64_t begin, int64_t count, Visitor visit) const;

  data::DType type = data::DType::f32;
  std::vector<int64_t> sizes, steps;
  std::shared_ptr<char> memory;
  size_t bytes = 0;
  bool isSparse = false;
};

} // namespace gdn::integration

#endif // GDN_TEST_INTEGRATION_CPU_BUFFER_H
