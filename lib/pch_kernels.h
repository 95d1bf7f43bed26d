// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What libraries that write kernels or put pipelines together include besides:
// the NVVM dialect and the passes of MLIR, whose headers take seconds to read.
// Apart from pch.h, since they bring mlir::gpu, which gdn::gpu is not.
#pragma once

#include "pch.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"
