// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A complete, checked set of arguments for one entry, held as the flat words
// that code consumes. Binding looks at descriptions of arrays and never at
// what their pointers point at.

#ifndef GDNRT_BINDING_H
#define GDNRT_BINDING_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/footprint.h"
#include "gdnrt/status.h"
#include "gdnrt/symbol_solver.h"

#include <memory>
#include <vector>

namespace gdnrt {

/// One argument as the caller describes it. Sizes and strides are read during
/// the call only; strides are in elements, and null strides mean row-major.
/// Null data with rank 0 leaves out an optional parameter.
struct Argument {
  void *data = nullptr;
  int32_t dtype = 0;
  int32_t rank = 0;
  const int64_t *sizes = nullptr;
  const int64_t *strides = nullptr;
  int64_t nullSlot = 0;
};

/// An argument that passed the checks which concern it alone.
struct BoundParam {
  bool present = false;
  void *data = nullptr;
  int64_t nullSlot = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};
  Footprint footprint;
};

class Binding {
public:
  /// Binds `count` arguments in parameter order. `grid` are the forms of the
  /// code that will run, `alignments` the bytes that it asks of each parameter.
  static Result<std::unique_ptr<Binding>>
  make(std::shared_ptr<const EntrySchema> entry,
       const std::vector<LinearForm> &grid, const Argument *args, size_t count,
       const std::vector<uint32_t> &alignments = {});

  /// Replaces the arguments of some parameters and checks everything again.
  /// On failure the binding is what it was. Takes no memory on success.
  Status rebind(const size_t *params, const Argument *args, size_t count);

  /// Whether launches may begin before the kernel ahead of them has ended.
  void allowDependentLaunch(bool allowed) { dependentLaunch_ = allowed; }
  bool allowsDependentLaunch() const { return dependentLaunch_; }

  const EntrySchema &entry() const { return *entry_; }
  const std::vector<int64_t> &words() const { return words_; }
  const std::vector<BoundParam> &params() const { return params_; }
  int64_t symbol(size_t index) const {
    return words_[entry_->firstSymbolWord() + index];
  }
  /// Units of work of one launch.
  int64_t units() const { return units_; }

private:
  Binding(std::shared_ptr<const EntrySchema> entry,
          const std::vector<LinearForm> &grid,
          const std::vector<uint32_t> &alignments);
  Status checkAll();
  void commit();

  std::shared_ptr<const EntrySchema> entry_;
  std::vector<LinearForm> grid_;
  std::vector<uint32_t> alignments_;
  SymbolSolver solver_;
  /// What is bound now, and what the next commit will bind.
  std::vector<BoundParam> params_, nextParams_;
  std::vector<const int64_t *> nextSizes_;
  std::vector<int64_t> words_;
  bool dependentLaunch_ = false;
  int64_t units_ = 0, nextUnits_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_BINDING_H
