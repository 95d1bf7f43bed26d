// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variants of prefill as data, each with the record that its numbers come
// from. Chips with warpgroups have all of them, others those that are staged.
// That launches of the records take what was fastest is
// test/python/test_prefill_policy.py.
#include "PrefillPolicy.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace gdn;

namespace {
/// What the workspace of a variant begins with. Where a caller asks for the
/// maps of segments it begins with those.
enum class Workspace { any, counters };

/// In the text SMS stands for the multiprocessors that choices inside of
/// kernels were measured on.
struct Row {
  const char *text, *record;
  Workspace workspace = Workspace::any;
};
} // namespace

// Whole heads and halves (V-split) of 128 values on 132 multiprocessors.
static constexpr const char *prefillH200 =
    "runtime/bench/results/prefill-h200.json";
static constexpr const char *packedH200 =
    "runtime/bench/results/packed-h200.json";
static constexpr const char *packed64H200 =
    "runtime/bench/results/packed-64x64-variants-h200.json";
static constexpr const char *kdaH200 =
    "runtime/bench/results/prefill-kda-h200.json";
static constexpr const char *headsPackedH200 =
    "runtime/bench/results/packed-96x192-bf16-h200.json";
static constexpr const char *headsH200 =
    "runtime/bench/results/prefill-96x192-bf16-h200.json";

