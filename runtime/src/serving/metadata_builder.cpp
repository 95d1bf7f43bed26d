// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorts the sequences of a step into decodes, prefills and verified sequences,
// and says which slots they read and write. What belongs to one kind is in
// step_fields.h.

#include "gdnrt/metadata_builder.h"

#include "batch_limits.h"
#include "gdnrt/gdn_layer.h"
#include "step_fields.h"

#include <algorithm>
#include <utility>

using namespace gdnrt;

static int64_t queryLength(const CommonMetadata &common, int64_t row) {
  return common.query_start_loc[row + 1] - common.query_start_loc[row];
}

static bool isVerified(const CommonMetadata &common, int64_t row) {
  return common.num_decode_draft_tokens[row] >= 0;
}

/// With slots, verified sequences of a step without a single draft are plain
/// decodes: the states are the same. Elsewhere what a sequence leaves behind
/// depends on how it ran, so that sequences without drafts are verified
/// whatever the others do.
bool MetadataBuilder::usesSpec(const CommonMetadata &common) const {
  if (arrays_.options.num_speculative_tokens == 0 ||
      !common.num_decode_draft_tokens)
    return false;
  const int32_t least =
      arrays_.options.verify_states == GDNRT_VERIFY_SLOTS ? 1 : 0;
  return std::any_of(common.num_decode_draft_tokens,
                     common.num_decode_draft_tokens + common.num_reqs,
                     [&](int32_t drafts) { return drafts >= least; });
}

void gdnrt::fillSlots(StepArrays &arrays, const CommonMetadata &common,
                      int64_t row, int64_t to) {
  // The state after the tokens of the step before that were right.
  int32_t accepted = common.num_accepted_tokens
                         ? common.num_accepted_tokens[row]
                         : (arrays.hasCommits() ? 0 : 1);
  arrays.nonSpecAccepted[to] = accepted;
  arrays.rowOfNonSpec[to] = static_cast<int32_t>(row);
  int64_t tokens = queryLength(common, row);
  if (tokens == 0) {
    // Such rows pad graphs; what the table holds there may be alive.
    arrays.readSlots[to] = arrays.writeSlots[to] = arrays.options.pad_slot;
    return;
  }
  const int32_t *columns = arrays.stateColumns(common, row);
  int64_t context = common.seq_lens[row] - tokens;
  arrays.writeSlots[to] = columns[0];
  if (context == 0 || arrays.options.num_speculative_tokens == 0)
    arrays.readSlots[to] = columns[0];
  else if (!arrays.isCount(accepted))
    arrays.readSlots[to] = GDNRT_PAD_SLOT_ID;
  else if (arrays.options.verify_states == GDNRT_VERIFY_SLOTS)
    arrays.readSlots[to] = columns[accepted - 1];
  else
    arrays.readSlots[to] = columns[0];
}

/// Mode all: element `to` of the arrays is tokens `first` to `last` of a row.
static void fillBlockSlots(StepArrays &arrays, const CommonMetadata &common,
                           int64_t row, int64_t first, int64_t last,
                           int64_t to) {
  const int32_t *columns = arrays.stateColumns(common, row);
  const int64_t size = arrays.options.block_size;
  arrays.firstOfNonSpec[to] = static_cast<int32_t>(first);
  arrays.lastOfNonSpec[to] = static_cast<int32_t>(last);
  if (first == last)
    return; // fillSlots has its padding
  arrays.writeSlots[to] = columns[(last - 1) / size];
  arrays.readSlots[to] =
      first > 0 ? columns[(first - 1) / size] : arrays.writeSlots[to];
}

