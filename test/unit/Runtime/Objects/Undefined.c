/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Takes a function from outside that native code may not use. */
int puts(const char *);
void entry(const long *args) { puts((const char *)args[0]); }
