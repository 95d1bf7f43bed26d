// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The features of the CPU, under the names of __builtin_cpu_supports and two
// that it lacks.

#ifndef GDNRT_CPU_FEATURES_H
#define GDNRT_CPU_FEATURES_H

#include <string>
#include <string_view>
#include <vector>

namespace gdnrt {

/// Whether this CPU has `feature`. False for a name that is not in the table.
bool cpuHasFeature(std::string_view feature);

/// The features of this CPU that are in the table, in the order of the table.
std::vector<std::string> cpuFeatures();

} // namespace gdnrt

#endif // GDNRT_CPU_FEATURES_H
