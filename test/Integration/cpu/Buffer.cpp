// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of buffers and access through strides; see Buffer.h.
#include "Buffer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace gdn::integration;
using gdn::data::Array;
using gdn::data::DType;

static size_t roundUp(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

static std::shared_ptr<char> map(size_t size, int flags) {
  void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (base == MAP_FAILED)
    llvm::report_fatal_error("mmap of a test buffer failed");
  return {static_cast<char *>(base), [size](char *p) { munmap(p, size); }};
}

/// `bytes` bytes at the end or the start of the pages between two guards.
static std::shared_ptr<char> mapGuarded(size_t bytes, bool atEnd) {
  const size_t page = sysconf(_SC_PAGESIZE);
  const size_t inner = std::max(roundUp(bytes, page), page);
  std::shared_ptr<char> whole = map(inner + 2 * page, 0);
  mprotect(whole.get(), page, PROT_NONE);
  mprotect(whole.get() + page + inner, page, PROT_NONE);
  char *start = whole.get() + page + (atEnd ? inner - bytes : 0);
  return {whole, start};
}

static std::shared_ptr<char> allocate(size_t bytes, Placement placement) {
  switch (placement) {
  case Placement::heap:
    return {new char[std::max<size_t>(bytes, 1)],
            std::default_delete<char[]>()};
  case Placement::guardAfter:
  case Placement::guardBefore:
    return mapGuarded(bytes, placement == Placement::guardAfter);
  case Placement::sparse:
    return map(std::max<size_t>(bytes, 1), MAP_NORESERVE);
  }
  llvm_unreachable("a Placement outside its enumeration");
}

Buffer::Buffer(DType dtype, llvm::ArrayRef<int64_t> shape,
               llvm::ArrayRef<int64_t> strides, Placement placement)
    : type(dtype), sizes(shape), steps(strides),
      isSparse(placement == Placement::sparse) {
  if (steps.empty()) {
    steps.assign(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;)
      steps[d - 1] = steps[d] * sizes[d];
  }
  int64_t last = 0;
  bool empty = false;
  for (auto [size, step] : llvm::zip(sizes, steps)) {
    empty |= size == 0;
    last += (size - 1) * step;
  }
  bytes = empty ? 0 : (last + 1) * data::byteSize(type);
  memory = allocate(bytes, placement);
  if (!isSparse)
    std::memset(memory.get(), 0xFF, bytes);
}

Buffer Buffer::clone() const {
  Buffer copy(type, sizes, steps);
  std::memcpy(copy.memory.get(), memory.get(), bytes);
  return copy;
}

template <typename Visitor>
void Buffer::forEach(int64_t begin, int64_t count, Visitor visit) const {
  const size_t rank = sizes.size();
  std::vector<int64_t> index(rank, 0);
  int64_t elements = count;
  for (size_t d = 1; d < rank; ++d)
    elements *= sizes[d];
  int64_t offset = begin * steps[0];
  for (int64_t i = 0; i < elements; ++i) {
    visit(offset * int64_t(data::byteSize(type)));
    for (size_t d = rank; d-- > 0;) {
      offset += steps[d];
      if (++index[d] < sizes[d] || d == 0)
        break;
      offset -= steps[d] * sizes[d];
      index[d] = 0;
    }
  }
}

Array Buffer::gather(int64_t begin, int64_t count) const {
  std::vector<int64_t> shape = sizes;
  shape[0] = count;
  Array array = Array::zeros(type, shape);
  const size_t size = data::byteSize(type);
  char *to = array.bytes.data();
  forEach(begin, count, [&](int64_t offset) {
    std::memcpy(to, memory.get() + offset, size);
    to += size;
  });
  return array;
}

void Buffer::scatter(int64_t begin, const Array &array) {
  const size_t size = data::byteSize(type);
  const char *from = array.bytes.data();
  forEach(begin, array.shape[0], [&](int64_t offset) {
    std::memcpy(memory.get() + offset, from, size);
    from += size;
  });
}

std::vector<double> Buffer::rows(int64_t begin, int64_t count) const {
  return gather(begin, count).toDoubles();
}

void Buffer::assignRows(int64_t begin, llvm::ArrayRef<double> values) {
  std::vector<int64_t> shape = sizes;
  int64_t width = 1;
  for (int64_t size : llvm::drop_begin(sizes))
    width *= size;
  shape[0] = width ? int64_t(values.size()) / width : 0;
  scatter(begin, Array::fromDoubles(type, shape, values));
}

void Buffer::fillRow(int64_t i, double value) {
  assignRows(i, std::vector<double>(rows(i, 1).size(), value));
}

void Buffer::fill(double value) {
  assign(std::vector<double>(values().size(), value));
}

void Buffer::copyRow(int64_t i, const Buffer &other) {
  scatter(i, other.gather(i, 1));
}

bool Buffer::sameRow(int64_t i, const Buffer &other) const {
  return gather(i, 1).bytes == other.gather(i, 1).bytes;
}

bool Buffer::sameMemory(const Buffer &other) const {
  return sizes == other.sizes && bytes == other.bytes &&
         std::memcmp(memory.get(), other.memory.get(), bytes) == 0;
}

gdnrt_arg Buffer::arg(int64_t nullSlot) const {
  gdnrt_arg arg = {};
  arg.data = memory.get();
  arg.dtype = int32_t(type);
  arg.rank = int32_t(sizes.size());
  arg.sizes = sizes.data();
  arg.strides = steps.data();
  arg.null_slot = nullSlot;
  return arg;
}
