// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A warp: what an address is in each space and who may use it, copies that its
// lanes have asked for, which lanes go on, and the loop over instructions.

#include "Machine.h"
#include "Paths.h"

#include <algorithm>
#include <cstring>
#include <sstream>

using namespace ptx;

/// A turn of so few instructions is one more look at a barrier, or at several.
static constexpr uint64_t kIdleTurn = 32;

std::string ptx::describe(const Warp &warp, const Kernel &kernel, int place) {
  std::ostringstream text;
  text << kernel.name << ": block " << warp.block->id[0] << ", warp "
       << warp.index << ", ";
  if (place < static_cast<int>(kernel.code.size()))
    text << describe(kernel, kernel.code[static_cast<size_t>(place)]);
  else
    text << "the end";
  return text.str();
}

char *Warp::resolve(Space space, uint64_t address, unsigned bytes, int lane,
                    Use use) {
  auto fail = [&](const char *what) -> char * {
    std::ostringstream text;
    text << what << " address 0x" << std::hex << address << std::dec << " of "
         << bytes << " bytes, lane " << lane;
    throw Fault(text.str());
  };
  if (address % bytes)
    return fail("misaligned");
  if (space == Space::generic) {
    uint64_t window = address >> 48 << 48;
    if (window == kSharedWindow) {
      space = Space::shared;
      address -= kSharedWindow;
    } else if (window == kLocalWindow) {
      space = Space::local;
      address -= kLocalWindow;
    } else if (window == kParameterWindow) {
      space = Space::parameter;
      address -= kParameterWindow;
    } else {
      space = Space::global;
    }
  }
  if (space == Space::shared) {
    uint64_t rank = address >> kSharedRankBit;
    if (rank >= block->cluster->blocks.size())
      return fail("no block of the cluster has shared");
    Block *target = &block->cluster->blocks[rank];
    uint64_t offset = address - (rank << kSharedRankBit) - kSharedBase;
    if (offset >= target->shared.size() ||
        bytes > target->shared.size() - offset)
      return fail("outside of shared memory:");
    // Copies that tell a barrier use memory after the warp has gone on.
    const size_t copies = 4 * block->cluster->numWarps();
    if (target != block || as->agent >= copies)
      target->visits[as->agent] = {as->time, self.line};
    if (use == Use::barrier)
      return target->shared.data() + offset;
    use = use == Use::strongWrite || use == Use::write ? Use::write : Use::read;
    Access access = *as;
    if (as == &self) {
      const Knowledge &mine =
          knowledgeOf(access.lane = static_cast<unsigned>(lane));
      access.reads = access.writes = &mine.all;
      Mask bits = access.lane < kLanes ? Mask(1) << access.lane : kAllLanes;
      (use == Use::write ? wrote : read) |= bits;
      (use == Use::write ? wroteTime : readTime) = access.time;
    }
    Conflict conflict = use == Use::write
                            ? target->races.write(offset, bytes, access)
                            : target->races.read(offset, bytes, access);
    if (conflict.kind != Conflict::none)
      block->cluster->report(*this, *target, access, conflict, bytes);
    return target->shared.data() + offset;
  }
  if (space == Space::local) {
    size_t each = local.size() / kLanes;
    if (address >= each || bytes > each - address)
      return fail("outside of local memory:");
    return local.data() + static_cast<size_t>(lane) * each + address;
  }
  if (space == Space::parameter) {
    if (use == Use::write || use == Use::strongWrite)
      return fail("read-only:");
    std::vector<char> &parameters =
        const_cast<std::vector<char> &>(block->cluster->launch.parameters);
    if (address >= parameters.size() || bytes > parameters.size() - address)
      return fail("outside of the parameters:");
    return parameters.data() + address;
  }
  if (!lastRange.holds(address, bytes)) {
    lastRange = block->cluster->memory.find(address);
    if (!lastRange.holds(address, bytes))
      return fail("outside of all allocations:");
  }
  if (use != Use::barrier)
    watchGlobal(*this, address, bytes, static_cast<unsigned>(lane), use);
  return reinterpret_cast<char *>(address);
}

void Warp::makeCopies(int lane, int64_t end) {
  auto isMine = [&](const LaneCopy &copy) {
    return copy.lane == lane && copy.group < end;
  };
  for (const LaneCopy &copy : copies) {
    if (!isMine(copy))
      continue;
    // As written when it was asked for.
    char *to = resolve(Space::shared, copy.to, copy.bytes, lane, Use::barrier);
    std::memset(to, 0, copy.bytes);
    // Where nothing is read, the address may be anything.
    if (copy.bytesFrom > 0)
      std::memcpy(
          to, resolve(Space::global, copy.from, copy.bytes, lane, Use::barrier),
          copy.bytesFrom);
  }
  copies.erase(std::remove_if(copies.begin(), copies.end(), isMine),
               copies.end());
}

