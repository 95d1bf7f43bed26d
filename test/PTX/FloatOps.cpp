// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on floats. Approximate functions are the host's, which are
// closer to the truth than a GPU's.

#include "LaneOps.h"

#include <algorithm>

using namespace ptx;

namespace {

/// A float type: how it is computed, and one or two of it in a word.
template <typename T> struct Compute {
  using Type = float;
  static float in(T value) { return toFloat(value); }
  static T out(float value) {
    if constexpr (std::is_same_v<T, BFloat>)
      return toBFloat(value);
    else
      return toHalf(value);
  }
};
template <> struct Compute<float> {
  using Type = float;
  static float in(float value) { return value; }
  static float out(float value) { return value; }
};
template <> struct Compute<double> {
  using Type = double;
  static double in(double value) { return value; }
  static double out(double value) { return value; }
};

template <typename T> struct Pair {
  T low, high;
};

/// Lifts an operation on floats to T, and to pairs of T.
template <typename Op> struct Lifted {
  template <typename T, typename... Ts> T operator()(T a, Ts... rest) {
    return Compute<T>::out(Op()(Compute<T>::in(a), Compute<T>::in(rest)...));
  }
  template <typename T, typename... Ts>
  Pair<T> operator()(Pair<T> a, Ts... rest) {
    return {(*this)(a.low, rest.low...), (*this)(a.high, rest.high...)};
  }
};

struct Add {
  template <typename T> T operator()(T a, T b) { return a + b; }
};
struct Sub {
  template <typename T> T operator()(T a, T b) { return a - b; }
};
struct Mul {
  template <typename T> T operator()(T a, T b) { return a * b; }
};
struct Fma {
  float operator()(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
  }
  double operator()(double a, double b, double c) {
    return __builtin_fma(a, b, c);
  }
};
struct Div {
  template <typename T> T operator()(T a, T b) { return a / b; }
};
struct Neg {
  template <typename T> T operator()(T a) { return -a; }
};
struct Abs {
  template <typename T> T operator()(T a) { return std::fabs(a); }
};
// Without .NaN the number wins.
template <bool keepsNaN> struct Min {
  template <typename T> T operator()(T a, T b) {
    if (a != a || b != b)
      return keepsNaN ? std::numeric_limits<T>::quiet_NaN() : a != a ? b : a;
    return std::signbit(a) == std::signbit(b) ? std::min(a, b)
           : std::signbit(a)                  ? a
                                              : b;
  }
};
template <bool keepsNaN> struct Max {
  template <typename T> T operator()(T a, T b) {
    if (a != a || b != b)
      return keepsNaN ? std::numeric_limits<T>::quiet_NaN() : a != a ? b : a;
    return std::signbit(a) == std::signbit(b) ? std::max(a, b)
           : std::signbit(a)                  ? b
                                              : a;
  }
};
/// Of three operands.
template <typename Op> struct Twice {
  template <typename T> T operator()(T a, T b, T c) {
    return Op()(Op()(a, b), c);
  }
};
struct Exp2 {
  template <typename T> T operator()(T a) { return std::exp2(a); }
};
struct Log2 {
  template <typename T> T operator()(T a) { return std::log2(a); }
};
struct Rcp {
  template <typename T> T operator()(T a) { return T(1) / a; }
};
struct Sqrt {
  template <typename T> T operator()(T a) { return std::sqrt(a); }
};
struct Rsqrt {
  template <typename T> T operator()(T a) { return T(1) / std::sqrt(a); }
};
struct Tanh {
  template <typename T> T operator()(T a) { return std::tanh(a); }
};

/// Subnormals are 0 on the way in and out.
template <typename Op> struct Flushing {
  template <typename... Ts> float operator()(Ts... values) {
    return flushed(Op()(flushed(values)...));
  }
};

} // namespace

template <typename Op> static Execute unaryOf(const Parts &parts) {
  const std::string &type = parts.back();
  if (type == "f32")
    return has(parts, "ftz") ? unary<float, Flushing<Op>> : unary<float, Op>;
  if (type == "f64")
    return unary<double, Op>;
  if (type == "f16")
    return unary<Half, Lifted<Op>>;
  if (type == "bf16")
    return unary<BFloat, Lifted<Op>>;
  if (type == "f16x2")
    return unary<Pair<Half>, Lifted<Op>>;
  if (type == "bf16x2")
    return unary<Pair<BFloat>, Lifted<Op>>;
  return nullptr;
}

