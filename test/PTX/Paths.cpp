// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trails of clocks: by which edge a time became known, and from whose clock. Of
// two accesses in order the trail is followed back to the first edges, which
// are written out as JSON.

#include "Paths.h"

#include <algorithm>
#include <sstream>

using namespace ptx;

void ptx::raise(Clock &clock, size_t agent, uint32_t time) {
  if (clock.size() <= agent)
    clock.resize(agent + 1);
  if (Paths *paths = Paths::current)
    paths->raise(clock, agent, time);
  clock[agent] = std::max(clock[agent], time);
}

void ptx::join(Clock &clock, const Clock &other, size_t begin, size_t end) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  end = std::min(end, other.size());
  if (Paths *paths = Paths::current)
    paths->join(clock, other, begin, end);
  for (size_t i = begin; i < end; ++i)
    clock[i] = std::max(clock[i], other[i]);
}

bool ptx::keepsPaths() { return Paths::current; }

void Clock::beginTrail(const Clock &other) {
  if (Paths *paths = Paths::current)
    paths->copy(*this, other);
}

void Paths::begin(uint32_t cluster, size_t agents) {
  cluster_ = cluster;
  seen_.clear();
  Order &order = orders_[cluster];
  for (auto *lists : {&order.meetings, &order.exchanges, &order.commits})
    lists->assign(agents, {});
}

void Paths::copy(Clock &clock, const Clock &other) {
  clock.trail = &trails_.emplace_back();
  const auto &steps = other.trail->steps;
  clock.trail->steps.resize(other.size());
  clock.trail->told.resize(other.size());
  for (size_t agent = 0; agent < other.size(); ++agent)
    if (other[agent])
      clock.trail->steps[agent].push_back(
          {other[agent], 0, other.trail,
           agent < steps.size() ? steps[agent].size() : 0, isOfLanes});
}

void Paths::step(Clock &clock, size_t agent, uint32_t time, const Clock *from) {
  if (time == 0)
    return;
  if (!clock.trail)
    clock.trail = &trails_.emplace_back();
  Trail &trail = *clock.trail;
  if (trail.steps.size() <= agent) {
    trail.steps.resize(agent + 1);
    trail.told.resize(agent + 1);
  }
  if (time > clock[agent]) {
    const Trail *source = from ? from->trail : nullptr;
    size_t length = source && agent < source->steps.size()
                        ? source->steps[agent].size()
                        : 0;
    trail.steps[agent].push_back({time, edge, source, length, isOfLanes});
  }
  if (!edge)
    return;
  auto &told = trail.told[agent];
  auto found = std::find_if(told.begin(), told.end(), [&](const auto &entry) {
    return entry.first == edge;
  });
  if (found == told.end())
    told.emplace_back(edge, time);
  else
    found->second = std::max(found->second, time);
}

void Paths::join(Clock &clock, const Clock &other, size_t begin, size_t end) {
  for (size_t agent = begin; agent < end; ++agent)
    step(clock, agent, other[agent], &other);
}

/// Adds an entry if it says more than the last one.
template <typename T>
static void extend(std::vector<T> &entries, uint32_t time, int edge) {
  if (entries.empty() || entries.back().time < time)
    entries.push_back({time, edge});
}

/// The first entry up to whose time `time` is, among the first `count`.
template <typename T>
static const T *firstFrom(const std::vector<T> &entries, size_t count,
                          uint32_t time) {
  auto end = entries.begin() + static_cast<ptrdiff_t>(count);
  auto found = std::lower_bound(
      entries.begin(), end, time,
      [](const T &entry, uint32_t t) { return entry.time < t; });
  return found == end ? nullptr : &*found;
}

void Paths::meet(size_t agent, uint32_t time, uint32_t exchangeTime) {
  extend(orders_[cluster_].meetings[agent], time, edge);
  extend(orders_[cluster_].exchanges[agent], exchangeTime, edge);
}

void Paths::commit(size_t agent, uint32_t time) {
  extend(orders_[cluster_].commits[agent], time, edge);
}

bool Paths::isNew(int line, size_t agent, uint32_t time, int otherLine,
                  const void *by) {
  uint64_t key = reinterpret_cast<uintptr_t>(by);
  for (uint64_t part :
       {static_cast<uint64_t>(line), static_cast<uint64_t>(otherLine),
        static_cast<uint64_t>(agent), uint64_t(time)})
    key = (key ^ part) * 0x9e3779b97f4a7c15u ^ (key >> 29);
  return seen_.insert(key).second;
}

