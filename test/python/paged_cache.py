# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys and values of one layer in places of a cache, for tests of paged attention."""

import numpy as np


class Cache:
    """A paged cache of one layer, and where requests have their tokens."""

    def __init__(self, rng, heads, dim, v_dim, dtype, locations=64, columns=20):
        self.keys = np.zeros((locations, heads, dim), dtype)
        self.values = np.zeros((locations, heads, v_dim), dtype)
        self.free = list(rng.permutation(locations))
        self.req_to_token = np.full((4, columns), -1, np.int32)

    def get_key_buffer(self, layer_id):
        return self.keys

    def get_value_buffer(self, layer_id):
        return self.values

    def place(self, request, first, count):
        taken = [self.free.pop() for _ in range(count)]
        self.req_to_token[request, first : first + count] = taken
        return taken
