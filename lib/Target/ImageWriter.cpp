// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts manifest, code and trailer together; see ImageWriter.h.
#include "gdn/Target/ImageWriter.h"

#include "ImageManifest.h"

#include "gdnrt/image_trailer.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;
namespace fb = gdnrt::fb;

FailureOr<SmallVector<EntryCode>> gdn::collectEntryCodes(ModuleOp lowered) {
  SmallVector<EntryCode> codes;
  for (auto func : lowered.getOps<LLVM::LLVMFuncOp>()) {
    Attribute gridAttribute = func->getAttr("gdn_tile.grid");
    if (!gridAttribute)
      continue;
    auto grid = dyn_cast<ArrayAttr>(gridAttribute);
    if (!grid || !llvm::all_of(grid, llvm::IsaPred<StringAttr>))
      return func.emitOpError("expects 'gdn_tile.grid' to be an array of "
                              "strings, but got ")
             << gridAttribute;
    EntryCode code;
    code.entry = code.symbol = func.getName().str();
    for (auto form : grid.getAsRange<StringAttr>())
      code.grid.push_back(form.str());
    if (auto scratch =
            func->getAttrOfType<IntegerAttr>("gdn_tile.scratch_bytes"))
      code.scratchBytes = scratch.getInt();
    codes.push_back(std::move(code));
  }
  return codes;
}

/// Adds the code that `target` has for the entry; the blob is number `blob`.
static LogicalResult addCode(func::FuncOp func, const TargetCode &target,
                             unsigned blob, fb::EntryT &entry) {
  const EntryCode *code =
      llvm::find_if(target.entries, [&](const EntryCode &candidate) {
        return candidate.entry == entry.name;
      });
  if (code == target.entries.end())
    return func.emitOpError("has no code for the target with the features ")
           << llvm::join(target.features, ", ");
  fb::CodeT encoded;
  encoded.target = "x86-64";
  encoded.features.assign(target.features.begin(), target.features.end());
  encoded.blob = blob;
  encoded.symbol = code->symbol;
  encoded.scratch_bytes = code->scratchBytes;
  for (const std::string &form : code->grid) {
    FailureOr<fb::LinearFormT> grid =
        encodeForm(form, SmallVector<std::string>(entry.symbols.begin(),
                                                  entry.symbols.end()));
    if (failed(grid))
      return func.emitOpError("expects a grid of linear forms over the "
                              "entry's symbols, but got \"")
             << form << '"';
    encoded.grid.push_back(std::make_unique<fb::LinearFormT>(std::move(*grid)));
  }
  entry.codes.push_back(std::make_unique<fb::CodeT>(std::move(encoded)));
  return success();
}

FailureOr<std::vector<uint8_t>> gdn::buildImage(ModuleOp source,
                                                ArrayRef<TargetCode> targets) {
  fb::ImageT image;
  image.producer = "gdn " GDN_VERSION;
  for (auto func : source.getOps<func::FuncOp>()) {
    if (!func->hasAttr("gdn.entry"))
      continue;
    FailureOr<fb::EntryT> entry = describeEntry(func);
    if (failed(entry))
      return failure();
    for (auto [blob, target] : llvm::enumerate(targets))
      if (failed(addCode(func, target, blob, *entry)))
        return failure();
    image.entries.push_back(std::make_unique<fb::EntryT>(std::move(*entry)));
  }
  if (image.entries.empty())
    return source.emitError("expects at least one function with 'gdn.entry'");
  for (const TargetCode &target : targets) {
    auto blob = std::make_unique<fb::BlobT>();
    blob->data.assign(target.blob.begin(), target.blob.end());
    blob->xxh3 = gdnrt::imageHash(blob->data.data(), blob->data.size());
    image.blobs.push_back(std::move(blob));
  }

  flatbuffers::FlatBufferBuilder builder(1 << 16);
  fb::FinishImageBuffer(builder, fb::Image::Pack(builder, &image));
  std::vector<uint8_t> bytes(builder.GetBufferPointer(),
                             builder.GetBufferPointer() + builder.GetSize());
  gdnrt::appendTrailer(bytes);
  return bytes;
}
