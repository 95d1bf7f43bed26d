// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiled entries on a device, through the runtime's C ABI: what a caller
// needs of gdn-c/runtime.h as C++ objects that own their handles, with
// arguments as named arrays and failures as llvm::Error.
#ifndef GDN_RUN_SESSION_H
#define GDN_RUN_SESSION_H

#include "gdn-c/runtime.h"
#include "gdn/Data/Array.h"
#include "gdn/Run/DeviceMemory.h"
#include "gdn/Support/LinearForm.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gdn::run {

/// Arguments of a call, by parameter name.
using Arrays = std::map<std::string, data::Array>;
/// Values of an entry's symbols.
using Symbols = std::map<std::string, int64_t>;

/// What a parameter of an entry must be.
struct Parameter {
  std::string name;
  bool isPool = false;
  bool isRead = false;    // the caller has to fill it
  bool isWritten = false; // the entry changes it
  data::DType dtype = data::DType::f32;
  std::vector<LinearForm> dims;
  /// The dimension whose elements lie side by side, if it is not the last; 0:
  /// arrays are row-major.
  int innermost = 0;
  /// Of the chunk form of its entry, as the image says it: "mixed" say; ""
  /// where the entry has none.
  std::string precision;
  /// The type of its entry's inputs and outputs: "bf16" say.
  std::string io;
  /// How far it may be off since its entry goes on from states that it has
  /// rounded to 16 bits: from a token's parent, or from what takes pending
  /// tokens in ahead of the step's.
  double roundedLimit = 0;

  /// `bf16[T, 256*Hk + 256*Hv]`.
  std::string typeString() const;
};

template <auto destroy> struct Destroyer {
  template <typename Handle> void operator()(Handle *handle) const {
    destroy(handle);
  }
};

/// Copies of arguments in the memory of a kernel's device, ready to be
/// launched, with the workspace that the kernel wants for them.
class Binding {
public:
  /// Runs the entry once, to its end. Further launches go on from the pools
  /// that the last one left.
  llvm::Error launch();
  /// Copies what the entry writes to the arrays of that name.
  llvm::Error readResults(Arrays &arrays) const;

  int64_t units() const { return gdnrt_binding_units(handle.get()); }
  /// The index of the variant that launches take.
  size_t variant() const { return gdnrt_binding_variant(handle.get()); }
  size_t workspaceBytes() const { return workspace.size(); }

private:
  friend class Kernel;
  llvm::Error makeWorkspace();

  struct Written {
    DeviceMemory memory;
    int innermost; // of the parameter
  };

  DeviceHandle device;
  std::map<std::string, Written> written;
  std::vector<DeviceMemory> others;
  DeviceMemory workspace;
  std::unique_ptr<gdnrt_binding, Destroyer<gdnrt_binding_destroy>> handle;
};

/// One entry, loaded on the device.
class Kernel {
public:
  const std::string &getName() const { return name; }
  /// The name of the device that runs it.
  std::string getDeviceName() const;
  const std::vector<Parameter> &getParameters() const { return parameters; }
  const std::vector<std::string> &getSymbols() const { return symbols; }

  /// The parameter of that name or null.
  const Parameter *find(llvm::StringRef parameter) const;
  /// A fact that the image states about the entry, or "".
  std::string getAttribute(llvm::StringRef key) const;
  /// The features of the code that the device chose; the target where it has
  /// none.
  std::string getFeatures() const;

  /// The variants of that code, in order of preference.
  std::vector<gdnrt_variant_info> getVariants() const;

  /// Windows of convolutions lie position after position in memory, each with
  /// all channels, and not channel after channel.
  void layWindowsByPosition();

  /// Binds `arrays`, of which there has to be one for every parameter; pools
  /// get `nullSlot`. Launches take the variant of that name; "": the device
  /// chooses.
  llvm::Expected<Binding> bind(const Arrays &arrays, int64_t nullSlot,
                               llvm::StringRef variant = "") const;

private:
  friend class Program;
  DeviceHandle device;
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<std::string> symbols;
  std::unique_ptr<gdnrt_kernel, Destroyer<gdnrt_kernel_destroy>> handle;
};

/// An image and the device that runs it.
class Program {
public:
  /// Loads an image file. `workers` threads run a launch of a CPU; 0 means all.
  /// `device` is "cpu", "cuda" or "cuda:1"; or "any": entries run on a GPU
  /// where there is one and the image has code for it, others on the CPU.
  static llvm::Expected<Program> load(llvm::StringRef path, int workers,
                                      llvm::StringRef device = "cpu");

  std::vector<std::string> entryNames() const;
  /// Loads the entry of that name; `decode` also finds `decode_bf16_f32`.
  llvm::Expected<Kernel> kernel(llvm::StringRef entry) const;
  /// "x86-64 CPU, 2 workers"; of "any" the first of the two.
  std::string deviceName() const;

private:
  std::unique_ptr<gdnrt_image, Destroyer<gdnrt_image_destroy>> image;
  DeviceHandle device, other; // other: for what the first has no code; or null
};

} // namespace gdn::run

#endif // GDN_RUN_SESSION_H
