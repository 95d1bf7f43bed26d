// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Attributes of kernels; see KernelInfo.h.
#include "gdn/Target/KernelInfo.h"

#include "gdnrt/image_limits.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gdn;

bool gdn::isKernel(LLVM::LLVMFuncOp func) {
  return func->hasAttr("nvvm.kernel");
}

/// The attribute as the IR has it.
static std::string textOf(Attribute attribute) {
  if (!attribute)
    return "none";
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// Reads a field that is an integer of at least `least`; absent leaves it.
template <typename Integer>
static LogicalResult readField(LLVM::LLVMFuncOp kernel, DictionaryAttr launch,
                               StringRef name, int64_t least, Integer &field) {
  Attribute attribute = launch.get(name);
  if (!attribute)
    return success();
  auto integer = dyn_cast<IntegerAttr>(attribute);
  if (!integer || integer.getInt() < least ||
      uint64_t(integer.getInt()) > std::numeric_limits<Integer>::max())
    return kernel.emitOpError("expects '")
           << name << "' of 'gdn_gpu.launch' to be an integer of at least "
           << least << ", but got " << attribute;
  field = static_cast<Integer>(integer.getInt());
  return success();
}

static LogicalResult readCounters(LLVM::LLVMFuncOp kernel, Attribute attribute,
                                  SmallVectorImpl<std::string> &counters) {
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    if (llvm::all_of(array, llvm::IsaPred<StringAttr>)) {
      for (auto form : array.getAsRange<StringAttr>())
        counters.push_back(form.str());
      return success();
    }
  } else if (auto product = dyn_cast<StringAttr>(attribute)) {
    SmallVector<StringRef> factors;
    product.getValue().split(factors, '*');
    for (StringRef factor : factors)
      counters.push_back(factor.trim().str());
    return success();
  }
  return kernel.emitOpError("expects 'counters' of 'gdn_gpu.launch' to be "
                            "linear forms or a product, but got ")
         << attribute;
}

/// One of 'tensor_maps'.
static LogicalResult readTensorMap(LLVM::LLVMFuncOp kernel, Attribute attribute,
                                   KernelTensorMap &box) {
  auto fields = dyn_cast<DictionaryAttr>(attribute);
  auto rowsDim = fields ? fields.getAs<IntegerAttr>("rows_dim") : nullptr,
       rows = fields ? fields.getAs<IntegerAttr>("rows") : nullptr,
       param = fields ? fields.getAs<IntegerAttr>("param") : nullptr,
       region = fields ? fields.getAs<IntegerAttr>("region") : nullptr,
       pieces = fields ? fields.getAs<IntegerAttr>("pieces") : nullptr;
  auto sizes = fields ? fields.getAs<ArrayAttr>("sizes") : nullptr;
  auto isAtMost = [](IntegerAttr number, int64_t most) {
    return number && number.getInt() >= 0 && number.getInt() <= most;
  };
  constexpr int64_t mostPieces =
      gdnrt::kMaxMappedColumns / gdnrt::kBoxPieceColumns;
  const bool isWhole =
      isAtMost(rowsDim, gdnrt::kMaxMappedRank - 2) &&
      isAtMost(rows, gdnrt::kMaxBoxRows) && rows.getInt() != 0 &&
      isAtMost(param ? param : region, INT16_MAX) && !param != !region &&
      !region == !sizes && (!pieces || isAtMost(pieces, mostPieces)) &&
      (!sizes || llvm::all_of(sizes, llvm::IsaPred<StringAttr>));
  if (!isWhole)
    return kernel.emitOpError(
               "expects 'tensor_maps' of 'gdn_gpu.launch' to have "
               "'rows_dim' up to 2, 1 to 256 'rows', and 'param' or "
               "'region' with 'sizes', and up to 4 'pieces', but got ")
           << attribute;
  box.rowsDim = rowsDim.getInt();
  box.rows = rows.getInt();
  box.pieces = pieces ? pieces.getInt() : 0;
  box.param = param ? param.getInt() : -1;
  box.region = region ? region.getInt() : -1;
  if (sizes)
    for (auto form : sizes.getAsRange<StringAttr>())
      box.sizes.push_back(form.str());
  return success();
}

