// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whose turn it is among lanes of a warp that have gone different ways: those
// come first whose way leads to where the others are, so that lanes meet again
// behind a branch and at the end of a loop.

#include "Program.h"

#include <algorithm>

using namespace ptx;

namespace {

/// Puts pieces of a kernel without branches in an order in which each loop is
/// in one piece, and a piece comes before those that it leads to within the
/// same loop: a weak topological order (F. Bourdoncle, "Efficient chaotic
/// iteration strategies with widenings", 1993).
class LoopOrder {
public:
  explicit LoopOrder(const Kernel &kernel) : code_(kernel.code) {
    const size_t size = code_.size();
    std::vector<bool> begins(size);
    auto mark = [&](int place) {
      if (place >= 0 && static_cast<size_t>(place) < size)
        begins[static_cast<size_t>(place)] = true;
    };
    mark(0);
    for (size_t i = 0; i < size; ++i) {
      if (code_[i].target < 0 && code_[i].targets.empty() && !isEnd(i))
        continue;
      mark(static_cast<int>(i) + 1);
      mark(code_[i].target);
      std::for_each(code_[i].targets.begin(), code_[i].targets.end(), mark);
    }
    pieceOf_.resize(size);
    for (size_t i = 0; i < size; ++i) {
      if (begins[i])
        begins_.push_back(i);
      pieceOf_[i] = begins_.size() - 1;
    }
    begins_.push_back(size);
    number_.resize(begins_.size() - 1);
  }

  /// The pieces, last ones first.
  std::vector<size_t> reversed() {
    for (size_t piece = 0; piece < number_.size(); ++piece)
      if (!number_[piece])
        visit(piece);
    return std::move(reversed_);
  }

  size_t begin(size_t piece) const { return begins_[piece]; }
  size_t end(size_t piece) const { return begins_[piece + 1]; }

private:
  static constexpr size_t kPlaced = SIZE_MAX;

  bool isEnd(size_t i) const {
    return code_[i].opcode == "ret" || code_[i].opcode == "exit";
  }

  std::vector<size_t> nextOf(size_t piece) const {
    const size_t last = end(piece) - 1;
    const Instruction &instruction = code_[last];
    std::vector<size_t> next;
    auto add = [&](size_t place) {
      if (place < code_.size())
        next.push_back(pieceOf_[place]);
    };
    if (instruction.target >= 0)
      add(static_cast<size_t>(instruction.target));
    for (int target : instruction.targets)
      add(static_cast<size_t>(target));
    const bool leaves =
        instruction.target >= 0 || !instruction.targets.empty() || isEnd(last);
    if (!leaves || instruction.guard >= 0)
      add(last + 1);
    return next;
  }

  size_t visit(size_t piece) {
    open_.push_back(piece);
    size_t head = number_[piece] = ++visited_;
    bool isLoop = false;
    for (size_t next : nextOf(piece)) {
      const size_t least = number_[next] ? number_[next] : visit(next);
      if (least <= head) {
        head = least;
        isLoop = true;
      }
    }
    if (head != number_[piece])
      return head;
    number_[piece] = kPlaced;
    for (; open_.back() != piece; open_.pop_back())
      number_[open_.back()] = 0;
    open_.pop_back();
    if (isLoop)
      for (size_t next : nextOf(piece))
        if (!number_[next])
          visit(next);
    reversed_.push_back(piece);
    return head;
  }

  const std::vector<Instruction> &code_;
  std::vector<size_t> begins_, pieceOf_, number_, open_, reversed_;
  size_t visited_ = 0;
};

} // namespace

void ptx::setTurns(Kernel &kernel) {
  LoopOrder order(kernel);
  const std::vector<size_t> reversed = order.reversed();
  int turn = 0;
  for (auto piece = reversed.rbegin(); piece != reversed.rend(); ++piece)
    for (size_t i = order.begin(*piece); i < order.end(*piece); ++i)
      kernel.code[i].turn = turn++;
}
