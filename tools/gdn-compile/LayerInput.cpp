// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a layer, or generates one from a model's configuration.
#include "LayerInput.h"

#include "gdn/Data/Safetensors.h"
#include "gdn/Model/EntryBuilder.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace gdn;

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return llvm::createStringError(
        buffer.getError(),
        path + ": cannot be read: " + buffer.getError().message());
  return std::move(*buffer);
}

static llvm::Expected<ModelConfig> loadConfig(llvm::StringRef path) {
  if (path.ends_with(".safetensors")) {
    llvm::Expected<data::Tensors> tensors = data::readSafetensors(path);
    if (!tensors)
      return tensors.takeError();
    auto config = tensors->metadata.find("config");
    if (config == tensors->metadata.end())
      return llvm::createStringError(
          path + ": expects a model's configuration under 'config' in the "
                 "metadata, but got none");
    return parseModelConfig(config->second, path);
  }
  auto buffer = readFile(path);
  if (!buffer)
    return buffer.takeError();
  return parseModelConfig((*buffer)->getBuffer(), path);
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
gdn::loadLayer(mlir::MLIRContext &context, const CommandLine &line,
               const std::shared_ptr<llvm::SourceMgr> &sources) {
  if (!line.layerPath.empty()) {
    auto buffer = readFile(line.layerPath);
    if (!buffer)
      return buffer.takeError();
    sources->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
    return mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  }
  llvm::Expected<ModelConfig> config = line.preset.empty()
                                           ? loadConfig(line.configPath)
                                           : presetModelConfig(line.preset);
  if (!config)
    return config.takeError();
  return buildEntryModule(context, *config, line.variants(*config));
}