/// Blocks prepare their chunks themselves: two groups of four warps, each with
/// a chunk, and a multiprocessor for each block of whole heads.
static constexpr Row fused[] = {
    // Up to eight long sequences choose by their lengths between whole heads
    // and V-splits of two, of which either go home at once. A chunk takes 2.81
    // us whole and 1.61 us by V-splits where they fill the GPU. It costs
    // sequences that are as long as each other 2 to 11 us, which is 4 to 6 % of
    // two or three of 2,048 tokens, and of four of 3,072; unequal ones take two
    // thirds of whole heads' time. Where a wave is three quarters full at most
    // and the norm can follow, they take halves (below).
    {"fused-by-lengths: fused=2; norm=with-rule; conv=with-rule;"
     "by-lengths=165/SMS;"
     "when=2 <= sequences & sequences <= 8 &"
     "  51*workers <= 100*sequences*heads & sequences*heads <= workers &"
     "  (4096*sequences <= tokens & convs*follows <= 0 |"
     "   4096*sequences <= tokens & 76*workers <= 100*sequences*heads |"
     "   3072*sequences <= tokens & 76*workers <= 100*sequences*heads &"
     "     3 <= sequences & sequences <= 4 |"
     "   3072*sequences <= tokens & convs*follows <= 0 & sequences <= 4 |"
     "   2048*sequences <= tokens & convs*follows <= 0 & sequences <= 3 &"
     "     100*sequences*heads <= 76*workers);"
     "any-batch=sequences <= 8 &"
     "  51*workers <= 100*sequences*heads & sequences*heads <= workers &"
     "  4096*sequences <= tokens",
     prefillH200},
    // Blocks that stay: from two waves on they save 3 to 8 us of each wave but
    // the first. 16/32 heads, ready, 64 x 256 tokens 300 to 261 us, 8 x 1,024
    // 106 to 104, 8 x 4,096 346 and 346; packed 525 to 478, 228 to 215, 758 to
    // 734. Of one wave, and of longer sequences from ready inputs, a chunk
    // takes 1 to 2 % longer, which is why there the second wave has to be
    // fuller. Of few chunks each, 8 x 128 take 29 us, 16 x 64 43, where chunks
    // that a stage prepares take 42 and 56; packed 59 and 76 for 76 and 92.
    {"fused-stay: fused=2; norm=with-rule; conv=with-rule; blocks=stay;"
     "where=keys <= 128;"
     "when=tokens <= 4096*sequences &"
     "  (64*sequences <= tokens & tokens <= 256*sequences &"
     "     120*workers <= 100*sequences*heads |"
     "   256*sequences <= tokens & 1 <= norms &"
     "     145*workers <= 100*sequences*heads & sequences*heads <= 2*workers &"
     "     tokens <= 1536*sequences |"
     "   256*sequences <= tokens & 1 <= norms &"
     "     145*workers <= 100*sequences*heads & sequences*heads <= 2*workers &"
     "     9 <= sequences |"
     "   256*sequences <= tokens & 1 <= norms &"
     "     146*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "   256*sequences <= tokens & tokens <= 1024*sequences &"
     "     145*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "   256*sequences <= tokens &"
     "     150*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "   256*sequences <= tokens & 220*workers <= 100*sequences*heads);"
     "any-batch=tokens <= 4096*sequences &"
     "  (150*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "   220*workers <= 100*sequences*heads)",
     prefillH200, Workspace::counters},
    // One wave of at least a chunk for each block in the mean, two or more, of
    // which the last has to be full enough, of two turns of two chunks. 3 x 128
    // tokens of 16/32 heads take 17.3 us for the 21.3 of a stage that prepares
    // them, packed 31.9 for 38.8.
    {"fused: fused=2; norm=with-rule; conv=with-rule;"
     "when=64*sequences <= tokens &"
     "  (keys <= 128 & tokens <= 1536*sequences &"
     "     51*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   keys <= 128 & 9 <= sequences &"
     "     51*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   keys <= 128 & sequences <= 1 &"
     "     51*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   keys <= 128 & convs*follows <= 0 &"
     "     51*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   keys <= 128 &"
     "     76*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   129 <= keys & 256*sequences <= tokens &"
     "     51*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   256*sequences <= tokens &"
     "     150*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "   256*sequences <= tokens & 220*workers <= 100*sequences*heads);"
     "any-batch="
     "  (51*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "   150*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "   220*workers <= 100*sequences*heads)",
     prefillH200},
    // Those whose norm follows stand behind variants that convolve in the rule,
    // which have no prologue of all others.
    // Three segments whose norm follows, where 36 of 132 multiprocessors have
    // no block of the rule: 8/24 heads, packed, 8,192 tokens 262 us to 246,
    // 32,768 899 (four segments) to 888.
    {"fused-segments-3-followed: fused=2; v-split=2; segments=3; scan=576; "
     "norm=follows; where=keys <= 128;"
     "when=1 <= convs & 5*heads <= workers & workers <= 8*heads &"
     "  sequences <= 1 & 4096 <= tokens",
     prefillH200},
    // Halves whose norm follows, where some multiprocessors have no block, or
    // are soon done with it: of two sequences, one of which may be shorter
    // (16/32 heads, packed, 2,048 + 6,144 tokens 295 us to 261; 8/24, 16,384 +
    // 16,384 884 in four segments, 709), and of few blocks (2/8, 4 x 8,192 320
    // to 281). Two to eight sequences of 1,536 tokens and more in the mean, as
    // long as their longest, where a wave of whole heads would be three
    // quarters full at most, or two of them three quarters: they lose up to 4 %
    // where sequences are alike, and gain up to half where they are not (8/24,
    // 8,192 + 2 x 1,024 602 to 286; 16/48, 2,048 + 6,144 372 to 342).
    {"fused-v-split-2-followed: fused=2; v-split=2; norm=follows; "
     "where=keys <= 128;"
     "when=1 <= convs &"
     "  (256*sequences <= tokens & 2 <= sequences & sequences <= 2 &"
     "     4*heads <= workers & workers <= 8*heads |"
     "   1536*sequences <= tokens & 2 <= sequences & sequences <= 2 &"
     "     workers <= 8*heads & 200*heads <= 76*workers |"
     "   1536*sequences <= tokens & 3 <= sequences & sequences <= 8 &"
     "     12*workers <= 100*sequences*heads &"
     "     100*sequences*heads <= 76*workers |"
     "   1536*sequences <= tokens & 3 <= sequences & sequences <= 8 &"
     "     workers <= sequences*heads &"
     "     100*sequences*heads <= 146*workers |"
     "   4096*sequences <= tokens & 9 <= sequences &"
     "     12*workers <= 100*sequences*heads &"
     "     2*sequences*heads <= workers |"
     "   256*sequences <= tokens & sequences <= 1 & 5*heads <= workers &"
     "     workers <= 6*heads |"
     "   3072 <= tokens & tokens <= 7168 & sequences <= 1 &"
     "     4*heads <= workers & workers <= 5*heads |"
     "   256*sequences <= tokens & sequences <= 1 & workers <= 3*heads &"
     "     250*heads <= 100*workers);"
     "any-batch=1024*sequences <= tokens & 2*sequences*heads <= workers",
     prefillH200},
    // Segments: all blocks of a stage in one wave, and enough tokens. Four are
    // for heads that are too many for five of halves and too few for three of
    // two sequences, where they have the norm with the rule; of one sequence of
    // few tokens three take 2 to 8 % less (8/24 heads, packed, 4,096 tokens 147
    // us for 157, 8,192 262 for 267, 12,288 378 for 374), and without a norm
    // they do up to 32,768 (24,576 435 and 443, 32,768 569 and 571; that four
    // are faster from 40,960 on follows from these and is not measured). Two
    // sequences may be alike: halves take 209 us for four segments' 262 then
    // (8/24 heads, 4,096 + 4,096 tokens, packed). Without a norm three segments
    // cut the longer one where it is one: 16,384 + 16,384 428 us (four 562,
    // halves 416), 28,672 + 4,096 555 (576, 715). Of 32 heads they take those
    // of 12,288 tokens and more: 8,192 + 8,192 233 us where halves take 218,
    // but 10,240 + 2,048 246 and 265, 20,000 + 1,024 387 and 503. The scan
    // takes maps of up to 128 keys without spilling. One sequence of few heads
    // is cut from 16 to 32 chunks on: of 2/8 heads 2,048 tokens take 39 us for
    // the 46 of segments that a stage prepares, packed 64 for 68, and 1,536 35
    // for 49, packed 57 for 67.
    {"fused-segments-9: fused=2; v-split=2; segments=9; "
     "where=keys <= 128;"
     "when=16*heads <= workers & sequences <= 2 &"
     "  (4608 <= tokens | 3072 <= tokens & workers <= 32*heads |"
     "   1920 <= tokens & workers <= 32*heads & sequences <= 1 & 128 <= keys)",
     prefillH200},
    {"fused-segments-5: fused=2; v-split=2; segments=5; "
     "where=keys <= 128;"
     "when=8*heads <= workers & sequences <= 2 &"
     "  (1920 <= tokens & workers <= 16*heads |"
     "   1536 <= tokens & workers <= 32*heads & sequences <= 1 & 128 <= keys |"
     "   1184 <= tokens & workers <= 32*heads & sequences <= 1 & 128 <= keys &"
     "     101*heads <= 12*workers |"
     "   1024 <= tokens & workers <= 32*heads & sequences <= 1 & 128 <= keys &"
     "     101*heads <= 12*workers & norms <= 0)",
     prefillH200},
    {"fused-segments-4: fused=2; norm=with-rule; segments=4; where=keys <= 128;"
     "when=5*heads <= workers & workers <= 8*heads &"
     "  (sequences <= 1 & 12288 <= tokens & 1 <= norms |"
     "   sequences <= 1 & 40960 <= tokens |"
     "   2 <= sequences & sequences <= 2 & 8193 <= tokens & 1 <= norms)",
     prefillH200},
    {"fused-segments-3: fused=2; v-split=2; segments=3; scan=576; "
     "where=keys <= 128;"
     "when=4*heads <= workers & workers <= 8*heads &"
     "  (sequences <= 1 & 3072 <= tokens |"
     "   sequences <= 1 & 2048 <= tokens & norms <= 0 & 128 <= keys |"
     "   sequences <= 2 & 24576 <= tokens & workers <= 5*heads |"
     "   sequences <= 2 & 12288 <= tokens & workers <= 5*heads & norms <= 0 |"
     "   2 <= sequences & sequences <= 2 & 4608 <= tokens &"
     "     5*heads <= workers & norms <= 0)",
     prefillH200},
    // Halves: one wave, unless so few blocks that others have most of the
    // multiprocessors; but not of sequences that are better cut, which few
    // tokens, many blocks and many sequences are not. And three waves where two
    // of whole heads would be half empty: a chunk of a half takes 1 / 1.65 of
    // the time. Of ready inputs a chunk is enough: 4/16 heads, 3 x 128 tokens,
    // 11 us for the 16 of a stage that prepares them.
    {"fused-v-split-2: fused=2; v-split=2; norm=behind; where=keys <= 128;"
     "when=(256*sequences <= tokens &"
     "     12*workers <= 100*sequences*heads & 2*sequences*heads <= workers &"
     "     workers*workers*tokens"
     "       <= 8711*sequences*sequences*heads*heads*heads |"
     "   256*sequences <= tokens &"
     "     12*workers <= 100*sequences*heads & 2*sequences*heads <= workers &"
     "     115*workers*workers <= 100*sequences*sequences*heads*heads*heads |"
     "   256*sequences <= tokens &"
     "     12*workers <= 100*sequences*heads & 2*sequences*heads <= workers &"
     "     3 <= sequences |"
     "   256*sequences <= tokens & tokens <= 1024*sequences &"
     "     12*workers <= 100*sequences*heads & 2*sequences*heads <= workers &"
     "     2 <= sequences |"
     "   64*sequences <= tokens & tokens <= 256*sequences & norms <= 0 &"
     "     12*workers <= 100*sequences*heads & 2*sequences*heads <= workers |"
     "   256*sequences <= tokens & 100*workers <= 100*sequences*heads &"
     "     2*sequences*heads <= 3*workers);"
     "any-batch=always",
     prefillH200},
    {"fused-v-split-2: fused=2; v-split=2; norm=behind; where=129 <= keys;"
     "when=256*sequences <= tokens &"
     "  (12*workers <= 100*sequences*heads & 2*sequences*heads <= workers |"
     "   100*workers <= 100*sequences*heads & 2*sequences*heads <= 3*workers);"
     "any-batch=always",
     prefillH200},
};

