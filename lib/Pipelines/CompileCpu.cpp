// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the CPU pipeline; see CompileCpu.h.
#include "gdn/Pipelines/CompileCpu.h"

#include "CachedModule.h"
#include "RunPasses.h"
#include "SourcesBehindTile.h"

using namespace mlir;
using namespace gdn;

FailureOr<OwningOpRef<ModuleOp>>
gdn::lowerForCpu(ModuleOp source, const TargetModel &target, Level level,
                 const CpuPipelineOptions &options, ConfigurePasses configure) {
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager passes(source.getContext());
  if (failed(configure(passes)))
    return failure();
  switch (level) {
  case Level::gdn:
    break;
  case Level::tile:
    buildTilePipeline(passes, target, options);
    break;
  case Level::llvm:
    buildCpuPipeline(passes, target, options);
    break;
  }
  if (failed(runPasses(passes, *module)))
    return failure();
  return module;
}

/// All that decides what compileForCpu gives.
static ContentKey keyOf(ModuleOp source, const TargetModel &target,
                        const CpuPipelineOptions &options) {
  ContentKey key("compile for a CPU");
  key.add(identityOfThisProgram()).add(textForKey(source));
  key.add(target.getName()).add(target.getLlvmCpu());
  key.add(target.getLlvmTuneCpu()).add(target.getVectorBits());
  key.add(options.tokens).add(options.chunk).add(options.chunkFrom);
  key.add(uint64_t(options.precision)).add(uint64_t(options.chunkStages));
  key.add(options.segments).add(options.segmentsFrom);
  key.add(options.segmentMaps);
  key.add(options.variants.size());
  for (const std::string &variant : options.variants)
    key.add(variant);
  return key;
}

/// All that decides what compileTiles gives: not the sources of the passes that
/// made the tile programs.
static ContentKey keyOfTiles(ModuleOp tiles, const TargetModel &target) {
  ContentKey key("tile programs for a CPU");
  key.add(sourcesBehindTile).add(identityOfLlvm()).add(textForKey(tiles));
  key.add(target.getName()).add(target.getLlvmCpu());
  key.add(target.getLlvmTuneCpu()).add(target.getLlvmFeatures());
  return key.add(target.getVectorBits());
}

/// Functions of the llvm dialect and the shared object of tile programs.
static FailureOr<CachedModule> compileTiles(OwningOpRef<ModuleOp> tiles,
                                            const TargetModel &target,
                                            ConfigurePasses configure,
                                            const ContentCache *cache) {
  PassManager passes(tiles->getContext());
  if (failed(configure(passes)))
    return failure();
  buildTileToLlvmPipeline(passes, target);
  if (failed(runPasses(passes, *tiles)))
    return failure();
  CachedModule compiled;
  compiled.module = std::move(tiles);
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(*compiled.module, target);
  if (failed(codegen))
    return failure();
  FailureOr<Bytes> blob = codegen->emitSharedObject(cache);
  if (failed(blob))
    return failure();
  compiled.parts.push_back(std::string(blob->begin(), blob->end()));
  return compiled;
}

FailureOr<TargetCode> gdn::compileForCpu(ModuleOp source,
                                         const TargetModel &target,
                                         const CpuPipelineOptions &options,
                                         ConfigurePasses configure,
                                         const ContentCache *cache) {
  MLIRContext *context = source.getContext();
  // Tile programs that were compiled before are not compiled again, whichever
  // passes have made them.
  auto compile = [&]() -> FailureOr<CachedModule> {
    FailureOr<OwningOpRef<ModuleOp>> tiles =
        lowerForCpu(source, target, Level::tile, options, configure);
    if (failed(tiles))
      return failure();
    auto compileHere = [&] {
      return compileTiles(std::move(*tiles), target, configure, cache);
    };
    return cache ? compileOnce(*cache, keyOfTiles(**tiles, target), context,
                               compileHere)
                 : compileHere();
  };
  FailureOr<CachedModule> compiled =
      cache ? compileOnce(*cache, keyOf(source, target, options), context,
                          compile)
            : compile();
  if (failed(compiled))
    return failure();
  TargetCode code;
  FailureOr<SmallVector<EntryCode, 0>> entries =
      collectEntryCodes(*compiled->module);
  if (failed(entries))
    return failure();
  code.entries = std::move(*entries);
  code.features = target.getRequiredFeatures();
  StringRef blob = compiled->parts.front();
  code.blob.assign(blob.begin(), blob.end());
  return code;
}