/// The lanes whose turn it is among those that can go on, and the next turn at
/// which others stand.
bool Warp::choose(const Kernel &kernel, Mask &lanes, int &place,
                  int &next) const {
  constexpr int kNone = INT32_MAX;
  auto turnAt = [&](int at) {
    // One behind the last instruction is reported when it is reached.
    return at < static_cast<int>(kernel.code.size())
               ? kernel.code[static_cast<size_t>(at)].turn
               : kNone - 1;
  };
  int turn = next = kNone;
  for (int lane = 0; lane < kLanes; ++lane) {
    Mask bit = Mask(1) << lane;
    int at = places[static_cast<size_t>(lane)];
    if ((alive & bit) && !((waiting | tired) & bit) && turnAt(at) < turn) {
      turn = turnAt(at);
      place = at;
    }
  }
  if (turn == kNone)
    return false;
  lanes = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    int own = places[static_cast<size_t>(lane)];
    Mask bit = Mask(1) << lane;
    if (!(alive & bit))
      continue;
    if (own == place)
      lanes |= bit;
    else if (turnAt(own) > turn)
      next = std::min(next, turnAt(own));
  }
  return true;
}

Warp::Outcome Warp::run(const Kernel &kernel, uint64_t &executed,
                        uint64_t turn) {
  uint64_t begin = executed, end = begin + turn;
  Mask lanes = 0;
  int place = 0, next = 0;
  auto setPlaces = [&](Mask mask, int value) {
    for (; mask; mask &= mask - 1)
      places[static_cast<size_t>(__builtin_ctz(mask))] = value;
  };
  while (alive && executed < end) {
    if (!choose(kernel, lanes, place, next)) {
      if (!tired)
        throw Fault(
            describe(*this, kernel,
                     places[static_cast<size_t>(__builtin_ctz(waiting))]) +
            ": lanes of a warp wait for others that went elsewhere");
      tired = 0;
      return executed - begin > kIdleTurn ? Outcome::running : Outcome::idle;
    }
    waiting &= ~lanes;
    tired &= ~lanes;
    bool inStep = true;
    while (inStep && executed < end) {
      if (place >= static_cast<int>(kernel.code.size()))
        throw Fault(kernel.name + ": runs past its last instruction");
      const Instruction &instruction = kernel.code[static_cast<size_t>(place)];
      Mask mask = lanes;
      if (instruction.guard >= 0) {
        const Lanes &guard = values[static_cast<size_t>(instruction.guard)];
        Mask holds = 0;
        for (unsigned lane = 0; lane < kLanes; ++lane)
          holds |= static_cast<Mask>(guard[lane] & 1) << lane;
        mask &= instruction.isGuardNegated ? ~holds : holds;
      }
      ++executed;
      self.line = instruction.line;
      edge = edgeOf(instruction);
      if (Paths::current && mask)
        Paths::current->execute(static_cast<size_t>(place));
      if (groupTime > (Paths::current ? 0 : groupDone))
        checkSums(*this, instruction);
      if (PendingReads &reads = pendingReads(); !reads.empty())
        reads.use(instruction, self.time);
      Step step = Step::next;
      if (mask) {
        try {
          step = instruction.execute(*this, instruction, mask);
        } catch (const Fault &fault) {
          throw Fault(describe(*this, kernel, place) + ": " + fault.what());
        }
        if (kernel.hasProducts)
          noteUses(*this, instruction);
      }
      switch (step) {
      case Step::next:
        if (alive == 0)
          return Outcome::ended;
        if ((lanes & alive) != lanes) { // some have returned
          setPlaces(lanes, place + 1);
          inStep = false;
          break;
        }
        ++place;
        if (lanes != alive && place < static_cast<int>(kernel.code.size()) &&
            kernel.code[static_cast<size_t>(place)].turn >= next) {
          setPlaces(lanes, place);
          inStep = false;
        }
        break;
      case Step::jumped:
        setPlaces(lanes & ~mask, place + 1);
        setPlaces(mask, instruction.target);
        if (mask == alive)
          place = instruction.target; // nobody to meet
        else
          inStep = false;
        break;
      case Step::placed:
        inStep = false;
        break;
      case Step::waits:
        setPlaces(lanes, place);
        waiting |= lanes;
        inStep = false;
        break;
      case Step::yields:
      case Step::again:
        setPlaces(lanes, step == Step::again ? place : place + 1);
        tired |= lanes;
        inStep = false;
        break;
      case Step::barrier:
        setPlaces(lanes, place + 1);
        isAtBarrier = true;
        return Outcome::blocked;
      }
    }
    if (inStep)
      setPlaces(lanes, place);
  }
  return alive ? Outcome::running : Outcome::ended;
}
