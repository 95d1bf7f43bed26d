// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rule alone: entries of an image that take arrays of the caller.

#ifndef GDNRT_RULE_H
#define GDNRT_RULE_H

#include "gdn-c/rule.h"
#include "gdnrt/layer_workspaces.h"
#include "gdnrt/loaded_kernel.h"

#include <memory>
#include <vector>

namespace gdnrt {

class Rule {
public:
  /// At least one of the two kernels is given. Fails if one has a parameter
  /// that gdnrt_rule_args has not.
  static Result<std::unique_ptr<Rule>>
  make(std::shared_ptr<LoadedKernel> prefill,
       std::shared_ptr<LoadedKernel> decode);

  Status run(const gdnrt_rule_args &args, void *stream);

private:
  /// A kernel, bound at its first launch. `members` are those of the struct, in
  /// the order of the entry's parameters.
  struct Form {
    std::shared_ptr<LoadedKernel> kernel;
    std::vector<const gdnrt_arg gdnrt_rule_args::*> members;
    std::vector<size_t> order;
    std::unique_ptr<Binding> binding;
    LayerWorkspaces workspaces;
  };

  static Status takeParams(Form &form);
  static Status bind(Form &form, const gdnrt_rule_args &args);
  static Status prepare(Form &form, const LaunchStream &stream);

  Form prefill_, decode_;
};

} // namespace gdnrt

#endif // GDNRT_RULE_H
