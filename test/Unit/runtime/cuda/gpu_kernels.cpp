// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels' text and their schemas. Words of scale: x (ptr, N, stride), out
// (ptr, N, stride), N, workspace, units; of the others: out, N, workspace,
// units; of boxes: x (ptr, T, 128, strides), out (ptr, N, 512, strides), T, N,
// workspace, units, zeros, and the map of x.

#include "gpu_kernels.h"

#include <cstring>

using namespace gdnrt;
using namespace gdnrt::test;

static const char *const kScale = R"ptx(.version 7.0
.target sm_80
.address_size 64
.visible .entry scale_kernel(.param .align 8 .b8 words[72])
{
  .reg .pred %p;
  .reg .b32 %thread, %block, %blocks, %value;
  .reg .b64 %unit, %step, %units, %x, %xs, %o, %os, %at;
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %p, %thread, 0;
  @%p bra DONE;
  ld.param.u64 %x, [words];
  ld.param.u64 %xs, [words+16];
  ld.param.u64 %o, [words+24];
  ld.param.u64 %os, [words+40];
  ld.param.u64 %units, [words+64];
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  cvt.u64.u32 %unit, %block;
  cvt.u64.u32 %step, %blocks;
  shl.b64 %xs, %xs, 2;
  shl.b64 %os, %os, 2;
LOOP:
  setp.ge.s64 %p, %unit, %units;
  @%p bra DONE;
  mad.lo.s64 %at, %unit, %xs, %x;
  ld.global.u32 %value, [%at];
  add.u32 %value, %value, %value;
  mad.lo.s64 %at, %unit, %os, %o;
  st.global.u32 [%at], %value;
  add.s64 %unit, %unit, %step;
  bra LOOP;
DONE:
  ret;
}
)ptx";

static const char *const kTicket = R"ptx(.version 7.0
.target sm_80
.address_size 64
.visible .entry ticket_kernel(.param .align 8 .b8 words[48])
{
  .reg .pred %p;
  .reg .b32 %thread, %block, %order;
  .reg .b64 %units, %out, %at, %unit, %counter, %next;
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %p, %thread, 0;
  @%p bra DONE;
  ld.param.u64 %out, [words];
  ld.param.u64 %counter, [words+32];
  ld.param.u64 %units, [words+40];
  mov.u32 %block, %ctaid.x;
  cvt.u64.u32 %unit, %block;
  atom.global.add.u32 %order, [%counter], 1;
  shl.b64 %at, %unit, 2;
  add.s64 %at, %at, %out;
  st.global.u32 [%at], %order;
  cvt.u64.u32 %next, %order;
  add.s64 %next, %next, 1;
  setp.ne.s64 %p, %next, %units;
  @%p bra DONE;
  st.global.u32 [%counter], 0;
DONE:
  ret;
}
)ptx";

static const char *const kCluster = R"ptx(.version 7.8
.target sm_90
.address_size 64
.visible .entry cluster_kernel(.param .align 8 .b8 words[48])
{
  .reg .pred %p;
  .reg .b32 %thread, %block, %value;
  .reg .b64 %units, %out, %at, %unit;
  mov.u32 %thread, %tid.x;
  setp.ne.u32 %p, %thread, 0;
  @%p bra DONE;
  ld.param.u64 %out, [words];
  ld.param.u64 %units, [words+40];
  mov.u32 %block, %ctaid.x;
  cvt.u64.u32 %unit, %block;
  setp.ge.s64 %p, %unit, %units;
  @%p bra DONE;
  mov.u32 %value, %cluster_nctaid.x;
  shl.b64 %at, %unit, 2;
  add.s64 %at, %at, %out;
  st.global.u32 [%at], %value;
DONE:
  ret;
}
)ptx";

// 100 threads write 1 to every thousandth byte; thread 0 adds them up.
static const char *const kShared = R"ptx(.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry shared_kernel(.param .align 8 .b8 words[48])
{
  .reg .pred %p;
  .reg .b32 %thread, %block, %value, %sum, %place, %i;
  .reg .b64 %out, %at, %unit;
  mov.u32 %thread, %tid.x;
  mov.u32 %place, memory;
  mad.lo.u32 %i, %thread, 1000, %place;
  mov.u32 %value, 1;
  setp.ge.u32 %p, %thread, 100;
  @!%p st.shared.u8 [%i], %value;
  bar.sync 0;
  setp.ne.u32 %p, %thread, 0;
  @%p bra DONE;
  mov.u32 %sum, 0;
  mov.u32 %i, 0;
LOOP:
  ld.shared.u8 %value, [%place];
  add.u32 %sum, %sum, %value;
  add.u32 %place, %place, 1000;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 100;
  @%p bra LOOP;
  ld.param.u64 %out, [words];
  mov.u32 %block, %ctaid.x;
  cvt.u64.u32 %unit, %block;
  shl.b64 %at, %unit, 2;
  add.s64 %at, %at, %out;
  st.global.u32 [%at], %sum;
DONE:
  ret;
}
)ptx";

