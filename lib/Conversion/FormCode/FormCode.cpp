// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sum of products, term by term; constants fold.
#include "gdn/Conversion/FormCode.h"

#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace gdn;

Value gdn::emitForm(OpBuilder &b, Location loc, StringRef text,
                    ArrayAttr symbols, ArrayRef<Value> values) {
  LinearForm form = llvm::cantFail(LinearForm::parse(text));
  Value sum;
  auto addTerm = [&](Value term) {
    sum = sum ? b.createOrFold<arith::AddIOp>(loc, sum, term) : term;
  };
  for (const LinearForm::Term &term : form.getTerms()) {
    auto symbol = llvm::find_if(symbols, [&](Attribute name) {
      return cast<StringAttr>(name).getValue() == term.symbol;
    });
    Value size = values[symbol - symbols.begin()];
    if (term.divisor != 1) // sizes are not negative
      size = b.createOrFold<arith::DivUIOp>(
          loc, size, arith::ConstantIndexOp::create(b, loc, term.divisor));
    Value factor = arith::ConstantIndexOp::create(b, loc, term.coefficient);
    addTerm(b.createOrFold<arith::MulIOp>(loc, size, factor));
  }
  if (form.getConstant() != 0 || !sum)
    addTerm(arith::ConstantIndexOp::create(b, loc, form.getConstant()));
  return sum;
}
