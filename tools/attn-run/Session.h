// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of the tool after its command line is known.
#ifndef ATTN_TOOLS_ATTNRUN_SESSION_H
#define ATTN_TOOLS_ATTNRUN_SESSION_H

#include "Options.h"

namespace attn::run {

/// Loads, binds, runs, checks and writes as `options` say. Returns whether the check passed (true
/// without one) and the simulator reported nothing; an error means bad input.
core::Result<bool> runSession(const Options &options);

} // namespace attn::run

#endif // ATTN_TOOLS_ATTNRUN_SESSION_H