/// The sequences of a step in which none is verified: one for each row, and two
/// for a row that starts inside a block and crosses its end. Their number.
int64_t MetadataBuilder::fillPlain(const CommonMetadata &common) {
  const bool all = arrays_.options.mamba_cache_mode == GDNRT_CACHE_ALL;
  const int64_t size = arrays_.options.block_size;
  int64_t count = 0;
  auto add = [&](int64_t row, int64_t first, int64_t last, int64_t end) {
    fillSlots(arrays_, common, row, count);
    if (all)
      fillBlockSlots(arrays_, common, row, first, last, count);
    arrays_.hasInitial[count] = first > 0;
    arrays_.nonSpecStarts[++count] = static_cast<int32_t>(end);
  };
  arrays_.nonSpecStarts[0] = 0;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    const int64_t length = queryLength(common, row);
    const int64_t last = common.seq_lens[row], first = last - length;
    const int64_t end = common.query_start_loc[row + 1];
    const int64_t blockEnd = all ? (first / size + 1) * size : last;
    const bool crosses = length > 0 && blockEnd < last && first % size != 0;
    if (crosses)
      add(row, first, blockEnd, end - (last - blockEnd));
    add(row, crosses ? blockEnd : first, last, end);
  }
  return count;
}

/// Whether element `i` is a row's second sequence.
static bool isSecond(const StepArrays &arrays, int64_t i) {
  return i > 0 && arrays.rowOfNonSpec[i] == arrays.rowOfNonSpec[i - 1];
}

/// No sequence is verified: sequences up to the first that does not decode do.
Status MetadataBuilder::buildPlain(const CommonMetadata &common,
                                   GDNMetadata &m) {
  const int64_t rows = fillPlain(common);
  // So many in front decode, and so many have one token at most. Rows that are
  // two sequences are neither.
  int64_t decodes = 0, shortRows = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (arrays_.rowOfNonSpec[row] != row ||
        (row + 1 < rows && isSecond(arrays_, row + 1)))
      break;
    const int64_t length = queryLength(common, row);
    decodes += decodes == row &&
               (length == 0 || (length == 1 && arrays_.hasInitial[row]));
    shortRows += shortRows == row && length <= 1;
  }
  arrays_.used.nonSpec = rows;
  arrays_.specStarts[0] = 0;
  if (rows != common.num_reqs)
    m.non_spec_rows = {arrays_.rowOfNonSpec.data(), rows};

  const int64_t tokens = common.query_start_loc[common.num_reqs];
  // Decode wants a token in every sequence; an empty sequence may only stand
  // behind.
  const int64_t shortTokens = common.query_start_loc[shortRows];
  const bool dense = common.query_start_loc[shortTokens] == shortTokens;
  if (Status s = addCommit(arrays_, common,
                           {/*verifies=*/false, dense ? shortTokens : 0}, m);
      !s.isOk())
    return s;
  bool onlyDecodes = decodes == rows;
  m.num_decodes = decodes;
  m.num_prefills = rows - decodes;
  m.num_decode_tokens =
      onlyDecodes ? common.num_actual_tokens : common.query_start_loc[decodes];
  m.num_prefill_tokens = common.num_actual_tokens - m.num_decode_tokens;
  m.non_spec_state_indices = {arrays_.writeSlots, rows};
  m.non_spec_query_start_loc = {arrays_.nonSpecStarts, rows + 1};
  m.non_spec_read_indices = {arrays_.readSlots, rows};
  if (common.num_accepted_tokens &&
      arrays_.options.num_speculative_tokens > 0) {
    m.num_accepted_tokens = {arrays_.nonSpecAccepted, rows};
    m.non_spec_num_accepted = {arrays_.nonSpecAccepted, rows};
    m.spec_decode_src_indices = {arrays_.readSlots, rows};
  }

  // Among sequences of one token, those without a state are launches of their
  // own.
  if (shortTokens > 0 && !dense)
    arrays_.addRun(m, GDNRT_RUN_PREFILL, 0, shortTokens, 0, shortRows);
  for (int64_t row = 0; dense && row < shortTokens;) {
    int64_t end = std::max(row + 1, std::min(decodes, shortTokens));
    while (end < shortTokens &&
           arrays_.hasInitial[end] == arrays_.hasInitial[row])
      ++end;
    arrays_.addRun(
        m, arrays_.hasInitial[row] ? GDNRT_RUN_DECODE : GDNRT_RUN_PREFILL, row,
        end - row, row, end - row);
    row = end;
  }
  for (int64_t row = shortRows; row < rows;) {
    int64_t end = row + 1;
    while (end < rows && !isSecond(arrays_, end))
      ++end;
    const int64_t first = arrays_.nonSpecStarts[row];
    const int64_t behind = end < rows ? arrays_.nonSpecStarts[end] : tokens;
    arrays_.addRun(m, GDNRT_RUN_PREFILL, first, behind - first, row, end - row);
    row = end;
  }
  return {};
}

