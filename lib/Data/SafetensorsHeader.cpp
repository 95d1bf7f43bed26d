// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A SAX handler for the header of safetensors files. Events instead of a
// document: a repeated name is seen, depth is bounded, and nothing is built
// from input that is then refused.
#include "SafetensorsHeader.h"

#include <nlohmann/json.hpp>

#include <set>

using namespace gdn::data;
using nlohmann::json;

namespace {
class HeaderHandler final : public json::json_sax_t {
public:
  HeaderHandler(Header &header, std::string &message)
      : header(header), message(message) {}

  bool start_object(std::size_t) override {
    if (depth == 2)
      return unexpected("an object");
    ++depth;
    return true;
  }
  bool end_object() override {
    --depth;
    return true;
  }
  bool start_array(std::size_t) override {
    list = nullptr;
    if (depth == 2 && !inList && !isMetadata()) {
      if (inner == "shape") {
        list = &tensor().shape;
        tensor().hasShape = true;
      } else if (inner == "data_offsets") {
        list = &tensor().offsets;
      }
    }
    if (!list)
      return unexpected("a list");
    inList = true;
    return true;
  }
  bool end_array() override {
    inList = false;
    return true;
  }

  bool key(string_t &name) override {
    if (depth == 1) {
      outer = name;
      innerSeen.clear();
      if (!outerSeen.insert(name).second)
        return fail("expects every name once, but got '" + name + "' twice");
      if (!isMetadata())
        header.tensors[name];
      return true;
    }
    inner = name;
    if (!innerSeen.insert(name).second)
      return fail("expects every name in '" + outer + "' once, but got '" +
                  name + "' twice");
    if (!isMetadata() && name != "dtype" && name != "shape" &&
        name != "data_offsets")
      return fail("tensor '" + outer +
                  "': expects 'dtype', 'shape' and 'data_offsets' only, but "
                  "got '" +
                  name + "'");
    return true;
  }

  bool string(string_t &value) override {
    if (depth == 2 && !inList) {
      if (isMetadata()) {
        header.metadata[inner] = value;
        return true;
      }
      if (inner == "dtype") {
        tensor().dtype = value;
        return true;
      }
    }
    return unexpected("the string '" + value.substr(0, 40) + "'");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!inList)
      return unexpected("the number " + std::to_string(value));
    list->push_back(value);
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override {
    return unexpected(value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override {
    return unexpected("the number " + std::to_string(value));
  }
  bool number_float(number_float_t, const string_t &text) override {
    return unexpected("the number " + text.substr(0, 40));
  }
  bool binary(binary_t &) override { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return fail("expects a JSON object, but byte " + std::to_string(position) +
                " of the header does not parse");
  }

private:
  bool isMetadata() const { return outer == "__metadata__"; }
  HeaderTensor &tensor() { return header.tensors[outer]; }

  bool fail(std::string text) {
    message = std::move(text);
    return false;
  }

  /// Refuses a value of the wrong kind, saying what stands in its place.
  bool unexpected(const std::string &found) {
    std::string wanted;
    if (depth == 0)
      wanted = "expects an object";
    else if (depth == 1)
      wanted = "'" + outer + "': expects an object";
    else if (isMetadata())
      wanted = "metadata '" + inner + "': expects a string";
    else if (inner == "dtype")
      wanted = "tensor '" + outer + "': expects a string for 'dtype'";
    else
      wanted = "tensor '" + outer +
               "': expects a list of integers that are "
               "not negative for '" +
               inner + "'";
    return fail(wanted + ", but got " + found);
  }

  Header &header;
  std::string &message;
  int depth = 0;
  bool inList = false;
  std::vector<uint64_t> *list = nullptr;
  std::string outer, inner;
  std::set<std::string> outerSeen, innerSeen;
};
} // namespace

bool gdn::data::parseHeader(llvm::StringRef text, Header &header,
                            std::string &message) {
  HeaderHandler handler(header, message);
  return json::sax_parse(text.begin(), text.end(), &handler);
}
