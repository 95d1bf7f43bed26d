// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of gdn-compile --emit=report.
#include "gdn/Pipelines/CompileGpu.h"

#include "llvm/ADT/StringExtras.h"

using namespace gdn;

KernelTable::KernelTable()
    : rows{{"kernel", "target", "registers", "shared", "dynamic", "stack",
            "spill st", "spill ld", "code", "threads", "cluster", "blocks/SM",
            "dependent"}} {}

void KernelTable::add(const TargetModel &target, const GpuCode &code) {
  llvm::SmallVector<const StageCode *> stages;
  for (const EntryCode &entry : code.entries)
    for (const VariantCode &variant : entry.variants)
      for (const StageCode &stage : variant.stages)
        if (llvm::none_of(stages, [&](const StageCode *known) {
              return known->kernel == stage.kernel; // of variants before
            }))
          stages.push_back(&stage);
  for (const StageCode *stage : stages) {
    std::vector<std::string> row = {stage->kernel, target.getName().str()};
    auto add = [&](bool isKnown, uint64_t value) {
      row.push_back(isKnown ? std::to_string(value) : "-");
    };
    bool isAssembled = stage->resources.has_value();
    KernelResources said = stage->resources.value_or(KernelResources());
    KernelLaunch launch = stage->launch.value_or(KernelLaunch());
    add(isAssembled, said.registers);
    add(isAssembled, said.staticShared);
    add(true, launch.sharedBytes);
    add(isAssembled, said.stack);
    add(isAssembled, said.spillStores);
    add(isAssembled, said.spillLoads);
    add(isAssembled, said.code);
    add(true, launch.threads);
    add(true, launch.cluster);
    add(true, launch.blocksPerSm);
    row.push_back(launch.dependent ? "yes" : "no");
    rows.push_back(std::move(row));
  }
}

std::string KernelTable::print() const {
  std::vector<size_t> widths;
  for (const auto &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (auto [width, cell] : llvm::zip(widths, row))
      width = std::max(width, cell.size());
  }
  std::string text;
  for (const auto &row : rows) {
    std::string line;
    for (auto [index, cell] : llvm::enumerate(row)) {
      std::string space(widths[index] - cell.size(), ' ');
      // Names to the left, numbers to the right.
      line += (index ? "  " : "") + (index < 2 ? cell + space : space + cell);
    }
    text += llvm::StringRef(line).rtrim().str() + "\n";
  }
  return text;
}
