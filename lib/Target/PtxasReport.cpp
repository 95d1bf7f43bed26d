// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ptxas -v prints, line by line, for instance
//
//   ptxas info    : Compiling entry function 'decode' for 'sm_90a'
//   ptxas info    : Function properties for decode
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 40 registers, used 1 barriers, 512 bytes smem
//   ptxas info    : (C7510) Potential Performance Loss: ... in the function
//                   'decode'
//
// Properties of device functions stand between those of kernels; only kernels
// are kept.
#include "gdn/Target/Ptxas.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace gdn;

/// The number in front of `what` ("40" in "Used 40 registers").
static std::optional<uint32_t> numberBefore(llvm::StringRef line,
                                            llvm::StringRef what) {
  size_t at = line.find(what);
  if (at == llvm::StringRef::npos)
    return std::nullopt;
  llvm::StringRef before = line.take_front(at).rtrim();
  llvm::StringRef digits = before.take_back(
      before.size() - (before.find_last_not_of("0123456789") + 1));
  uint32_t number;
  if (digits.empty() || digits.getAsInteger(10, number))
    return std::nullopt;
  return number;
}

/// The name between the first two quotes behind `what`.
static llvm::StringRef quotedAfter(llvm::StringRef line, llvm::StringRef what) {
  size_t at = line.find(what);
  if (at == llvm::StringRef::npos)
    return {};
  return line.drop_front(at + what.size()).split('\'').second.split('\'').first;
}

namespace {
class Reader {
public:
  llvm::Error readLine(llvm::StringRef line);
  PtxasReport report;

private:
  llvm::Error malformed(llvm::StringRef line) const {
    return llvm::createStringError("cannot read what ptxas says: " + line);
  }
  llvm::Error readFrame(llvm::StringRef line);
  llvm::Error readUse(llvm::StringRef line);
  bool readWarning(llvm::StringRef line);

  std::string kernel;    // the last that was announced
  bool ofKernel = false; // the properties that come are its own
};
} // namespace

llvm::Error Reader::readFrame(llvm::StringRef line) {
  auto stack = numberBefore(line, " bytes stack frame");
  auto stores = numberBefore(line, " bytes spill stores");
  auto loads = numberBefore(line, " bytes spill loads");
  if (!stack || !stores || !loads)
    return malformed(line);
  if (ofKernel) {
    KernelResources &resources = report.kernels[kernel];
    resources.stack = *stack;
    resources.spillStores = *stores;
    resources.spillLoads = *loads;
  }
  return llvm::Error::success();
}

llvm::Error Reader::readUse(llvm::StringRef line) {
  auto registers = numberBefore(line, " registers");
  if (!registers || kernel.empty())
    return malformed(line);
  KernelResources &resources = report.kernels[kernel];
  resources.registers = *registers;
  resources.staticShared = numberBefore(line, " bytes smem").value_or(0);
  return llvm::Error::success();
}

/// Takes the line if it is a warning, or a remark that has a number.
bool Reader::readWarning(llvm::StringRef line) {
  static const llvm::Regex number("\\((C[0-9]+)\\)");
  llvm::SmallVector<llvm::StringRef> match;
  bool hasNumber = number.match(line, &match);
  if (!hasNumber && !line.starts_with("ptxas warning") &&
      !line.contains("; warning"))
    return false;
  PtxasWarning warning;
  if (hasNumber)
    warning.code = match[1].str();
  for (llvm::StringRef words :
       {"in the function", "in function", "for the function"})
    if (warning.kernel.empty())
      warning.kernel = quotedAfter(line, words).str();
  warning.text = line.split(':').second.trim().str();
  report.warnings.push_back(std::move(warning));
  return true;
}

llvm::Error Reader::readLine(llvm::StringRef line) {
  if (readWarning(line))
    return llvm::Error::success();
  if (line.contains("Compiling entry function")) {
    llvm::StringRef name = quotedAfter(line, "Compiling entry function");
    if (name.empty())
      return malformed(line);
    kernel = name.str();
    report.kernels[kernel];
    ofKernel = false;
  } else if (line.contains("Function properties for ")) {
    llvm::StringRef name = line.split("Function properties for ").second;
    ofKernel = name.trim(" '\r") == kernel;
  } else if (line.contains(" bytes stack frame")) {
    return readFrame(line);
  } else if (line.contains(": Used ")) {
    return readUse(line);
  }
  return llvm::Error::success();
}