/// With a decay per channel, where recurrences have warps that copy ahead. A
/// chunk takes them 1.2 us, so that segments, whose maps take as long again,
/// pay from T = 2 N^2 Hv^3 on.
static constexpr Row channels[] = {
    // Blocks prepare their chunks. A chunk of 32 tokens takes a block 1.9 us,
    // one of half of the values 1.45, and the stages 29 ns for each head. One
    // sequence of so many heads that this is less, where a wave has place for
    // two blocks for each: packed, with a bound, 64 heads, 1 x 8,192 tokens
    // take
    // 748 us for 819. Where queries and keys need nothing but a norm and gates
    // are a softplus, which is dear in the stages, 32 heads do (477 for 501).
    // Halves and whole heads have the same bits, so both are for any batch.
    {"fused-channels-v-split-2: fused=1; v-split=2; where=1 <= channels;"
     "when=sequences <= 1 & 512 <= tokens & 2*heads <= workers &"
     "  (45*workers <= 100*heads |"
     "   24*workers <= 100*heads & bounded <= 0 & 1 <= scaled);"
     "any-batch=2*sequences*heads <= workers",
     kdaH200},
    // Whole heads: in one wave, which takes as long as its longest sequence,
    // where that is so of one sequence alone, and of long sequences, of which
    // few are twice as long as the mean; and two waves or more, of which the
    // last has to be full enough.
    {"fused-channels: fused=1; where=1 <= channels;"
     "when=(512*sequences <= tokens & 48*workers <= 100*heads &"
     "    sequences*heads <= workers & computed <= 0 |"
     "  512 <= tokens & sequences <= 1 & 48*workers <= 100*heads &"
     "    heads <= workers & 1 <= computed |"
     "  256*sequences <= tokens & 9 <= sequences & 1 <= computed &"
     "    60*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "  256*sequences <= tokens & tokens <= 1023*sequences & 1 <= computed &"
     "    60*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "  4096*sequences <= tokens & computed <= 0 &"
     "    76*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "  4096*sequences <= tokens & 9 <= sequences & 1 <= computed &"
     "    76*workers <= 100*sequences*heads & sequences*heads <= workers |"
     "  256*sequences <= tokens &"
     "    120*workers <= 100*sequences*heads & sequences*heads <= 2*workers |"
     "  128*sequences <= tokens & 210*workers <= 100*sequences*heads);"
     "any-batch=always",
     kdaH200},
    // Ready inputs of one wave, of any lengths: stages of the same work go home
    // at once, which costs 12 us beside the 143 of 4 x 2,048 tokens of 32
    // heads, for 263 in stages. Beside one long sequence the recurrence of
    // stages is as long as that, too, so that blocks gain where it has no more
    // than a 50th of the tokens of all heads (4,000 + 3 x 1,300 256 us for
    // 306).
    {"fused-channels-by-lengths: fused=1; by-lengths=5000/SMS;"
     "where=1 <= channels;"
     "when=2 <= sequences & sequences <= 8 & 256*sequences <= tokens &"
     "  60*workers <= 100*sequences*heads & sequences*heads <= workers &"
     "  computed <= 0",
     kdaH200},
    // Behind a stage of gates, halves: they take as long as the longest
    // sequence, or as all share 132 multiprocessors. It costs 8 to 12 us, which
    // is too much of few tokens. Packed, with a bound, 32 heads: 4 x 2,048 353
    // us, 346 whole, 402 by halves, 444 in stages; 3 x 2,048 + 8,192 714, 833,
    // 801, 770; 12,000 + 3 x 700 870, 1,047, 864, 768.
    {"fused-channels-by-lengths: fused=1; by-lengths=8600/SMS;"
     "where=1 <= channels;"
     "when=2 <= sequences & sequences <= 8 & 1024*sequences <= tokens &"
     "  60*workers <= 100*sequences*heads & sequences*heads <= workers &"
     "  1 <= computed",
     kdaH200},
    {"staged-segments-8: v-split=2; segments=8;"
     "where=1 <= channels & keys <= 128 & keys*values <= 32768;"
     "when=34848*sequences*sequences*heads*heads*heads"
     "       <= workers*workers*tokens &"
     "  sequences <= 2 & 32*chunk <= tokens",
     kdaH200},
    // One wave. A block has a multiprocessor, and where there are more of them
    // two that copy late do as much: 8 x 1,024 tokens of 32 heads take 297 us
    // with these, and 309.
    {"staged-v-split-2-ahead: v-split=2; copies=ahead;"
     "where=1 <= channels & keys <= 128 & 128 <= values & values <= 128;"
     "when=2*sequences*heads <= workers",
     kdaH200},
};

