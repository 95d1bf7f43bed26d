// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gdn module and the image compiled from it, in one process: what runs and
// what the reference evaluates are the same functions.
#ifndef GDN_TEST_INTEGRATION_CPU_PROGRAM_H
#define GDN_TEST_INTEGRATION_CPU_PROGRAM_H

#include "gdn-c/runtime.h"
#include "gdn/Data/DType.h"
#include "gdn/Model/EntryBuilder.h"
#include "gdn/Pipelines/CpuPipeline.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <memory>

namespace gdn::integration {

/// Which ops the entries are made of.
enum class Form {
  layer,           ///< as generated: convolution, gates, delta rule, norm
  plain,           ///< gdn.delta_rule alone, on ready q, k, v, gates
  plainPerChannel, ///< the same with a decay per channel of the key
  linear,          ///< gdn.gated_linear_attention alone
  linearPerChannel ///< likewise
};

/// Everything that is fixed when entries are compiled. Sizes default to those
/// of small heads, element types to f32, outputs to core and norm.
struct Config {
  Config() {
    options.io = FloatKind::f32;
    options.outputs = EntryOutputs::both;
    pipeline.segments = 0; // their tests ask for them
  }
  Config(int64_t dk, int64_t dv) : Config() {
    this->dk = dk;
    this->dv = dv;
  }

  int64_t dk = 64, dv = 64, convWidth = 4;
  Form form = Form::layer;
  InputLayout layout = InputLayout::interleaved;
  EntryOptions options;
  Activation gate = Activation::silu;
  double eps = 1e-6;
  bool doubleBeta = false;
  bool erase = false; ///< of forms of gdn.delta_rule alone: along a key apart
  bool normAfterGate = false;
  bool perChannelDecay = false;
  std::optional<double> decayBound;
  bool convBias = false;
  std::string target = "native";
  CpuPipelineOptions pipeline; ///< block size, the chunk form, its precision

  /// Gives prefill variants of so many segments, two blocks for a head, beside
  /// "split".
  void addSegments(llvm::ArrayRef<int64_t> numbers) {
    pipeline.variants.clear();
    for (int64_t number : numbers) {
      std::string text = std::to_string(number);
      pipeline.variants.push_back("staged-segments-" + text +
                                  ":v-split=2;segments=" + text);
    }
    pipeline.variants.push_back("staged:");
  }

  /// Of a form of one rule alone.
  bool isPerChannel() const {
    return form == Form::plainPerChannel || form == Form::linearPerChannel;
  }
  bool hasDelta() const {
    return form == Form::plain || form == Form::plainPerChannel;
  }

  /// The choices as text; equal for equal configurations.
  std::string key() const;
};

/// A parameter of an entry.
struct Parameter {
  std::string name;
  bool isPool, isOutput;
  data::DType dtype;
  llvm::SmallVector<LinearForm> dims;

  /// True if dimension 0 counts tokens.
  bool isPerToken() const;
};

/// An entry that is ready to run on a number of workers, and its meaning.
struct Entry {
  gdnrt_kernel *kernel;
  mlir::func::FuncOp function;
  std::vector<Parameter> parameters;
};

/// The entries `prefill` and `decode` of one configuration.
class Program {
public:
  /// All programs live until the process ends.
  static Program &get(const Config &config);

  /// Compiles the entry, and no other, when it is asked for first. Ends the
  /// process where it does not compile.
  Entry &entry(llvm::StringRef name, int workers = 1);

  const Config config;

private:
  explicit Program(const Config &config);

  /// An image with one entry.
  struct Image {
    std::vector<uint8_t> bytes;
    gdnrt_image *handle = nullptr;
  };
  Image &image(llvm::StringRef name);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::map<std::string, Image> images;
  std::map<std::pair<std::string, int>, Entry> entries;
};

/// The module of a configuration.
mlir::OwningOpRef<mlir::ModuleOp> buildModule(mlir::MLIRContext &context,
                                              const Config &config);

} // namespace gdn::integration

#endif // GDN_TEST_INTEGRATION_CPU_PROGRAM_H
