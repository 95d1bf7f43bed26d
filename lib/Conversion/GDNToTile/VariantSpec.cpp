// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading what a policy asks for; see VariantSpec.h.
#include "VariantSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace gdn;
using llvm::ArrayRef;
using llvm::Expected;
using llvm::StringRef;

/// A number of at least `least`.
static llvm::Error readNumber(StringRef key, StringRef text, int64_t least,
                              int64_t &number) {
  if (!text.getAsInteger(10, number) && number >= least)
    return llvm::Error::success();
  return llvm::createStringError("expected '" + key + "' to be at least " +
                                 llvm::Twine(least) + ", got '" + text + "'");
}

static llvm::Error readConditions(StringRef key, StringRef text,
                                  ArrayRef<StringRef> known,
                                  Conditions &conditions) {
  auto read = Conditions::parse(text);
  if (!read)
    return read.takeError();
  conditions = std::move(*read);
  std::string unknown;
  conditions.forEachSymbol([&](StringRef symbol) {
    if (!llvm::is_contained(known, symbol))
      unknown = symbol.str();
  });
  if (unknown.empty())
    return llvm::Error::success();
  return llvm::createStringError("expected '" + key + "' to be about " +
                                 llvm::join(known, ", ") + ", got '" + unknown +
                                 "'");
}

/// Of a field that has one word.
static llvm::Error readWord(StringRef key, StringRef text, StringRef word,
                            bool &flag) {
  flag = true;
  if (text == word)
    return llvm::Error::success();
  return llvm::createStringError("expected '" + key + "' to be " + word +
                                 ", got '" + text + "'");
}

/// What conditions about heads may speak of.
static constexpr StringRef ofHeads[] = {"keys",     "values",  "parts",
                                        "channels", "bounded", "scaled"};

static llvm::Error readField(StringRef field, VariantSpec &spec) {
  static constexpr StringRef ofLaunches[] = {
      "sequences", "heads",    "tokens",  "workers", "keys",
      "values",    "chunk",    "parts",   "norms",   "convs",
      "follows",   "computed", "bounded", "scaled"};
  auto [key, value] = field.split('=');
  if (key == "fused")
    return readNumber(key, value, 1, spec.fused);
  if (key == "v-split")
    return readNumber(key, value, 1, spec.vSplit);
  if (key == "segments")
    return readNumber(key, value, 2, spec.segments);
  if (key == "chunk")
    return readNumber(key, value, 1, spec.chunk);
  if (key == "pieces")
    return readNumber(key, value, 1, spec.pieces);
  if (key == "where")
    return readConditions(key, value, ofHeads, spec.where);
  if (key == "when")
    return readConditions(key, value, ofLaunches, spec.when);
  if (key == "any-batch") {
    spec.anyBatch.emplace();
    return value == "always"
               ? llvm::Error::success()
               : readConditions(key, value, ofLaunches, *spec.anyBatch);
  }
  if (key == "scan")
    return readNumber(key, value, 1, spec.scanTokens);
  if (key == "by-lengths") {
    auto [cost, workers] = value.split('/');
    if (llvm::Error error = readNumber(key, cost, 101, spec.wholeCost))
      return error;
    return readNumber(key, workers, 2, spec.workers);
  }
  if (key == "norm") {
    spec.normWithRule = value == "with-rule";
    spec.normBehind = value == "behind";
    spec.normFollows = value == "follows";
    return spec.normWithRule || spec.normBehind || spec.normFollows
               ? llvm::Error::success()
               : llvm::createStringError("expected 'norm' to be with-rule, "
                                         "behind or follows, got '" +
                                         value + "'");
  }
  if (key == "maps")
    return readWord(key, value, "alone", spec.mapsAlone);
  if (key == "copies")
    return readWord(key, value, "ahead", spec.copiesAhead);
  if (key == "blocks")
    return readWord(key, value, "stay", spec.blocksStay);
  if (key == "conv")
    return readWord(key, value, "with-rule", spec.convWithRule);
  return llvm::createStringError(
      "expected fused, v-split, segments, scan, chunk, pieces, by-lengths, "
      "norm, "
      "conv, maps, copies, blocks, where, when or any-batch, got '" +
      key + "'");
}

