// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Images, written by the compiler and read by the runtime: the schema comes
// back as it was, the code runs, and what cannot be described is an error.
#include "CodegenTest.h"

#include "gdn-c/runtime.h"
#include "gdn/Target/ImageWriter.h"

using namespace gdn;
using namespace mlir;

namespace {

/// Writes 7 to element `i` of `out` for each unit `i`.
constexpr llvm::StringLiteral sevens = R"(
  llvm.func @fill(%words: !llvm.ptr, %begin: i64, %end: i64, %s: !llvm.ptr)
      attributes {gdn_tile.stage = {grid = ["N", "2"], symbols = ["N", "P"],
                                    scratch_bytes = 128 : i64,
                                    facts = {chunk_from = "62", precision = "mixed"}}} {
    %one = llvm.mlir.constant(1 : i64) : i64
    %seven = llvm.mlir.constant(7 : i32) : i32
    %at = llvm.getelementptr %words[8] : (!llvm.ptr) -> !llvm.ptr, i64
    %out = llvm.load %at : !llvm.ptr -> !llvm.ptr
    llvm.br ^loop(%begin : i64)
  ^loop(%i: i64):
    %more = llvm.icmp "slt" %i, %end : i64
    llvm.cond_br %more, ^body, ^done
  ^body:
    %to = llvm.getelementptr %out[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
    llvm.store %seven, %to : i32, !llvm.ptr
    %next = llvm.add %i, %one : i64
    llvm.br ^loop(%next : i64)
  ^done:
    llvm.return
  })";

/// Its gdn side. The body is of no account to the writer.
constexpr llvm::StringLiteral source = R"(
  func.func @fill(
      %n: index {gdn.name = "N"},
      %pool: !gdn.pool<?x4x3xbf16> {gdn.name = "pool",
                                    gdn.dims = ["P", "4", "3"]})
      -> (tensor<?xi32> {gdn.name = "out", gdn.dims = ["2*N"]})
      attributes {gdn.entry, gdn.facts = {model_type = "toy"}} {
    %out = arith.constant dense<7> : tensor<2xi32>
    %cast = builtin.unrealized_conversion_cast %out
        : tensor<2xi32> to tensor<?xi32>
    return %cast : tensor<?xi32>
  })";

class ImageWriterTest : public CodegenTest {
protected:
  FailureOr<TargetCode> compile(llvm::StringRef text) {
    auto module = parse(text);
    TargetCode code;
    auto entries = collectEntryCodes(*module);
    if (failed(entries))
      return failure();
    code.entries = std::move(*entries);
    code.features = target.getRequiredFeatures();
    FailureOr<CpuCodegen> codegen = CpuCodegen::create(*module, target);
    if (failed(codegen))
      return failure();
    code.blob = *codegen->emitSharedObject();
    return code;
  }
};

TEST_F(ImageWriterTest, TheRuntimeReadsWhatWasWritten) {
  auto module = parse(source);
  FailureOr<TargetCode> code = compile(sevens);
  ASSERT_TRUE(succeeded(code)) << said;
  auto bytes = buildImage(*module, *code);
  ASSERT_TRUE(succeeded(bytes)) << said;

  gdnrt_error error;
  gdnrt_image *image = nullptr;
  ASSERT_EQ(
      gdnrt_image_load_memory(bytes->data(), bytes->size(), &image, &error),
      GDNRT_OK)
      << error.message;
  ASSERT_EQ(gdnrt_image_entry_count(image), 1u);
  const gdnrt_entry *entry = gdnrt_image_entry(image, 0);
  EXPECT_STREQ(gdnrt_entry_name(entry), "fill");
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "model_type"), "toy");
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "precision"), "mixed");
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "chunk_from"), "62");
  EXPECT_THAT(gdnrt_entry_attribute(entry, "gdn.source"),
              testing::HasSubstr("func.func @fill(%arg0: index"));
  EXPECT_EQ(gdnrt_entry_symbol_count(entry), 2u);
  EXPECT_STREQ(gdnrt_entry_symbol(entry, 0), "N");

  ASSERT_EQ(gdnrt_entry_param_count(entry), 2u);
  gdnrt_param_info pool = gdnrt_param_info_default(),
                   out = gdnrt_param_info_default();
  ASSERT_EQ(gdnrt_entry_param(entry, 0, &pool, &error), GDNRT_OK);
  ASSERT_EQ(gdnrt_entry_param(entry, 1, &out, &error), GDNRT_OK);
  EXPECT_STREQ(pool.name, "pool");
  EXPECT_EQ(pool.kind, GDNRT_POOL);
  EXPECT_EQ(pool.access, GDNRT_READ); // nothing in the body writes it
  EXPECT_EQ(pool.dtype, GDNRT_BF16);
  EXPECT_EQ(pool.unit_stride_last, 0);
  EXPECT_STREQ(out.dims[0], "2*N");
  EXPECT_EQ(out.access, GDNRT_WRITE);
  EXPECT_EQ(out.unit_stride_last, 1);

  gdnrt_code_info info = gdnrt_code_info_default();
  ASSERT_EQ(gdnrt_entry_code(entry, 0, &info, &error), GDNRT_OK);
  EXPECT_STREQ(info.target, "x86-64");
  EXPECT_STREQ(info.features, "x86-64-v3");
  EXPECT_EQ(info.scratch_bytes, 128u);
  gdnrt_image_destroy(image);
}

