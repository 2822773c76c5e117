/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Code with one of each thing the loader relocates. Arguments are read as 64-bit words. */
#include <math.h>
#include <string.h>

static const float kTable[8] = {1, 2, 4, 8, 16, 32, 64, 128};
static long counter = 5;
static long zeroed[1000];
long shared = 7;

static long twice(long x) { return 2 * x; }
static long square(long x) { return x * x; }
/* Absolute addresses in read-write data. */
long (*volatile functions[2])(long) = {twice, square};
/* Absolute addresses in constants. */
static const char *const names[3] = {"zero", "one", "two"};

/* out[0] = expf(in) + table value, through floats in the low half. */
void piece_expf(const long *args) {
  float *out = (float *)args[0];
  const float *in = (const float *)args[1];
  for (int i = 0; i < 8; ++i)
    out[i] = expf(in[i]) + kTable[i];
}

/* Jump table, function pointers, data and bss. */
void piece_data(const long *args) {
  long *out = (long *)args[0];
  ++counter;
  ++shared;
  zeroed[counter] += 3;
  out[0] = counter;
  out[1] = shared;
  out[2] = zeroed[counter];
  out[3] = functions[args[1] & 1](args[1]);
  out[4] = names[args[1] % 3][0];
}

void piece_switch(const long *args) {
  long *out = (long *)args[0];
  switch (args[1]) {
  case 0:
    *out = 11;
    break;
  case 1:
    *out = args[1] * 71;
    break;
  case 2:
    *out = counter;
    break;
  case 3:
    *out = args[0] & 0;
    break;
  case 4:
    *out = 44;
    break;
  case 5:
    *out = shared - shared + 55;
    break;
  default:
    *out = -1;
  }
}

void piece_memory(const long *args) {
  char *out = (char *)args[0];
  memset(out, 'x', (size_t)args[1]);
  memmove(out + 1, out, (size_t)args[1]);
  memcpy(out, kTable, sizeof(kTable));
}

static void local_piece(const long *args) { *(long *)args[0] = 1; }
void (*volatile uses_local)(const long *) = local_piece;
