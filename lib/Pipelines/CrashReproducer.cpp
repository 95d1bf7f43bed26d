// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Saves what a pass crashed on; see CrashReproducer.h.
#include "gdn/Pipelines/CrashReproducer.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace gdn;

namespace {
/// The file of a reproducer, kept if it is to be kept.
class FileStream final : public ReproducerStream {
public:
  FileStream(std::unique_ptr<llvm::ToolOutputFile> file, std::string path)
      : file(std::move(file)), path(std::move(path)) {
    this->file->keep();
  }
  StringRef description() override { return path; }
  raw_ostream &os() override { return file->os(); }

private:
  std::unique_ptr<llvm::ToolOutputFile> file;
  std::string path;
};

/// Stands for no file.
class NoStream final : public ReproducerStream {
public:
  StringRef description() override { return ""; }
  raw_ostream &os() override { return llvm::nulls(); }
};
} // namespace

CrashReproducer::CrashReproducer(MLIRContext &context, std::string path)
    : context(context), path(std::move(path)) {
  handler = context.getDiagEngine().registerHandler([this](Diagnostic &diag) {
    if (diag.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    // The pass manager reports every failure as if it were a crash.
    bool isRepetition = reporting && sawError;
    sawError = true;
    return success(isRepetition);
  });
}

CrashReproducer::~CrashReproducer() {
  context.getDiagEngine().eraseHandler(handler);
}

void CrashReproducer::attach(PassManager &passes) {
  passes.enableCrashReproducerGeneration(
      [this](std::string &error) -> std::unique_ptr<ReproducerStream> {
        reporting = true;
        if (sawError)
          return std::make_unique<NoStream>();
        std::error_code code;
        auto file = std::make_unique<llvm::ToolOutputFile>(
            path, code, llvm::sys::fs::OF_Text);
        if (code) {
          error = path + ": cannot be written: " + code.message();
          return nullptr;
        }
        return std::make_unique<FileStream>(std::move(file), path);
      });
}
