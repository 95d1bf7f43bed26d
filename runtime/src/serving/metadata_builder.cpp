// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sorts the sequences of a step into decodes, prefills and verified sequences,
// and says which slots they read and write. What prefills need besides is in
// prefill_fields.cpp, what verified sequences keep states in and commits take
// in spec_fields.cpp, what graphs read behind the sequences in
// graph_padding.cpp, memory and checks are in metadata_memory.cpp.

#include "gdnrt/metadata_builder.h"

#include <algorithm>

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
  if (options_.num_speculative_tokens == 0 || !common.num_decode_draft_tokens)
    return false;
  const int32_t least = options_.verify_states == GDNRT_VERIFY_SLOTS ? 1 : 0;
  return std::any_of(common.num_decode_draft_tokens,
                     common.num_decode_draft_tokens + common.num_reqs,
                     [&](int32_t drafts) { return drafts >= least; });
}

/// The columns of the block table that hold the sequence's states.
const int32_t *MetadataBuilder::stateColumns(const CommonMetadata &common,
                                             int64_t row) const {
  const int32_t *columns = common.block_table + row * common.block_table_stride;
  if (options_.mamba_cache_mode == GDNRT_CACHE_ALIGN)
    columns +=
        std::max<int64_t>(common.seq_lens[row] - 1, 0) / options_.block_size;
  return columns;
}

/// Sets the slots of element `to` of the non_spec arrays, and its count.
void MetadataBuilder::fillSlots(const CommonMetadata &common, int64_t row,
                                int64_t to) {
  // The state after the tokens of the step before that were right.
  int32_t accepted = common.num_accepted_tokens
                         ? common.num_accepted_tokens[row]
                         : (hasCommits() ? 0 : 1);
  nonSpecAccepted_[to] = accepted;
  rowOfNonSpec_[to] = static_cast<int32_t>(row);
  int64_t tokens = queryLength(common, row);
  if (tokens == 0) {
    // Such rows pad graphs; what the table holds there may be alive.
    readSlots_[to] = writeSlots_[to] = options_.pad_slot;
    return;
  }
  const int32_t *columns = stateColumns(common, row);
  int64_t context = common.seq_lens[row] - tokens;
  if (options_.mamba_cache_mode == GDNRT_CACHE_ALL) {
    writeSlots_[to] = columns[(common.seq_lens[row] - 1) / options_.block_size];
    readSlots_[to] = context > 0 ? columns[(context - 1) / options_.block_size]
                                 : writeSlots_[to];
    return;
  }
  writeSlots_[to] = columns[0];
  if (context == 0 || options_.num_speculative_tokens == 0)
    readSlots_[to] = columns[0];
  else if (!isCount(accepted))
    readSlots_[to] = GDNRT_PAD_SLOT_ID;
  else if (options_.verify_states == GDNRT_VERIFY_SLOTS)
    readSlots_[to] = columns[accepted - 1];
  else
    readSlots_[to] = columns[0];
}

void MetadataBuilder::addRun(GDNMetadata &m, int32_t kind, int64_t firstToken,
                             int64_t numTokens, int64_t firstRow,
                             int64_t numRows) {
  gdnrt_run run = {};
  run.kind = kind;
  run.first_token = firstToken;
  run.num_tokens = numTokens;
  run.first_row = firstRow;
  run.num_rows = numRows;
  if (kind == GDNRT_RUN_PREFILL || kind == GDNRT_RUN_VERIFY) {
    const int32_t *starts =
        kind == GDNRT_RUN_VERIFY ? specStarts_ : nonSpecStarts_;
    run.query_start_loc = starts;
    if (firstRow != 0) {
      // Sequences of a launch count from 0, on a slice of the tokens.
      int32_t *own = runStarts_ + numRunStarts_;
      for (int64_t i = 0; i <= numRows; ++i)
        own[i] = starts[firstRow + i] - starts[firstRow];
      numRunStarts_ += numRows + 1;
      run.query_start_loc = own;
    }
  }
  if (kind == GDNRT_RUN_PREFILL)
    run.reads_state =
        std::any_of(hasInitial_ + firstRow, hasInitial_ + firstRow + numRows,
                    [](uint8_t has) { return has != 0; });
  runs_.push_back(run);
  m.runs = runs_.data();
  m.num_runs = static_cast<int64_t>(runs_.size());
}

/// Whether a sequence goes on from a state by one token at most. The first
/// token of a request has no state before it.
static bool isDecode(const CommonMetadata &common, int64_t row) {
  int64_t tokens = queryLength(common, row);
  return tokens == 0 || (tokens == 1 && common.seq_lens[row] > 1);
}

