// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of what needs which capability; see CheckKernels.h. Operations are
// compared by name, so that the header of the nvvm dialect, which is slow to
// compile, is not needed.
#include "CheckKernels.h"

#include "gdn/Target/KernelInfo.h"

using namespace mlir;
using namespace gdn;

namespace {
/// What begins with `prefix` needs `has`.
struct Need {
  StringLiteral prefix;
  bool (TargetModel::*has)() const;
  StringLiteral what;
};
} // namespace

// Operations of the nvvm dialect, without "nvvm.". The first that fits counts.
static constexpr Need operationNeeds[] = {
    {"wgmma.", &TargetModel::hasWgmma, "wgmma"},
    {"tcgen05.", &TargetModel::hasTcgen05, "tcgen05"},
    {"stmatrix", &TargetModel::hasStmatrix, "stmatrix"},
    {"cp.async.bulk", &TargetModel::hasTma, "bulk copies"},
    {"cp.async", &TargetModel::hasCpAsync, "cp.async"},
    {"prefetch.tensormap", &TargetModel::hasTma, "tensor copies"},
    {"tma.store", &TargetModel::hasTma, "tensor copies"},
    {"mbarrier.arrive.expect_tx", &TargetModel::hasTma, "bulk copies"},
    {"mbarrier.try_wait", &TargetModel::hasTma, "mbarrier.try_wait"},
    {"fence.mbarrier", &TargetModel::hasClusters, "clusters"},
    {"fence.proxy", &TargetModel::hasTma, "proxy fences"},
    {"elect.sync", &TargetModel::hasTma, "elect.sync"},
    {"cluster.", &TargetModel::hasClusters, "clusters"},
    {"mapa", &TargetModel::hasClusters, "clusters"},
    {"setmaxregister", &TargetModel::hasSetMaxRegister, "setmaxnreg"},
    {"griddepcontrol", &TargetModel::hasDependentLaunch, "dependent launch"},
    {"mma.sync", &TargetModel::hasMmaSync, "mma.sync"},
    {"ldmatrix", &TargetModel::hasMmaSync, "ldmatrix"},
};

// Instructions in inline assembly, by the start of their name.
static constexpr Need instructionNeeds[] = {
    {"wgmma.", &TargetModel::hasWgmma, "wgmma"},
    {"tcgen05.", &TargetModel::hasTcgen05, "tcgen05"},
    {"stmatrix.", &TargetModel::hasStmatrix, "stmatrix"},
    {"cp.async.bulk", &TargetModel::hasTma, "bulk copies"},
    {"cp.reduce.async.bulk", &TargetModel::hasTma, "bulk copies"},
    {"st.async", &TargetModel::hasClusters, "clusters"},
    {"mbarrier.arrive.expect_tx", &TargetModel::hasTma, "bulk copies"},
    {"mbarrier.try_wait", &TargetModel::hasTma, "mbarrier.try_wait"},
    {"fence.mbarrier_init", &TargetModel::hasClusters, "clusters"},
    {"fence.proxy.async", &TargetModel::hasTma, "proxy fences"},
    {"elect.sync", &TargetModel::hasTma, "elect.sync"},
    {"barrier.cluster.", &TargetModel::hasClusters, "clusters"},
    {"mapa.", &TargetModel::hasClusters, "clusters"},
    {"setmaxnreg.", &TargetModel::hasSetMaxRegister, "setmaxnreg"},
    {"griddepcontrol.", &TargetModel::hasDependentLaunch, "dependent launch"},
    {"fma.rn.f32x2", &TargetModel::hasPackedF32, "packed f32 arithmetic"},
    {"mul.rn.f32x2", &TargetModel::hasPackedF32, "packed f32 arithmetic"},
    {"add.rn.f32x2", &TargetModel::hasPackedF32, "packed f32 arithmetic"},
};

// Intrinsics for which there is no instruction: LLVM would call a library.
static constexpr StringLiteral libraryMath[] = {
    "exp",  "exp10", "log",  "log2", "log10", "pow",  "tan",
    "sinh", "cosh",  "asin", "acos", "atan",  "atan2"};
// Those with an approximate instruction for f32, taken if `afn` is set.
static constexpr StringLiteral approximateMath[] = {"sin", "cos", "tanh"};