// A rule may choose otherwise for another target, and a fact that the first
// target lacks is another's.
TEST_F(ImageWriterTest, FactsThatDifferNameTheirTarget) {
  auto module = parse(source);
  FailureOr<TargetCode> code = compile(sevens);
  ASSERT_TRUE(succeeded(code)) << said;
  TargetCode other = *code;
  other.features = {"x86-64-v4"};
  other.entries.front().facts = {
      {"chunk_from", "49"}, {"precision", "mixed"}, {"chunk", "64"}};
  auto bytes = buildImage(*module, {*code, other});
  ASSERT_TRUE(succeeded(bytes)) << said;
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  ASSERT_EQ(
      gdnrt_image_load_memory(bytes->data(), bytes->size(), &image, &error),
      GDNRT_OK)
      << error.message;
  const gdnrt_entry *entry = gdnrt_image_entry(image, 0);
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "chunk_from"), "62");
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "chunk_from.x86-64-v4"), "49");
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "precision"), "mixed");
  EXPECT_EQ(gdnrt_entry_attribute(entry, "precision.x86-64-v4"), nullptr);
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "chunk"), "64");
  gdnrt_image_destroy(image);
}

TEST_F(ImageWriterTest, TheCodeRuns) {
  auto module = parse(source);
  FailureOr<TargetCode> code = compile(sevens);
  ASSERT_TRUE(succeeded(code)) << said;
  auto bytes = buildImage(*module, *code);
  ASSERT_TRUE(succeeded(bytes)) << said;
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  gdnrt_kernel *kernel = nullptr;
  gdnrt_binding *binding = nullptr;
  ASSERT_EQ(
      gdnrt_image_load_memory(bytes->data(), bytes->size(), &image, &error),
      GDNRT_OK);
  ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
  if (gdnrt_kernel_create(device, image, "fill", &kernel, &error) ==
      GDNRT_UNSUPPORTED)
    GTEST_SKIP() << error.message;
  std::vector<uint16_t> pool(2 * 4 * 3);
  std::vector<int32_t> out(6);
  int64_t poolSizes[] = {2, 4, 3}, outSizes[] = {6};
  gdnrt_arg args[] = {{pool.data(), GDNRT_BF16, 3, poolSizes, nullptr, 0},
                      {out.data(), GDNRT_I32, 1, outSizes, nullptr, 0}};
  ASSERT_EQ(gdnrt_kernel_bind(kernel, args, 2, &binding, &error), GDNRT_OK)
      << error.message;
  EXPECT_EQ(gdnrt_binding_units(binding), 6);
  ASSERT_EQ(gdnrt_launch(binding, nullptr, &error), GDNRT_OK);
  EXPECT_THAT(out, testing::Each(7));
  gdnrt_binding_destroy(binding);
  gdnrt_kernel_destroy(kernel);
  gdnrt_device_destroy(device);
  gdnrt_image_destroy(image);
}

