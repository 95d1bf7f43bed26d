// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Questions to the naive model, answered by looking at all that it has.

#include "cache_dictionary.h"

#include <algorithm>

using namespace gdnrt::test;

bool gdnrt::test::beginsWith(const Prefix &longer, const Prefix &prefix) {
  return longer.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), longer.begin());
}

bool PrefixDictionary::isKnown(const Prefix &prefix) const {
  return hasPages ? pages.count(prefix) > 0
                  : serves(prefix) || isLocked(prefix);
}

bool PrefixDictionary::isLocked(const Prefix &prefix) const {
  return std::any_of(held.begin(), held.end(), [&](const Held &each) {
    return beginsWith(each.prefix, prefix);
  });
}

bool PrefixDictionary::serves(const Prefix &prefix) const {
  return std::any_of(
      checkpoints.begin(), checkpoints.end(),
      [&](const auto &each) { return beginsWith(each.first, prefix); });
}

size_t PrefixDictionary::tokensAbove(const Prefix &prefix) const {
  size_t tokens = prefix.size() - 1;
  while (tokens > 0 && !checkpoints.count(Prefix(
                           prefix.begin(), prefix.begin() + ptrdiff_t(tokens))))
    --tokens;
  return tokens == 0 ? 0 : tokens - 1;
}

Prefix PrefixDictionary::onlyLonger(const Prefix &prefix) const {
  std::set<Prefix> longer;
  const size_t size = prefix.size() + size_t(pageTokens);
  auto look = [&](const Prefix &other) {
    if (other.size() >= size && beginsWith(other, prefix))
      longer.insert(Prefix(other.begin(), other.begin() + ptrdiff_t(size)));
  };
  for (const auto &[other, id] : pages)
    look(other);
  for (const auto &[other, checkpoint] : checkpoints)
    look(other);
  for (const Held &each : held)
    look(each.prefix);
  require(longer.size() == 1, "a node with ", longer.size(), " ways on");
  return *longer.begin();
}

std::map<Prefix, Checkpoint>::iterator PrefixDictionary::find(uint64_t node) {
  return std::find_if(
      checkpoints.begin(), checkpoints.end(),
      [&](const auto &each) { return each.second.node == node; });
}

std::vector<Prefix> PrefixDictionary::order(bool onHost) const {
  std::vector<Prefix> free;
  for (const auto &[prefix, kept] : checkpoints)
    if (kept.locks == 0 && (kept.slot == 0) == onHost)
      free.push_back(prefix);
  std::sort(free.begin(), free.end(), [&](const Prefix &a, const Prefix &b) {
    const Checkpoint &first = checkpoints.at(a), &second = checkpoints.at(b);
    return std::pair(first.priority, first.use) <
           std::pair(second.priority, second.use);
  });
  return free;
}

bool PrefixDictionary::wasCut(const Prefix &prefix,
                              const std::set<Prefix> &removed) {
  auto behind = removed.upper_bound(prefix);
  return behind != removed.end() && behind->size() > prefix.size() &&
         beginsWith(*behind, prefix);
}
