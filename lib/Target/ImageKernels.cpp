// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels in the manifest; see ImageKernels.h.
#include "ImageKernels.h"

#include "gdnrt/image_limits.h"

using namespace mlir;
using namespace gdn;
namespace fb = gdnrt::fb;

LogicalResult gdn::readKernel(LLVM::LLVMFuncOp kernel, StageCode &stage,
                              SmallVector<uint32_t, 0> &alignments) {
  FailureOr<KernelLaunch> launch = readLaunch(kernel);
  FailureOr<uint64_t> words = readParameterWords(kernel);
  FailureOr<SmallVector<uint32_t>> demanded = readAlignments(kernel);
  if (failed(launch) || failed(words) || failed(demanded))
    return failure();
  if (launch->tensorMaps.size() > gdnrt::kMaxTensorMaps)
    return kernel.emitOpError("expects at most ")
           << gdnrt::kMaxTensorMaps
           << " boxes, which the runtime takes, but got "
           << launch->tensorMaps.size();
  if (!launch->tensorMaps.empty() && !hasAlignedParameter(kernel))
    return kernel.emitOpError(
        "expects 'llvm.align' = 64 of a parameter with tensor maps, but got 8");
  stage.launch = std::move(*launch);
  stage.words = *words;
  alignments.resize(std::max(alignments.size(), demanded->size()));
  for (auto [known, bytes] : llvm::zip(alignments, *demanded))
    known = std::max(known, bytes);
  return success();
}

/// The words of a bound call of the entry: parameters, then symbols.
static uint64_t countWords(const fb::EntryT &entry) {
  uint64_t words = entry.symbols.size();
  for (const auto &param : entry.params)
    words += 1 + 2 * param->dims.size() +
             (param->kind == fb::ParamKind::pool ? 1 : 0);
  return words;
}

/// Fails if `box` is not of an array that the runtime takes boxes of: a
/// parameter, or one of `regions` with `sizes`.
static LogicalResult
checkTensorMap(func::FuncOp func, const KernelTensorMap &box,
               const fb::EntryT &entry, size_t regions,
               const std::vector<std::unique_ptr<fb::LinearFormT>> &sizes) {
  const auto *dims = &sizes;
  int64_t pieces = 1; // of 16 bits in an element
  const size_t known = box.param >= 0 ? entry.params.size() : regions;
  if (size_t(std::max(box.param, box.region)) >= known)
    return func.emitOpError("expects a box of one of ")
           << known << (box.param >= 0 ? " parameters" : " regions")
           << ", but got number " << std::max(box.param, box.region);
  if (box.param >= 0) {
    const fb::ParamT &param = *entry.params[box.param];
    pieces = param.dtype == fb::DType::f32 ? 2 : 1;
    if (pieces == 1 && param.dtype != fb::DType::bf16 &&
        param.dtype != fb::DType::f16)
      return func.emitOpError("expects a box of elements of 16 bits or f32, "
                              "but ")
             << param.name << " has " << fb::EnumNameDType(param.dtype);
    dims = &param.dims;
  }
  const size_t rank = dims->size();
  const int64_t columns = rank != 0 && dims->back()->symbols.empty()
                              ? dims->back()->constant * pieces
                              : 0;
  if (rank >= 2 && rank <= gdnrt::kMaxMappedRank && box.rowsDim < rank - 1 &&
      columns > 0 && columns <= gdnrt::kMaxMappedColumns &&
      columns % gdnrt::kBoxPieceColumns == 0 &&
      box.pieces <= columns / gdnrt::kBoxPieceColumns)
    return success();
  return func.emitOpError("expects a box of an array of 2 to ")
         << gdnrt::kMaxMappedRank << " dimensions, the last a multiple of "
         << gdnrt::kBoxPieceColumns << " up to " << gdnrt::kMaxMappedColumns
         << ", and of another one's rows, but got rank " << rank << ", "
         << columns << " columns, rows of dimension " << box.rowsDim << " and "
         << box.pieces << " pieces of " << gdnrt::kBoxPieceColumns
         << " columns";
}

