// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the boxes of a variant to arrays in memory.

#include "gdnrt/tensor_maps.h"

#include "gdnrt/binding.h"

#include <algorithm>

using namespace gdnrt;

TensorMaps::TensorMaps(const CodeSchema &code, const TensorMapEncoder *encoder)
    : encoder_(encoder) {
  if (!encoder)
    return;
  size_t mostMaps = 0, mostStages = 0;
  for (const VariantSchema &variant : code.variants) {
    size_t boxes = 0;
    for (const StageSchema &stage : variant.stages)
      boxes += stage.launch ? stage.launch->tensorMaps.size() : 0;
    mostMaps = std::max(mostMaps, boxes);
    mostStages = std::max(mostStages, variant.stages.size());
  }
  arrays_.reserve(mostMaps);
  words_.resize(mostMaps * kMapWords);
  firstWords_.resize(mostStages);
}

/// In elements of 16 bits, of which an f32 is two.
static MappedArray arrayOf(const ParamSchema &param, const BoundParam &bound) {
  MappedArray array;
  array.param = &param.name;
  array.data = bound.present ? bound.data : nullptr;
  array.rank = param.rank();
  std::copy_n(bound.sizes, array.rank, array.sizes);
  std::copy_n(bound.strides, array.rank, array.strides);
  if (param.dtype == DType::f32) {
    array.sizes[array.rank - 1] *= 2;
    for (int d = 0; d + 1 < array.rank; ++d)
      array.strides[d] *= 2;
  }
  return array;
}

/// The array of a region, which has to lie within it.
static Status arrayOf(const EntrySchema &entry, const TensorMapSchema &box,
                      const LaunchPlan::Variant &plan,
                      const std::vector<int64_t> &symbols, void *workspace,
                      MappedArray &array) {
  array.region = *box.region;
  array.rank = static_cast<int>(box.sizes.size());
  uint64_t begin = plan.regionOffsets[*box.region];
  uint64_t end = *box.region + 1 < plan.regionOffsets.size()
                     ? plan.regionOffsets[*box.region + 1]
                     : *plan.workspaceBytes;
  int64_t elements = 1;
  bool isSound = true, isEmpty = false;
  for (int d = array.rank - 1; d >= 0; --d) {
    std::optional<int64_t> size =
        box.sizes[static_cast<size_t>(d)].evaluate(symbols);
    isSound &= size && *size >= 0;
    array.sizes[d] = isSound ? *size : 0;
    array.strides[d] = elements;
    isEmpty |= isSound && *size == 0;
    isSound &=
        isEmpty || !__builtin_mul_overflow(elements, array.sizes[d], &elements);
  }
  // The two bytes of an element, with no overflow.
  if (!isSound ||
      (!isEmpty && static_cast<uint64_t>(elements) > (end - begin) / 2))
    return invalid(entry.name, ": region ", *box.region,
                   " of the workspace: expected place for the array of its "
                   "boxes, of ",
                   isSound ? std::to_string(elements) : "too many",
                   " elements of 2 bytes, got ", end - begin, " bytes");
  array.data =
      isEmpty ? nullptr : static_cast<unsigned char *>(workspace) + begin;
  return {};
}

Status TensorMaps::encode(const EntrySchema &entry, const CodeSchema &code,
                          size_t index, const LaunchPlan &plan,
                          const std::vector<BoundParam> &params,
                          const std::vector<int64_t> &symbols,
                          void *workspace) {
  const VariantSchema &variant = code.variants[index];
  arrays_.clear();
  for (size_t s = 0; s < variant.stages.size(); ++s) {
    firstWords_[s] = arrays_.size() * kMapWords;
    for (const TensorMapSchema &box : variant.stages[s].launch->tensorMaps) {
      MappedArray array;
      if (box.param)
        array = arrayOf(entry.params[*box.param], params[*box.param]);
      else if (Status status = arrayOf(entry, box, plan.variants()[index],
                                       symbols, workspace, array);
               !status.isOk())
        return status;
      array.rowsDim = static_cast<int>(box.rowsDim);
      array.rows = box.rows;
      array.pieces = box.pieces;
      arrays_.push_back(array);
    }
  }
  if (arrays_.empty())
    return {};
  return encoder_->encode(arrays_.data(), arrays_.size(), words_.data());
}
