// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Modules as bytecode, parts with their sizes; see CachedModule.h. Diagnostics
// are empty modules in front of the functions, at the location they are about.
#include "CachedModule.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace gdn;

static constexpr StringLiteral severityName = "gdn.severity",
                               messageName = "gdn.message";

std::string gdn::textForKey(ModuleOp source) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  source->print(stream, OpPrintingFlags().enableDebugInfo());
  return text;
}

static void append(std::string &to, StringRef part) {
  char size[8];
  llvm::support::endian::write64le(size, part.size());
  to.append(size, sizeof(size));
  to += part;
}

/// Takes the first part off `from`; false if there is none.
static bool take(StringRef &from, StringRef &part) {
  if (from.size() < 8)
    return false;
  uint64_t size = llvm::support::endian::read64le(from.data());
  from = from.drop_front(8);
  if (from.size() < size)
    return false;
  part = from.take_front(size);
  from = from.drop_front(size);
  return true;
}

namespace {
/// Keeps what is said while it lives, and lets others hear it, too.
class Listener {
public:
  explicit Listener(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (!diagnostic.getNotes().empty() ||
              diagnostic.getSeverity() == DiagnosticSeverity::Error)
            canBeRepeated = false;
          said.push_back({diagnostic.getLocation(), diagnostic.getSeverity(),
                          diagnostic.str()});
          return failure();
        }) {}

  struct Said {
    Location location;
    DiagnosticSeverity severity;
    std::string message;
  };
  SmallVector<Said, 0> said;
  bool canBeRepeated = true;

private:
  ScopedDiagnosticHandler handler;
};
} // namespace

/// All that `load` needs.
static std::string pack(const CachedModule &compiled, const Listener &heard) {
  ModuleOp module = *compiled.module;
  OwningOpRef<ModuleOp> kept = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(kept->getBody());
  for (const Listener::Said &said : heard.said) {
    auto place = ModuleOp::create(builder, said.location);
    place->setAttr(severityName,
                   builder.getI32IntegerAttr(int32_t(said.severity)));
    place->setAttr(messageName, builder.getStringAttr(said.message));
  }
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    builder.insert(func->cloneWithoutRegions());
  std::string bytecode, packed;
  llvm::raw_string_ostream stream(bytecode);
  if (failed(writeBytecodeToFile(*kept, stream)))
    return "";
  append(packed, bytecode);
  for (const std::string &part : compiled.parts)
    append(packed, part);
  return packed;
}

/// The module and its parts; what was said is said again. Fails if `packed` is
/// not what `pack` made.
static FailureOr<CachedModule> unpack(StringRef packed, MLIRContext *context) {
  StringRef bytecode, part;
  if (!take(packed, bytecode))
    return failure();
  CachedModule cached;
  context->loadDialect<LLVM::LLVMDialect>();
  // Functions without bodies are not what the dialect expects of them.
  ParserConfig config(context, /*verifyAfterParse=*/false);
  cached.module = parseSourceString<ModuleOp>(bytecode, config);
  if (!cached.module)
    return failure();
  while (take(packed, part))
    cached.parts.push_back(part.str());
  for (auto place :
       llvm::make_early_inc_range(cached.module->getOps<ModuleOp>())) {
    auto severity = place->getAttrOfType<IntegerAttr>(severityName);
    auto message = place->getAttrOfType<StringAttr>(messageName);
    if (!severity || !message)
      return failure();
    context->getDiagEngine().emit(place.getLoc(),
                                  DiagnosticSeverity(severity.getInt()))
        << message.getValue();
    place.erase();
  }
  return cached;
}

FailureOr<CachedModule>
gdn::compileOnce(const ContentCache &cache, const ContentKey &key,
                 MLIRContext *context,
                 function_ref<FailureOr<CachedModule>()> compile) {
  if (std::optional<std::string> packed = cache.find(key)) {
    FailureOr<CachedModule> cached = unpack(*packed, context);
    if (succeeded(cached))
      return cached;
  }
  Listener listener(context);
  FailureOr<CachedModule> compiled = compile();
  if (succeeded(compiled) && listener.canBeRepeated)
    if (std::string packed = pack(*compiled, listener); !packed.empty())
      cache.store(key, packed);
  return compiled;
}