Expected<VariantSpec> VariantSpec::parse(StringRef given) {
  std::string text;
  llvm::copy_if(given, std::back_inserter(text),
                [](char c) { return !llvm::isSpace(c); });
  VariantSpec spec;
  auto [name, fields] = StringRef(text).split(':');
  spec.name = name.str();
  if (name.empty())
    return llvm::createStringError("expected a name, got '" + text + "'");
  for (StringRef field : llvm::split(fields, ';'))
    if (!field.empty())
      if (llvm::Error error = readField(field, spec))
        return error;
  if (spec.fused != 0 && spec.segments == 2)
    return llvm::createStringError(
        "expected at least 3 segments of a fused variant, got 2");
  if (spec.scanTokens != 0 &&
      (spec.segments == 0 || spec.fused == 0 || spec.vSplit == 1))
    return llvm::createStringError(
        "expected 'scan' with 'fused', 'segments' and 'v-split'");
  if (spec.anyBatch && spec.segments != 0)
    return llvm::createStringError(
        "expected 'any-batch' without 'segments', whose bits depend on the "
        "batch");
  if (spec.pieces != 0 && (spec.fused != 0 || spec.segments != 0))
    return llvm::createStringError(
        "expected 'pieces' without 'fused' and 'segments'");
  if (spec.chunk != 0 &&
      (spec.fused != 0 || spec.segments != 0 || spec.pieces != 0 ||
       spec.copiesAhead || spec.mapsAlone || spec.anyBatch))
    return llvm::createStringError("expected 'chunk' with nothing but "
                                   "'v-split', 'where' and 'when'");
  if (spec.copiesAhead && (spec.fused != 0 || spec.segments != 0 ||
                           spec.pieces != 0 || spec.mapsAlone))
    return llvm::createStringError(
        "expected 'copies' without 'fused', 'segments', 'pieces' and 'maps'");
  if (spec.blocksStay &&
      (spec.fused == 0 || spec.vSplit != 1 || spec.segments != 0 ||
       spec.wholeCost != 0 || spec.mapsAlone))
    return llvm::createStringError(
        "expected 'blocks' with 'fused' and without 'v-split', 'segments', "
        "'by-lengths' and 'maps'");
  if ((spec.normWithRule || spec.normBehind) && spec.fused == 0)
    return llvm::createStringError("expected 'norm' with 'fused'");
  if (spec.normFollows && (spec.fused != 2 || spec.vSplit != 2 ||
                           spec.convWithRule || spec.mapsAlone))
    return llvm::createStringError(
        "expected 'norm' to be follows with 'fused=2' and 'v-split=2' and "
        "without 'conv' and 'maps'");
  if (spec.normBehind && spec.segments != 0)
    return llvm::createStringError(
        "expected 'norm' to be with-rule with 'segments', whose bits are their "
        "own");
  if (spec.convWithRule && (spec.fused == 0 || spec.segments != 0))
    return llvm::createStringError(
        "expected 'conv' with 'fused' and without 'segments'");
  if (spec.mapsAlone &&
      ((spec.fused != 0 && spec.vSplit != 1) || spec.segments != 0 ||
       spec.pieces != 0 || spec.wholeCost != 0 || spec.normWithRule ||
       spec.normBehind || spec.convWithRule))
    return llvm::createStringError(
        "expected 'maps' with 'fused' or 'v-split' and with nothing else");
  if (spec.wholeCost != 0 && spec.fused == 0)
    return llvm::createStringError("expected 'by-lengths' with 'fused'");
  if (spec.wholeCost != 0 && (spec.segments != 0 || spec.vSplit != 1))
    return llvm::createStringError(
        "expected 'by-lengths' without 'segments' and 'v-split'");
  return spec;
}

llvm::Error StagedPolicy::readShortChunks(StringRef text) {
  if (text.empty())
    return llvm::Error::success();
  auto [tokens, where] = text.split(':');
  if (llvm::Error error = readNumber("short-chunks", tokens, 1, shortChunk))
    return error;
  return readConditions("short-chunks", where, ofHeads, shortWhere);
}