TEST_F(ImageWriterTest, AnEntryWithoutCodeIsLeftOut) {
  auto module = parse(source);
  EXPECT_TRUE(failed(buildImage(*module, TargetCode())));
  EXPECT_EQ(said, "has no code for any target and is left out\n"
                  "expects at least one function with 'gdn.entry' that has "
                  "code\n");
}

TEST_F(ImageWriterTest, AModuleWithoutEntriesIsNoImage) {
  auto module = parse("func.func private @f()");
  EXPECT_TRUE(failed(buildImage(*module, TargetCode())));
  EXPECT_EQ(said, "expects at least one function with 'gdn.entry' that has "
                  "code\n");
}

TEST_F(ImageWriterTest, TheCodesSymbolsAreTheEntrys) {
  auto module = parse(source);
  TargetCode code;
  code.entries.push_back({"fill", {"N"}, {}, {}});
  code.entries.front().variants.push_back(
      {"rows", {{"fill", {"N"}, 0}}, {}, {}});
  EXPECT_TRUE(failed(buildImage(*module, code)));
  EXPECT_EQ(said, "'func.func' op expects argument 1 to have linear forms over "
                  "the symbols N in 'gdn.dims', but got \"P\"\n");
  said.clear();
  code.entries.front().sizes = {"N", "P"};
  code.entries.front().variants[0].stages[0].grid = {"M"};
  EXPECT_TRUE(failed(buildImage(*module, code)));
  EXPECT_EQ(said, "'func.func' op expects a grid of linear forms over the "
                  "entry's symbols, but got \"M\"\n");
}

// Stages of a variant come before the one-pass program, whatever their order.
TEST_F(ImageWriterTest, VariantsComeFromStages) {
  auto module = parse(R"(
    llvm.func @fill()
        attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N", "P"]}} { llvm.return }
    llvm.func @fill__a()
        attributes {gdn_tile.stage = {grid = ["N", "2"], symbols = ["N", "P"], stage_of = "fill",
                                      variant = "halves", workspace = [["N", "8"]],
                                      conditions = [[["2", "N"], ["workers", "P"]]],
                                      bits = "halves", scratch_bytes = 64 : i64}} { llvm.return }
    llvm.func @fill__b()
        attributes {gdn_tile.stage = {grid = ["P"], symbols = ["N", "P"], stage_of = "fill",
                                      variant = "halves"}} { llvm.return })");
  auto codes = collectEntryCodes(*module);
  ASSERT_TRUE(succeeded(codes)) << said;
  ASSERT_EQ(codes->size(), 1u);
  const auto &variants = codes->front().variants;
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(variants[0].name, "halves");
  ASSERT_EQ(variants[0].stages.size(), 2u);
  EXPECT_EQ(variants[0].stages[0].symbol, "fill__a");
  EXPECT_EQ(variants[0].stages[0].scratchBytes, 64u);
  EXPECT_EQ(variants[0].stages[1].symbol, "fill__b");
  ASSERT_EQ(variants[0].workspace.size(), 1u);
  EXPECT_EQ(variants[0].workspace[0], (FormProduct{"N", "8"}));
  ASSERT_EQ(variants[0].conditions.all.size(), 1u);
  EXPECT_EQ(variants[0].conditions.all[0].right,
            (SmallVector<std::string>{"workers", "P"}));
  EXPECT_EQ(variants[0].bits, "halves");
  EXPECT_EQ(variants[1].name, "rows");
  EXPECT_EQ(variants[1].bits, "rows");
}

TEST_F(ImageWriterTest, AlternativesOfAVariant) {
  auto module = parse(R"(
    llvm.func @f__a()
        attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"], stage_of = "f", variant = "v",
                                      conditions = [[["2"], ["N"]], {any = [[[["N"], ["3"]]], [[["5"], ["N"]], [["N"], ["workers"]]]]},
                                                    {any_batch = [[], [[["N"], ["3"]]]]}]}} { llvm.return })");
  auto codes = collectEntryCodes(*module);
  ASSERT_TRUE(succeeded(codes)) << said;
  const auto &variant = codes->front().variants.front();
  auto expected =
      Conditions::parse("2 <= N & (N <= 3 | 5 <= N & N <= workers)");
  ASSERT_TRUE(bool(expected));
  EXPECT_EQ(variant.conditions.all, expected->all);
  EXPECT_EQ(variant.conditions.alternatives, expected->alternatives);
  ASSERT_EQ(variant.anyBatch.size(), 2u);
  EXPECT_TRUE(variant.anyBatch[0].empty());
  EXPECT_EQ(variant.anyBatch[1], expected->alternatives[0]);
}