/// Some sequences are verified, so the others are prefills, of one token or
/// more.
Status MetadataBuilder::buildSpec(const CommonMetadata &common,
                                  GDNMetadata &m) {
  if (Status s = addCommit(arrays_, common, {/*verifies=*/true}, m); !s.isOk())
    return s;
  // First tokens of requests need no counts, verified sequences do.
  if (!common.num_accepted_tokens &&
      arrays_.options.verify_states != GDNRT_VERIFY_TREE)
    return invalid("num_accepted_tokens: expected counts for a step that "
                   "verifies rows, got null");
  int64_t spec = 0, nonSpec = 0, specTokens = 0, nonSpecTokens = 0;
  arrays_.specStarts[0] = arrays_.nonSpecStarts[0] = 0;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    bool verified = isVerified(common, row);
    arrays_.specMasks[row] = verified;
    int64_t first = common.query_start_loc[row];
    int64_t length = queryLength(common, row);
    int32_t *list = verified ? arrays_.specTokens : arrays_.nonSpecTokens;
    int64_t &count = verified ? specTokens : nonSpecTokens;
    for (int64_t i = 0; i < length; ++i)
      list[count + i] = static_cast<int32_t>(first + i);
    count += length;
    if (verified) {
      if (length > arrays_.numColumns)
        return invalid("query_start_loc: expected at most ", arrays_.numColumns,
                       " tokens in row ", row, ", which is verified, got ",
                       length);
      if (Status s = fillSpec(arrays_, common, row, spec); !s.isOk())
        return s;
      arrays_.specStarts[++spec] = static_cast<int32_t>(specTokens);
      continue;
    }
    fillSlots(arrays_, common, row, nonSpec);
    arrays_.hasInitial[nonSpec] = common.seq_lens[row] > length;
    if (length > 0)
      ++m.num_prefills;
    arrays_.nonSpecStarts[++nonSpec] = static_cast<int32_t>(nonSpecTokens);
  }
  arrays_.used.nonSpec = nonSpec;
  arrays_.used.spec = spec;
  m.num_prefill_tokens = nonSpecTokens;
  m.num_spec_decodes = spec;
  m.num_spec_decode_tokens = specTokens;
  m.spec_sequence_masks = {arrays_.specMasks, common.num_reqs};
  m.spec_token_indx = {arrays_.specTokens, specTokens};
  m.non_spec_token_indx = {arrays_.nonSpecTokens, nonSpecTokens};
  describeSpec(arrays_, spec, m);
  if (nonSpecTokens == 0) {
    arrays_.addRun(m, GDNRT_RUN_VERIFY, 0, specTokens, 0, spec);
    return {};
  }
  m.non_spec_state_indices = {arrays_.writeSlots, nonSpec};
  m.non_spec_query_start_loc = {arrays_.nonSpecStarts, nonSpec + 1};
  m.non_spec_read_indices = {arrays_.readSlots, nonSpec};
  m.non_spec_num_accepted = {arrays_.nonSpecAccepted, nonSpec};
  m.spec_decode_src_indices = {arrays_.readSlots, nonSpec};

  int64_t firstSpec = 0, firstNonSpec = 0;
  for (int64_t row = 0; row < common.num_reqs;) {
    int64_t end = row + 1;
    while (end < common.num_reqs &&
           arrays_.specMasks[end] == arrays_.specMasks[row])
      ++end;
    int64_t first = common.query_start_loc[row];
    int64_t tokens = common.query_start_loc[end] - first;
    int64_t &firstRow = arrays_.specMasks[row] ? firstSpec : firstNonSpec;
    if (tokens > 0)
      arrays_.addRun(
          m, arrays_.specMasks[row] ? GDNRT_RUN_VERIFY : GDNRT_RUN_PREFILL,
          first, tokens, firstRow, end - row);
    firstRow += end - row;
    row = end;
  }
  return {};
}