/// Chunks of 64 tokens where whole heads have those of 32 (getShortChunks). A
/// multiprocessor has two blocks of 64 values: in one wave they take 0.80 of
/// the time of halves (30 heads, packed, 1 x 8,192 tokens 707 us to 560, ready
/// 483 to 338), and of more 1.0 to 1.2 of that of whole heads.
static constexpr Row ownChunks[] = {
    {"staged-v-split-3: v-split=3; chunk=64;"
     "where=96 <= keys & keys <= 96 & 192 <= values & values <= 192 &"
     "  parts <= 1;"
     "when=3*sequences*heads <= 2*workers & 512*sequences <= tokens &"
     "  (3 <= sequences | tokens <= 1023 |"
     "   workers*workers*tokens"
     "     <= 8711*sequences*sequences*heads*heads*heads)",
     headsPackedH200},
    // Operands in two parts leave chunks of 32 tokens. Strengths up to 2, 30
    // heads, packed: 1 x 8,192 tokens 951 to 807 us, 2,048 + 6,144 817 to 747.
    {"staged-v-split-3: v-split=3;"
     "where=96 <= keys & keys <= 96 & 192 <= values & values <= 192 &"
     "  2 <= parts;"
     "when=3*sequences*heads <= 2*workers & 512*sequences <= tokens",
     headsPackedH200},
};