static InFlightDiagnostic refuse(Operation *op, const TargetModel &target,
                                 StringRef what) {
  return op->emitOpError("needs ") << what << ", which the target "
                                   << target.getName() << " does not have";
}

static LogicalResult checkOperation(Operation *op, const TargetModel &target) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("nvvm."))
    return success();
  for (const Need &need : operationNeeds)
    if (name.starts_with(need.prefix))
      return (target.*need.has)()
                 ? success()
                 : LogicalResult(refuse(op, target, need.what));
  return success();
}

/// Each instruction of the text, found where a name may begin.
static LogicalResult checkAssembly(LLVM::InlineAsmOp op,
                                   const TargetModel &target) {
  StringRef text = op.getAsmString();
  auto startsName = [&](size_t at) {
    return at == 0 || !(llvm::isAlnum(text[at - 1]) || text[at - 1] == '.' ||
                        text[at - 1] == '_');
  };
  for (const Need &need : instructionNeeds)
    for (size_t at = text.find(need.prefix); at != StringRef::npos;
         at = text.find(need.prefix, at + 1))
      if (startsName(at) && !(target.*need.has)())
        return refuse(op, target, need.what);
  return success();
}

static LogicalResult checkMath(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (!name.consume_front("llvm.intr."))
    return success();
  Type element =
      op->getNumResults() ? getElementTypeOrSelf(op->getResult(0)) : Type();
  bool none = llvm::is_contained(libraryMath, name);
  if (llvm::is_contained(approximateMath, name)) {
    auto flags = op->getAttrOfType<LLVM::FastmathFlagsAttr>("fastmathFlags");
    none = element.isF64() || !flags ||
           !bitEnumContainsAny(flags.getValue(), LLVM::FastmathFlags::afn);
  }
  none |= name == "exp2" && element.isF64();
  if (!none)
    return success();
  return op->emitOpError("has no instruction on a GPU, and kernels have no "
                         "library to take it from: expects a form made of "
                         "ex2, lg2 and arithmetic");
}

/// Threads, shared memory, clusters and dependence of a launch.
static LogicalResult checkLaunch(LLVM::LLVMFuncOp kernel,
                                 const TargetModel &target) {
  if (failed(readParameterWords(kernel)) || failed(readAlignments(kernel)) ||
      failed(readLayouts(kernel)))
    return failure();
  FailureOr<KernelLaunch> launch = readLaunch(kernel);
  if (failed(launch))
    return failure();
  auto atMost = [&](StringRef what, uint64_t most,
                    uint64_t got) -> LogicalResult {
    if (got <= most)
      return success();
    return kernel.emitOpError("expects at most ")
           << most << " " << what << " on the target " << target.getName()
           << ", but got " << got;
  };
  if (failed(atMost("threads per block", target.getMaxThreadsPerBlock(),
                    launch->threads)) ||
      failed(atMost("bytes of shared memory per block",
                    target.getSharedBytesPerBlock(), launch->sharedBytes)) ||
      failed(atMost("blocks per cluster", target.getMaxClusterBlocks(),
                    launch->cluster)) ||
      failed(atMost("blocks per SM", target.getMaxBlocksPerSm(),
                    launch->blocksPerSm)))
    return failure();
  if (launch->dependent && !target.hasDependentLaunch())
    return refuse(kernel, target, "dependent launch");
  auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>("nvvm.reqntid");
  if (!threads || threads.empty() ||
      threads.asArrayRef().front() != int64_t(launch->threads)) {
    InFlightDiagnostic error =
        kernel.emitOpError("expects 'nvvm.reqntid' to be array<i32: ");
    error << launch->threads << ">, the threads of 'gdn_gpu.launch', but got ";
    if (Attribute found = kernel->getAttr("nvvm.reqntid"))
      error << found;
    else
      error << "none";
    return error;
  }
  return success();
}

LogicalResult gdn::checkKernels(ModuleOp module, const TargetModel &target) {
  bool isSound = true;
  auto require = [&](LogicalResult result) { isSound &= succeeded(result); };
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    if (isKernel(func))
      require(checkLaunch(func, target));
  module.walk([&](Operation *op) {
    require(checkOperation(op, target));
    require(checkMath(op));
    if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
      require(checkAssembly(assembly, target));
  });
  return success(isSound);
}
