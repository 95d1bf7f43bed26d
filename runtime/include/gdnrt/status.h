// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the runtime reports a failure: with a code for programs and a message for
// people. The runtime itself throws nothing. The functions of the C ABI catch
// what the standard library or oneTBB throws.

#ifndef GDNRT_STATUS_H
#define GDNRT_STATUS_H

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gdnrt {

/// The values are those of gdnrt_status in gdn-c/status.h.
enum class StatusCode {
  ok = 0,
  invalidArgument = 1,
  notFound = 2,
  corrupt = 3,
  unsupported = 4,
  outOfMemory = 5,
  ioError = 6,
  internal = 7,
  deviceError = 8,
};

/// The code in capitals, for example "INVALID_ARGUMENT".
const char *toString(StatusCode code);

/// Success, or a code and a message "object: expected ..., got ...".
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  bool isOk() const { return code_ == StatusCode::ok; }
  StatusCode code() const { return code_; }
  const std::string &message() const { return message_; }

  /// "INVALID_ARGUMENT: slots: expected dtype i32, got i64", or "OK".
  std::string toString() const;

private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

/// A value, or the Status of the failure.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool isOk() const { return value_.has_value(); }
  const Status &status() const { return status_; }
  T &operator*() { return *value_; }
  const T &operator*() const { return *value_; }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }

private:
  std::optional<T> value_;
  Status status_;
};

namespace detail {
inline void appendPiece(std::string &out, std::string_view piece) {
  out.append(piece);
}
template <typename T>
std::enable_if_t<std::is_integral_v<T>> appendPiece(std::string &out, T value) {
  out.append(std::to_string(value));
}
} // namespace detail

/// Makes a failure of `code`. Its message is the concatenation of the pieces.
template <typename... Pieces>
Status failure(StatusCode code, const Pieces &...pieces) {
  std::string message;
  (detail::appendPiece(message, pieces), ...);
  return Status(code, std::move(message));
}

template <typename... Pieces> Status invalid(const Pieces &...pieces) {
  return failure(StatusCode::invalidArgument, pieces...);
}

} // namespace gdnrt

#endif // GDNRT_STATUS_H
