/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Thread-local data, which cannot be loaded. */
static __thread long perThread = 3;
void entry(const long *args) { *(long *)args[0] = ++perThread; }
