/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C ABI from C: load_bind_run IMAGE [ENTRY]
 *
 * Binds any entry from what the image says about it: every symbol is 2, every
 * slot id the null slot. Then, whatever the entry computes, its outputs must
 * be zero and its pools untouched. The entry `accumulate` of the test image is
 * also run on live slots, and its numbers are checked.
 */

#include "gdn-c/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARAMS = 32, POOL_BYTE = 0x3c, OUT_BYTE = 0x55 };

static void check(gdnrt_status status, const gdnrt_error *error) {
  if (status == GDNRT_OK)
    return;
  fprintf(stderr, "%s\n", error->message);
  exit(1);
}

static void expect(int condition, const char *what, const char *name) {
  if (condition)
    return;
  fprintf(stderr, "%s: %s\n", name, what);
  exit(1);
}

/* The value of a form such as "256*Hk + 256*Hv" when every symbol is 2. */
static int64_t evaluate(const char *form) {
  int64_t sum = 0, sign = 1;
  while (*form) {
    char *rest;
    int64_t factor = 1;
    if (*form == '-' || *form == '+' || *form == ' ') {
      sign = *form == '-' ? -1 : *form == '+' ? 1 : sign;
      ++form;
      continue;
    }
    factor = strtoll(form, &rest, 10);
    if (rest == form)
      factor = 1; /* a symbol alone */
    form = rest;
    if (*form == '*')
      ++form;
    if (*form && *form != ' ') {
      factor *= 2;
      form += strcspn(form, " ");
    }
    sum += sign * factor;
    sign = 1;
  }
  return sum;
}

static size_t element_size(gdnrt_dtype dtype) {
  switch (dtype) {
  case GDNRT_I1:
    return 1;
  case GDNRT_BF16:
  case GDNRT_F16:
    return 2;
  case GDNRT_I64:
  case GDNRT_F64:
    return 8;
  default:
    return 4;
  }
}

static int all_bytes(const unsigned char *data, size_t size, int value) {
  for (size_t i = 0; i < size; ++i)
    if (data[i] != value)
      return 0;
  return 1;
}

static void run_on_null_slots(gdnrt_kernel *kernel, gdnrt_device *device) {
  const gdnrt_entry *entry = gdnrt_kernel_entry(kernel);
  size_t count = gdnrt_entry_param_count(entry);
  gdnrt_error error;
  gdnrt_param_info info[MAX_PARAMS];
  gdnrt_arg args[MAX_PARAMS];
  int64_t sizes[MAX_PARAMS][GDNRT_MAX_RANK];
  size_t bytes[MAX_PARAMS];
  int has_slots = 0;

  expect(count <= MAX_PARAMS, "has too many parameters",
         gdnrt_entry_name(entry));
  for (size_t p = 0; p < count; ++p) {
    info[p] = gdnrt_param_info_default();
    check(gdnrt_entry_param(entry, p, &info[p], &error), &error);
    bytes[p] = element_size(info[p].dtype);
    for (int d = 0; d < info[p].rank; ++d) {
      sizes[p][d] = evaluate(info[p].dims[d]);
      bytes[p] *= (size_t)sizes[p][d];
    }
    memset(&args[p], 0, sizeof(args[p]));
    args[p].data = malloc(bytes[p] ? bytes[p] : 1);
    args[p].dtype = info[p].dtype;
    args[p].rank = info[p].rank;
    args[p].sizes = sizes[p];
    expect(args[p].data != NULL, "no memory", info[p].name);
    /* Inputs are 0: finite numbers, and slot ids that are the null slot. */
    memset(args[p].data,
           info[p].kind == GDNRT_POOL      ? POOL_BYTE
           : info[p].access == GDNRT_WRITE ? OUT_BYTE
                                           : 0,
           bytes[p]);
    has_slots |= strcmp(info[p].name, "slots") == 0;
    /* N rows of one token: cu_seqlens = 0, 1, ... */
    if (strcmp(info[p].name, "cu_seqlens") == 0)
      for (int64_t i = 0; i < sizes[p][0]; ++i)
        ((int32_t *)args[p].data)[i] = (int32_t)i;
  }

  gdnrt_binding *binding = NULL;
  check(gdnrt_kernel_bind(kernel, args, count, &binding, &error), &error);
  check(gdnrt_launch(binding, NULL, &error), &error);
  check(gdnrt_device_synchronize(device, NULL, &error), &error);
  printf("%s: %" PRId64 " units\n", gdnrt_entry_name(entry),
         gdnrt_binding_units(binding));
  gdnrt_binding_destroy(binding);

  for (size_t p = 0; p < count; ++p) {
    if (has_slots && info[p].kind == GDNRT_POOL)
      expect(all_bytes(args[p].data, bytes[p], POOL_BYTE),
             "a null slot was written", info[p].name);
    else if (has_slots && info[p].access == GDNRT_WRITE)
      expect(all_bytes(args[p].data, bytes[p], 0),
             "the rows of null slots are not zero", info[p].name);
    free(args[p].data);
  }
}

