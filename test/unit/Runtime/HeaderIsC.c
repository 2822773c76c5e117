/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Compiled as pedantic C99: the public headers must be. */
#include "attn-c/Engine.h"
#include "attn-c/Runtime.h"

int attn_header_is_c(void) { return attn_abi_version() == ATTN_ABI_VERSION; }