Result<std::unique_ptr<MetadataBuilder>>
MetadataBuilder::make(const MetadataOptions &options) {
  if (Status s = checkOptions(options); !s.isOk())
    return s;
  return std::unique_ptr<MetadataBuilder>(new MetadataBuilder(options));
}

Status MetadataBuilder::alignBefore(const CommonMetadata &common,
                                    StateMoves &moves) const {
  return gdnrt::alignBefore(arrays_, common, moves);
}

Status MetadataBuilder::alignAfter(const CommonMetadata &common,
                                   StateMoves &moves) const {
  return gdnrt::alignAfter(arrays_, common, moves);
}

Status MetadataBuilder::stateColumns(const int32_t *numTokens,
                                     const int32_t *starts,
                                     const int32_t *accepted, int64_t count,
                                     int32_t *columns) const {
  return gdnrt::stateColumns(arrays_, numTokens, starts, accepted, count,
                             columns);
}

bool MetadataBuilder::movesStates() const {
  return arrays_.options.mamba_cache_mode == GDNRT_CACHE_ALL ||
         (arrays_.options.num_speculative_tokens > 0 &&
          arrays_.options.verify_states == GDNRT_VERIFY_SLOTS);
}

/// What is said of a step whatever its sequences are.
GDNMetadata MetadataBuilder::begin() {
  GDNMetadata m = {};
  arrays_.clearRuns(m);
  arrays_.numRunStarts = 0;
  arrays_.used = {};
  m.arena = arrays_.readSlots;
  m.arena_bytes = arrays_.arenaInts * sizeof(int32_t);
  m.num_spec_columns = arrays_.numColumns;
  m.verify_states = arrays_.options.verify_states;
  m.run_has_initial = {arrays_.hasInitial, arrays_.maxRows};
  m.zeros = {arrays_.zeros, arrays_.maxRows + 1};
  m.moves_states = movesStates();
  m.uploaded = &arrays_.uploaded;
  m.deferred_writes = arrays_.options.deferred_writes;
  return m;
}

Status MetadataBuilder::build(const CommonMetadata &common,
                              GDNMetadata &metadata) {
  if (Status s = checkStep(arrays_, common); !s.isOk())
    return s;
  if (Status s = checkCounts(arrays_, common); !s.isOk())
    return s;
  GDNMetadata m = begin();
  m.num_actual_tokens = common.num_actual_tokens;
  m.num_run_tokens = common.query_start_loc[common.num_reqs];

  const bool mixed = arrays_.options.mixed_batch != 0;
  Status built = mixed              ? buildMixed(arrays_, common, m)
                 : usesSpec(common) ? buildSpec(common, m)
                                    : buildPlain(common, m);
  if (built.isOk() && m.num_prefills > 0 && !mixed)
    addPrefillFields(arrays_, common, m);
  if (built.isOk() && arrays_.options.use_full_cuda_graph &&
      m.num_prefills == 0 && !mixed)
    built = padToGraph(arrays_, common, m);
  return end(std::move(built), m, metadata);
}

