// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands behind the handle of an exchange.

#ifndef GDNRT_SRC_CAPI_EXCHANGE_HANDLE_H
#define GDNRT_SRC_CAPI_EXCHANGE_HANDLE_H

#include "gdn-c/exchange.h"
#include "gdnrt/exchange.h"

#include <memory>

struct gdnrt_exchange {
  std::unique_ptr<gdnrt::Exchange> exchange;
};

#endif // GDNRT_SRC_CAPI_EXCHANGE_HANDLE_H
