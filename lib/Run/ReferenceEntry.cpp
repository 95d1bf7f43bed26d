// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Evaluates an entry's gdn source; see ReferenceEntry.h.
#include "gdn/Run/ReferenceEntry.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace gdn;
using namespace gdn::run;

namespace {
/// Turns diagnostics into text while it lives.
class DiagnosticText {
public:
  explicit DiagnosticText(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (!text.empty())
            text += "; ";
          text += diagnostic.str();
          return success();
        }) {}

  /// What was said, or that nothing was.
  llvm::Error toError(StringRef what) const {
    return llvm::createStringError(what + ": " +
                                   (text.empty() ? "failed" : text));
  }

private:
  std::string text;
  ScopedDiagnosticHandler handler;
};
} // namespace

llvm::Expected<ReferenceEntry> ReferenceEntry::create(MLIRContext &context,
                                                      const Kernel &kernel) {
  ReferenceEntry entry;
  entry.name = kernel.getName();
  std::string source = kernel.getAttribute("gdn.source");
  if (source.empty())
    return llvm::createStringError(
        entry.name + ": expects the image to have the entry's source in the "
                     "attribute 'gdn.source', but it has none");
  context.loadDialect<GDNDialect, arith::ArithDialect, func::FuncDialect,
                      tensor::TensorDialect>();
  DiagnosticText diagnostics(&context);
  entry.module = parseSourceString<ModuleOp>(source, &context);
  if (!entry.module)
    return diagnostics.toError(entry.name + ": gdn.source");
  entry.function = entry.module->lookupSymbol<func::FuncOp>(entry.name);
  if (!entry.function)
    return llvm::createStringError(
        entry.name + ": gdn.source: expects the function of the entry, but "
                     "got none of that name");
  return entry;
}

static reference::Tensor toTensor(const data::Array &array) {
  return reference::Tensor(array.shape, array.toDoubles());
}

llvm::Expected<Outcome> ReferenceEntry::evaluate(
    const Arrays &arguments, const Symbols &symbols, int64_t nullSlot,
    const std::map<std::string, reference::Pool> &carried) const {
  Outcome outcome;
  SmallVector<reference::Argument> values;
  func::FuncOp func = function;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto named = func.getArgAttrOfType<StringAttr>(i, "gdn.name");
    std::string parameter = named ? named.str() : "";
    Type type = func.getArgumentTypes()[i];
    if (type.isIndex()) {
      auto symbol = symbols.find(parameter);
      if (symbol == symbols.end())
        return llvm::createStringError(name + ": no size gives the symbol '" +
                                       parameter + "'");
      values.push_back(symbol->second);
      continue;
    }
    auto argument = arguments.find(parameter);
    if (argument == arguments.end())
      return llvm::createStringError(name + ": expects an argument for '" +
                                     parameter + "'");
    if (!isa<PoolType>(type)) {
      values.push_back(toTensor(argument->second));
      continue;
    }
    reference::Pool &pool = outcome.pools[parameter];
    auto state = carried.find(parameter);
    if (state != carried.end()) {
      pool = state->second;
    } else {
      pool.data = toTensor(argument->second);
      pool.nullSlot = nullSlot;
    }
    values.push_back(&pool);
  }

  DiagnosticText diagnostics(func.getContext());
  FailureOr<SmallVector<reference::Tensor>> results =
      reference::evaluate(func, values);
  if (failed(results))
    return diagnostics.toError(name);
  for (auto [i, result] : llvm::enumerate(*results)) {
    auto named = func.getResultAttrOfType<StringAttr>(i, "gdn.name");
    outcome.results[named ? named.str() : ""] = std::move(result);
  }
  return outcome;
}
