// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of gdn_gpu on functions and their arguments: which there are,
// and what each may be. The page docs/spec/attributes.md says what they mean.
#include "gdn/Dialect/AttributeTable.h"
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;
using namespace gdn::gpu;

/// The largest alignment that an image can ask for.
static constexpr int64_t mostAlignment = 4096;

static bool isUnit(Attribute value) { return isa<UnitAttr>(value); }

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

static bool isDictionary(Attribute value) { return isa<DictionaryAttr>(value); }

static LogicalResult verifyOwnForms(const AttributeUse &use) {
  return verifyForms(use, use.getValue());
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

namespace {
/// A field of 'gdn_gpu.launch'.
struct LaunchField {
  StringLiteral name, value;
  bool (*holds)(Attribute);
};
} // namespace

/// An integer that an image has room for.
template <int64_t least, int64_t most> static bool isCount(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number &&
         (number.getType().isSignlessInteger(32) ||
          number.getType().isSignlessInteger(64)) &&
         number.getInt() >= least && number.getInt() <= most;
}

static constexpr LaunchField launchFields[] = {
    {"threads", "an integer of at least 1", isCount<1, UINT32_MAX>},
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

static LogicalResult verifyLaunch(const AttributeUse &use) {
  auto launch = cast<DictionaryAttr>(use.getValue());
  for (NamedAttribute field : launch) {
    const LaunchField *known =
        llvm::find_if(launchFields, [&](const LaunchField &known) {
          return known.name == field.getName().getValue();
        });
    if (known == std::end(launchFields)) {
      auto names = llvm::map_range(launchFields, [](const LaunchField &known) {
        return known.name.str();
      });
      return use.emitError() << "expects the fields " << llvm::join(names, ", ")
                             << " in 'gdn_gpu.launch', but got '"
                             << field.getName().getValue() << "'";
    }
    if (!known->holds(field.getValue()))
      return use.emitError()
             << "expects '" << known->name << "' of 'gdn_gpu.launch' to be "
             << known->value << ", but got " << field.getValue();
  }
  if (!launch.get("threads"))
    return use.emitError()
           << "expects 'threads' in 'gdn_gpu.launch', but got none";
  return success();
}

static constexpr AttributeRow rows[] = {
    // Programs.
    {"gdn_gpu.threads", onPrograms, "an i64 from 32 to 1024, whole warps of 32",
     areThreads},
    {"gdn_gpu.min_blocks", onPrograms, "an i64 from 1 to 32", isNumber<1, 32>},
    {"gdn_gpu.blocks_per_sm", onPrograms, "an i64 from 0 to 32",
     isNumber<0, 32>},
    {"gdn_gpu.cluster", onPrograms, "an i64 from 1 to 8", isNumber<1, 8>},
    {"gdn_gpu.counters", onPrograms, "an array of linear forms", isStringArray,
     verifyOwnForms},
    {"gdn_gpu.keep_loops", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.rows_apart", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.finish_products", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.single_warps", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.warpgroups", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.aligned_variant", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.promised", onPrograms, "a unit attribute", isUnit},
    {"gdn_gpu.alignment", onArguments, "an i64, a power of two up to 4096",
     isAlignment, verifyAlignedView},
    // Programs and the kernels that they become.
    {"gdn_gpu.fewer_blocks", onFunctions, "a unit attribute", isUnit},
    {"gdn_gpu.allow", onFunctions,
     "\"spills: <reason>\", \"spills up to <n> bytes: <reason>\", "
     "\"C<number>: <reason>\" or an array of these",
     areAllowances},
    // Kernels.
    {"gdn_gpu.launch", onCode, "a dictionary", isDictionary, verifyLaunch},
    {"gdn_gpu.alignments", onCode,
     "an array<i64> of powers of two up to 4096, or 0", areAlignments},
    {"gdn_gpu.layouts", onCode,
     "an array of array<i64>, a power of two up to 4096 or 0, then strides of "
     "at least 0",
     areLayouts},
    {"gdn_gpu.digest", onCode, "a string", isDigest},
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
