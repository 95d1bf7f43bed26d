// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of gdn_gpu on functions and their arguments, and the fields of
// those that have some: which there are, and what each may be. The page
// docs/spec/attributes.md says what they mean.
#include "gdn/Dialect/AttributeTable.h"
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;
using namespace gdn::gpu;

/// The largest alignment that an image can ask for.
static constexpr int64_t mostAlignment = 4096;

static bool areThreads(Attribute value) {
  return isNumber<warpThreads, 1024>(value) &&
         cast<IntegerAttr>(value).getInt() % warpThreads == 0;
}

static bool isAlignment(Attribute value) {
  return isNumber<1, mostAlignment>(value) &&
         llvm::isPowerOf2_64(cast<IntegerAttr>(value).getInt());
}

static bool isAlignmentOrNone(int64_t bytes) {
  return bytes == 0 ||
         (bytes > 0 && bytes <= mostAlignment && llvm::isPowerOf2_64(bytes));
}

static bool areAlignments(Attribute value) {
  auto array = dyn_cast<DenseI64ArrayAttr>(value);
  return array && llvm::all_of(array.asArrayRef(), isAlignmentOrNone);
}

static bool areLayouts(Attribute value) {
  auto isLayout = [](Attribute numbers) {
    auto array = dyn_cast<DenseI64ArrayAttr>(numbers);
    return array && !array.empty() && isAlignmentOrNone(array[0]) &&
           llvm::all_of(array.asArrayRef(), [](int64_t n) { return n >= 0; });
  };
  auto array = dyn_cast<ArrayAttr>(value);
  return array && llvm::all_of(array, isLayout);
}

/// What has an allowance: spills, or a warning of ptxas by its number. Without
/// a reason behind a colon a line allows nothing.
static bool isAllowance(Attribute line) {
  auto text = dyn_cast<StringAttr>(line);
  if (!text)
    return false;
  auto [what, reason] = text.getValue().split(':');
  if (reason.empty())
    return true;
  what = what.trim();
  uint64_t number;
  if (what.consume_front("C"))
    return !what.getAsInteger(10, number);
  if (!what.consume_front("spills"))
    return false;
  return what.empty() ||
         (what.consume_front(" up to ") && what.consume_back(" bytes") &&
          !what.getAsInteger(10, number));
}

static bool areAllowances(Attribute value) {
  auto lines = dyn_cast<ArrayAttr>(value);
  return isAllowance(value) || (lines && llvm::all_of(lines, isAllowance));
}

static bool isDigest(Attribute value) {
  auto digest = dyn_cast<StringAttr>(value);
  return digest && !digest.empty();
}

static bool isFlatSymbol(Attribute value) {
  return isa<FlatSymbolRefAttr>(value);
}

static LogicalResult verifyAlignedView(const AttributeUse &use) {
  FunctionType type = getReadableType(use.op);
  if (!type || use.index >= type.getNumInputs() ||
      isa<MemRefType>(type.getInput(use.index)))
    return success();
  return use.emitError() << "expects 'gdn_gpu.alignment' on memrefs only, but "
                            "argument "
                         << use.index << " is " << type.getInput(use.index);
}

/// An integer that an image has room for.
template <int64_t least, int64_t most> static bool isCount(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number &&
         (number.getType().isSignlessInteger(32) ||
          number.getType().isSignlessInteger(64)) &&
         number.getInt() >= least && number.getInt() <= most;
}

static constexpr FieldRow launchRows[] = {
    {"threads", "an integer of at least 1", isCount<1, UINT32_MAX>,
     /*fits=*/nullptr, /*isRequired=*/true},
    {"shared_bytes", "an integer of at least 0", isCount<0, INT64_MAX>},
    {"cluster", "an integer of at least 1", isCount<1, UINT32_MAX>},
    {"blocks_per_sm", "an integer of at least 0", isCount<0, UINT32_MAX>},
    {"dependent", "true or false",
     [](Attribute value) { return isa<BoolAttr>(value); }},
    {"counters", "linear forms or a product",
     [](Attribute value) {
       return isStringArray(value) || isa<StringAttr>(value);
     }},
    {"tensor_maps", "an array",
     [](Attribute value) { return isa<ArrayAttr>(value); }},
};

static constexpr FieldRow kernelRows[] = {
    {"threads", "an i64 from 32 to 1024, whole warps of 32", areThreads,
     /*fits=*/nullptr, /*isRequired=*/true},
    {"min_blocks", "an i64 from 1 to 32", isNumber<1, 32>},
    {"blocks_per_sm", "an i64 from 0 to 32", isNumber<0, 32>},
    {"cluster", "an i64 from 1 to 8", isNumber<1, 8>},
    {"counters", "an array of linear forms", isStringArray, verifyOwnForms},
    {"keep_loops", "a unit attribute", isUnit},
    {"rows_apart", "a unit attribute", isUnit},
    {"finish_products", "a unit attribute", isUnit},
    {"single_warps", "a unit attribute", isUnit},
    {"stores_matrices", "a unit attribute", isUnit},
    {"warpgroups", "a unit attribute", isUnit},
    {"aligned_variant", "a unit attribute", isUnit},
    {"promised", "a unit attribute", isUnit},
};

static constexpr FieldTable kernelFields(kernelRows), launchFields(launchRows);

static constexpr AttributeRow rows[] = {
    // Programs.
    {"gdn_gpu.kernel", onPrograms, "a dictionary", isDictionary,
     /*fits=*/nullptr, &kernelFields},
    {"gdn_gpu.alignment", onArguments, "an i64, a power of two up to 4096",
     isAlignment, verifyAlignedView},
    // Programs and the kernels that they become.
    {"gdn_gpu.fewer_blocks", onFunctions, "a unit attribute", isUnit},
    {"gdn_gpu.allow", onFunctions,
     "\"spills: <reason>\", \"spills up to <n> bytes: <reason>\", "
     "\"C<number>: <reason>\" or an array of these",
     areAllowances},
    // Kernels.
    {"gdn_gpu.launch", onCode, "a dictionary", isDictionary,
     /*fits=*/nullptr, &launchFields},
    {"gdn_gpu.alignments", onCode,
     "an array<i64> of powers of two up to 4096, or 0", areAlignments},
    {"gdn_gpu.layouts", onCode,
     "an array of array<i64>, a power of two up to 4096 or 0, then strides of "
     "at least 0",
     areLayouts},
    {"gdn_gpu.digest", onCode, "a string", isDigest},
    {"gdn_gpu.code", onCode, "a flat symbol reference", isFlatSymbol},
};

static constexpr AttributeTable table("gdn_gpu", rows);

const AttributeTable &gpu::getAttributeTable() { return table; }

LogicalResult GPUDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  return table.verifyOfOp(op, attribute);
}

LogicalResult GPUDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned index,
                                                   NamedAttribute attribute) {
  return table.verify({op, onArguments, index, attribute});
}

LogicalResult
GPUDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                        NamedAttribute attribute) {
  return table.verify({op, onResults, index, attribute});
}