/// A stage prepares all chunks ahead of the recurrence.
static constexpr Row staged[] = {
    // Few tokens: two groups for each warp of a pass over memory. Measured:
    // 2/8 and 16/32 heads win up to 124 tokens times heads a multiprocessor,
    // 16/32 lose at 248; from 2,048 tokens on segments are better. Where blocks
    // can prepare chunks they are as fast from 62 on (2/8 heads, 1 x 1,024
    // tokens, 50 us for 52), with few blocks from 1,184 tokens on (1 x 1,536 67
    // for 57), and with half a wave or more of sequences that have a chunk.
    {"staged-v-split-4-short: pieces=8; v-split=4;"
     "where=256 <= values & 32769 <= keys*values;"
     "when=tokens*heads <= 128*workers & tokens <= 2047",
     packedH200},
    {"staged-v-split-2-short: pieces=8; v-split=2;"
     "where=128 <= values & keys*values <= 32768;"
     "when=tokens*heads <= 128*workers & tokens <= 2047 &"
     "  (norms <= 0 | 129 <= values | 129 <= keys |"
     "   keys <= 127 | tokens <= 63*sequences |"
     "   tokens*heads <= 63*workers & 100*sequences*heads <= 51*workers |"
     "   tokens <= 255*sequences & 100*sequences*heads <= 51*workers |"
     "   101*sequences*heads <= 12*workers & tokens <= 1183 |"
     "   101*sequences*heads <= 12*workers & 2 <= sequences |"
     "   33*heads <= workers & sequences <= 1 |"
     "   101*workers <= 100*sequences*heads &"
     "     100*sequences*heads <= 119*workers)",
     packedH200},
    {"staged-short: pieces=8;" // and of whole heads, where they are not shared
     "when=tokens*heads <= 128*workers & tokens <= 2047",
     packedH200},
    // Maps of segments cost more than idle multiprocessors where there are many
    // blocks without: they pay from T = N^2 Hv^3 / 2 on, for sequences that
    // have four segments in the mean, of four chunks.
    {"staged-segments-8: v-split=2; segments=8;"
     "where=keys <= 128 & keys*values <= 32768 &"
     "  (65 <= keys | 65 <= values);"
     "when=8712*sequences*sequences*heads*heads*heads"
     "       <= workers*workers*tokens &"
     "  sequences <= 2 & 32*chunk <= tokens",
     prefillH200},
    // Of 64 values a block has little to do beside what it waits for: one
    // sequence pays from an eighth on. 16/32 heads, packed: 1 x 8,192 tokens
    // 360 to 266 us, 1 x 2,048 92 to 82. Two from 64 chunks and an eighth on:
    // 1,024 + 7,168 331 to 256, 2,048 + 6,144 309 to 281, but 4,096 + 4,096 260
    // to 280; 16/16, 2,048 + 2,048 104 to 93, but 1,024 + 1,024 53 to 58.
    {"staged-segments-8: v-split=2; segments=8;"
     "where=keys <= 64 & values <= 64;"
     "when=sequences <= 2 & 32*chunk <= tokens &"
     "  (sequences <= 1 & 1089*heads*heads*heads <= workers*workers*tokens |"
     "   64*chunk <= tokens &"
     "     4356*heads*heads*heads <= workers*workers*tokens |"
     "   8712*sequences*sequences*heads*heads*heads"
     "       <= workers*workers*tokens)",
     packed64H200},
    {"staged-segments-8: v-split=4; segments=8;"
     "where=keys <= 128 & 32769 <= keys*values;"
     "when=8712*sequences*sequences*heads*heads*heads"
     "       <= workers*workers*tokens &"
     "  sequences <= 2 & 32*chunk <= tokens",
     prefillH200},
    // So many blocks for a head that one has at most 128 x 128 elements of the
    // state. With 64 values a block, four warps, is no slower than one of whole
    // heads, since it has another beside it on its multiprocessor. One of six
    // warps has none and takes 14 to 17 % longer where all are busy.
    {"staged-v-split-4: v-split=4; where=32769 <= keys*values;"
     "when=(256 <= values & values <= 256 | 4*sequences*heads <= workers)",
     headsH200},
    {"staged-v-split-2: v-split=2; where=keys*values <= 32768;"
     "when=(128 <= values & values <= 128 | 2*sequences*heads <= workers)",
     headsH200},
    {"staged:", prefillH200},
};

