// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs ptxas; see Ptxas.h.
#include "gdn/Target/Ptxas.h"

#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/TemporaryFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/Threading.h"

using namespace gdn;

/// The oldest ptxas that reads PTX 9.0.
static constexpr unsigned oldestMajor = 13;

llvm::Expected<Ptxas> Ptxas::open(llvm::StringRef path) {
  llvm::Expected<ProgramOutput> said =
      runProgram(path, {"--version"}, /*seconds=*/30);
  if (!said)
    return said.takeError();
  llvm::SmallVector<llvm::StringRef> match;
  unsigned major;
  if (said->exitCode != 0 ||
      !llvm::Regex("V(([0-9]+)\\.[0-9]+\\.[0-9]+)").match(said->text, &match) ||
      match[2].getAsInteger(10, major))
    return llvm::createStringError(
        path + ": expects 'ptxas --version' to print a version, but got \"" +
        llvm::StringRef(said->text).trim() + "\"");
  if (major < oldestMajor)
    return llvm::createStringError(llvm::formatv(
        "{0}: expects ptxas {1}.0 or newer, which reads PTX 9.0, but got {2}",
        path, oldestMajor, match[1]));
  return Ptxas(path.str(), match[1].str());
}

/// The lines that say what is wrong, without the path of the temporary file.
static std::string errorsOf(llvm::StringRef output, llvm::StringRef file) {
  std::string errors;
  for (llvm::StringRef line : llvm::split(output, '\n')) {
    if (!line.contains("error") && !line.contains("fatal"))
      continue;
    if (!errors.empty())
      errors += "\n";
    auto [before, after] = line.split(file);
    errors += after.empty() ? before.str() : (before + "ptx" + after).str();
  }
  return errors.empty() ? output.trim().str() : errors;
}

/// Puts the size of each kernel's code into the report.
static llvm::Error readCodeSizes(llvm::StringRef bytes, PtxasReport &report) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(bytes, "cubin"));
  if (!object)
    return object.takeError();
  for (const llvm::object::SectionRef &section : (*object)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name)
      return name.takeError();
    llvm::StringRef kernel = *name;
    if (!kernel.consume_front(".text."))
      continue;
    auto found = report.kernels.find(kernel);
    if (found != report.kernels.end())
      found->second.code = section.getSize();
  }
  for (const auto &[name, resources] : report.kernels)
    if (resources.code == 0 || resources.registers == 0)
      return llvm::createStringError(
          "expects ptxas to report code and registers of the kernel '" + name +
          "', but got none");
  return llvm::Error::success();
}

std::string Ptxas::getIdentity() const {
  llvm::sys::fs::file_status file;
  (void)llvm::sys::fs::status(path, file);
  return version + " of " + std::to_string(file.getSize()) + " bytes";
}

llvm::Expected<Cubin> gdn::makeCubin(std::string bytes, std::string said) {
  llvm::Expected<PtxasReport> report = parsePtxasOutput(said);
  if (!report)
    return report.takeError();
  if (llvm::Error error = readCodeSizes(bytes, *report))
    return std::move(error);
  return Cubin{std::move(bytes), std::move(said), std::move(*report)};
}

llvm::Expected<Cubin> Ptxas::assemble(llvm::StringRef ptx,
                                      const TargetModel &target,
                                      const ContentCache *cache,
                                      unsigned seconds) const {
  llvm::SmallVector<std::string> options = {
      "-v", "-O3", ("-arch=" + target.getName()).str()};
  if (ptx.contains("\t.loc\t"))
    options.push_back("-lineinfo");
  ContentKey key("cubin");
  key.add(getIdentity()).add(llvm::join(options, " ")).add(ptx);
  ContentKey keyOfSaid("ptxas output");
  keyOfSaid.add(key.getDigest());
  if (cache) {
    std::optional<std::string> bytes = cache->find(key),
                               said = cache->find(keyOfSaid);
    if (bytes && said)
      return makeCubin(std::move(*bytes), std::move(*said));
  }
  TemporaryFile input, output;
  if (llvm::Error error = input.create("ptx", ptx))
    return std::move(error);
  if (llvm::Error error = output.create("cubin", ""))
    return std::move(error);
  // Kernels side by side: the same code, sooner.
  const std::string threads =
      std::to_string(llvm::hardware_concurrency().compute_thread_count());
  llvm::SmallVector<llvm::StringRef> arguments(options.begin(), options.end());
  arguments.append({"--split-compile", threads});
  arguments.append({input.getPath(), "-o", output.getPath()});
  llvm::Expected<ProgramOutput> said = runProgram(path, arguments, seconds);
  if (!said)
    return said.takeError();
  if (said->exitCode != 0)
    return llvm::createStringError(
        "ptxas " + version + " refuses the code for " + target.getName() +
        ":\n" + errorsOf(said->text, input.getPath()));
  llvm::Expected<std::string> bytes = output.read();
  if (!bytes)
    return bytes.takeError();
  llvm::Expected<Cubin> cubin =
      makeCubin(std::move(*bytes), std::move(said->text));
  if (cubin && cache) {
    cache->store(key, cubin->bytes);
    cache->store(keyOfSaid, cubin->said);
  }
  return cubin;
}
