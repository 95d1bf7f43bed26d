// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Binding: what is accepted, the words that come out, and the whole message of
// each refusal. Addresses are made up, which also shows that binding does not
// read.

#include "gdnrt/binding.h"
#include "arrays.h"
#include "schemas.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using Vec = std::vector<int64_t>;

/// x [N, 2*H] f32 with unit stride, slots [N] i32, pool [P, H] bf16,
/// out [N, H] f32.
class BindingTest : public ::testing::Test {
protected:
  void SetUp() override {
    entry = makeEntry([](EntryBuilder builder) {
      builder.tensor("x", fb::Access::read, fb::DType::f32, {"N", "2*H"})
          .unitStride()
          .tensor("slots", fb::Access::read, fb::DType::i32, {"N"})
          .pool("pool", fb::DType::bf16, {"P", "H"})
          .tensor("out", fb::Access::write, fb::DType::f32, {"N", "H"})
          .code("code", {"N", "H"});
    });
    args = {Array(address(0x10000), DType::f32, {3, 8}),
            Array(address(0x20000), DType::i32, {3}),
            Array(address(0x30000), DType::bf16, {10, 4}, {}, -1),
            Array(address(0x40000), DType::f32, {3, 4})};
  }

  Result<std::unique_ptr<Binding>> bind() {
    std::vector<Argument> list = toArguments(args);
    return Binding::make(entry, entry->codes[0], list.data(), list.size());
  }
  std::string message() {
    auto bound = bind();
    return bound.status().toString();
  }

  std::shared_ptr<const EntrySchema> entry;
  std::vector<Array> args;
};

} // namespace

TEST_F(BindingTest, WordsFollowTheSchema) {
  args[2].strides = {16, 2};
  auto bound = bind();
  ASSERT_TRUE(bound.isOk()) << bound.status().toString();
  EXPECT_EQ((*bound)->words(), (Vec{0x10000, 3,  8, 8,  1,     //
                                    0x20000, 3,  1,            //
                                    0x30000, 10, 4, 16, 2, -1, //
                                    0x40000, 3,  4, 4,  1,     //
                                    3,       4,  10}));
  EXPECT_EQ((*bound)->units(), 12);
  EXPECT_EQ((*bound)->symbol(2), 10);
}

TEST_F(BindingTest, WrongCount) {
  args.pop_back();
  EXPECT_EQ(message(), "INVALID_ARGUMENT: f: expected 4 arguments, got 3");
}

TEST_F(BindingTest, WrongDtype) {
  args[1].dtype = static_cast<int32_t>(DType::i64);
  EXPECT_EQ(message(), "INVALID_ARGUMENT: slots: expected dtype i32, got i64");
  args[1].dtype = 99;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: slots: expected dtype i32, got the "
                       "unknown dtype 99");
  args[1].dtype = -1;
  EXPECT_EQ(message(), "INVALID_ARGUMENT: slots: expected dtype i32, got the "
                       "unknown dtype -1");
}

TEST_F(BindingTest, WrongRank) {
  args[0].sizes = {3, 8, 1};
  EXPECT_EQ(message(), "INVALID_ARGUMENT: x: expected rank 2 [N, 2*H], got 3");
}

TEST_F(BindingTest, NullSizes) {
  std::vector<Argument> list = toArguments(args);
  list[0].sizes = nullptr;
  EXPECT_EQ(Binding::make(entry, {}, list.data(), 4).status().toString(),
            "INVALID_ARGUMENT: x: expected sizes, got a null pointer");
}

TEST_F(BindingTest, NegativeSize) {
  args[0].sizes = {-3, 8};
  EXPECT_EQ(message(),
            "INVALID_ARGUMENT: x: expected dim 0 to be at least 0, got -3");
}

TEST_F(BindingTest, SizeMismatch) {
  args[3].sizes = {3, 5};
  EXPECT_EQ(message(), "INVALID_ARGUMENT: out: expected dim 1 to be H = 4 (H = "
                       "4 from dim 1 of x), got 5");
}

