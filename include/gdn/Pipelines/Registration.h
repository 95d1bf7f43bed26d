// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything that gdn's drivers know by name, listed once.
#ifndef GDN_PIPELINES_REGISTRATION_H
#define GDN_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace gdn {

/// Adds gdn, gdn_tile and the upstream dialects that they are used with.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Registers gdn's passes, and the general ones (canonicalize, cse, ...). To be
/// called once in a process.
void registerAllPasses();

} // namespace gdn

#endif // GDN_PIPELINES_REGISTRATION_H
