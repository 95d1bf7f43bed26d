// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels in images: which codes a target gives and in which order, what they
// say about a launch, and what does not fit the entry.
#include "gdn/Pipelines/CompileImage.h"
#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/NvptxCodegen.h"

#include "gdn-c/runtime.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdnrt/image_generated.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

using namespace gdn;
using namespace mlir;
namespace fb = gdnrt::fb;

namespace {

/// A kernel as it comes out of the pipeline. Its words: x has 5, then N, the
/// workspace and the units.
constexpr llvm::StringLiteral kernel = R"(
  llvm.func @fill(%words: !llvm.ptr {llvm.byval = !llvm.array<8 x i64>,
                                     llvm.align = 8 : i64,
                                     nvvm.grid_constant})
      attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>,
                  gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"]},
                  gdn_gpu.alignments = array<i64: 16>,
                  gdn_gpu.launch = {threads = 64 : i32, shared_bytes = 4096 : i64,
                                    blocks_per_sm = 4 : i32, counters = "2*N"}} {
    %at = llvm.load %words : !llvm.ptr -> !llvm.ptr<1>
    %seven = llvm.mlir.constant(7.0 : f32) : f32
    llvm.store %seven, %at : f32, !llvm.ptr<1>
    llvm.return
  })";

/// Its gdn side. The body is of no account to the writer.
constexpr llvm::StringLiteral source = R"(
  func.func @fill(%n: index {gdn.name = "N"})
      -> (tensor<?x4xf32> {gdn.name = "x", gdn.dims = ["N", "4"]})
      attributes {gdn.entry} {
    %x = arith.constant dense<7.0> : tensor<2x4xf32>
    %cast = builtin.unrealized_conversion_cast %x
        : tensor<2x4xf32> to tensor<?x4xf32>
    return %cast : tensor<?x4xf32>
  })";

class KernelImageTest : public testing::Test {
protected:
  KernelImageTest()
      : handler(&context, [this](Diagnostic &diagnostic) {
          said += diagnostic.str() + "\n";
          return success();
        }) {
    DialectRegistry registry;
    registerKernelDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<GDNDialect, LLVM::LLVMDialect, arith::ArithDialect,
                        func::FuncDialect>();
    context.loadAllAvailableDialects();
    if (std::optional<std::string> path = findCudaProgram("ptxas"))
      options.ptxas = llvm::cantFail(Ptxas::open(*path));
  }

  OwningOpRef<ModuleOp> parse(llvm::StringRef text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << said;
    return module;
  }
  SmallVector<TargetCode, 0> compile(llvm::StringRef text,
                                     llvm::StringRef target) {
    auto codes = makeGpuTargetCodes(
        *parse(text), llvm::cantFail(TargetModel::get(target)), options,
        [](PassManager &) { return success(); });
    EXPECT_TRUE(succeeded(codes)) << said;
    return std::move(*codes);
  }
  /// The entry of an image with those codes, which the runtime can read.
  std::unique_ptr<fb::EntryT> entry(ArrayRef<TargetCode> codes) {
    auto module = parse(source);
    auto bytes = buildImage(*module, codes);
    if (failed(bytes))
      return nullptr;
    gdnrt_error error;
    gdnrt_image *loaded = nullptr;
    EXPECT_EQ(
        gdnrt_image_load_memory(bytes->data(), bytes->size(), &loaded, &error),
        GDNRT_OK)
        << error.message;
    gdnrt_image_destroy(loaded);
    std::unique_ptr<fb::ImageT> image(fb::GetImage(bytes->data())->UnPack());
    return std::move(image->entries.front());
  }

  MLIRContext context;
  std::string said;
  ScopedDiagnosticHandler handler;
  GpuCompileOptions options;
};

std::string attribute(const fb::EntryT &entry, llvm::StringRef key) {
  for (const auto &pair : entry.attributes)
    if (pair->key == key)
      return pair->value;
  return "";
}

