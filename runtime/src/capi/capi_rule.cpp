// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of the rule alone.

#include "handles.h"
#include "sized_struct.h"

#include "gdn-c/rule.h"
#include "gdnrt/rule.h"

using namespace gdnrt;

struct gdnrt_rule {
  std::unique_ptr<Rule> rule;
};

/// The kernel of an entry; null if the image has no such entry.
static Status loadEntry(const gdnrt_device &device, const Image &image,
                        const char *name,
                        std::shared_ptr<LoadedKernel> &kernel) {
  auto index = image.findEntry(name);
  if (!index.isOk())
    return index.status().code() == StatusCode::notFound ? Status()
                                                         : index.status();
  auto loaded = loadKernel(device, image, *index, std::nullopt);
  if (loaded.isOk())
    kernel = std::move(*loaded);
  return loaded.status();
}

gdnrt_status gdnrt_rule_create(gdnrt_device *device, const gdnrt_image *image,
                               gdnrt_rule **rule, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!device)
      return nullPointer("device");
    if (!image)
      return nullPointer("image");
    if (!rule)
      return nullPointer("rule");
    std::shared_ptr<LoadedKernel> prefill, decode;
    if (Status s = loadEntry(*device, *image->image, "prefill", prefill);
        !s.isOk())
      return s;
    if (Status s = loadEntry(*device, *image->image, "decode", decode);
        !s.isOk())
      return s;
    if (!prefill && !decode)
      return failure(StatusCode::notFound,
                     "image: expected an entry prefill or decode, got neither");
    auto made = Rule::make(std::move(prefill), std::move(decode));
    if (made.isOk())
      *rule = new gdnrt_rule{std::move(*made)};
    return made.status();
  });
}

void gdnrt_rule_destroy(gdnrt_rule *rule) { delete rule; }

gdnrt_status gdnrt_rule_run(gdnrt_rule *rule, const gdnrt_rule_args *args,
                            void *stream, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!rule)
      return nullPointer("rule");
    gdnrt_rule_args known;
    if (Status s = readStruct("args", args, known); !s.isOk())
      return s;
    return rule->rule->run(known, stream);
  });
}
