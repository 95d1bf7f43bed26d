// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boxes of arguments and regions that kernels copy.

#include "code_reader.h"

#include "gdnrt/tensor_map_encoder.h"

using namespace gdnrt;

/// Boxes are of elements of 16 bits: how many of these an element is, or 0.
static int64_t countPieces(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::f16 ? 1
         : dtype == DType::f32                       ? 2
                                                     : 0;
}

Status gdnrt::readTensorMap(const FormReader &reader, const EntrySchema &entry,
                            const fb::TensorMap &source,
                            const std::string &where, size_t numRegions,
                            TensorMapSchema &box) {
  if ((source.param() < 0) == (source.region() < 0))
    return reader.defect(where,
                         ": expected a parameter or a region, got parameter ",
                         source.param(), " and region ", source.region());
  const std::vector<LinearForm> *sizes = &box.sizes;
  int64_t pieces = 1;
  if (Status status = reader.readForms(source.sizes(), where + " sizes",
                                       entry.symbols, box.sizes);
      !status.isOk())
    return status;
  if (source.param() >= 0) {
    box.param = static_cast<size_t>(source.param());
    if (*box.param >= entry.params.size())
      return reader.defect(where, ": parameter index ", *box.param,
                           " is past the ", entry.params.size(), " parameters");
    const ParamSchema &param = entry.params[*box.param];
    if (!box.sizes.empty())
      return reader.defect(where, ": expected no sizes of the parameter ",
                           param.name, ", got ", box.sizes.size());
    pieces = countPieces(param.dtype);
    if (pieces == 0)
      return reader.defect(where, ": expected ", param.name,
                           " to have elements of 16 bits or f32, got ",
                           toString(param.dtype));
    sizes = &param.dims;
  } else {
    box.region = static_cast<size_t>(source.region());
    if (*box.region >= numRegions)
      return reader.defect(where, ": region index ", *box.region,
                           " is past the ", numRegions, " regions");
  }

  size_t rank = sizes->size();
  if (rank < 2 || rank > kMaxMappedRank)
    return reader.defect(where, ": expected rank 2 to ", kMaxMappedRank,
                         ", got ", rank);
  LinearForm columns = sizes->back();
  columns.constant *= pieces;
  if (!columns.terms.empty() || columns.constant <= 0 ||
      columns.constant > kMaxMappedColumns ||
      columns.constant % kBoxPieceColumns != 0)
    return reader.defect(where, ": expected a multiple of ", kBoxPieceColumns,
                         " columns, at most ", kMaxMappedColumns, ", got ",
                         columns.toString(entry.symbols));
  box.rowsDim = source.rows_dim();
  if (box.rowsDim >= rank - 1)
    return reader.defect(where,
                         ": expected the dimension of rows to be less than ",
                         rank - 1, ", got ", box.rowsDim);
  box.rows = source.rows();
  if (box.rows < 1 || box.rows > kMaxBoxRows)
    return reader.defect(where, ": expected 1 to ", kMaxBoxRows, " rows, got ",
                         box.rows);
  box.pieces = source.pieces();
  if (box.pieces > columns.constant / kBoxPieceColumns)
    return reader.defect(where, ": expected at most ",
                         columns.constant / kBoxPieceColumns, " pieces of ",
                         kBoxPieceColumns, " columns, got ", box.pieces);
  return {};
}