TEST_F(KernelImageTest, ACubinAndWhereItCanRunLaterPtx) {
  if (!options.ptxas)
    GTEST_SKIP() << "no ptxas; tools/scripts/setup.sh installs it";
  SmallVector<TargetCode, 0> exact = compile(kernel, "sm_90a");
  ASSERT_EQ(exact.size(), 1u);
  EXPECT_EQ(exact[0].format, CodeFormat::cubin);
  SmallVector<TargetCode, 0> general = compile(kernel, "sm_80");
  ASSERT_EQ(general.size(), 2u);
  EXPECT_EQ(general[0].format, CodeFormat::cubin);
  EXPECT_EQ(general[1].format, CodeFormat::ptx);
  EXPECT_THAT(std::string(general[1].blob.begin(), general[1].blob.end()),
              testing::HasSubstr(".visible .entry fill("));
  EXPECT_EQ(said, "");

  std::unique_ptr<fb::EntryT> described = entry(general);
  ASSERT_TRUE(described) << said;
  ASSERT_EQ(described->codes.size(), 2u);
  const fb::CodeT &code = *described->codes[0];
  EXPECT_EQ(code.target, "sm_80");
  EXPECT_EQ(code.format, fb::CodeFormat::cubin);
  ASSERT_EQ(code.variants.size(), 1u);
  const fb::StageT &stage = *code.variants[0]->stages[0];
  EXPECT_EQ(stage.symbol, "fill");
  EXPECT_EQ(stage.grid.size(), 2u);
  EXPECT_EQ(code.alignments, std::vector<uint32_t>{16});
  EXPECT_EQ(stage.launch->threads, 64u);
  EXPECT_EQ(stage.launch->shared_bytes, 4096u);
  EXPECT_EQ(stage.launch->blocks_per_sm, 4u);
  EXPECT_EQ(stage.launch->cluster, 1u);
  EXPECT_FALSE(stage.launch->dependent);
  EXPECT_EQ(stage.launch->counters.size(), 2u); // 2, N
  EXPECT_GT(stage.resources->registers, 0u);
  EXPECT_GT(stage.resources->code_bytes, 0u);
  EXPECT_EQ(attribute(*described, "gdn.digest.sm_80").size(), 64u);
}

TEST_F(KernelImageTest, WithoutAnAssemblerPtxAndARemark) {
  options.ptxas.reset();
  SmallVector<TargetCode, 0> codes = compile(kernel, "sm_90a");
  ASSERT_EQ(codes.size(), 1u);
  EXPECT_EQ(codes[0].format, CodeFormat::ptx);
  EXPECT_EQ(said, "no ptxas was found: the image has PTX for sm_90a, which a "
                  "driver of CUDA 13 assembles when it loads it\n");
  std::unique_ptr<fb::EntryT> described = entry(codes);
  ASSERT_TRUE(described) << said;
  EXPECT_EQ(described->codes[0]->format, fb::CodeFormat::ptx);
  EXPECT_FALSE(described->codes[0]->variants[0]->stages[0]->resources);
  EXPECT_EQ(attribute(*described, "gdn.digest.sm_90a").size(), 64u);
}

TEST_F(KernelImageTest, TheKernelTakesTheEntrysWords) {
  options.ptxas.reset();
  SmallVector<TargetCode, 0> codes = compile(kernel, "sm_80");
  said.clear();
  codes[0].entries[0].variants[0].stages[0].words = 9;
  EXPECT_FALSE(entry(codes));
  EXPECT_EQ(
      said,
      "'func.func' op expects the kernel fill to take 8 "
      "words, those of a call, two more and its tensor maps, but got 9\n");
  said.clear();
  // A region of a workspace has its address among the words,
  // in every kernel.
  VariantCode split = codes[0].entries[0].variants[0];
  split.name = "split";
  split.workspace.push_back({"64"});
  codes[0].entries[0].variants.insert(codes[0].entries[0].variants.begin(),
                                      split);
  EXPECT_TRUE(entry(codes)) << said;
  codes[0].entries[0].variants.erase(codes[0].entries[0].variants.begin());
  codes[0].entries[0].variants[0].stages[0].words = 8;
  codes[0].entries[0].alignments = {16, 16};
  EXPECT_FALSE(entry(codes));
  EXPECT_EQ(said, "'func.func' op expects an alignment for each of the entry's "
                  "1 parameters, but got 2\n");
  said.clear();
  codes[0].entries[0].alignments.clear();
  codes[0].entries[0].variants[0].stages[0].launch->counters = {"M"};
  EXPECT_FALSE(entry(codes));
  EXPECT_EQ(said, "'func.func' op expects counters of linear forms over the "
                  "entry's symbols, but got \"M\"\n");
}

