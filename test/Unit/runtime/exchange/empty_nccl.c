/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library that is not NCCL, for the message that says so. */

int gdnrt_not_nccl(void) { return 0; }