void Paths::note(int line, size_t agent, uint32_t time, int otherLine,
                 const Clock &clock, bool isRead, int extraEdge,
                 uint32_t cluster) {
  const Order &order = orders_[cluster ? cluster : cluster_];
  if (!isNew(line, agent + (static_cast<size_t>(cluster) << 32), time,
             otherLine, &clock))
    return;
  OrderedPair &pair = pairs_[{line, otherLine}];
  std::vector<int> path;
  if (extraEdge)
    path.push_back(extraEdge);
  if (const auto &commits = order.commits[agent]; !commits.empty())
    if (const Meeting *group = firstFrom(commits, commits.size(), time))
      path.push_back(group->edge);
  const Trail *trail = clock.trail;
  size_t count =
      trail && agent < trail->steps.size() ? trail->steps[agent].size() : 0;
  if (count)
    for (auto [edge, last] : trail->told[agent])
      if (last >= time)
        pair.told.insert(edge);
  while (trail && count) {
    const Trail::Step *step = firstFrom(trail->steps[agent], count, time);
    if (!step)
      break;
    if (step->edge)
      path.push_back(step->edge);
    trail = step->from;
    count = step->fromSteps;
    if (count || !step->isOfLanes)
      continue;
    const auto &met = isRead ? order.exchanges[agent] : order.meetings[agent];
    const Meeting *meeting = firstFrom(met, met.size(), time);
    if (!meeting || meeting->time > step->time)
      continue;
    path.push_back(meeting->edge);
    // What meets again before it is told, orders the two as well.
    for (const Meeting *again = meeting + 1;
         again <= &met.back() && again->time <= step->time; ++again)
      pair.told.insert(again->edge);
  }
  std::sort(path.begin(), path.end());
  path.erase(std::unique(path.begin(), path.end()), path.end());
  pair.paths.insert(path);
}

void Paths::noteLanes(int line, size_t agent, uint32_t time, int otherLine,
                      bool isRead) {
  const Order &order = orders_[cluster_];
  const auto &entries = isRead ? order.exchanges[agent] : order.meetings[agent];
  if (!isNew(line, agent, time, otherLine, &entries))
    return;
  if (const Meeting *first = firstFrom(entries, entries.size(), time)) {
    OrderedPair &pair = pairs_[{line, otherLine}];
    pair.paths.insert({first->edge});
    for (const Meeting *later = first; later <= &entries.back(); ++later)
      pair.told.insert(later->edge);
  }
}

void Paths::noteEdge(int line, int otherLine, int edge, int laterEdge) {
  if (!isNew(line, static_cast<size_t>(edge), static_cast<uint32_t>(laterEdge),
             otherLine, nullptr))
    return;
  OrderedPair &pair = pairs_[{line, otherLine}];
  pair.paths.insert({edge});
  if (laterEdge != edge)
    pair.told.insert(laterEdge);
}

/// The first of `entries` from `at` on that another edge made, or the end of
/// the launch.
template <typename T>
static int otherFrom(const std::vector<T> &entries, size_t at, int edge) {
  while (at < entries.size() && (!entries[at].edge || entries[at].edge == edge))
    ++at;
  return at < entries.size() ? entries[at].edge : Paths::kEndOfLaunch;
}

void Paths::addRepeats(Repeats &repeats) const {
  auto add = [&](const auto &entries) {
    for (size_t i = 0; i < entries.size(); ++i)
      if (int edge = entries[i].edge)
        repeats[edge].insert(otherFrom(entries, i + 1, edge));
  };
  for (const Trail &trail : trails_)
    for (size_t agent = 0; agent < trail.steps.size(); ++agent) {
      const auto &steps = trail.steps[agent];
      add(steps);
      for (auto [edge, time] : trail.told[agent]) {
        const Trail::Step *first = firstFrom(steps, steps.size(), time);
        if (first && first->edge != edge)
          repeats[edge].insert(first->edge);
      }
    }
  for (const auto &[cluster, order] : orders_)
    for (const auto *lists :
         {&order.meetings, &order.exchanges, &order.commits})
      for (const std::vector<Meeting> &entries : *lists)
        add(entries);
}

void Paths::merge(const Paths &other) {
  other.addRepeats(repeats_);
  for (size_t i = 0; i < runs_.size(); ++i)
    runs_[i] += other.runs_[i];
  for (const auto &[lines, pair] : other.pairs_) {
    pairs_[lines].paths.insert(pair.paths.begin(), pair.paths.end());
    pairs_[lines].told.insert(pair.told.begin(), pair.told.end());
  }
}

/// "12", or "12.1" of the second instruction in a line.
static std::string nameOf(int edge) {
  if (edge == Paths::kEndOfLaunch)
    return "launch";
  std::string text = std::to_string(edge / 8);
  return edge % 8 ? text + "." + std::to_string(edge % 8) : text;
}

template <typename List> static std::string listOf(const List &edges) {
  std::string text;
  for (int edge : edges)
    text += (text.empty() ? "\"" : ", \"") + nameOf(edge) + "\"";
  return "[" + text + "]";
}

std::string Paths::json() const {
  std::ostringstream out;
  out << "{\"kernel\": \"" << kernel_.name << "\", \"runs\": {";
  const char *between = "";
  for (size_t i = 0; i < runs_.size(); ++i) {
    out << between << "\"" << nameOf(edgeOf(kernel_.code[i]))
        << "\": " << runs_[i];
    between = ", ";
  }
  Repeats repeats = repeats_;
  addRepeats(repeats);
  out << "}, \"repeats\": {";
  between = "";
  for (const auto &[edge, others] : repeats) {
    out << between << "\"" << nameOf(edge) << "\": " << listOf(others);
    between = ", ";
  }
  out << "}}\n";
  for (const auto &[lines, pair] : pairs_) {
    out << "{\"kernel\": \"" << kernel_.name << "\", \"line\": " << lines.first
        << ", \"other\": " << lines.second << ", \"paths\": [";
    between = "";
    for (const std::vector<int> &path : pair.paths) {
      out << between << listOf(path);
      between = ", ";
    }
    out << "], \"told\": " << listOf(pair.told) << "}\n";
  }
  return out.str();
}