/* accumulate: pool[slot] += x; out = pool[slot] * scale. */
static void run_accumulate(gdnrt_kernel *kernel) {
  float x[2][2] = {{1, 2}, {3, 4}}, scale[2] = {1, 10}, out[2][2];
  float pool[4][2] = {{0, 0}, {0, 0}, {5, 6}, {7, 8}};
  int32_t slots[2] = {3, 2};
  int64_t rows[2] = {2, 2}, pool_sizes[2] = {4, 2};
  const gdnrt_named_arg args[] = {
      {"out", {out, GDNRT_F32, 2, rows, NULL, 0}},
      {"x", {x, GDNRT_F32, 2, rows, NULL, 0}},
      {"scale", {scale, GDNRT_F32, 1, rows, NULL, 0}},
      {"slots", {slots, GDNRT_I32, 1, rows, NULL, 0}},
      {"state_pool", {pool, GDNRT_F32, 2, pool_sizes, NULL, 0}},
  };
  gdnrt_error error;
  gdnrt_binding *binding = NULL;
  check(gdnrt_kernel_bind_named(kernel, args, 5, &binding, &error), &error);
  check(gdnrt_launch(binding, NULL, &error), &error);
  gdnrt_binding_destroy(binding);
  expect(out[0][0] == 8 && out[0][1] == 100, "row 0 is wrong", "out");
  expect(out[1][0] == 8 && out[1][1] == 100, "row 1 is wrong", "out");
  expect(pool[3][0] == 8 && pool[3][1] == 10, "slot 3 is wrong", "state_pool");
  expect(pool[0][0] == 0 && pool[1][1] == 0, "a slot that no row has changed",
         "state_pool");
}

int main(int argc, char **argv) {
  gdnrt_error error;
  gdnrt_image *image = NULL;
  gdnrt_device *device = NULL;
  gdnrt_kernel *kernel = NULL;
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: %s IMAGE [ENTRY]\n", argv[0]);
    return 2;
  }
  check(gdnrt_image_load_file(argv[1], &image, &error), &error);
  expect(gdnrt_image_entry_count(image) > 0, "the image is empty", argv[1]);
  const char *name =
      argc == 3 ? argv[2] : gdnrt_entry_name(gdnrt_image_entry(image, 0));
  check(gdnrt_device_create_cpu(NULL, &device, &error), &error);
  check(gdnrt_kernel_create(device, image, name, &kernel, &error), &error);

  run_on_null_slots(kernel, device);
  if (strncmp(name, "accumulate", 10) == 0)
    run_accumulate(kernel);

  gdnrt_kernel_destroy(kernel);
  gdnrt_device_destroy(device);
  gdnrt_image_destroy(image);
  puts("ok");
  return 0;
}
