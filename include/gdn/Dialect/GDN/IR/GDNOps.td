// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All of the gdn dialect, for tablegen.
#ifndef GDN_DIALECT_GDN_IR_GDNOPS_TD
#define GDN_DIALECT_GDN_IR_GDNOPS_TD

include "gdn/Dialect/GDN/IR/GDNAttrs.td"
include "gdn/Dialect/GDN/IR/GDNBatchOps.td"
include "gdn/Dialect/GDN/IR/GDNDialect.td"
include "gdn/Dialect/GDN/IR/GDNInterfaces.td"
include "gdn/Dialect/GDN/IR/GDNKernelOps.td"
include "gdn/Dialect/GDN/IR/GDNMapOps.td"
include "gdn/Dialect/GDN/IR/GDNPendingOps.td"
include "gdn/Dialect/GDN/IR/GDNPoolOps.td"
include "gdn/Dialect/GDN/IR/GDNRuleOps.td"
include "gdn/Dialect/GDN/IR/GDNStateOps.td"
include "gdn/Dialect/GDN/IR/GDNTokenOps.td"
include "gdn/Dialect/GDN/IR/GDNTypes.td"

#endif // GDN_DIALECT_GDN_IR_GDNOPS_TD