/// No sequence is verified: sequences up to the first that does not decode do.
Status MetadataBuilder::buildPlain(const CommonMetadata &common,
                                   GDNMetadata &m) {
  int64_t rows = common.num_reqs, decodes = 0;
  while (decodes < rows && isDecode(common, decodes))
    ++decodes;
  int64_t shortRows = decodes;
  while (shortRows < rows && queryLength(common, shortRows) <= 1)
    ++shortRows;
  for (int64_t row = 0; row < rows; ++row)
    fillSlots(common, row, row);
  used_.nonSpec = rows;
  specStarts_[0] = 0;
  std::copy_n(common.query_start_loc, rows + 1, nonSpecStarts_);
  for (int64_t row = 0; row < rows; ++row)
    hasInitial_[row] = common.seq_lens[row] > queryLength(common, row);

  int64_t tokens = common.query_start_loc[rows];
  if (Status s = addCommit(common, /*spec=*/false, m); !s.isOk())
    return s;
  bool onlyDecodes = decodes == rows;
  m.num_decodes = decodes;
  m.num_prefills = rows - decodes;
  m.num_decode_tokens =
      onlyDecodes ? common.num_actual_tokens : common.query_start_loc[decodes];
  m.num_prefill_tokens = common.num_actual_tokens - m.num_decode_tokens;
  m.non_spec_state_indices = {writeSlots_, rows};
  m.non_spec_query_start_loc = {nonSpecStarts_, rows + 1};
  m.non_spec_read_indices = {readSlots_, rows};
  if (common.num_accepted_tokens && options_.num_speculative_tokens > 0) {
    m.num_accepted_tokens = {nonSpecAccepted_, rows};
    m.non_spec_num_accepted = {nonSpecAccepted_, rows};
    m.spec_decode_src_indices = {readSlots_, rows};
  }

  // Decode wants a token in every sequence; an empty sequence may only stand
  // behind. Among sequences of one token, those without a state are launches of
  // their own.
  int64_t shortTokens = common.query_start_loc[shortRows];
  bool dense = true;
  for (int64_t row = 0; row < shortTokens && dense; ++row)
    dense = queryLength(common, row) == 1;
  if (shortTokens > 0 && !dense)
    addRun(m, GDNRT_RUN_PREFILL, 0, shortTokens, 0, shortRows);
  for (int64_t row = 0; dense && row < shortTokens;) {
    int64_t end = row + 1;
    while (end < shortTokens && hasInitial_[end] == hasInitial_[row])
      ++end;
    addRun(m, hasInitial_[row] ? GDNRT_RUN_DECODE : GDNRT_RUN_PREFILL, row,
           end - row, row, end - row);
    row = end;
  }
  if (shortRows < rows)
    addRun(m, GDNRT_RUN_PREFILL, shortTokens, tokens - shortTokens, shortRows,
           rows - shortRows);
  return {};
}

/// Some sequences are verified, so the others are prefills, of one token or
/// more.
Status MetadataBuilder::buildSpec(const CommonMetadata &common,
                                  GDNMetadata &m) {
  if (Status s = addCommit(common, /*spec=*/true, m); !s.isOk())
    return s;
  // First tokens of requests need no counts, verified sequences do.
  if (!common.num_accepted_tokens &&
      options_.verify_states != GDNRT_VERIFY_TREE)
    return invalid("num_accepted_tokens: expected counts for a step that "
                   "verifies rows, got null");
  int64_t spec = 0, nonSpec = 0, specTokens = 0, nonSpecTokens = 0;
  specStarts_[0] = nonSpecStarts_[0] = 0;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    bool verified = isVerified(common, row);
    specMasks_[row] = verified;
    int64_t first = common.query_start_loc[row];
    int64_t length = queryLength(common, row);
    int32_t *list = verified ? specTokens_ : nonSpecTokens_;
    int64_t &count = verified ? specTokens : nonSpecTokens;
    for (int64_t i = 0; i < length; ++i)
      list[count + i] = static_cast<int32_t>(first + i);
    count += length;
    if (verified) {
      if (length > numColumns_)
        return invalid("query_start_loc: expected at most ", numColumns_,
                       " tokens in row ", row, ", which is verified, got ",
                       length);
      if (Status s = fillSpec(common, row, spec); !s.isOk())
        return s;
      specStarts_[++spec] = static_cast<int32_t>(specTokens);
      continue;
    }
    fillSlots(common, row, nonSpec);
    hasInitial_[nonSpec] = common.seq_lens[row] > length;
    if (length > 0)
      ++m.num_prefills;
    nonSpecStarts_[++nonSpec] = static_cast<int32_t>(nonSpecTokens);
  }
  used_.nonSpec = nonSpec;
  used_.spec = spec;
  m.num_prefill_tokens = nonSpecTokens;
  m.num_spec_decodes = spec;
  m.num_spec_decode_tokens = specTokens;
  m.spec_sequence_masks = {specMasks_, common.num_reqs};
  m.spec_token_indx = {specTokens_, specTokens};
  m.non_spec_token_indx = {nonSpecTokens_, nonSpecTokens};
  if (options_.verify_states != GDNRT_VERIFY_LAZY)
    m.spec_state_indices = {specSlots_, spec * numColumns_};
  if (options_.verify_states != GDNRT_VERIFY_SLOTS)
    m.spec_slots = {specRowSlots_, spec};
  if (options_.verify_states == GDNRT_VERIFY_TREE)
    m.spec_parents = {specParents_, spec * numColumns_};
  m.spec_query_start_loc = {specStarts_, spec + 1};
  m.num_accepted_tokens = {specAccepted_, spec};
  if (nonSpecTokens == 0) {
    addRun(m, GDNRT_RUN_VERIFY, 0, specTokens, 0, spec);
    return {};
  }
  m.non_spec_state_indices = {writeSlots_, nonSpec};
  m.non_spec_query_start_loc = {nonSpecStarts_, nonSpec + 1};
  m.non_spec_read_indices = {readSlots_, nonSpec};
  m.non_spec_num_accepted = {nonSpecAccepted_, nonSpec};
  m.spec_decode_src_indices = {readSlots_, nonSpec};

  int64_t firstSpec = 0, firstNonSpec = 0;
  for (int64_t row = 0; row < common.num_reqs;) {
    int64_t end = row + 1;
    while (end < common.num_reqs && specMasks_[end] == specMasks_[row])
      ++end;
    int64_t first = common.query_start_loc[row];
    int64_t tokens = common.query_start_loc[end] - first;
    int64_t &firstRow = specMasks_[row] ? firstSpec : firstNonSpec;
    if (tokens > 0)
      addRun(m, specMasks_[row] ? GDNRT_RUN_VERIFY : GDNRT_RUN_PREFILL, first,
             tokens, firstRow, end - row);
    firstRow += end - row;
    row = end;
  }
  return {};
}