Status MetadataBuilder::end(Status built, GDNMetadata &m,
                            GDNMetadata &metadata) {
  // Sequences of a step that was refused belong to nobody.
  if (!built.isOk()) {
    arrays_.used = {};
    arrays_.filled = {arrays_.maxRows, arrays_.maxRows, arrays_.maxRows};
  }
  arrays_.padTails();
  // Commits of builders that verify nothing go with prefills.
  const bool verifies =
      arrays_.options.num_speculative_tokens > 0 || arrays_.options.mixed_batch;
  const bool all = std::any_of(
      arrays_.runs.begin(), arrays_.runs.end(), [&](const auto &run) {
        return run.kind == GDNRT_RUN_PREFILL ||
               (run.kind == GDNRT_RUN_COMMIT && !verifies);
      });
  m.device_bytes =
      (all ? arrays_.deviceInts : arrays_.graphInts) * sizeof(int32_t);
  if (built.isOk())
    metadata = m;
  return built;
}

Status MetadataBuilder::buildCommit(const int32_t *slots,
                                    const int32_t *accepted, int64_t count,
                                    GDNMetadata &metadata) {
  if (!arrays_.hasCommits() ||
      arrays_.options.verify_states == GDNRT_VERIFY_BUFFER)
    return failure(StatusCode::unsupported,
                   "build_commit: expected a builder with the verify states "
                   "lazy or with deferred_writes, got one with ",
                   nameOfVerifyStates(arrays_.options.verify_states));
  if (Status s = checkRange("count", count, 0, arrays_.options.max_num_seqs);
      !s.isOk())
    return s;
  GDNMetadata m = begin();
  return end(gdnrt::buildCommit(arrays_, slots, accepted, count, m), m,
             metadata);
}

Status MetadataBuilder::buildForCudagraphCapture(const CommonMetadata &common,
                                                 GDNMetadata &metadata) {
  if (arrays_.options.mixed_batch) {
    if (!arrays_.options.use_full_cuda_graph)
      return invalid("use_full_cuda_graph: expected 1 for the capture of a "
                     "mixed batch, whose steps are padded then, got 0");
    // Launches depend on the numbers of rows and tokens alone.
    const int32_t none = 0;
    CommonMetadata capture = {};
    capture.query_start_loc = &none;
    capture.num_padded_reqs = std::max(common.num_reqs, common.num_padded_reqs);
    capture.num_actual_tokens = common.num_actual_tokens;
    return build(capture, metadata);
  }
  if (common.num_reqs > arrays_.maxGraphRows ||
      common.num_actual_tokens > arrays_.maxGraphRows)
    return invalid("capture: graphs are of decode and verify only; expected at "
                   "most ",
                   arrays_.maxGraphRows, " rows and as many tokens, got ",
                   common.num_reqs, " rows and ", common.num_actual_tokens,
                   " tokens");
  if (Status s = checkStep(arrays_, common); !s.isOk())
    return s;
  CommonMetadata capture = common;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    // Rows of a graph go on from a state, whatever lengths a capture has.
    arrays_.captureLengths[row] =
        std::max(common.seq_lens[row],
                 static_cast<int32_t>(queryLength(common, row)) + 1);
    arrays_.captureAccepted[row] =
        static_cast<int32_t>(queryLength(common, row));
    arrays_.captureDrafts[row] = arrays_.captureAccepted[row] > 1
                                     ? arrays_.captureAccepted[row] - 1
                                     : -1;
    // Nothing waits for a commit in what is launched to be captured.
    if (arrays_.hasCommits())
      arrays_.captureAccepted[row] = 0;
  }
  capture.token_slots = capture.parents = arrays_.captureTokens.data();
  capture.token_slots_stride = 0;
  capture.seq_lens = arrays_.captureLengths.data();
  capture.num_accepted_tokens = arrays_.captureAccepted.data();
  capture.num_decode_draft_tokens = arrays_.captureDrafts.data();
  return build(capture, metadata);
}
