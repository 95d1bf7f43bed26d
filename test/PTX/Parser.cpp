// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads a module: kernels, their registers, labels and instructions. Names of
// inline assembly live in its braces.

#include "Lexer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

using namespace ptx;

namespace {

/// Names of one pair of braces.
struct Scope {
  std::unordered_map<std::string, int> values;
  std::map<std::string, int> labels;
  std::map<std::string, std::vector<std::string>> lists;
  /// Branches whose label has not come yet: instruction and name.
  std::vector<std::pair<size_t, std::string>> branches;
};

class Reader {
public:
  explicit Reader(const std::string &text) : tokens_(readTokens(text)) {}
  std::unique_ptr<Program> read();

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Fault("PTX line " + std::to_string(token().line) + ": " + what);
  }
  const Token &token() const { return tokens_[at_]; }
  const Token &take() {
    return tokens_[at_ == tokens_.size() - 1 ? at_ : at_++];
  }
  bool accept(const char *what) {
    if (!token().is(what))
      return false;
    take();
    return true;
  }
  void expect(const char *what) {
    if (!accept(what))
      fail(std::string("expected ") + what + ", got " + token().text);
  }
  uint64_t takeNumber() {
    if (token().kind != Token::number)
      fail("expected a number, got " + token().text);
    return take().bits;
  }
  void skipTo(const char *what) {
    while (token().kind != Token::end && !token().is(what))
      take();
    take();
  }

  void readKernel();
  void readParameters();
  void readBody();
  void readRegisters();
  void readSymbol(const std::string &space);
  void readFile();
  void readOrigin();
  void readInstruction();
  void readOperand(Instruction &instruction, bool isBranch);
  Operand readPlace();
  int find(const std::string &name);
  int constant(uint64_t bits);
  void define(const std::string &name, int value) {
    if (!scopes_.back().values.emplace(name, value).second)
      fail(name + " is declared twice");
  }
  /// A symbol for shared memory from byte `begin` of the block's on.
  void defineShared(const std::string &name, uint64_t begin) {
    define(name, kernel_->numValues);
    kernel_->sharedSymbols.emplace_back(kernel_->numValues++,
                                        kSharedBase + begin);
  }
  void openScope() { scopes_.emplace_back(); }
  void closeScope();

  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::unique_ptr<Program> program_ = std::make_unique<Program>();
  std::shared_ptr<Files> files_ = std::make_shared<Files>();
  Origin origin_;
  Kernel *kernel_ = nullptr;
  std::vector<Scope> scopes_;
  std::map<uint64_t, int> constants_;
  /// Shared memory without a size, by name.
  std::vector<std::string> dynamic_;
  std::vector<std::pair<std::string, size_t>> shared_;
};

} // namespace

/// Bytes of a type such as .b8 or .f32.
static size_t bytesOf(const std::string &type) {
  size_t digit = type.find_first_of("0123456789");
  return digit == std::string::npos
             ? 1
             : std::max<size_t>(std::stoul(type.substr(digit)) / 8, 1);
}

std::unique_ptr<Program> Reader::read() {
  while (token().kind != Token::end) {
    const Token &word = take();
    if (word.is(".target"))
      program_->target = token().text;
    if (word.is(".version") || word.is(".target") || word.is(".address_size")) {
      int line = word.line;
      while (token().kind != Token::end && token().line == line)
        take();
    } else if (word.is(".extern") || word.is(".visible") || word.is(".weak")) {
      continue;
    } else if (word.is(".file")) {
      readFile();
    } else if (word.is(".section")) { // debug information, and empty
      skipTo("}");
    } else if (word.is(".entry")) {
      readKernel();
    } else if (word.is(".shared")) {
      while (token().text[0] == '.')
        if (take().is(".align"))
          takeNumber();
      std::string name = take().text;
      expect("[");
      size_t bytes = token().is("]") ? 0 : takeNumber();
      expect("]");
      expect(";");
      if (bytes == 0)
        dynamic_.push_back(name);
      else
        shared_.emplace_back(name, bytes);
    } else {
      fail("expected a kernel or shared memory, got " + word.text);
    }
  }
  return std::move(program_);
}

