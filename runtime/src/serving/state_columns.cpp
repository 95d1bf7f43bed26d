// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the state of a request is between two steps, for those who move it.

#include "step_fields.h"

using namespace gdnrt;

Status gdnrt::stateColumns(const StepArrays &arrays, const int32_t *numTokens,
                           const int32_t *starts, const int32_t *accepted,
                           int64_t count, int32_t *columns) {
  const MetadataOptions &options = arrays.options;
  const bool isAlign = options.mamba_cache_mode == GDNRT_CACHE_ALIGN;
  const bool verifies = options.num_speculative_tokens > 0;
  const bool hasSlots = verifies && options.verify_states == GDNRT_VERIFY_SLOTS;
  const bool hasBuffer =
      verifies && options.verify_states == GDNRT_VERIFY_BUFFER;
  if (isAlign != (starts != nullptr))
    return invalid("starts: expected ", isAlign ? "an array" : "null",
                   " with the cache mode, got ", isAlign ? "null" : "an array");
  if ((hasSlots || hasBuffer) && !accepted && count > 0)
    return invalid("accepted: expected counts, got null");
  for (int64_t i = 0; i < count; ++i) {
    const int64_t tokens = numTokens[i];
    if (tokens < 0)
      return invalid("num_tokens: expected 0 or more of request ", i, ", got ",
                     tokens);
    if (tokens == 0)
      continue;
    if (hasSlots && (accepted[i] < 1 || accepted[i] > arrays.numColumns))
      return invalid("accepted: expected 1 to ", arrays.numColumns,
                     " of request ", i, ", got ", accepted[i]);
    if (hasBuffer && accepted[i] != 0)
      return invalid("accepted: expected 0 of request ", i,
                     ", whose state has all tokens behind a commit, got ",
                     accepted[i]);
  }
  for (int64_t i = 0; i < count; ++i) {
    if (numTokens[i] == 0) {
      columns[i] = -1;
      continue;
    }
    int64_t column = 0;
    if (options.mamba_cache_mode != GDNRT_CACHE_NONE)
      column = (numTokens[i] - 1) / options.block_size;
    if (isAlign && starts[i] >= 0)
      column = starts[i];
    if (hasSlots)
      column += accepted[i] - 1;
    columns[i] = static_cast<int32_t>(column);
  }
  return {};
}
