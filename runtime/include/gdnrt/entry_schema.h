// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an image says about one entry, as plain values that own their memory:
// they stay valid when the image is gone.

#ifndef GDNRT_ENTRY_SCHEMA_H
#define GDNRT_ENTRY_SCHEMA_H

#include "gdnrt/linear_form.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdnrt {

/// The most dimensions a parameter may have.
constexpr int kMaxRank = 8;

enum class DType : uint8_t { f32, bf16, f16, i32, i64, i1, f64 };
enum class ParamKind : uint8_t { tensor, pool };
enum class Access : uint8_t { read, write, readWrite };

const char *toString(DType dtype);
const char *toString(ParamKind kind);
const char *toString(Access access);

/// Bytes per element; i1 takes one byte.
int64_t sizeInBytes(DType dtype);

struct ParamSchema {
  std::string name;
  ParamKind kind = ParamKind::tensor;
  Access access = Access::read;
  DType dtype = DType::f32;
  std::vector<LinearForm> dims;
  /// `dims` as text.
  std::vector<std::string> dimTexts;
  bool unitStrideLast = false;
  bool optional = false;
  /// Index of the data pointer among the words of a bound call.
  size_t firstWord = 0;

  int rank() const { return static_cast<int>(dims.size()); }
  bool isWritten() const { return access != Access::read; }
  /// Data pointer, sizes, strides, and the null slot of a pool.
  size_t numWords() const {
    return 1 + 2 * dims.size() + (kind == ParamKind::pool ? 1 : 0);
  }
};

enum class CodeFormat : uint8_t { sharedObject, cubin, ptx };

/// "shared object", "cubin" or "PTX".
const char *toString(CodeFormat format);

/// An array of which a kernel copies boxes; table TensorMap of the schema says
/// what is meant.
struct TensorMapSchema {
  /// Whose boxes: one of the two.
  std::optional<size_t> param, region;
  /// Of a region.
  std::vector<LinearForm> sizes;
  uint32_t rowsDim = 0;
  uint32_t rows = 0;
  uint32_t pieces = 0;
};

/// How a GPU launches a kernel; table Launch of the schema says what is meant.
struct LaunchSchema {
  uint32_t threads = 0;
  uint64_t sharedBytes = 0;
  uint32_t cluster = 1;
  uint32_t blocksPerSm = 0;
  bool dependent = false;
  std::vector<LinearForm> counters;
  std::vector<TensorMapSchema> tensorMaps;
};

/// What the assembler said about a kernel.
struct ResourcesSchema {
  uint32_t registers = 0;
  uint32_t staticSharedBytes = 0;
  uint32_t stackBytes = 0;
  uint32_t spillStoreBytes = 0;
  uint32_t spillLoadBytes = 0;
  uint32_t codeBytes = 0;
};

/// The product of linear forms; none is 1.
using Product = std::vector<LinearForm>;

/// One pass over a grid of units.
struct StageSchema {
  std::string symbol;
  std::vector<LinearForm> grid;
  uint64_t scratchBytes = 0;
  /// Present unless the code is a shared object.
  std::optional<LaunchSchema> launch;
  std::optional<ResourcesSchema> resources;
};

/// left <= right, over the entry's symbols and, behind them, the workers of the
/// device, and 1 where launches may be dependent, else 0.
struct ConditionSchema {
  Product left, right;
};

/// How an array has to lie; table Layout of the schema says what is meant.
struct LayoutSchema {
  uint32_t alignment = 0;
  std::vector<int64_t> strides;
};

/// One way to do the work of an entry: stages with a barrier between them.
struct VariantSchema {
  std::string name;
  std::vector<StageSchema> stages;
  /// Bytes of each region of the workspace.
  std::vector<Product> workspace;
  std::vector<ConditionSchema> conditions;
  /// Of these, all conditions of one hold besides; two at least, or none.
  std::vector<std::vector<ConditionSchema>> alternatives;
  /// One per parameter, or empty.
  std::vector<LayoutSchema> layouts;
  /// `conditions`, `alternatives` and `layouts` as text, joined by ", ":
  /// "2*N * Hk <= workers", "(N <= 2 and 8 <= T or T <= 4)",
  /// "conv_pool strides [?, 1, ?] by 16 bytes".
  std::string conditionText;
  /// Variants with the same text here give a sequence the same bits.
  std::string bits;

  /// Whether it has regions or counters.
  bool needsWorkspace() const;
  /// The largest scratch of its stages.
  uint64_t scratchBytes() const;
};

struct CodeSchema {
  std::string target;
  std::vector<std::string> features;
  /// `features` joined by ", ".
  std::string featureText;
  uint32_t blob = 0;
  CodeFormat format = CodeFormat::sharedObject;
  /// Bytes, one per parameter, or empty.
  std::vector<uint32_t> alignments;
  /// In order of preference; the last can always run.
  std::vector<VariantSchema> variants;

  /// The largest scratch of its variants.
  uint64_t scratchBytes() const;
  /// The most workspace regions of its variants.
  size_t mostRegions() const;
  /// Whether kernels of any variant have boxes.
  bool hasTensorMaps() const;
};

/// A rule of an entry: `value` is a multiple of `of`.
struct MultipleRule {
  LinearForm value, of;
};

struct EntrySchema {
  std::string name;
  std::vector<std::string> symbols;
  std::vector<ParamSchema> params;
  std::vector<CodeSchema> codes;
  std::vector<std::pair<std::string, std::string>> attributes;
  /// The attribute `gdn.max_tokens`: sequences of more tokens are skipped by
  /// the entry. 0: sequences of any length are taken.
  int64_t maxRowTokens = 0;
  std::vector<MultipleRule> multiples;

  /// Words of a bound call: all parameters, then all symbols.
  size_t numWords() const { return firstSymbolWord() + symbols.size(); }
  size_t firstSymbolWord() const;

  std::optional<size_t> findParam(std::string_view paramName) const;
  std::optional<size_t> findSymbol(std::string_view symbolName) const;
};

/// The failure to find a parameter called `name`; lists those there are.
Status unknownParam(const EntrySchema &entry, std::string_view name);

/// The names joined by ", ", for messages.
std::string joinNames(const std::vector<std::string> &names);

} // namespace gdnrt

#endif // GDNRT_ENTRY_SCHEMA_H