void Reader::readKernel() {
  program_->kernels.push_back(std::make_unique<Kernel>());
  kernel_ = program_->kernels.back().get();
  kernel_->name = take().text;
  kernel_->files = files_;
  constants_.clear();
  origin_ = {};
  openScope();
  static const std::pair<const char *, Special> kSpecials[] = {
      {"%tid.x", kTidX},
      {"%tid.y", kTidY},
      {"%tid.z", kTidZ},
      {"%ntid.x", kNtidX},
      {"%ntid.y", kNtidY},
      {"%ntid.z", kNtidZ},
      {"%ctaid.x", kCtaidX},
      {"%ctaid.y", kCtaidY},
      {"%ctaid.z", kCtaidZ},
      {"%nctaid.x", kNctaidX},
      {"%nctaid.y", kNctaidY},
      {"%nctaid.z", kNctaidZ},
      {"%laneid", kLaneid},
      {"%warpid", kWarpid},
      {"%smid", kSmid},
      {"%lanemask_eq", kLanemaskEq},
      {"%lanemask_lt", kLanemaskLt},
      {"%lanemask_le", kLanemaskLe},
      {"%lanemask_gt", kLanemaskGt},
      {"%lanemask_ge", kLanemaskGe},
      {"%cluster_ctarank", kClusterCtaRank},
      {"%cluster_nctarank", kClusterNctaRank},
      {"%clusterid.x", kClusterIdX},
      {"%nclusterid.x", kNclusterIdX},
      {"%cluster_ctaid.x", kClusterCtaIdX},
      {"%cluster_nctaid.x", kClusterNctaIdX},
      {"%dynamic_smem_size", kDynamicSmemSize},
  };
  for (auto &[name, index] : kSpecials)
    define(name, index);
  if (accept("("))
    readParameters();
  while (!token().is("{")) {
    if (token().kind == Token::end)
      fail(kernel_->name + " has no body");
    const Token &word = take();
    if (word.is(".reqntid"))
      kernel_->requiredThreads = static_cast<uint32_t>(takeNumber());
  }
  for (auto &[name, bytes] : shared_) {
    defineShared(name, kernel_->staticSharedBytes);
    kernel_->staticSharedBytes += (bytes + 127) / 128 * 128;
  }
  take();
  // The sizes of the body's own shared memory come first.
  size_t body = at_;
  size_t depth = 1;
  for (size_t i = at_; depth > 0 && tokens_[i].kind != Token::end; ++i) {
    depth += tokens_[i].is("{");
    depth -= tokens_[i].is("}");
    if (!tokens_[i].is(".shared"))
      continue;
    at_ = i + 1;
    readSymbol(".shared");
  }
  at_ = body;
  for (const std::string &name : dynamic_)
    defineShared(name, kernel_->staticSharedBytes);
  readBody();
  closeScope();
  analyze(*kernel_);
  setTurns(*kernel_);
}

void Reader::readParameters() {
  while (!accept(")")) {
    expect(".param");
    Parameter parameter;
    size_t align = 1, element = 1;
    bool hasAlign = false;
    while (token().text[0] == '.') {
      const Token &word = take();
      if (word.is(".align")) {
        align = takeNumber();
        hasAlign = true;
      } else if (word.is(".ptr") || word.is(".global") || word.is(".shared")) {
        continue;
      } else {
        element = bytesOf(word.text);
        if (!hasAlign)
          align = element;
      }
    }
    parameter.name = take().text;
    parameter.bytes = element;
    if (accept("[")) {
      parameter.bytes = element * takeNumber();
      expect("]");
    }
    parameter.align = align;
    parameter.offset = (kernel_->parameterBytes + align - 1) / align * align;
    kernel_->parameterBytes = parameter.offset + parameter.bytes;
    define(parameter.name, constant(parameter.offset));
    kernel_->parameters.push_back(std::move(parameter));
    accept(",");
  }
}

/// .reg .b32 %r<12>, %x;
void Reader::readRegisters() {
  take(); // the type: bits are bits
  do {
    std::string name = take().text;
    if (accept("<")) {
      uint64_t count = takeNumber();
      expect(">");
      for (uint64_t i = 0; i < count; ++i)
        define(name + std::to_string(i), kernel_->numValues++);
    } else {
      define(name, kernel_->numValues++);
    }
  } while (accept(","));
  expect(";");
}

/// .shared .align 16 .b8 name[64]; and the same with .local.
void Reader::readSymbol(const std::string &space) {
  size_t align = 1, element = 1;
  while (token().text[0] == '.') {
    const Token &word = take();
    if (word.is(".align"))
      align = takeNumber();
    else
      element = bytesOf(word.text);
  }
  std::string name = take().text;
  size_t bytes = element;
  if (accept("[")) {
    bytes = element * takeNumber();
    expect("]");
  }
  expect(";");
  if (scopes_.back().values.count(name))
    return; // read before
  size_t &end =
      space == ".local" ? kernel_->localBytes : kernel_->staticSharedBytes;
  size_t begin = (end + align - 1) / align * align;
  end = begin + bytes;
  if (space == ".local")
    define(name, constant(begin));
  else
    defineShared(name, begin);
}

/// .file 1 "/folder/name"
void Reader::readFile() {
  int number = static_cast<int>(takeNumber());
  if (token().text[0] != '"')
    fail("expected a path, got " + token().text);
  const std::string &quoted = take().text;
  (*files_)[number] = quoted.substr(1, quoted.size() - 2);
}

/// .loc 1 12 5, and what may follow in the line.
void Reader::readOrigin() {
  int line = token().line;
  origin_.file = static_cast<int>(takeNumber());
  origin_.line = static_cast<int>(takeNumber());
  while (token().line == line && token().kind != Token::end)
    take();
}