LogicalResult gdn::encodeKernel(func::FuncOp func, const StageCode &stage,
                                size_t regions, const fb::EntryT &entry,
                                fb::StageT &encoded) {
  // Behind the words of a call: the workspace and the number of units.
  uint64_t words = countWords(entry) + regions + 2;
  if (size_t boxes = stage.launch->tensorMaps.size())
    words = llvm::alignTo(words, 8) + 16 * boxes; // maps of 128 bytes
  if (stage.words != words)
    return func.emitOpError("expects the kernel ")
           << stage.symbol << " to take " << words
           << " words, those of a call, two more and its tensor maps, but got "
           << stage.words;
  auto launch = std::make_unique<fb::LaunchT>();
  launch->threads = stage.launch->threads;
  launch->shared_bytes = stage.launch->sharedBytes;
  launch->cluster = stage.launch->cluster;
  launch->blocks_per_sm = stage.launch->blocksPerSm;
  launch->dependent = stage.launch->dependent;
  if (failed(encodeForms(func, "counters", stage.launch->counters,
                         entry.symbols, launch->counters)))
    return failure();
  for (const KernelTensorMap &box : stage.launch->tensorMaps) {
    auto described = std::make_unique<fb::TensorMapT>();
    described->param = box.param;
    described->region = box.region;
    described->rows_dim = box.rowsDim;
    described->rows = box.rows;
    described->pieces = box.pieces;
    if (failed(encodeForms(func, "sizes of a box", box.sizes, entry.symbols,
                           described->sizes)) ||
        failed(checkTensorMap(func, box, entry, regions, described->sizes)))
      return failure();
    launch->tensor_maps.push_back(std::move(described));
  }
  encoded.launch = std::move(launch);
  if (const std::optional<KernelResources> &said = stage.resources) {
    encoded.resources = std::make_unique<fb::ResourcesT>();
    encoded.resources->registers = said->registers;
    encoded.resources->static_shared_bytes = said->staticShared;
    encoded.resources->stack_bytes = said->stack;
    encoded.resources->spill_store_bytes = said->spillStores;
    encoded.resources->spill_load_bytes = said->spillLoads;
    encoded.resources->code_bytes = said->code;
  }
  return success();
}

LogicalResult gdn::encodeAlignments(func::FuncOp func, const EntryCode &code,
                                    const fb::EntryT &entry,
                                    fb::CodeT &encoded) {
  if (!code.alignments.empty() && code.alignments.size() != entry.params.size())
    return func.emitOpError("expects an alignment for each of the entry's ")
           << entry.params.size() << " parameters, but got "
           << code.alignments.size();
  encoded.alignments.assign(code.alignments.begin(), code.alignments.end());
  return success();
}

LogicalResult gdn::encodeLayouts(func::FuncOp func, const VariantCode &variant,
                                 const fb::EntryT &entry,
                                 fb::VariantT &encoded) {
  if (variant.layouts.empty())
    return success();
  if (variant.layouts.size() != entry.params.size())
    return func.emitOpError("expects a layout for each of the entry's ")
           << entry.params.size() << " parameters in the variant "
           << variant.name << ", but got " << variant.layouts.size();
  for (auto [param, layout] : llvm::zip(entry.params, variant.layouts)) {
    if (!layout.strides.empty() && layout.strides.size() != param->dims.size())
      return func.emitOpError("expects ")
             << param->dims.size() << " strides of " << param->name
             << " in the variant " << variant.name << ", but got "
             << layout.strides.size();
    auto made = std::make_unique<fb::LayoutT>();
    made->alignment = layout.alignment;
    made->strides.assign(layout.strides.begin(), layout.strides.end());
    encoded.layouts.push_back(std::move(made));
  }
  return success();
}

void gdn::addDigest(const TargetCode &target, const EntryCode &code,
                    fb::EntryT &entry) {
  auto pair = std::make_unique<fb::KeyValueT>();
  pair->key = "gdn.digest." + target.target;
  pair->value = code.digest;
  bool isKnown = llvm::any_of(entry.attributes, [&](const auto &known) {
    return known->key == pair->key;
  });
  if (!code.digest.empty() && !isKnown)
    entry.attributes.push_back(std::move(pair));
}