template <typename Op> static Execute binaryOf(const Parts &parts) {
  const std::string &type = parts.back();
  if (type == "f32")
    return has(parts, "ftz") ? binary<float, Flushing<Op>> : binary<float, Op>;
  if (type == "f64")
    return binary<double, Op>;
  if (type == "f16")
    return binary<Half, Lifted<Op>>;
  if (type == "bf16")
    return binary<BFloat, Lifted<Op>>;
  if (type == "f16x2")
    return binary<Pair<Half>, Lifted<Op>>;
  if (type == "bf16x2")
    return binary<Pair<BFloat>, Lifted<Op>>;
  if (type == "f32x2")
    return binary<Pair<float>, Lifted<Op>>;
  return nullptr;
}

static Execute fmaOf(const Parts &parts) {
  const std::string &type = parts.back();
  if (type == "f32")
    return has(parts, "ftz") ? ternary<float, Flushing<Fma>>
                             : ternary<float, Fma>;
  if (type == "f64")
    return ternary<double, Fma>;
  if (type == "f16")
    return ternary<Half, Lifted<Fma>>;
  if (type == "bf16")
    return ternary<BFloat, Lifted<Fma>>;
  if (type == "f16x2")
    return ternary<Pair<Half>, Lifted<Fma>>;
  if (type == "bf16x2")
    return ternary<Pair<BFloat>, Lifted<Fma>>;
  if (type == "f32x2")
    return ternary<Pair<float>, Lifted<Fma>>;
  return nullptr;
}

/// The smallest or largest of two operands, or of three of f32.
template <typename Op>
static Execute extremeOf(const Parts &parts, const Instruction &instruction) {
  if (instruction.groups.size() == 3)
    return binaryOf<Op>(parts);
  if (parts.back() != "f32" || instruction.groups.size() != 4)
    return nullptr;
  return has(parts, "ftz") ? ternary<float, Flushing<Twice<Op>>>
                           : ternary<float, Twice<Op>>;
}

/// Operands of T, but for the last one, which is f32 as the result is.
template <typename T, typename Op>
static Step mixed(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &a = warp.at(i.operands[1]), &b = warp.at(i.operands[2]);
  forLanes(mask, [&](unsigned l) {
    const float x = toFloat(fromBits<T>(a[l]));
    if constexpr (std::is_same_v<Op, Fma>)
      to[l] = toBits(Op()(x, toFloat(fromBits<T>(b[l])),
                          fromBits<float>(warp.at(i.operands[3])[l])));
    else
      to[l] = toBits(Op()(x, fromBits<float>(b[l])));
  });
  return Step::next;
}

template <typename T> static Execute mixedOf(const std::string &op) {
  return op == "add"   ? mixed<T, Add>
         : op == "sub" ? mixed<T, Sub>
         : op == "fma" ? mixed<T, Fma>
                       : nullptr;
}

Execute ptx::findFloatOp(const Parts &parts, Instruction &instruction) {
  const std::string &op = parts[0], &type = parts.back();
  if (type.find('f') == std::string::npos || op == "setp" || op == "selp" ||
      op == "cvt")
    return nullptr;
  if (parts.size() > 2 && parts[parts.size() - 2] == "f32") // add.rn.f32.f16
    return type == "f16"    ? mixedOf<Half>(op)
           : type == "bf16" ? mixedOf<BFloat>(op)
                            : nullptr;
  if (op == "add")
    return binaryOf<Add>(parts);
  if (op == "sub")
    return binaryOf<Sub>(parts);
  if (op == "mul")
    return binaryOf<Mul>(parts);
  if (op == "fma" || op == "mad")
    return fmaOf(parts);
  if (op == "div")
    return binaryOf<Div>(parts);
  if (op == "min")
    return has(parts, "NaN") ? extremeOf<Min<true>>(parts, instruction)
                             : extremeOf<Min<false>>(parts, instruction);
  if (op == "max")
    return has(parts, "NaN") ? extremeOf<Max<true>>(parts, instruction)
                             : extremeOf<Max<false>>(parts, instruction);
  if (op == "neg")
    return unaryOf<Neg>(parts);
  if (op == "abs")
    return unaryOf<Abs>(parts);
  if (op == "ex2")
    return unaryOf<Exp2>(parts);
  if (op == "lg2")
    return unaryOf<Log2>(parts);
  if (op == "rcp")
    return unaryOf<Rcp>(parts);
  if (op == "sqrt")
    return unaryOf<Sqrt>(parts);
  if (op == "rsqrt")
    return unaryOf<Rsqrt>(parts);
  if (op == "tanh")
    return unaryOf<Tanh>(parts);
  return nullptr;
}
