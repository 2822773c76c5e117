// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of the field failures: every row of the classes that this language can say. A row is a
// test whose name starts with its id; what of a row has no test is said here.
#include "gtest/gtest.h"

#include <cstdio>
#include <string>

namespace {

struct Row {
  const char *id;
  const char *cls;
  const char *inPart; ///< what of the row has no test, and why
};

const Row kRows[] = {
    {"R001", "align", ""},
    {"R003", "align", ""},
    {"R005", "align", ""},
    {"R007", "align", ""},
    {"R009", "window", ""},
    {"R011", "window", ""},
    {"R015", "window", ""},
    {"R016", "window", ""},
    {"R018", "window", ""},
    {"R020", "window", ""},
    {"R022", "window", ""},
    {"R023", "mm-prefix", ""},
    {"R024", "mm-prefix", ""},
    {"R026", "mm-prefix", ""},
    {"R029", "mm-prefix", ""},
    {"R033", "mm-prefix", ""},
    {"R034", "custom-mask", ""},
    {"R035", "prefix-lm", ""},
    {"R036", "prefix-lm", ""},
    {"R039", "empty-row", ""},
    {"R041", "empty-row", ""},
    {"R044", "empty-row", ""},
    {"R046", "numerics", ""},
    {"R048", "numerics", ""},
    {"R050", "paged", ""},
    {"R052", "softcap", ""},
    {"R057", "api", ""},
    {"R058", "alibi", ""},
    {"R066", "overflow", ""},
    {"R068", "overflow", "262656 tokens: a twin of three tokens 2^30 elements apart"},
    {"R070", "split-kv", "forced splits: no kernel splits keys; four launches merged instead"},
    {"R072", "paged", ""},
    {"R077", "dims", "on a GPU V has the width of Q and K: both are padded to 256"},
    {"R078", "api", ""},
    {"R080", "gqa", ""},
    {"R082", "strides", ""},
    {"R095", "packing", ""},
    {"R097", "window", ""},
    {"R099", "per-seq", ""},
    {"R103", "dims", ""},
    {"R106", "dims", "512 on a GPU: no kernel, refused by name"},
};

/// Tests whose name starts with a row's id.
int testsOf(const std::string &id) {
  int count = 0;
  const testing::UnitTest &all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i)
    for (int j = 0; j < all.GetTestSuite(i)->total_test_count(); ++j)
      count += std::string(all.GetTestSuite(i)->GetTestInfo(j)->name()).rfind(id + "_", 0) == 0;
  return count;
}

} // namespace

TEST(FieldRows, EveryRowIsATest) {
  for (const Row &row : kRows) {
    const int tests = testsOf(row.id);
    EXPECT_GE(tests, 1) << row.id << " (" << row.cls << ") has no test";
    std::printf("%s  %-12s %d test%s%s%s\n", row.id, row.cls, tests, tests == 1 ? "" : "s",
                *row.inPart ? "; in part: " : "", row.inPart);
  }
}