FailureOr<KernelLaunch> gdn::readLaunch(LLVM::LLVMFuncOp kernel) {
  Attribute attribute = kernel->getAttr("gdn_gpu.launch");
  auto launch = dyn_cast_or_null<DictionaryAttr>(attribute);
  if (!launch)
    return kernel.emitOpError(
               "expects 'gdn_gpu.launch' to be a dictionary, but got ")
           << textOf(attribute);
  static constexpr StringRef known[] = {
      "threads",   "shared_bytes", "cluster",    "blocks_per_sm",
      "dependent", "counters",     "tensor_maps"};
  for (NamedAttribute field : launch)
    if (!llvm::is_contained(known, field.getName().getValue()))
      return kernel.emitOpError("expects the fields ")
             << llvm::join(ArrayRef<StringRef>(known), ", ")
             << " in 'gdn_gpu.launch', but got '" << field.getName().getValue()
             << "'";
  if (!launch.get("threads"))
    return kernel.emitOpError(
        "expects 'threads' in 'gdn_gpu.launch', but got none");
  KernelLaunch read;
  if (failed(readField(kernel, launch, "threads", 1, read.threads)) ||
      failed(readField(kernel, launch, "shared_bytes", 0, read.sharedBytes)) ||
      failed(readField(kernel, launch, "cluster", 1, read.cluster)) ||
      failed(readField(kernel, launch, "blocks_per_sm", 0, read.blocksPerSm)))
    return failure();
  if (Attribute dependent = launch.get("dependent")) {
    auto value = dyn_cast<BoolAttr>(dependent);
    if (!value)
      return kernel.emitOpError("expects 'dependent' of 'gdn_gpu.launch' to be "
                                "true or false, but got ")
             << dependent;
    read.dependent = value.getValue();
  }
  if (Attribute counters = launch.get("counters"))
    if (failed(readCounters(kernel, counters, read.counters)))
      return failure();
  if (Attribute boxes = launch.get("tensor_maps")) {
    auto array = dyn_cast<ArrayAttr>(boxes);
    if (!array)
      return kernel.emitOpError("expects 'tensor_maps' of 'gdn_gpu.launch' to "
                                "be an array, but got ")
             << boxes;
    for (Attribute box : array)
      if (failed(readTensorMap(kernel, box, read.tensorMaps.emplace_back())))
        return failure();
  }
  return read;
}

FailureOr<uint64_t> gdn::readParameterWords(LLVM::LLVMFuncOp kernel) {
  auto fail = [&] {
    return kernel.emitOpError(
        "expects a kernel to take one pointer with 'llvm.byval' to an array of "
        "i64, 'llvm.align' = 8 or 64 and 'nvvm.grid_constant'");
  };
  if (kernel.getNumArguments() != 1)
    return fail() << ", but got " << kernel.getNumArguments() << " parameters";
  auto byval = kernel.getArgAttrOfType<TypeAttr>(0, "llvm.byval");
  auto align = kernel.getArgAttrOfType<IntegerAttr>(0, "llvm.align");
  auto array =
      byval ? dyn_cast<LLVM::LLVMArrayType>(byval.getValue()) : nullptr;
  if (!array || !array.getElementType().isInteger(64) || !align ||
      (align.getInt() != 8 && align.getInt() != 64) ||
      !kernel.getArgAttr(0, "nvvm.grid_constant"))
    return fail() << ", but got " << textOf(kernel.getArgAttrDict(0));
  return array.getNumElements();
}

