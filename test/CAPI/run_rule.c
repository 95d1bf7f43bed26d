/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The rule alone, from C: run_rule IMAGE ready|gated
 *
 * The image has heads of 16 x 24, inputs and states of f32, and the parameters
 * of --for=c. A ragged batch, a token for each slot, and calls that are
 * refused, against sums in double.
 */

#include "gdn-c/rule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { H = 2, HV = 4, DK = 16, DV = 24, N = 5, P = 7, T = 13, NULL_SLOT = 3 };

static float q[T][H][DK], k[T][H][DK], v[T][HV][DV], out[T][HV][DV];
static float log_decay[T][HV], beta[T][HV], a[T][HV], b[T][HV];
static float A_log[HV], dt_bias[HV], states[P][HV][DV][DK];
static double want_states[P][HV][DV][DK], want[T][HV][DV];
/* Sequence 1 is empty, 2 has the null slot, 3 no state, and two tokens belong
 * to none. */
static int32_t cu_seqlens[N + 1] = {0, 4, 4, 6, 9, 11};
static int32_t slots[N] = {5, 0, NULL_SLOT, 1, 6},
               write_slots[N] = {5, 0, 2, 4, -1};
static unsigned char has_initial[N] = {1, 1, 1, 0, 1};

static void expect(int condition, const char *what) {
  if (condition)
    return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void check(gdnrt_status status, const gdnrt_error *error) {
  if (status != GDNRT_OK)
    fprintf(stderr, "%s\n", error->message);
  expect(status == GDNRT_OK, "a call failed");
}

static uint32_t seed = 1;
static float draw(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
}

static void fill(void *array, size_t count) {
  for (size_t i = 0; i < count; ++i)
    ((float *)array)[i] = draw();
}

static void unit(float *row) {
  double sum = 0;
  for (int i = 0; i < DK; ++i)
    sum += row[i] * row[i];
  for (int i = 0; i < DK; ++i)
    row[i] = (float)(row[i] / sqrt(sum));
}

static void make_inputs(void) {
  fill(q, sizeof(q) / 4), fill(k, sizeof(k) / 4), fill(v, sizeof(v) / 4);
  fill(a, sizeof(a) / 4), fill(b, sizeof(b) / 4);
  fill(A_log, HV), fill(dt_bias, HV), fill(states, sizeof(states) / 4);
  memset(states[NULL_SLOT], 0xff, sizeof(states[0])); /* NaN */
  memset(out, 0xff, sizeof(out));
  for (int t = 0; t < T; ++t)
    for (int h = 0; h < H; ++h)
      unit(q[t][h]), unit(k[t][h]);
  for (int t = 0; t < T; ++t)
    for (int h = 0; h < HV; ++h) {
      double x = a[t][h] + dt_bias[h];
      log_decay[t][h] = (float)(-exp(A_log[h]) * log1p(exp(x)));
      beta[t][h] = (float)(1 / (1 + exp(-b[t][h])));
    }
}

static void step(double state[DV][DK], int t, int h) {
  const float *key = k[t][h / (HV / H)], *query = q[t][h / (HV / H)];
  for (int i = 0; i < DV; ++i) {
    double seen = 0, sum = 0;
    for (int j = 0; j < DK; ++j) {
      state[i][j] *= exp(log_decay[t][h]);
      seen += state[i][j] * key[j];
    }
    for (int j = 0; j < DK; ++j) {
      state[i][j] += beta[t][h] * (v[t][h][i] - seen) * key[j];
      sum += state[i][j] * query[j];
    }
    want[t][h][i] = sum / sqrt(DK);
  }
}

/* Sequence n of slot slots[n], the tokens `first` to `last`. */
static void run_sequence(int n, int first, int last, int starts) {
  if (slots[n] == NULL_SLOT || first == last)
    return;
  for (int h = 0; h < HV; ++h) {
    double state[DV][DK];
    for (int i = 0; i < DV; ++i)
      for (int j = 0; j < DK; ++j)
        state[i][j] = starts ? states[slots[n]][h][i][j] : 0;
    for (int t = first; t < last; ++t)
      step(state, t, h);
    if (write_slots[n] >= 0)
      memcpy(want_states[write_slots[n]][h], state, sizeof(state));
  }
}

static void compare(int tokens) {
  double error = 0;
  for (int t = 0; t < tokens; ++t)
    for (int h = 0; h < HV; ++h)
      for (int i = 0; i < DV; ++i)
        error = fmax(error, fabs(out[t][h][i] - want[t][h][i]));
  for (int s = 0; s < P; ++s)
    for (int h = 0; h < HV; ++h)
      for (int i = 0; i < DV; ++i)
        for (int j = 0; j < DK; ++j)
          if (s != NULL_SLOT)
            error =
                fmax(error, fabs(states[s][h][i][j] - want_states[s][h][i][j]));
  printf("largest error %.1e\n", error);
  expect(error < 1e-5, "outputs or states are wrong");
}

static void expect_from_states(void) {
  memset(want, 0, sizeof(want));
  for (int s = 0; s < P; ++s)
    for (int h = 0; h < HV; ++h)
      for (int i = 0; i < DV; ++i)
        for (int j = 0; j < DK; ++j)
          want_states[s][h][i][j] = states[s][h][i][j];
}

static gdnrt_arg array(void *data, gdnrt_dtype dtype, int rank,
                       const int64_t *sizes) {
  gdnrt_arg arg = {data, dtype, rank, sizes, NULL, NULL_SLOT};
  return arg;
}

int main(int argc, char **argv) {
  gdnrt_error error;
  gdnrt_image *image = NULL;
  gdnrt_device *device = NULL;
  gdnrt_rule *rule = NULL;
  expect(argc == 3, "usage: run_rule IMAGE ready|gated");
  const int ready = strcmp(argv[2], "ready") == 0;
  check(gdnrt_image_load_file(argv[1], &image, &error), &error);
  check(gdnrt_device_create_cpu(NULL, &device, &error), &error);
  check(gdnrt_rule_create(device, image, &rule, &error), &error);

  int64_t keys[] = {T, H, DK}, values[] = {T, HV, DV}, gates[] = {T, HV};
  const int64_t heads[] = {HV}, starts[] = {N + 1}, sequences[] = {N};
  const int64_t pool[] = {P, HV, DV, DK};
  make_inputs();
  gdnrt_rule_args args = gdnrt_rule_args_default();
  args.q = array(q, GDNRT_F32, 3, keys);
  args.k = array(k, GDNRT_F32, 3, keys);
  args.v = array(v, GDNRT_F32, 3, values);
  args.out = array(out, GDNRT_F32, 3, values);
  if (ready) {
    args.log_decay = array(log_decay, GDNRT_F32, 2, gates);
    args.beta = array(beta, GDNRT_F32, 2, gates);
  } else {
    args.a = array(a, GDNRT_F32, 2, gates);
    args.b = array(b, GDNRT_F32, 2, gates);
    args.A_log = array(A_log, GDNRT_F32, 1, heads);
    args.dt_bias = array(dt_bias, GDNRT_F32, 1, heads);
  }
  args.cu_seqlens = array(cu_seqlens, GDNRT_I32, 1, starts);
  args.slots = array(slots, GDNRT_I32, 1, sequences);
  args.write_slots = array(write_slots, GDNRT_I32, 1, sequences);
  args.has_initial = array(has_initial, GDNRT_I1, 1, sequences);
  args.state_pool = array(states, GDNRT_F32, 4, pool);
  expect_from_states();
  for (int n = 0; n < N; ++n)
    run_sequence(n, cu_seqlens[n], cu_seqlens[n + 1], has_initial[n]);
  check(gdnrt_rule_run(rule, &args, NULL, &error), &error);
  compare(T);

  /* A token for each slot, states where they were, and other sizes. */
  keys[0] = values[0] = gates[0] = N;
  gdnrt_rule_args token = args;
  memset(&token.cu_seqlens, 0, sizeof(token.cu_seqlens));
  memset(&token.has_initial, 0, sizeof(token.has_initial));
  memset(&token.write_slots, 0, sizeof(token.write_slots));
  memcpy(write_slots, slots, sizeof(slots));
  expect_from_states();
  for (int n = 0; n < N; ++n)
    run_sequence(n, n, n + 1, 1);
  check(gdnrt_rule_run(rule, &token, NULL, &error), &error);
  compare(N);

  /* What is refused changes nothing. */
  gdnrt_rule_args wrong = token;
  memset(&wrong.q, 0, sizeof(wrong.q));
  expect(gdnrt_rule_run(rule, &wrong, NULL, &error) == GDNRT_INVALID_ARGUMENT &&
             strstr(error.message, "q: the argument is missing"),
         "a missing q was taken");
  wrong = token;
  wrong.has_initial = args.has_initial;
  expect(gdnrt_rule_run(rule, &wrong, NULL, &error) == GDNRT_INVALID_ARGUMENT &&
             strstr(error.message, "has_initial: expected it to be left out"),
         "has_initial of decode was taken");
  wrong = token;
  keys[0] = N - 1;
  expect(gdnrt_rule_run(rule, &wrong, NULL, &error) == GDNRT_INVALID_ARGUMENT,
         "arrays of different lengths were taken");
  keys[0] = N;
  struct {
    gdnrt_rule_args known;
    uint64_t unknown;
  } newer = {token, 7};
  newer.known.struct_size = sizeof(newer);
  expect(gdnrt_rule_run(rule, &newer.known, NULL, &error) == GDNRT_UNSUPPORTED,
         "a member that is not known was ignored");
  compare(N);
  newer.unknown = 0;
  check(gdnrt_rule_run(rule, &newer.known, NULL, &error), &error);

  gdnrt_rule_destroy(rule);
  gdnrt_rule_destroy(NULL);
  gdnrt_device_destroy(device);
  gdnrt_image_destroy(image);
  puts("ok");
  return 0;
}