bool MetadataBuilder::movesStates() const {
  return options_.mamba_cache_mode == GDNRT_CACHE_ALL ||
         (options_.num_speculative_tokens > 0 &&
          options_.verify_states == GDNRT_VERIFY_SLOTS);
}

Status MetadataBuilder::build(const CommonMetadata &common,
                              GDNMetadata &metadata) {
  if (Status s = check(common); !s.isOk())
    return s;
  if (Status s = checkCounts(common); !s.isOk())
    return s;
  GDNMetadata m = {};
  runs_.clear();
  numRunStarts_ = 0;
  used_ = {};
  m.num_actual_tokens = common.num_actual_tokens;
  m.num_run_tokens = common.query_start_loc[common.num_reqs];
  m.arena = readSlots_;
  m.arena_bytes = arenaInts_ * sizeof(int32_t);
  m.num_spec_columns = numColumns_;
  m.verify_states = options_.verify_states;
  m.run_has_initial = {hasInitial_, maxRows_};
  m.zeros = {zeros_, maxRows_ + 1};

  m.moves_states = movesStates();

  Status built =
      usesSpec(common) ? buildSpec(common, m) : buildPlain(common, m);
  if (built.isOk() && m.num_prefills > 0)
    addPrefillFields(common, m);
  if (built.isOk() && options_.use_full_cuda_graph && m.num_prefills == 0)
    built = pad(common, m);
  // Sequences of a step that was refused belong to nobody.
  if (!built.isOk()) {
    used_ = {};
    filled_ = {maxRows_, maxRows_, maxRows_};
  }
  padTails();
  bool prefills = std::any_of(runs_.begin(), runs_.end(), [](const auto &run) {
    return run.kind == GDNRT_RUN_PREFILL;
  });
  m.device_bytes = (prefills ? deviceInts_ : graphInts_) * sizeof(int32_t);
  if (built.isOk())
    metadata = m;
  return built;
}

Status MetadataBuilder::buildForCudagraphCapture(const CommonMetadata &common,
                                                 GDNMetadata &metadata) {
  if (common.num_reqs > maxGraphRows_ ||
      common.num_actual_tokens > maxGraphRows_)
    return invalid("capture: graphs are of decode and verify only; expected at "
                   "most ",
                   maxGraphRows_, " rows and as many tokens, got ",
                   common.num_reqs, " rows and ", common.num_actual_tokens,
                   " tokens");
  if (Status s = check(common); !s.isOk())
    return s;
  CommonMetadata capture = common;
  for (int64_t row = 0; row < common.num_reqs; ++row) {
    // Rows of a graph go on from a state, whatever lengths a capture has.
    captureLengths_[row] =
        std::max(common.seq_lens[row],
                 static_cast<int32_t>(queryLength(common, row)) + 1);
    captureAccepted_[row] = static_cast<int32_t>(queryLength(common, row));
    captureDrafts_[row] =
        captureAccepted_[row] > 1 ? captureAccepted_[row] - 1 : -1;
    // Nothing waits for a commit in what is launched to be captured.
    if (hasCommits())
      captureAccepted_[row] = 0;
  }
  capture.token_slots = capture.parents = captureTokens_.data();
  capture.token_slots_stride = 0;
  capture.seq_lens = captureLengths_.data();
  capture.num_accepted_tokens = captureAccepted_.data();
  capture.num_decode_draft_tokens = captureDrafts_.data();
  return build(capture, metadata);
}
