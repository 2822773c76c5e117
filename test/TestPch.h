// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Headers that nearly every GoogleTest file reads, compiled once.
#ifndef ATTN_TEST_TESTPCH_H
#define ATTN_TEST_TESTPCH_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#endif // ATTN_TEST_TESTPCH_H
