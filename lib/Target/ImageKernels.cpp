// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels in the manifest; see ImageKernels.h.
#include "ImageKernels.h"

#include "gdnrt/image_limits.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

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
  if (launch->boxes.size() > gdnrt::kMaxBoxes)
    return kernel.emitOpError("expects at most ")
           << gdnrt::kMaxBoxes << " boxes, which the runtime takes, but got "
           << launch->boxes.size();
  if (!launch->boxes.empty() && !hasAlignedParameter(kernel))
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

LogicalResult gdn::encodeKernel(func::FuncOp func, const StageCode &stage,
                                size_t regions, const fb::EntryT &entry,
                                fb::StageT &encoded) {
  // Behind the words of a call: the workspace and the number of units.
  uint64_t words = countWords(entry) + regions + 2;
  if (size_t boxes = stage.launch->boxes.size())
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
  for (const KernelBox &box : stage.launch->boxes) {
    auto described = std::make_unique<fb::BoxT>();
    described->param = box.param;
    described->region = box.region;
    described->rows_dim = box.rowsDim;
    described->rows = box.rows;
    described->pieces = box.pieces;
    if (failed(encodeForms(func, "sizes of a box", box.sizes, entry.symbols,
                           described->sizes)))
      return failure();
    launch->boxes.push_back(std::move(described));
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

std::string EntryCode::getDigest() const {
  SmallVector<StringRef> digests;
  for (const VariantCode &variant : variants)
    for (const StageCode &stage : variant.stages)
      digests.push_back(stage.digest);
  if (digests.size() == 1)
    return digests.front().str();
  if (digests.empty() || digests.front().empty())
    return "";
  llvm::SHA256 hash;
  for (StringRef digest : digests)
    hash.update(digest);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

void gdn::addDigest(const TargetCode &target, const EntryCode &code,
                    fb::EntryT &entry) {
  std::string digest = code.getDigest();
  auto pair = std::make_unique<fb::KeyValueT>();
  pair->key = "gdn.digest." + target.target;
  pair->value = digest;
  bool isKnown = llvm::any_of(entry.attributes, [&](const auto &known) {
    return known->key == pair->key;
  });
  if (!digest.empty() && !isKnown)
    entry.attributes.push_back(std::move(pair));
}
