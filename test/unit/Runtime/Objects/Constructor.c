/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Code that wants to run at load. */
/* volatile: or a compiler stores the 3 itself. */
static volatile long value;
__attribute__((constructor)) static void init(void) { value = 3; }
void entry(const long *args) { *(long *)args[0] = value; }
