// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of the compiler include: its headers, and googletest's.
#pragma once

#include "../../lib/pch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
