// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a layer, or generates one from a model's configuration.
#include "LayerInput.h"

#include "gdn/Data/Safetensors.h"
#include "gdn/Model/EntryBuilder.h"
#include "gdn/Support/InputFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace gdn;

// Configurations have kilobytes, modules of many entries less than one of
// these.
static constexpr uint64_t mostConfigBytes = 16 << 20, mostModuleBytes = 1 << 30;

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
  llvm::SmallString<128> file = path;
  if (llvm::sys::fs::is_directory(path)) // of a model
    llvm::sys::path::append(file, "config.json");
  auto buffer = readInputFile(file, mostConfigBytes);
  if (!buffer)
    return buffer.takeError();
  return parseModelConfig((*buffer)->getBuffer(), file);
}

/// Removes the entries whose names, up to the types behind them, are not among
/// `names`. Fails on a name that no entry has.
static llvm::Error keepEntries(mlir::ModuleOp module,
                               llvm::ArrayRef<std::string> names) {
  llvm::StringSet<> known;
  for (auto function :
       llvm::make_early_inc_range(module.getOps<mlir::func::FuncOp>())) {
    auto isMeant = [&](llvm::StringRef name) {
      llvm::StringRef rest = function.getName();
      return rest.consume_front(name) && (rest.empty() || rest.front() == '_');
    };
    auto name = llvm::find_if(names, isMeant);
    if (name != names.end())
      known.insert(*name);
    else
      function.erase();
  }
  for (const std::string &name : names)
    if (!known.contains(name))
      return llvm::createStringError(
          "--only: expects names of entries, but got '" + name +
          "', which is none of them");
  return llvm::Error::success();
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
gdn::loadLayer(mlir::MLIRContext &context, const CommandLine &line,
               const std::shared_ptr<llvm::SourceMgr> &sources) {
  if (!line.layerPath.empty()) {
    auto buffer = readProgramFile(line.layerPath, mostModuleBytes);
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
  auto module = buildEntryModule(context, *config, line.variants(*config));
  if (!module || line.only.empty())
    return module;
  if (llvm::Error error = keepEntries(**module, line.only))
    return std::move(error);
  return module;
}
