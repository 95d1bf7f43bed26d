// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tables of attributes beside what is written about them: the page has
// their rows, and every attribute has a test where it is right and where it is
// wrong. And no attribute of another kind passes for one of them.
#include "gdn/Dialect/AttributeTable.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

using namespace mlir;
using namespace gdn;

namespace {
struct Level {
  std::string name, folder;
  const AttributeTable &table;
};

const Level levels[] = {{"gdn", "GDN", gdn::getAttributeTable()},
                        {"gdn_tile", "Tile", tile::getAttributeTable()},
                        {"gdn_gpu", "GPU", gpu::getAttributeTable()}};

std::string read(const std::string &path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The first three cells of each row of the page whose first cell is an
/// attribute of the dialect, without backquotes.
std::vector<std::string> readRows(StringRef page, const std::string &dialect) {
  std::vector<std::string> rows;
  SmallVector<StringRef> lines;
  page.split(lines, '\n');
  for (StringRef line : lines) {
    if (!line.starts_with("| `" + dialect + "."))
      continue;
    SmallVector<StringRef> cells;
    line.split(cells, " | ");
    if (cells.size() != 4) {
      ADD_FAILURE() << line.str();
      continue;
    }
    std::string row =
        (cells[0].drop_front(2) + " | " + cells[1] + " | " + cells[2]).str();
    llvm::erase(row, '`');
    rows.push_back(row);
  }
  return rows;
}

/// The first two cells of the rows in the section of the fields of `attribute`.
std::vector<std::string> readFields(StringRef page, StringRef attribute) {
  std::vector<std::string> rows;
  StringRef section =
      page.split(("### Fields of `" + attribute + "`\n").str()).second;
  SmallVector<StringRef> lines;
  section.take_front(section.find("\n#")).split(lines, '\n');
  for (StringRef line : lines) {
    if (!line.starts_with("| `"))
      continue;
    SmallVector<StringRef> cells;
    line.split(cells, " | ");
    if (cells.size() != 3) {
      ADD_FAILURE() << line.str();
      continue;
    }
    std::string row = (cells[0].drop_front(2) + " | " + cells[1]).str();
    llvm::erase(row, '`');
    rows.push_back(row);
  }
  return rows;
}

TEST(AttributeTable, ThePageHasTheRows) {
  std::string page = read(GDN_SPEC "/attributes.md");
  for (const Level &dialect : levels) {
    std::vector<std::string> rows;
    for (const AttributeRow &row : dialect.table.getRows())
      rows.push_back(row.name.str() + " | " + describePlaces(row.places) +
                     " | " + row.value.str());
    EXPECT_EQ(readRows(page, dialect.name), rows);
    for (const AttributeRow &row : dialect.table.getRows()) {
      if (!row.fields)
        continue;
      std::vector<std::string> fields;
      for (const FieldRow &field : row.fields->getRows())
        fields.push_back(field.name.str() + " | " + field.value.str());
      EXPECT_EQ(readFields(page, row.name), fields);
    }
  }
}

TEST(AttributeTable, NamesAreOfTheDialectAndUnique) {
  for (const Level &dialect : levels) {
    std::set<std::string> names;
    for (const AttributeRow &row : dialect.table.getRows()) {
      EXPECT_TRUE(row.name.starts_with(dialect.name + "."));
      EXPECT_TRUE(names.insert(row.name.str()).second) << row.name.str();
      EXPECT_NE(row.places, 0u) << row.name.str();
    }
  }
}

TEST(AttributeTable, EachAttributeHasTests) {
  for (const Level &dialect : levels) {
    const std::string folder = GDN_DIALECT_TESTS "/" + dialect.folder;
    std::string right = read(folder + "/attributes.mlir"),
                wrong = read(folder + "/attributes_invalid.mlir");
    if (dialect.name == "gdn") {
      right += read(folder + "/entry.mlir");
      wrong += read(folder + "/entry_invalid.mlir");
    }
    for (const AttributeRow &row : dialect.table.getRows()) {
      EXPECT_THAT(right, ::testing::HasSubstr(row.name.str()));
      // The whole message of a wrong value.
      EXPECT_THAT(wrong, ::testing::ContainsRegex(
                             "expects '" + row.name.str() +
                             "'( of argument 0| of result 0)? to (be|hold) "))
          << row.name.str();
      for (const FieldRow &field :
           row.fields ? row.fields->getRows() : ArrayRef<FieldRow>()) {
        EXPECT_THAT(right, ::testing::HasSubstr(field.name.str()));
        EXPECT_THAT(wrong, ::testing::ContainsRegex(
                               "expects '" + field.name.str() + "' of '" +
                               row.name.str() + "' to (be|hold) "))
            << row.name.str() << ' ' << field.name.str();
      }
    }
  }
}

/// Attributes of every kind that a table could mistake for another, among them
/// integers that have no value of 64 bits.
SmallVector<Attribute> makeValues(MLIRContext *context) {
  Builder b(context);
  auto strings = b.getStrArrayAttr({"N", "4"});
  return {
      b.getUnitAttr(),
      b.getBoolAttr(true),
      b.getI32IntegerAttr(3),
      b.getI64IntegerAttr(-3),
      b.getIndexAttr(32),
      IntegerAttr::get(b.getIntegerType(64, false), 32),
      IntegerAttr::get(b.getIntegerType(128), APInt::getMaxValue(128)),
      b.getF32FloatAttr(1),
      b.getStringAttr(""),
      b.getStringAttr("N +"),
      b.getStringAttr(":"),
      strings,
      b.getArrayAttr({}),
      b.getArrayAttr({strings}),
      b.getArrayAttr({b.getArrayAttr({})}),
      b.getArrayAttr({b.getArrayAttr({strings, strings})}),
      b.getArrayAttr({b.getUnitAttr()}),
      b.getDictionaryAttr({}),
      b.getDictionaryAttr({b.getNamedAttr("x", b.getUnitAttr())}),
      b.getDictionaryAttr({b.getNamedAttr("threads", strings)}),
      b.getDenseI64ArrayAttr({3}),
      b.getDenseI64ArrayAttr({}),
      b.getDenseI32ArrayAttr({3}),
      TypeAttr::get(b.getIndexType()),
      FlatSymbolRefAttr::get(context, "f"),
      AffineMapAttr::get(b.getDimIdentityMap()),
      DenseElementsAttr::get(RankedTensorType::get({1}, b.getF32Type()), 1.0f)};
}

/// Every attribute at every place with every value: right, or one error of the
/// operation that has it.
TEST(AttributeTable, EveryValueAtEveryPlaceHasAnAnswer) {
  MLIRContext context;
  context.loadDialect<GDNDialect, tile::TileDialect, gpu::GPUDialect,
                      func::FuncDialect, LLVM::LLVMDialect>();
  Builder b(&context);
  Location loc = b.getUnknownLoc();
  Type memref = MemRefType::get({4}, b.getF32Type());
  auto type = b.getFunctionType({b.getIndexType(), memref}, {memref});
  auto codeType =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&context), {});
  OpBuilder free(&context); // inserts nowhere
  SmallVector<Attribute> values = makeValues(&context);
  unsigned numErrors = 0, numRight = 0;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    EXPECT_THAT(diagnostic.str(),
                ::testing::ContainsRegex("op (expects|requires) "));
    ++numErrors;
  });
  auto check = [&](Operation *op) {
    const unsigned before = numErrors;
    if (succeeded(verify(op)))
      ++numRight;
    else
      EXPECT_EQ(numErrors, before + 1);
    op->erase();
  };
  auto makeFunction = [&] {
    auto function = func::FuncOp::create(loc, "f", type);
    function.setPrivate();
    return function;
  };
  for (const Level &dialect : levels)
    for (const AttributeRow &row : dialect.table.getRows())
      for (Attribute value : values) {
        auto function = makeFunction();
        function->setAttr(row.name, value);
        check(function);
        for (unsigned i : {0, 1}) {
          function = makeFunction();
          function.setArgAttr(i, row.name, value);
          check(function);
        }
        function = makeFunction();
        function.setResultAttr(0, row.name, value);
        check(function);
        auto code = LLVM::LLVMFuncOp::create(free, loc, "f", codeType);
        code->setAttr(row.name, value);
        check(code);
        auto module = ModuleOp::create(loc);
        module->setAttr(row.name, value);
        check(module);
        OperationState state(loc, "func.func"); // without its type
        state.addAttribute(row.name, value);
        state.addRegion();
        check(Operation::create(state));
      }
  // Fields beside those that are required.
  for (const Level &dialect : levels)
    for (const AttributeRow &row : dialect.table.getRows())
      for (const FieldRow &field :
           row.fields ? row.fields->getRows() : ArrayRef<FieldRow>())
        for (Attribute value : values) {
          NamedAttrList fields;
          if (row.fields->getRows().front().isRequired)
            fields.set("threads", b.getI64IntegerAttr(64));
          fields.set(field.name, value);
          Operation *function =
              row.places == onCode
                  ? LLVM::LLVMFuncOp::create(free, loc, "f", codeType)
                  : makeFunction().getOperation();
          function->setAttr(row.name, fields.getDictionary(&context));
          check(function);
        }
  EXPECT_GT(numErrors, 1000u);
  EXPECT_GT(numRight, 50u);
}
} // namespace