/// Of the variant that makes the maps of sequences and nothing else, which no
/// launch takes unless it is told to: one for each kind of decay, of which a
/// kernel has one.
static llvm::SmallVector<std::string> getMaps(const TargetModel &target) {
  llvm::SmallVector<std::string> texts;
  if (target.hasWgmma())
    texts.push_back(
        "segment-maps:fused=2;maps=alone;where=keys<=128;when=workers<=0");
  texts.push_back("segment-maps:v-split=2;maps=alone;"
                  "where=keys<=128&keys*values<=32768;when=workers<=0");
  return texts;
}

llvm::SmallVector<std::string> gdn::getPrefillPolicy(const TargetModel &target,
                                                     bool segmentMaps) {
  llvm::SmallVector<std::string> texts;
  auto add = [&](llvm::ArrayRef<Row> rows) {
    for (const Row &row : rows) {
      if (segmentMaps && row.workspace == Workspace::counters)
        continue;
      std::string text;
      // As one word: pipelines are written as text, too.
      llvm::copy_if(llvm::StringRef(row.text), std::back_inserter(text),
                    [](char c) { return !llvm::isSpace(c); });
      auto [before, after] = llvm::StringRef(text).split("SMS");
      if (before.size() != text.size())
        text = (before + llvm::Twine(target.getMeasuredSms()) + after).str();
      texts.push_back(std::move(text));
    }
  };
  if (target.hasWgmma()) {
    add(fused);
    add(channels);
    add(ownChunks);
  }
  const size_t first = texts.size();
  add(staged);
  // Decays per channel have segments of their own there.
  constexpr llvm::StringLiteral where = "where=";
  for (std::string &text : llvm::drop_begin(texts, first))
    if (target.hasWgmma() &&
        llvm::StringRef(text).starts_with("staged-segments-8:"))
      text.insert(text.find(where) + where.size(), "channels<=0&");
  if (segmentMaps) { // ahead of those that a stage prepares chunks for
    const llvm::SmallVector<std::string> maps = getMaps(target);
    texts.insert(llvm::find_if(texts,
                               [](llvm::StringRef text) {
                                 return text.starts_with("staged");
                               }),
                 maps.begin(), maps.end());
  }
  return texts;
}

// A block has a warp for 16 values. Of more than eight warps a thread has too
// few registers for its state and results for 64 tokens; of fewer than eight
// each thread copies more beside a large state. Operands in two parts take
// twice the shared memory.
llvm::StringRef gdn::getShortChunks() {
  return "32:(129<=values|values<=127&65<=keys|2<=parts)";
}

// Where there are fused variants they take the batches of many blocks, and
// sequences of few tokens would pay for an order (3 to 5 %): prefillH200.
bool gdn::takesLongestFirst(const TargetModel &target) {
  return !target.hasWgmma();
}

// Measured on Hopper alone: docs/design/20261129-layers-beside-chains.md, "The
// prologue".
PassPolicy gdn::getPassPolicy(const TargetModel &target) {
  if (!target.hasWgmma())
    return {/*wholeLoads=*/false, /*chunkPieces=*/0};
  return {/*wholeLoads=*/true, /*chunkPieces=*/16};
}

// runtime/bench/results/single-ops-h200.json: 1 x 4,096 and 8 x 1,024 tokens
// are cut. 32 x 100 tokens took twice as long when they were.
ConvPolicy gdn::getConvPolicy() { return {16, 256}; }