llvm::Expected<PtxasReport> gdn::parsePtxasOutput(llvm::StringRef output) {
  Reader reader;
  for (llvm::StringRef line : llvm::split(output, '\n'))
    if (llvm::Error error = reader.readLine(line))
      return std::move(error);
  return std::move(reader.report);
}

IntegerAttr gdn::getBlocksPerSm(LLVM::LLVMFuncOp kernel) {
  return kernel->getAttrOfType<IntegerAttr>(
      NVVM::NVVMDialect::getMinctasmAttrName());
}

bool gdn::mayTakeFewerBlocks(LLVM::LLVMFuncOp kernel) {
  IntegerAttr blocks = getBlocksPerSm(kernel);
  return blocks && blocks.getInt() > 1 &&
         kernel->hasAttr("gdn_gpu.fewer_blocks");
}

SmallVector<LLVM::LLVMFuncOp> gdn::takeFewerBlocks(ModuleOp module,
                                                   const PtxasReport &report,
                                                   const TargetModel &target) {
  SmallVector<LLVM::LLVMFuncOp> changed;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    auto found = report.kernels.find(func.getName());
    if (found == report.kernels.end() || !mayTakeFewerBlocks(func))
      continue;
    const KernelResources &got = found->second;
    if (allowsSpills(func, std::max(got.spillStores, got.spillLoads)))
      continue;
    IntegerAttr blocks = getBlocksPerSm(func);
    int64_t fewer = blocks.getInt() - std::max<int64_t>(1, blocks.getInt() / 8);
    func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                  IntegerAttr::get(blocks.getType(), fewer));
    func.emitRemark("'") << func.getName() << "' spills with " << got.registers
                         << " registers on " << target.getName()
                         << ": it gets those of " << fewer
                         << " blocks per SM, not of " << blocks.getInt();
    changed.push_back(func);
  }
  return changed;
}

/// Whether the stage lets all calls take its variant.
static bool takesAllCalls(LLVM::LLVMFuncOp func, StringAttr variant) {
  ArrayAttr pairs = tile::StageFields(func).getConditions(variant);
  return (!pairs || pairs.empty()) && !func->hasAttr("gdn_gpu.layouts");
}

static bool hasWorkspace(LLVM::LLVMFuncOp func) {
  return tile::StageFields(func).countRegions() != 0;
}

/// What checkReport refuses the kernel for; empty if it does not.
static std::string getFault(LLVM::LLVMFuncOp func, const PtxasReport &report) {
  auto found = report.kernels.find(func.getName());
  if (found == report.kernels.end())
    return "";
  const KernelResources &got = found->second;
  const uint32_t bytes = std::max(got.spillStores, got.spillLoads);
  if (!allowsSpills(func, bytes))
    return llvm::formatv("spills {0} bytes of registers", bytes);
  for (const PtxasWarning &warning : report.warnings)
    if (warning.kernel == func.getName() &&
        llvm::StringRef(warning.code).starts_with("C75") &&
        !readAllowance(func, warning.code))
      return "is slow: " + warning.text;
  return "";
}

/// Calls have words for the regions of the variant that needs most, and the
/// kernels that are left were made for as many. `kernel`, one of them, gets
/// empty regions if no other one has as many as there were.
static void keepRegions(LLVM::LLVMFuncOp kernel, unsigned before,
                        unsigned left) {
  if (left >= before)
    return;
  Builder b(kernel.getContext());
  tile::StageFields stage(kernel);
  SmallVector<Attribute> regions;
  if (ArrayAttr own = stage.getWorkspace())
    llvm::append_range(regions, own);
  regions.resize(before, b.getArrayAttr(b.getStringAttr("0")));
  stage.setWorkspace(b.getArrayAttr(regions));
}