bool gdn::hasAlignedParameter(LLVM::LLVMFuncOp kernel) {
  auto align = kernel.getArgAttrOfType<IntegerAttr>(0, "llvm.align");
  return align && align.getInt() % 64 == 0;
}

static bool isAlignment(int64_t bytes) {
  return bytes == 0 ||
         (bytes > 0 && bytes <= 4096 && llvm::isPowerOf2_64(bytes));
}

FailureOr<SmallVector<uint32_t>> gdn::readAlignments(LLVM::LLVMFuncOp kernel) {
  SmallVector<uint32_t> alignments;
  Attribute attribute = kernel->getAttr("gdn_gpu.alignments");
  if (!attribute)
    return alignments;
  auto array = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (!array || !llvm::all_of(array.asArrayRef(), isAlignment))
    return kernel.emitOpError("expects 'gdn_gpu.alignments' to be an "
                              "array<i64> of powers of two up to 4096, or 0, "
                              "but got ")
           << attribute;
  llvm::append_range(alignments, array.asArrayRef());
  return alignments;
}

FailureOr<SmallVector<KernelLayout, 0>>
gdn::readLayouts(LLVM::LLVMFuncOp kernel) {
  SmallVector<KernelLayout, 0> layouts;
  Attribute attribute = kernel->getAttr("gdn_gpu.layouts");
  if (!attribute)
    return layouts;
  auto isLayout = [](Attribute numbers) {
    auto array = dyn_cast<DenseI64ArrayAttr>(numbers);
    return array && !array.empty() && isAlignment(array[0]) &&
           llvm::all_of(array.asArrayRef(), [](int64_t n) { return n >= 0; });
  };
  auto array = dyn_cast<ArrayAttr>(attribute);
  if (!array || !llvm::all_of(array, isLayout))
    return kernel.emitOpError("expects 'gdn_gpu.layouts' to be an array of "
                              "array<i64>, a power of two up to 4096 or 0, "
                              "then strides of at least 0, but got ")
           << attribute;
  for (auto numbers : array.getAsRange<DenseI64ArrayAttr>()) {
    ArrayRef<int64_t> strides = numbers.asArrayRef().drop_front();
    layouts.push_back({uint32_t(numbers[0]),
                       SmallVector<int64_t>(strides.begin(), strides.end())});
  }
  return layouts;
}

/// The lines of `gdn_gpu.allow` that have a reason, by what they allow. A line
/// without a reason allows nothing.
static SmallVector<std::pair<StringRef, StringRef>>
readAllowances(LLVM::LLVMFuncOp kernel) {
  SmallVector<StringRef> lines;
  Attribute attribute = kernel->getAttr("gdn_gpu.allow");
  if (auto line = dyn_cast_or_null<StringAttr>(attribute))
    lines.push_back(line.getValue());
  else if (auto array = dyn_cast_or_null<ArrayAttr>(attribute))
    for (Attribute line : array)
      if (auto text = dyn_cast<StringAttr>(line))
        lines.push_back(text.getValue());
  SmallVector<std::pair<StringRef, StringRef>> allowed;
  for (StringRef line : lines) {
    auto [name, reason] = line.split(':');
    if (!reason.trim().empty())
      allowed.push_back({name.trim(), reason.trim()});
  }
  return allowed;
}

std::optional<std::string> gdn::readAllowance(LLVM::LLVMFuncOp kernel,
                                              StringRef what) {
  for (auto [name, reason] : readAllowances(kernel))
    if (name == what)
      return reason.str();
  return std::nullopt;
}

bool gdn::allowsSpills(LLVM::LLVMFuncOp kernel, uint64_t bytes) {
  if (readAllowance(kernel, "spills"))
    return true;
  for (auto [name, reason] : readAllowances(kernel)) {
    uint64_t most = 0;
    if (name.consume_front("spills up to ") && name.consume_back(" bytes") &&
        !name.getAsInteger(10, most) && bytes <= most)
      return true;
  }
  return bytes == 0;
}