TEST_F(BindingTest, UnitStride) {
  args[0].strides = {16, 2};
  EXPECT_EQ(message(),
            "INVALID_ARGUMENT: x: expected stride 1 in dim 1, got 2");
  args[0].strides = {16, -1};
  EXPECT_EQ(message(),
            "INVALID_ARGUMENT: x: expected stride 1 in dim 1, got -1");
  args[0].strides = {16, 1};
  EXPECT_EQ(message(), "OK");
}

TEST_F(BindingTest, NullData) {
  args[0].data = nullptr;
  EXPECT_EQ(message(),
            "INVALID_ARGUMENT: x: expected data, got a null pointer");
}

TEST_F(BindingTest, EmptyArraysMayHaveNullData) {
  args[0] = Array(nullptr, DType::f32, {0, 8});
  args[1] = Array(nullptr, DType::i32, {0});
  args[3] = Array(nullptr, DType::f32, {0, 4});
  auto bound = bind();
  ASSERT_TRUE(bound.isOk()) << bound.status().toString();
  EXPECT_EQ((*bound)->units(), 0);
}

TEST_F(BindingTest, EmptyArraysMayHaveAnyStrides) {
  args[0] = Array(nullptr, DType::f32, {0, 8}, {0, 5});
  args[1] = Array(nullptr, DType::i32, {0}, {INT64_MIN});
  args[3] = Array(nullptr, DType::f32, {0, 4}, {0, 0});
  EXPECT_EQ(message(), "OK");
}

TEST_F(BindingTest, Alignment) {
  args[0].data = address(0x10002);
  EXPECT_EQ(message(), "INVALID_ARGUMENT: x: expected data aligned to 4 bytes "
                       "for f32, got an address 2 past a multiple");
  args[0].data = address(0x10000);
  args[2].data = address(0x30002); // bf16 needs only 2
  EXPECT_EQ(message(), "OK");
}

TEST_F(BindingTest, ExtentOverflow) {
  const char *expected =
      "INVALID_ARGUMENT: pool: the elements do not fit in memory";
  args[2].strides = {INT64_MAX, 1};
  EXPECT_EQ(message(), expected);
  args[2].strides = {INT64_MIN, 1};
  EXPECT_EQ(message(), expected);
  args[2].data = address(~uintptr_t{0xff});
  args[2].strides = {64, 1};
  EXPECT_EQ(message(), expected); // the end wraps past the address space
  args[2].data = address(0x30000);
  args[2].strides = {-0x10000, 1};
  EXPECT_EQ(message(), expected); // below address 0
  args[2] = Array(address(0x30000), DType::bf16, {INT64_MAX, 4});
  EXPECT_EQ(message(), expected);
}

TEST_F(BindingTest, SelfOverlapOfWrittenMemory) {
  args[3].strides = {0, 1};
  EXPECT_EQ(message(), "INVALID_ARGUMENT: out: expected elements that share no "
                       "memory, as out is written, but the stride of dim 0 is "
                       "0 and the dims inside it span 1");
  args[3].strides = {3, 1};
  EXPECT_EQ(message(), "INVALID_ARGUMENT: out: expected elements that share no "
                       "memory, as out is written, but the stride of dim 0 is "
                       "3 and the dims inside it span 4");
  args[3].strides = {-3, 1};
  EXPECT_EQ(message(), "INVALID_ARGUMENT: out: expected elements that share no "
                       "memory, as out is written, but the stride of dim 0 is "
                       "3 and the dims inside it span 4");
}

TEST_F(BindingTest, WrittenMemoryMayRunBackwardsOrBePadded) {
  args[3].strides = {-4, 1};
  EXPECT_EQ(message(), "OK");
  args[3].strides = {4, -1};
  EXPECT_EQ(message(), "OK");
  args[3].strides = {1, 3}; // transposed
  EXPECT_EQ(message(), "OK");
  args[3].strides = {100, 7};
  EXPECT_EQ(message(), "OK");
}

TEST_F(BindingTest, ReadMemoryMayBroadcast) {
  args[0].strides = {0, 1};
  args[1].strides = {0};
  EXPECT_EQ(message(), "OK");
}

