// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which array is which parameter, and the launch.

#include "gdnrt/rule.h"

#include "gdnrt/slot_check.h"

#include <numeric>
#include <utility>

using namespace gdnrt;

namespace {

/// An array of the struct, and the parameter that it is.
struct Member {
  const char *name;
  const char *param;
  const gdnrt_arg gdnrt_rule_args::*arg;
};

using Args = gdnrt_rule_args;
constexpr Member kMembers[] = {
    {"q", "q", &Args::q},
    {"k", "k", &Args::k},
    {"v", "v", &Args::v},
    {"log_decay", "log_decay", &Args::log_decay},
    {"beta", "beta", &Args::beta},
    {"a", "a", &Args::a},
    {"b", "b", &Args::b},
    {"A_log", "A_log", &Args::A_log},
    {"dt_bias", "dt_bias", &Args::dt_bias},
    {"cu_seqlens", "cu_seqlens", &Args::cu_seqlens},
    {"slots", "slots", &Args::slots},
    {"write_slots", "write_slots", &Args::write_slots},
    {"has_initial", "has_initial", &Args::has_initial},
    {"state_pool", "state_pool", &Args::state_pool},
    {"out", "core", &Args::out},
};

bool isLeftOut(const gdnrt_arg &arg) { return !arg.data && arg.rank == 0; }

} // namespace

Status Rule::takeParams(Form &form) {
  const EntrySchema &entry = *form.kernel->entry;
  for (const ParamSchema &param : entry.params) {
    const Member *found = nullptr;
    for (const Member &member : kMembers)
      if (param.name == member.param)
        found = &member;
    if (!found)
      return failure(StatusCode::unsupported, entry.name, ": ", param.name,
                     ": expected the parameters of a rule alone "
                     "(--layout=ready or gated), got another one");
    form.members.push_back(found->arg);
  }
  form.order.resize(form.members.size());
  std::iota(form.order.begin(), form.order.end(), size_t{0});
  return {};
}

Result<std::unique_ptr<Rule>> Rule::make(std::shared_ptr<LoadedKernel> prefill,
                                         std::shared_ptr<LoadedKernel> decode) {
  auto rule = std::make_unique<Rule>();
  rule->prefill_.kernel = std::move(prefill);
  rule->decode_.kernel = std::move(decode);
  for (Form *form : {&rule->prefill_, &rule->decode_})
    if (form->kernel)
      if (Status s = takeParams(*form); !s.isOk())
        return s;
  return rule;
}

Status Rule::bind(Form &form, const gdnrt_rule_args &args) {
  const EntrySchema &entry = *form.kernel->entry;
  for (const Member &member : kMembers)
    if (!isLeftOut(args.*member.arg) && !entry.findParam(member.param))
      return invalid(member.name, ": expected it to be left out, for ",
                     entry.name, " has no such parameter, got an array");
  std::vector<Argument> arguments(entry.params.size());
  for (size_t p = 0; p < arguments.size(); ++p) {
    const gdnrt_arg *given = &(args.*form.members[p]);
    if (form.members[p] == &Args::write_slots && isLeftOut(*given))
      given = &args.slots;
    if (given->rank < 0 || given->rank > kMaxRank)
      return invalid(entry.params[p].name, ": expected a rank of 0 to ",
                     kMaxRank, ", got ", given->rank);
    if (given->rank > 0 && !given->sizes)
      return invalid(entry.params[p].name, ": expected sizes, got null");
    if (isLeftOut(*given) && !entry.params[p].optional)
      return invalid(entry.params[p].name, ": the argument is missing");
    arguments[p].data = given->data;
    arguments[p].dtype = given->dtype;
    arguments[p].rank = given->rank;
    arguments[p].sizes = given->sizes;
    arguments[p].strides = given->strides;
    arguments[p].nullSlot = given->null_slot;
  }
  if (form.binding)
    return form.binding->rebind(form.order.data(), arguments.data(),
                                arguments.size());
  const LoadedKernel &kernel = *form.kernel;
  auto bound = Binding::make(
      kernel.entry, kernel.code->schema(), arguments.data(), arguments.size(),
      kernel.device->properties().numWorkers, kernel.code->tensorMapEncoder());
  if (bound.isOk())
    form.binding = std::move(*bound);
  return bound.status();
}

/// The memory to work in, and debug checks.
Status Rule::prepare(Form &form, const LaunchStream &stream) {
  const LoadedKernel &kernel = *form.kernel;
  Device &device = *kernel.device;
  if (stream.capturing && kernel.debugChecks)
    return failure(StatusCode::unsupported, kernel.entry->name,
                   ": expected a device without debug checks, which wait for "
                   "the stream, got a stream that is captured");
  if (Status s = form.workspaces.give(device, *form.binding, stream); !s.isOk())
    return s;
  if (Status s = form.workspaces.prefer(kernel.device, *form.binding, stream);
      !s.isOk())
    return s;
  if (Status s = form.binding->checkVariant(); !s.isOk()) {
    if (form.binding->hasPlace())
      return s;
    if (stream.capturing)
      return failure(StatusCode::unsupported, kernel.entry->name,
                     ": expected a call of as many sequences and tokens ahead "
                     "of the capture: ",
                     s.message());
    if (Status taken =
            form.workspaces.take(kernel.device, *form.binding, stream.stream);
        !taken.isOk())
      return taken;
  }
  if (!kernel.debugChecks)
    return {};
  const bool host = device.properties().hostReadable;
  if (Status s = host ? Status() : device.synchronize(stream.stream); !s.isOk())
    return s;
  return checkSlots(*form.binding, host ? nullptr : &device).status();
}

Status Rule::run(const gdnrt_rule_args &args, void *stream) {
  const bool isDecode = isLeftOut(args.cu_seqlens);
  Form &form = isDecode ? decode_ : prefill_;
  if (!form.kernel)
    return failure(StatusCode::unsupported,
                   "cu_seqlens: expected an image with the entry ",
                   isDecode ? "decode, for calls without it"
                            : "prefill, for calls with it",
                   ", got one without");
  Device &device = *form.kernel->device;
  auto capturing = device.isCapturing(stream);
  if (!capturing.isOk())
    return capturing.status();
  const LaunchStream ordered = {stream, *capturing};
  if (Status s = bind(form, args); !s.isOk())
    return s;
  if (Status s = prepare(form, ordered); !s.isOk())
    return s;
  if (*capturing)
    if (auto kept = form.workspaces.kept(ordered))
      if (Status s = device.keepForGraph(stream, kept); !s.isOk())
        return s;
  const Range range(device.ranges(), form.kernel->entry->name.c_str());
  return form.kernel->code->launch(*form.binding, stream, *capturing);
}