TEST_F(KernelImageTest, LayoutsOfAVariant) {
  options.ptxas.reset();
  SmallVector<TargetCode, 0> codes = compile(kernel, "sm_80");
  EntryCode &code = codes[0].entries[0];
  VariantCode aligned = code.variants[0];
  aligned.name = "aligned";
  aligned.layouts = {{16, {0, 1}}};
  code.variants.insert(code.variants.begin(), aligned);
  std::unique_ptr<fb::EntryT> described = entry(codes);
  ASSERT_TRUE(described) << said;
  const auto &variants = described->codes[0]->variants;
  ASSERT_EQ(variants[0]->layouts.size(), 1u);
  EXPECT_EQ(variants[0]->layouts[0]->alignment, 16u);
  EXPECT_EQ(variants[0]->layouts[0]->strides, (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(variants[1]->layouts.empty());
  said.clear();
  code.variants[0].layouts = {{16, {0, 1}}, {0, {}}};
  EXPECT_FALSE(entry(codes));
  EXPECT_EQ(said, "'func.func' op expects a layout for each of the entry's 1 "
                  "parameters in the variant aligned, but got 2\n");
  said.clear();
  code.variants[0].layouts = {{16, {0}}};
  EXPECT_FALSE(entry(codes));
  EXPECT_EQ(said, "'func.func' op expects 2 strides of x in the variant "
                  "aligned, but got 1\n");
}

TEST_F(KernelImageTest, NoMoreFormsThanTheRuntimeTakes) {
  options.ptxas.reset();
  SmallVector<TargetCode, 0> codes = compile(kernel, "sm_80");
  auto &counters = codes[0].entries[0].variants[0].stages[0].launch->counters;
  counters.assign(8, "N");
  EXPECT_TRUE(entry(codes)) << said;
  said.clear();
  counters.assign(9, "N");
  EXPECT_FALSE(entry(codes));
  EXPECT_EQ(said, "'func.func' op expects counters of at most 8 linear forms, "
                  "which the runtime takes, but got 9\n");
}

TEST_F(KernelImageTest, BoxesThatTheRuntimeTakes) {
  options.ptxas.reset();
  SmallVector<TargetCode, 0> codes = compile(kernel, "sm_90a");
  VariantCode &variant = codes[0].entries[0].variants[0];
  StageCode &stage = variant.stages[0];
  variant.workspace.push_back({"64"});
  stage.words = 16 + 16; // a region's too, up to a multiple of 8, and a map
  auto make = [&](ArrayRef<std::string> sizes, uint32_t rowsDim,
                  uint32_t pieces, int32_t param = -1) {
    KernelTensorMap box;
    box.param = param;
    box.region = param < 0 ? 0 : -1;
    box.sizes.assign(sizes.begin(), sizes.end());
    box.rowsDim = rowsDim;
    box.rows = 64;
    box.pieces = pieces;
    stage.launch->tensorMaps.assign(1, box);
    said.clear();
    return entry(codes) ? "OK" : said;
  };
  EXPECT_EQ(make({"N", "128"}, 0, 2), "OK");
  EXPECT_EQ(make({"N", "2", "2", "256"}, 2, 0), "OK");
  const std::string expected =
      "'func.func' op expects a box of an array of 2 to 4 dimensions, the last "
      "a multiple of 64 up to 256, and of another one's rows, but got ";
  EXPECT_EQ(make({"N", "128"}, 0, 3),
            expected + "rank 2, 128 columns, rows of dimension 0 and 3 pieces "
                       "of 64 columns\n");
  EXPECT_EQ(make({"N", "128"}, 1, 0),
            expected + "rank 2, 128 columns, rows of dimension 1 and 0 pieces "
                       "of 64 columns\n");
  EXPECT_EQ(make({"N", "N"}, 0, 0),
            expected + "rank 2, 0 columns, rows of dimension 0 and 0 pieces of "
                       "64 columns\n");
  EXPECT_EQ(make({"N", "N", "N", "N", "64"}, 0, 0),
            expected + "rank 5, 64 columns, rows of dimension 0 and 0 pieces "
                       "of 64 columns\n");
  EXPECT_EQ(make({}, 0, 0, /*param=*/0),
            expected + "rank 2, 8 columns, rows of dimension 0 and 0 pieces of "
                       "64 columns\n"); // of 16 bits, two for each f32
  EXPECT_EQ(make({}, 0, 0, /*param=*/1),
            "'func.func' op expects a box of one of 1 parameters, but got "
            "number 1\n");
  variant.workspace.clear();
  stage.words = 8 + 16;
  EXPECT_EQ(make({"N", "128"}, 0, 2),
            "'func.func' op expects a box of one of 0 regions, but got number "
            "0\n");
}

TEST_F(KernelImageTest, AnImageWithoutCodeIsAnError) {
  TargetCode none;
  none.target = "sm_90a";
  none.format = CodeFormat::cubin;
  EXPECT_FALSE(entry(none));
  EXPECT_EQ(said, "has no code for any target and is left out\n"
                  "expects at least one function with 'gdn.entry' that has "
                  "code\n");
}

TEST_F(KernelImageTest, AnEntryOutsideAKernelIsAnError) {
  auto module = parse(source);
  TargetModel target = llvm::cantFail(TargetModel::get("sm_90a"));
  EXPECT_TRUE(failed(compileImage(*module, target, CompileOptions(),
                                  [](PassManager &) { return success(); })));
  EXPECT_THAT(said, testing::HasSubstr("expects to be inside a gdn.kernel"));
}

TEST_F(KernelImageTest, DigestsDoNotDependOnTheName) {
  options.ptxas.reset();
  std::string renamed = kernel.str();
  renamed.replace(renamed.find("@fill"), 5, "@seven");
  EXPECT_EQ(compile(kernel, "sm_80")[0].entries[0].digest,
            compile(renamed, "sm_80")[0].entries[0].digest);
  EXPECT_NE(compile(kernel, "sm_80")[0].entries[0].digest,
            compile(kernel, "sm_86")[0].entries[0].digest);
}

/// Two variants of an entry: one for few rows, which has 24 registers for 64
/// numbers, and one for all calls.
std::string twoVariants() {
  std::string loads, stores;
  for (int i = 0; i < 64; ++i) {
    std::string at = std::to_string(i);
    loads += "%p" + at + " = llvm.getelementptr %at[" + at +
             "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\n%v" + at +
             " = llvm.load volatile %p" + at + " : !llvm.ptr<1> -> f32\n";
    stores +=
        "llvm.store volatile %v" + at + ", %p" + at + " : f32, !llvm.ptr<1>\n";
  }
  std::string text = kernel.str();
  auto replace = [](std::string &in, llvm::StringRef from, llvm::StringRef to) {
    in.replace(in.find(from.str()), from.size(), to.str());
  };
  std::string few = text, all = text;
  replace(few, "@fill", "@fill_few");
  replace(all, "@fill", "@fill_rows");
  replace(few, "symbols = [\"N\"]",
          "symbols = [\"N\"], stage_of = \"fill\", variant = \"few\", "
          "conditions = [[[\"N\"], [\"8\"]]]");
  replace(all, "symbols = [\"N\"]",
          "symbols = [\"N\"], stage_of = \"fill\", variant = \"rows\"");
  replace(few, "nvvm.kernel,", "nvvm.kernel, nvvm.maxnreg = 24 : i32,");
  replace(few, "llvm.return", loads + stores + "llvm.return");
  return few + all;
}

// A variant whose kernel spills is left out of the code and stays in the
// digest, so a machine without ptxas has the same.
TEST_F(KernelImageTest, DigestsAreThoseAheadOfPtxas) {
  if (!options.ptxas)
    GTEST_SKIP() << "no ptxas; tools/scripts/setup.sh installs it";
  EntryCode assembled = compile(twoVariants(), "sm_90a")[0].entries[0];
  EXPECT_THAT(said, testing::HasSubstr("it is left out, and calls of 'fill' "
                                       "take another variant"));
  options.ptxas.reset();
  EntryCode asked = compile(twoVariants(), "sm_90a")[0].entries[0];
  EXPECT_EQ(assembled.variants.size(), 1u);
  EXPECT_EQ(asked.variants.size(), 2u);
  EXPECT_EQ(assembled.digest.size(), 64u);
  EXPECT_EQ(assembled.digest, asked.digest);
  EXPECT_NE(assembled.digest, compile(kernel, "sm_90a")[0].entries[0].digest);
}

} // namespace