void Reader::readBody() {
  for (size_t depth = 1; depth > 0;) {
    if (token().kind == Token::end)
      fail(kernel_->name + " has no end");
    if (accept("{")) {
      openScope();
      ++depth;
    } else if (accept("}")) {
      if (--depth > 0)
        closeScope();
    } else if (accept(".reg")) {
      readRegisters();
    } else if (token().is(".shared") || token().is(".local")) {
      std::string space = take().text;
      readSymbol(space);
    } else if (accept(".pragma")) {
      skipTo(";");
    } else if (accept(".loc")) {
      readOrigin();
    } else if (token().kind == Token::word && tokens_[at_ + 1].is(":")) {
      std::string name = take().text;
      take();
      if (accept(".branchtargets")) {
        std::vector<std::string> &list = scopes_.back().lists[name];
        do
          list.push_back(take().text);
        while (accept(","));
        expect(";");
      } else {
        scopes_.back().labels[name] = static_cast<int>(kernel_->code.size());
      }
    } else if (!accept(";")) {
      readInstruction();
    }
  }
}

/// Branches to labels of these braces get their targets, others go outwards.
void Reader::closeScope() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (auto &[index, name] : scope.branches) {
    Instruction &branch = kernel_->code[index];
    if (auto list = scope.lists.find(name); list != scope.lists.end()) {
      for (const std::string &label : list->second) {
        auto found = scope.labels.find(label);
        if (found == scope.labels.end())
          fail("no label " + label);
        branch.targets.push_back(found->second);
      }
    } else if (auto found = scope.labels.find(name);
               found != scope.labels.end()) {
      branch.target = found->second;
    } else if (scopes_.empty()) {
      fail("no label " + name + " for line " + std::to_string(branch.line));
    } else {
      scopes_.back().branches.emplace_back(index, name);
    }
  }
}

int Reader::constant(uint64_t bits) {
  auto [found, isNew] = constants_.emplace(bits, kernel_->numValues);
  if (isNew)
    kernel_->constants.emplace_back(kernel_->numValues++, bits);
  return found->second;
}

int Reader::find(const std::string &name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (auto found = scope->values.find(name); found != scope->values.end())
      return found->second;
  if (name == "_")
    return -1;
  if (name == "WARP_SZ")
    return constant(kLanes);
  fail("no value " + name);
}

/// A register, a symbol or a number, and what is added to it.
Operand Reader::readPlace() {
  Operand operand;
  bool isNegative = accept("-");
  if (token().kind == Token::number) {
    uint64_t bits = take().bits;
    operand.value = constant(isNegative ? ~bits + 1 : bits);
  } else {
    operand.value = find(take().text);
  }
  return operand;
}

void Reader::readOperand(Instruction &instruction, bool isBranch) {
  std::vector<Operand> &operands = instruction.operands;
  size_t before = operands.size();
  if (isBranch && token().kind == Token::word && token().text[0] != '%' &&
      token().text != "_") {
    scopes_.back().branches.emplace_back(kernel_->code.size(), take().text);
    return;
  }
  if (accept("{")) {
    do
      operands.push_back(readPlace());
    while (accept(","));
    expect("}");
  } else if (accept("[")) {
    operands.push_back(readPlace());
    if (accept("+")) {
      int64_t sign = accept("-") ? -1 : 1;
      operands.back().offset = sign * static_cast<int64_t>(takeNumber());
    } else if (accept("-")) {
      operands.back().offset = -static_cast<int64_t>(takeNumber());
    }
    // A tensor map and the coordinates of a box.
    while (accept(",")) {
      expect("{");
      do
        operands.push_back(readPlace());
      while (accept(","));
      expect("}");
    }
    expect("]");
  } else {
    operands.push_back(readPlace());
    if (accept("|")) {
      instruction.groups.push_back(1);
      before = operands.size();
      operands.push_back(readPlace());
    }
  }
  instruction.groups.push_back(static_cast<int>(operands.size() - before));
}

void Reader::readInstruction() {
  Instruction instruction;
  instruction.line = token().line;
  if (!kernel_->code.empty() && kernel_->code.back().line == instruction.line)
    instruction.part = kernel_->code.back().part + 1;
  instruction.origin = origin_;
  if (accept("@")) {
    instruction.isGuardNegated = accept("!");
    instruction.guard = find(take().text);
  }
  instruction.opcode = take().text;
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= instruction.opcode.size();) {
    size_t end = std::min(instruction.opcode.find('.', begin),
                          instruction.opcode.size());
    parts.push_back(instruction.opcode.substr(begin, end - begin));
    begin = end + 1;
  }
  bool isBranch = parts[0] == "bra" || parts[0] == "brx";
  if (!token().is(";"))
    do
      readOperand(instruction, isBranch);
    while (accept(","));
  instruction.execute = findOpcode(parts, instruction);
  if (!instruction.execute)
    throw Fault("PTX line " + std::to_string(instruction.line) +
                ": no meaning known for " + instruction.opcode);
  expect(";");
  kernel_->code.push_back(std::move(instruction));
}

std::unique_ptr<Program> ptx::readProgram(const std::string &text) {
  return Reader(text).read();
}