/// A stage of an entry "f".
static std::string stageOf(const std::string &name, const std::string &fields) {
  return "llvm.func @" + name +
         "() attributes {gdn_tile.stage = {grid = [\"N\"], symbols = "
         "[\"N\"], stage_of = \"f\", " +
         fields + "}} { llvm.return }\n";
}

/// `number` times `element`, with commas between them.
static std::string listOf(size_t number, const std::string &element) {
  std::string list = number ? element : "";
  for (size_t i = 1; i < number; ++i)
    list += ", " + element;
  return '[' + list + ']';
}

TEST_F(ImageWriterTest, NoMoreVariantsThanTheRuntimeTakes) {
  auto entryOf = [](size_t numVariants) {
    std::string names;
    for (size_t i = 0; i < numVariants; ++i)
      names += (i ? ", \"v" : "\"v") + std::to_string(i) + '"';
    return stageOf("f__a", "variant = [" + names + ']');
  };
  EXPECT_TRUE(succeeded(collectEntryCodes(*parse(entryOf(24))))) << said;
  EXPECT_TRUE(failed(collectEntryCodes(*parse(entryOf(25)))));
  EXPECT_EQ(said, "'llvm.func' op expects at most 24 variants of entry f, "
                  "which the runtime takes, but got 25\n");
}

TEST_F(ImageWriterTest, NoMoreStagesThanTheRuntimeTakes) {
  auto entryOf = [](size_t numStages) {
    std::string stages;
    for (size_t i = 0; i < numStages; ++i)
      stages += stageOf("f__" + std::to_string(i), "variant = \"v\"");
    return stages;
  };
  EXPECT_TRUE(succeeded(collectEntryCodes(*parse(entryOf(16))))) << said;
  EXPECT_TRUE(failed(collectEntryCodes(*parse(entryOf(17)))));
  EXPECT_EQ(said, "'llvm.func' op expects at most 16 stages of variant v of "
                  "entry f, which the runtime takes, but got 17\n");
}

TEST_F(ImageWriterTest, NoMoreOfAVariantThanTheRuntimeTakes) {
  struct Case {
    const char *attribute, *element, *what;
  };
  for (const Case &each :
       {Case{"workspace", "[\"N\"]", "workspace regions"},
        Case{"conditions", "[[\"N\"], [\"2\"]]", "conditions"}}) {
    auto entryOf = [&](size_t number) {
      return stageOf("f__a", "variant = \"v\", " + std::string(each.attribute) +
                                 " = " + listOf(number, each.element));
    };
    said.clear();
    EXPECT_TRUE(succeeded(collectEntryCodes(*parse(entryOf(16))))) << said;
    EXPECT_TRUE(failed(collectEntryCodes(*parse(entryOf(17)))));
    EXPECT_EQ(said, "'llvm.func' op expects at most 16 " +
                        std::string(each.what) +
                        " of variant v of entry f, which the runtime takes, "
                        "but got 17\n");
  }
}

TEST_F(ImageWriterTest, StagesShareTheirSymbols) {
  auto module = parse(R"(
    llvm.func @f() attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} { llvm.return }
    llvm.func @g()
        attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N", "P"], stage_of = "f",
                                      variant = "v"}} { llvm.return })");
  EXPECT_TRUE(failed(collectEntryCodes(*module)));
  EXPECT_EQ(said, "'llvm.func' op expects the symbols of the other stages, N, "
                  "but got N, P\n");
}

TEST_F(ImageWriterTest, LoweredEntriesDescribeThemselves) {
  auto module = parse(R"(
    llvm.func @f() attributes {gdn_tile.stage = {grid = ["N"]}} { llvm.return })");
  EXPECT_TRUE(failed(collectEntryCodes(*module)));
  EXPECT_EQ(
      said,
      "'llvm.func' op expects 'symbols' of 'gdn_tile.stage' to be an array of "
      "strings, but got <<NULL ATTRIBUTE>>\n");
}

} // namespace