bool gdn::leaveOutVariants(ModuleOp module, const PtxasReport &report,
                           const TargetModel &target) {
  // Stages by entry; a kernel without an owner takes all calls of its entry.
  llvm::MapVector<StringAttr, SmallVector<LLVM::LLVMFuncOp>> stages;
  llvm::StringMap<LLVM::LLVMFuncOp> whole;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!isKernel(func))
      continue;
    if (StringAttr owner = tile::StageFields(func).getStageOf())
      stages[owner].push_back(func);
    else if (getFault(func, report).empty())
      whole[func.getName()] = func;
  }
  bool changed = false;
  for (auto &[entry, funcs] : stages) {
    DenseSet<StringAttr> all, refused, limited, inWorkspace;
    for (LLVM::LLVMFuncOp func : funcs)
      for (StringAttr variant : tile::StageFields(func).getVariants()) {
        all.insert(variant);
        if (!getFault(func, report).empty())
          refused.insert(variant);
        if (!takesAllCalls(func, variant))
          limited.insert(variant);
        if (hasWorkspace(func))
          inWorkspace.insert(variant);
      }
    // Whoever calls without a workspace still does.
    const bool wantsNone = llvm::any_of(all, [&](StringAttr variant) {
      return !limited.contains(variant) && !inWorkspace.contains(variant);
    });
    auto isLeft = [&](StringAttr variant) {
      return !refused.contains(variant) && !limited.contains(variant) &&
             !(wantsNone && inWorkspace.contains(variant));
    };
    const bool isServed =
        whole.contains(entry.getValue()) || llvm::any_of(all, isLeft);
    if (refused.empty() || !isServed)
      continue;
    changed = true;
    LLVM::LLVMFuncOp kept = whole.lookup(entry.getValue());
    unsigned before = 0,
             most = kept ? tile::StageFields(kept).countRegions() : 0;
    for (LLVM::LLVMFuncOp func : funcs) {
      tile::StageFields stage(func);
      before = std::max(before, stage.countRegions());
      SmallVector<StringAttr> variants = stage.getVariants(), left;
      llvm::copy_if(variants, std::back_inserter(left),
                    [&](StringAttr name) { return !refused.contains(name); });
      if (std::string fault = getFault(func, report); !fault.empty())
        func.emitWarning("'")
            << func.getName() << "' on " << target.getName() << " " << fault
            << "; it is left out, and calls of '" << entry.getValue()
            << "' take another variant";
      if (left.empty()) {
        func.erase();
        continue;
      }
      most = std::max(most, stage.countRegions());
      if (!kept)
        kept = func;
      if (left.size() < variants.size())
        stage.setVariants(left);
    }
    keepRegions(kept, before, most);
  }
  return changed;
}

LogicalResult gdn::checkReport(ModuleOp module, const PtxasReport &report,
                               const TargetModel &target) {
  bool isSound = true;
  llvm::StringMap<LLVM::LLVMFuncOp> kernels;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!isKernel(func))
      continue;
    kernels[func.getName()] = func;
    auto found = report.kernels.find(func.getName());
    if (found == report.kernels.end())
      continue;
    const KernelResources &got = found->second;
    if (allowsSpills(func, std::max(got.spillStores, got.spillLoads)))
      continue;
    isSound = false;
    func.emitError("'") << func.getName()
                        << "' expects no spilled registers on "
                        << target.getName() << ", but got " << got.spillStores
                        << " bytes of stores and " << got.spillLoads
                        << " bytes of loads with " << got.registers
                        << " registers; 'gdn_gpu.allow' = \"spills: <measured "
                        << "reason>\" lets it pass";
  }
  for (const PtxasWarning &warning : report.warnings) {
    if (!llvm::StringRef(warning.code).starts_with("C75"))
      continue;
    auto isAllowed = [&](LLVM::LLVMFuncOp func) {
      return readAllowance(func, warning.code).has_value();
    };
    LLVM::LLVMFuncOp func = kernels.lookup(warning.kernel);
    // A warning that names no kernel is about any of them.
    if (func ? isAllowed(func) : llvm::any_of(kernels, [&](auto &entry) {
          return isAllowed(entry.second);
        }))
      continue;
    isSound = false;
    InFlightDiagnostic error = func ? func.emitError() : module.emitError();
    if (func)
      error << "'" << func.getName() << "' ";
    error << "expects no warning of ptxas about performance";
    error << " on " << target.getName() << ", but got: " << warning.text;
  }
  return success(isSound);
}
