// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schema of an entry, as plain values that own their memory. They stay
// valid when the image is destroyed.

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

/// The maximum number of dimensions of a parameter.
constexpr int kMaxRank = 8;

enum class DType : uint8_t { f32, bf16, f16, i32, i64, i1, f64, u8 };
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
  /// Another dimension that must have stride 1; 0: none.
  int unitStrideDim = 0;
  bool optional = false;
  /// The index of the data pointer among the words of a binding.
  size_t firstWord = 0;

  int rank() const { return static_cast<int>(dims.size()); }
  bool isWritten() const { return access != Access::read; }
  /// The dimension whose elements lie side by side, if one must.
  int innermost() const { return unitStrideDim ? unitStrideDim : rank() - 1; }
  /// The number of words: data pointer, sizes, strides, and the null slot of a
  /// pool.
  size_t numWords() const {
    return 1 + 2 * dims.size() + (kind == ParamKind::pool ? 1 : 0);
  }
};

enum class CodeFormat : uint8_t { sharedObject, cubin, ptx };

/// "shared object", "cubin" or "PTX".
const char *toString(CodeFormat format);

/// An array of which a kernel copies boxes with a tensor map. Table TensorMap
/// of image.fbs explains the members.
struct TensorMapSchema {
  /// The array: a parameter or a region of the workspace. One of the two is
  /// set.
  std::optional<size_t> param, region;
  /// The sizes of a region.
  std::vector<LinearForm> sizes;
  uint32_t rowsDim = 0;
  uint32_t rows = 0;
  uint32_t pieces = 0;
};

/// How a GPU launches a kernel. Table Launch of image.fbs explains the members.
struct LaunchSchema {
  uint32_t threads = 0;
  uint64_t sharedBytes = 0;
  uint32_t cluster = 1;
  uint32_t blocksPerSm = 0;
  bool dependent = false;
  std::vector<LinearForm> counters;
  std::vector<TensorMapSchema> tensorMaps;
};

/// The resources of a kernel, as ptxas reports them.
struct ResourcesSchema {
  uint32_t registers = 0;
  uint32_t staticSharedBytes = 0;
  uint32_t stackBytes = 0;
  uint32_t spillStoreBytes = 0;
  uint32_t spillLoadBytes = 0;
  uint32_t codeBytes = 0;
};

/// A product of linear forms. A product without forms is 1.
using Product = std::vector<LinearForm>;

/// A stage: the kernel of a variant that runs over one grid of units.
struct StageSchema {
  std::string symbol;
  std::vector<LinearForm> grid;
  uint64_t scratchBytes = 0;
  /// Set for code of GPUs, not for shared objects.
  std::optional<LaunchSchema> launch;
  std::optional<ResourcesSchema> resources;
};

/// The condition left <= right. The symbols of the forms are those of the
/// entry, then the number of workers of the device, then `dependent`: 1 if
/// launches may begin early, else 0.
struct ConditionSchema {
  Product left, right;
};

/// What a variant asks of the alignment and the strides of an array. Table
/// Layout of image.fbs explains the members.
struct LayoutSchema {
  uint32_t alignment = 0;
  std::vector<int64_t> strides;
};

/// A variant: one way to compute an entry. Its stages run one after another.
struct VariantSchema {
  std::string name;
  std::vector<StageSchema> stages;
  /// The bytes of each region of the workspace.
  std::vector<Product> workspace;
  std::vector<ConditionSchema> conditions;
  /// Further conditions. At least one alternative must hold, which is the case
  /// if all of its conditions hold. Empty, or two or more alternatives.
  std::vector<std::vector<ConditionSchema>> alternatives;
  /// What batch-invariant launches ask in place of `conditions` and
  /// `alternatives`: one of them must hold. Empty: the variant is not for them,
  /// unless no variant of the code has any.
  std::vector<std::vector<ConditionSchema>> anyBatch;
  /// One for each parameter, or empty.
  std::vector<LayoutSchema> layouts;
  /// `conditions`, `alternatives` and `layouts` as text, joined by ", ":
  /// "2*N * Hk <= workers", "(N <= 2 and 8 <= T or T <= 4)",
  /// "conv_pool strides [?, 1, ?] by 16 bytes".
  std::string conditionText;
  /// Variants of a code with the same text here give a sequence the same bits.
  std::string bits;

  /// Whether the variant has regions or counters.
  bool needsWorkspace() const;
  /// The largest scratch memory of its stages, in bytes per worker.
  uint64_t scratchBytes() const;
};

struct CodeSchema {
  std::string target;
  std::vector<std::string> features;
  /// `features` joined by ", ".
  std::string featureText;
  uint32_t blob = 0;
  CodeFormat format = CodeFormat::sharedObject;
  /// The alignment in bytes that the code needs, for each parameter, or empty.
  std::vector<uint32_t> alignments;
  /// The variants in order of preference. The last one has no conditions,
  /// alternatives or layouts.
  std::vector<VariantSchema> variants;

  /// The largest scratch memory of its variants, in bytes per worker.
  uint64_t scratchBytes() const;
  /// The largest number of workspace regions of a variant.
  size_t mostRegions() const;
  /// Whether a kernel of any variant has tensor maps.
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
  /// The attribute `gdn.max_tokens`: the entry skips sequences with more
  /// tokens. 0: the entry takes sequences of any length.
  int64_t maxRowTokens = 0;
  std::vector<MultipleRule> multiples;

  /// The number of words of a binding: all parameters, then all symbols.
  size_t numWords() const { return firstSymbolWord() + symbols.size(); }
  size_t firstSymbolWord() const;

  /// Whether the entry writes pools and gives no other output: it copies,
  /// zeroes or commits states.
  bool movesStates() const;
  /// Of an entry with deferred writes (gdn-compile --defer-writes): how many
  /// tokens may be pending in a slot. Nothing for another entry.
  std::optional<int64_t> pendingRoom() const;
  /// Of an entry whose states are in planes (gdn-compile --state=i8x2,
  /// i8x2_upper or i8): how many there are. 0 for another entry.
  int64_t statePlanes() const;

  std::optional<size_t> findParam(std::string_view paramName) const;
  std::optional<size_t> findSymbol(std::string_view symbolName) const;
};

/// NOT_FOUND for a parameter called `name`. The message lists the parameters of
/// the entry.
Status unknownParam(const EntrySchema &entry, std::string_view name);

/// The names joined by ", ", for messages.
std::string joinNames(const std::vector<std::string> &names);

} // namespace gdnrt

#endif // GDNRT_ENTRY_SCHEMA_H
