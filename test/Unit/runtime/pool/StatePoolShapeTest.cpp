// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pool takes, before anything is taken, and what it refuses.

#include "pool_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

static std::string errorOf(const StatePoolShape &shape) {
  auto bytes = statePoolBytes(shape);
  return bytes.status().toString();
}

TEST(StatePoolShape, Bytes) {
  StatePoolShape shape = smallShape();
  // 3 layers of 7 slots: states of 2 * 5 * 3 f32, windows of 16 * 3 bf16.
  EXPECT_EQ(shape.channels(), 16);
  EXPECT_EQ(*statePoolBytes(shape), 2560u + 3 * 7 * 96);
  shape.stateDType = DType::bf16;
  EXPECT_EQ(*statePoolBytes(shape), 1280u + 3 * 7 * 96);
  shape.convExtra = 2;
  EXPECT_EQ(*statePoolBytes(shape), 1280u + 3 * 7 * 160);
}

TEST(StatePoolShape, BytesOfQwen3Next) {
  StatePoolShape shape;
  shape.numLayers = 36;
  shape.keyHeads = 16;
  shape.valueHeads = 32;
  shape.keyDim = shape.valueDim = 128;
  // One slot: 36 layers of 2 MiB and 48 KiB.
  EXPECT_EQ(*statePoolBytes(shape), 36u * (2048 + 48) * 1024);
  // 16 GiB, one slot of which is the null slot.
  EXPECT_EQ(*requestsThatFit(shape, uint64_t{16} << 30), 221);
  shape.numTrack = 20;
  EXPECT_EQ(*requestsThatFit(shape, uint64_t{16} << 30), 201);
}

TEST(StatePoolShape, RequestsThatFit) {
  StatePoolShape shape = smallShape();
  for (uint64_t bytes : {0, 1, 500, 5000, 5001, 100000}) {
    shape.numRequests = *requestsThatFit(shape, bytes);
    if (shape.numRequests > 0) {
      EXPECT_LE(*statePoolBytes(shape), bytes);
    }
    ++shape.numRequests;
    EXPECT_GT(*statePoolBytes(shape), bytes);
  }
}

TEST(StatePoolShape, StridesCount) {
  StatePoolShape shape = smallShape();
  shape.stateSlotStride = 32;
  // The last slot has no padding behind it.
  EXPECT_EQ(*statePoolBytes(shape), 2816u + 3 * 7 * 96);
  // Slot after slot, all layers together.
  shape.stateSlotStride = 90, shape.stateLayerStride = 30;
  shape.convSlotStride = 3 * 48, shape.convLayerStride = 48;
  EXPECT_EQ(*statePoolBytes(shape), 2560u + 3 * 7 * 96);
}

TEST(StatePoolShape, Refuses) {
  StatePoolShape shape = smallShape();
  shape.numLayers = 0;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: num_layers: "
                            "expected 1 to 1048576, got 0");
  shape = smallShape();
  shape.numTrack = -1;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: num_track: expected "
                            "0 to 1073741824, got -1");
  shape = smallShape();
  shape.convWidth = 1;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: conv_width: "
                            "expected 2 to 1048576, got 1");
  shape = smallShape();
  shape.stateDType = DType::f64;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: state_dtype: "
                            "expected f32, bf16 or f16, got f64");
  shape = smallShape();
  shape.convDType = DType::i32;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: conv_dtype: "
                            "expected f32, bf16 or f16, got i32");
  shape = smallShape();
  shape.stateSlotStride = 29;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: state: expected "
                            "strides of at least 30 elements, got 29");
  shape.stateSlotStride = 0, shape.stateLayerStride = 209;
  EXPECT_EQ(errorOf(shape),
            "INVALID_ARGUMENT: state_pool: state: a layer stride of 209 "
            "elements makes blocks overlap, which reach over 210");
  shape.stateSlotStride = 89, shape.stateLayerStride = 30;
  EXPECT_EQ(errorOf(shape),
            "INVALID_ARGUMENT: state_pool: state: a slot stride of 89 "
            "elements makes blocks overlap, which reach over 90");
  shape.stateSlotStride = -4;
  EXPECT_EQ(errorOf(shape), "INVALID_ARGUMENT: state_pool: state_slot_stride: "
                            "expected 0 to 281474976710656, got -4");
}

TEST(StatePoolShape, SizesThatNoMachineHas) {
  StatePoolShape shape = smallShape();
  shape.numRequests = int64_t{1} << 30;
  shape.numLayers = shape.keyDim = shape.valueDim = 1 << 20;
  EXPECT_EQ(statePoolBytes(shape).status().code(), StatusCode::outOfMemory);
  EXPECT_EQ(requestsThatFit(shape, ~uint64_t{0}).status().code(),
            StatusCode::outOfMemory);
  shape = smallShape();
  shape.numRequests = 1 << 30;
  shape.stateSlotStride = int64_t{1} << 47;
  EXPECT_EQ(statePoolBytes(shape).status().code(), StatusCode::outOfMemory);
  shape.stateLayerStride = 30;
  EXPECT_EQ(statePoolBytes(shape).status().code(), StatusCode::outOfMemory);
}