// Blocks copy eight rows of x [T, 128], from four before their first one on,
// and write the 2048 bytes as they lie.
static const char *const kTensorMaps = R"ptx(.version 8.0
.target sm_90
.address_size 64
.visible .entry tensor_maps_kernel(.param .align 64 .b8 words[256])
{
  .reg .pred %p;
  .reg .b32 %thread, %block, %tile, %bar, %zero, %row, %value, %place, %i;
  .reg .b64 %map, %out, %offset;
  .shared .align 1024 .b8 tile[2048];
  .shared .align 8 .b8 bar[8];
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %tile, tile;
  mov.u32 %bar, bar;
  setp.ne.u32 %p, %thread, 0;
  @%p bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.proxy.async.shared::cta;
  mov.b64 %map, words;
  cvta.param.u64 %map, %map;
  add.s64 %map, %map, 128;
  prefetch.tensormap [%map];
  shl.b32 %row, %block, 3;
  add.s32 %row, %row, -4;
  mov.b32 %zero, 0;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], 2048;
  cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile], [%map, {%zero, %row, %zero}], [%bar];
  mbarrier.arrive.shared::cta.b64 _, [%bar];
READY:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], 0;
  @!%p bra WAIT;
  ld.param.u64 %out, [words+40];
  shl.b32 %place, %thread, 2;
  mad.lo.u32 %i, %block, 2048, %place;
  cvt.u64.u32 %offset, %i;
  add.s64 %out, %out, %offset;
  add.s32 %place, %place, %tile;
  ld.shared.u32 %value, [%place];
  st.global.u32 [%out], %value;
  ld.shared.u32 %value, [%place+512];
  st.global.u32 [%out+512], %value;
  ld.shared.u32 %value, [%place+1024];
  st.global.u32 [%out+1024], %value;
  ld.shared.u32 %value, [%place+1536];
  st.global.u32 [%out+1536], %value;
  ret;
}
)ptx";

static const char *const kBroken = R"ptx(.version 7.0
.target sm_80
.address_size 64
.visible .entry broken_kernel(.param .align 8 .b8 words[48])
{
  no.such.instruction;
}
)ptx";

/// Adds an entry over out [N], whose text becomes the next blob.
static fb::LaunchT &addKernel(ImageBuilder &builder, const std::string &name,
                              const char *text, bool hasInput = false,
                              const std::string &target = "sm_80") {
  EntryBuilder entry = builder.entry(name);
  if (hasInput)
    entry.tensor("x", fb::Access::read, fb::DType::i32, {"N"});
  entry.tensor("out", fb::Access::write, fb::DType::i32, {"N"})
      .code(name + "_kernel", {"N"}, 0, {}, target,
            static_cast<uint32_t>(builder.image.blobs.size()));
  builder.blob(Bytes(text, text + std::strlen(text)));
  fb::CodeT &code = *builder.image.entries.back()->codes[0];
  code.format = fb::CodeFormat::ptx;
  fb::StageT &stage = *code.variants[0]->stages[0];
  stage.launch = std::make_unique<fb::LaunchT>();
  stage.launch->threads = 128;
  return *stage.launch;
}

/// Adds the entry with boxes, over other arrays.
static void addTensorMaps(ImageBuilder &builder) {
  addKernel(builder, "tensor_maps", kTensorMaps, false, "sm_90");
  fb::EntryT &entry = *builder.image.entries.back();
  entry.params.clear();
  entry.symbols.clear();
  EntryBuilder again(entry);
  again.tensor("x", fb::Access::read, fb::DType::bf16, {"T", "128"})
      .tensor("out", fb::Access::write, fb::DType::i32, {"N", "512"});
  fb::StageT &stage = *entry.codes[0]->variants[0]->stages[0];
  *stage.grid[0] = again.form("N");
  auto box = std::make_unique<fb::TensorMapT>();
  box->param = 0;
  box->rows = 8;
  stage.launch->tensor_maps.push_back(std::move(box));
}

ImageBuilder gdnrt::test::gpuImage() {
  ImageBuilder builder;
  addKernel(builder, "scale", kScale, true).blocks_per_sm = 1;
  auto one = std::make_unique<fb::LinearFormT>();
  one->constant = 1;
  addKernel(builder, "ticket", kTicket).counters.push_back(std::move(one));
  addKernel(builder, "cluster", kCluster, false, "sm_90").cluster = 4;
  addKernel(builder, "shared", kShared).shared_bytes = 100000;
  addTensorMaps(builder);
  addKernel(builder, "broken", kBroken);
  return builder;
}
