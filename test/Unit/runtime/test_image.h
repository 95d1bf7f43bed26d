// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The image that most tests use: the functions of test_kernels.c with their
// schemas.

#ifndef GDN_TEST_UNIT_RUNTIME_TEST_IMAGE_H
#define GDN_TEST_UNIT_RUNTIME_TEST_IMAGE_H

#include "image_builder.h"

namespace gdnrt::test {

/// Entries accumulate_f32, count, scratch_owner, empty, neighbours.
ImageBuilder testImage();

/// Adds the parameters and the code of accumulate.
void addAccumulate(EntryBuilder entry);

/// The same of neighbours, which has a variant "staged" of two stages for two
/// workers and at least eight rows for each, and "rows" for all else.
void addNeighbours(EntryBuilder entry);

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_TEST_IMAGE_H
