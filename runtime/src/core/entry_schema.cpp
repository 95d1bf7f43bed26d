// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and sizes of the schema's enums; lookup by name.

#include "gdnrt/entry_schema.h"

#include <algorithm>

using namespace gdnrt;

const char *gdnrt::toString(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return "f32";
  case DType::bf16:
    return "bf16";
  case DType::f16:
    return "f16";
  case DType::i32:
    return "i32";
  case DType::i64:
    return "i64";
  case DType::i1:
    return "i1";
  case DType::f64:
    return "f64";
  case DType::u8:
    return "u8";
  }
  return "?";
}

const char *gdnrt::toString(ParamKind kind) {
  return kind == ParamKind::pool ? "pool" : "tensor";
}

const char *gdnrt::toString(Access access) {
  switch (access) {
  case Access::read:
    return "read";
  case Access::write:
    return "write";
  case Access::readWrite:
    return "read_write";
  }
  return "?";
}

const char *gdnrt::toString(CodeFormat format) {
  switch (format) {
  case CodeFormat::sharedObject:
    return "shared object";
  case CodeFormat::cubin:
    return "cubin";
  case CodeFormat::ptx:
    return "PTX";
  }
  return "unknown";
}

int64_t gdnrt::sizeInBytes(DType dtype) {
  switch (dtype) {
  case DType::i1:
  case DType::u8:
    return 1;
  case DType::bf16:
  case DType::f16:
    return 2;
  case DType::f32:
  case DType::i32:
    return 4;
  case DType::i64:
  case DType::f64:
    return 8;
  }
  return 1;
}

bool VariantSchema::needsWorkspace() const {
  for (const StageSchema &stage : stages)
    if (stage.launch && !stage.launch->counters.empty())
      return true;
  return !workspace.empty();
}

uint64_t VariantSchema::scratchBytes() const {
  uint64_t most = 0;
  for (const StageSchema &stage : stages)
    most = std::max(most, stage.scratchBytes);
  return most;
}

uint64_t CodeSchema::scratchBytes() const {
  uint64_t most = 0;
  for (const VariantSchema &variant : variants)
    most = std::max(most, variant.scratchBytes());
  return most;
}

size_t CodeSchema::mostRegions() const {
  size_t most = 0;
  for (const VariantSchema &variant : variants)
    most = std::max(most, variant.workspace.size());
  return most;
}

bool CodeSchema::hasTensorMaps() const {
  for (const VariantSchema &variant : variants)
    for (const StageSchema &stage : variant.stages)
      if (stage.launch && !stage.launch->tensorMaps.empty())
        return true;
  return false;
}

size_t EntrySchema::firstSymbolWord() const {
  return params.empty() ? 0
                        : params.back().firstWord + params.back().numWords();
}

std::optional<size_t> EntrySchema::findParam(std::string_view paramName) const {
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].name == paramName)
      return i;
  return std::nullopt;
}

std::optional<int64_t> EntrySchema::pendingRoom() const {
  const auto keys = findParam("pending_keys");
  if (!findParam("pending_counts") || !keys || params[*keys].rank() < 3)
    return std::nullopt;
  return params[*keys].dims[2].constant;
}

int64_t EntrySchema::statePlanes() const {
  return findParam("state_low") ? 2 : findParam("state_scales") ? 1 : 0;
}

bool EntrySchema::movesStates() const {
  bool writesPools = false;
  for (const ParamSchema &param : params) {
    if (!param.isWritten())
      continue;
    if (param.kind != ParamKind::pool)
      return false;
    writesPools = true;
  }
  return writesPools;
}

std::optional<size_t>
EntrySchema::findSymbol(std::string_view symbolName) const {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i] == symbolName)
      return i;
  return std::nullopt;
}

Status gdnrt::unknownParam(const EntrySchema &entry, std::string_view name) {
  std::vector<std::string> names;
  for (const ParamSchema &param : entry.params)
    names.push_back(param.name);
  return failure(StatusCode::notFound, name, ": ", entry.name,
                 " has no such parameter; it has: ",
                 names.empty() ? "none" : joinNames(names));
}

std::string gdnrt::joinNames(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}
