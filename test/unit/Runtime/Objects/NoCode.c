/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Constants alone. */
const long onlyData = 3;
