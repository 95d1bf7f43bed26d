// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute `gdn_gpu.kernel` of a function: what its program needs as a
// kernel, and how code is made of it. docs/spec/attributes.md says what the
// fields mean.
#ifndef GDN_DIALECT_GPU_IR_KERNELFIELDS_H
#define GDN_DIALECT_GPU_IR_KERNELFIELDS_H

#include "gdn/Dialect/AttributeFields.h"

namespace gdn::gpu {

class KernelFields : public AttributeFields {
public:
  static constexpr llvm::StringLiteral name = "gdn_gpu.kernel";

  /// Of a function; of null, nothing is there.
  explicit KernelFields(mlir::Operation *function)
      : AttributeFields(function, name) {}

  /// Threads of a block; 0 where nobody says.
  int64_t getThreads() const { return getInt("threads", 0); }
  void setThreads(int64_t threads) { setInt("threads", threads); }

  /// 0 where nobody says.
  int64_t getMinBlocks() const { return getInt("min_blocks", 0); }
  void setMinBlocks(int64_t blocks) { setInt("min_blocks", blocks); }

  /// 0: a block per unit.
  int64_t getBlocksPerSm() const { return getInt("blocks_per_sm", 0); }
  void setBlocksPerSm(int64_t blocks) { setInt("blocks_per_sm", blocks); }

  /// Blocks of a cluster; none where blocks are in no cluster.
  std::optional<int64_t> getCluster() const {
    auto blocks = get<mlir::IntegerAttr>("cluster");
    return blocks ? std::optional(blocks.getInt()) : std::nullopt;
  }
  void setCluster(int64_t blocks) { setInt("cluster", blocks); }

  /// Null where nobody says.
  mlir::ArrayAttr getCounters() const {
    return get<mlir::ArrayAttr>("counters");
  }
  void setCounters(mlir::ArrayAttr counters) { set("counters", counters); }

  bool getKeepLoops() const { return bool(get("keep_loops")); }
  void setKeepLoops(bool value = true) { setFlag("keep_loops", value); }

  bool getRowsApart() const { return bool(get("rows_apart")); }
  void setRowsApart(bool value = true) { setFlag("rows_apart", value); }

  bool getFinishProducts() const { return bool(get("finish_products")); }
  void setFinishProducts(bool value = true) {
    setFlag("finish_products", value);
  }

  bool getSingleWarps() const { return bool(get("single_warps")); }
  void setSingleWarps(bool value = true) { setFlag("single_warps", value); }

  bool getStoresMatrices() const { return bool(get("stores_matrices")); }
  void setStoresMatrices() { setFlag("stores_matrices", true); }
  /// Whether it may store by matrices of 8 x 8: targets with warpgroups can.
  bool mayStoreMatrices() const {
    return getStoresMatrices() || getWarpgroups();
  }

  bool getWarpgroups() const { return bool(get("warpgroups")); }
  void setWarpgroups(bool value = true) { setFlag("warpgroups", value); }

  bool getAlignedVariant() const { return bool(get("aligned_variant")); }
  void setAlignedVariant(bool value = true) {
    setFlag("aligned_variant", value);
  }

  bool getPromised() const { return bool(get("promised")); }
  void setPromised(bool value = true) { setFlag("promised", value); }
};

} // namespace gdn::gpu

#endif // GDN_DIALECT_GPU_IR_KERNELFIELDS_H
