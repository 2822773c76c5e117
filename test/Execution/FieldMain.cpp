// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The field failure tests. --record=FOLDER writes their launches for GPUs, see FieldRecord.h.
#include "FieldRecord.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <string>

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string option = "--record=";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.size() == option.size() || argument.compare(0, option.size(), option) != 0) {
      std::fprintf(stderr, "unexpected argument '%s', expected --record=FOLDER\n", argv[i]);
      return 2;
    }
    field::Record::get().open(argument.substr(option.size()));
  }
  const int status = RUN_ALL_TESTS();
  if (status == 0)
    field::Record::get().close();
  return status;
}