TEST_F(BindingTest, RebindChangesAFew) {
  auto bound = bind();
  ASSERT_TRUE(bound.isOk());
  size_t indices[] = {0, 1, 3};
  args[0] = Array(address(0x50000), DType::f32, {1, 8});
  args[1] = Array(address(0x60000), DType::i32, {1});
  args[3] = Array(address(0x70000), DType::f32, {1, 4});
  Argument list[] = {args[0], args[1], args[3]};
  ASSERT_TRUE((*bound)->rebind(indices, list, 3).isOk());
  EXPECT_EQ((*bound)->words()[0], 0x50000);
  EXPECT_EQ((*bound)->words()[8], 0x30000);
  EXPECT_EQ((*bound)->units(), 4);
}

TEST_F(BindingTest, FailedRebindChangesNothing) {
  auto bound = bind();
  ASSERT_TRUE(bound.isOk());
  Vec before = (*bound)->words();
  size_t index = 0;
  Array shorter(address(0x50000), DType::f32, {2, 8});
  Argument wrong = shorter;
  EXPECT_EQ((*bound)->rebind(&index, &wrong, 1).toString(),
            "INVALID_ARGUMENT: slots: expected dim 0 to be N = 2 (N = 2 from "
            "dim 0 of x), got 3");
  EXPECT_EQ((*bound)->words(), before);
  EXPECT_EQ((*bound)->units(), 12);
  // And the next good one starts from what is bound.
  Array moved(address(0x50000), DType::f32, {3, 8});
  Argument right = moved;
  EXPECT_TRUE((*bound)->rebind(&index, &right, 1).isOk());
  before[0] = 0x50000;
  EXPECT_EQ((*bound)->words(), before);
  index = 4;
  EXPECT_EQ((*bound)->rebind(&index, &right, 1).toString(),
            "INVALID_ARGUMENT: f: parameter index 4 is past the 4 parameters");
}

TEST(Binding, OptionalParameterLeftOut) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
        .tensor("bias", fb::Access::read, fb::DType::f32, {"N", "2"})
        .optional()
        .code("code", {});
  });
  std::vector<Argument> args = {Array(address(0x1000), DType::f32, {}),
                                Argument()};
  Vec four = {4};
  args[0].rank = 1;
  args[0].sizes = four.data();
  auto bound = Binding::make(entry, entry->codes[0], args.data(), 2);
  ASSERT_TRUE(bound.isOk()) << bound.status().toString();
  EXPECT_EQ((*bound)->words(), (Vec{0x1000, 4, 1, 0, 0, 0, 0, 0, 4}));
  EXPECT_EQ((*bound)->units(), 1); // no grid forms: one unit
  // Present after all: then it must fit.
  Array bias(address(0x2000), DType::f32, {5, 2});
  args[1] = bias;
  EXPECT_EQ(Binding::make(entry, {}, args.data(), 2).status().toString(),
            "INVALID_ARGUMENT: bias: expected dim 0 to be N = 4 (N = 4 from "
            "dim 0 of x), got 5");
}

TEST(Binding, GridMustBeCountable) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
        .tensor("y", fb::Access::read, fb::DType::f32, {"M"})
        .code("negative", {"N - 5"})
        .code("large", {"4611686018427387904*N"})
        .code("product", {"N", "N", "4611686018427387904"})
        .code("zero", {"M", "4611686018427387904*N"});
  });
  Array x(address(0x1000), DType::f32, {4}), y(nullptr, DType::f32, {0});
  Argument args[] = {x, y};
  auto message = [&](int code) {
    return Binding::make(entry, entry->codes[code], args, 2)
        .status()
        .toString();
  };
  EXPECT_EQ(message(0), "INVALID_ARGUMENT: f: expected the grid dimension N - "
                        "5 to be at least 0, got -1");
  EXPECT_EQ(message(1), "INVALID_ARGUMENT: f: the number of units does not fit "
                        "in 64 bits");
  EXPECT_EQ(message(2), message(1));
  EXPECT_EQ(message(3), "OK");
}
