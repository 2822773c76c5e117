// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The record of the field failure tests: every native launch as files for attn-run on a GPU, with
// what the tests know of its result. test/Device/field_cases.py compiles and runs it.
//
// A GPU kernel takes 16-bit operands and head dims of 64, 128 and 256. So the record holds a twin
// of each spec: q and kv in bf16 (f16 where the spec says so), the head dim raised, the scale of
// the original dim written out; and of each launch: values rounded, the added columns of Q and K
// zero, those of V noise (a row of two columns may nearly cancel, one of 64 does not), or NaN where
// V is.
//
// A record is a folder: manifest.json, specs/N.mlir, and for launch N launches/N.json (a batch
// file) and launches/N.safetensors.
#ifndef ATTN_TEST_EXECUTION_FIELDRECORD_H
#define ATTN_TEST_EXECUTION_FIELDRECORD_H

#include "FieldSupport.h"

#include "attn/Core/Json.h"

#include <map>
#include <string>
#include <vector>

namespace field {

/// What one native launch ran.
struct RecordedLaunch {
  const std::string &spec;
  const Launch &launch;
  const attn::core::Problem &problem;
  const exec::KeepHeadFn &keep;
};

/// Tokens of one run.
struct RunRows {
  int run;
  int64_t firstToken;
};

/// The record of this program. Does nothing until opened.
class Record {
public:
  static Record &get();

  /// Starts a record in `folder`; an older one there is removed.
  void open(const std::string &folder);
  /// Writes the manifest.
  void close();

  /// A launch of the running test; its number, -1 without a record or if it has no GPU twin, which
  /// is then noted. The keys must start at 0.
  int add(const RecordedLaunch &launch);
  void claim(int run, const std::vector<Claim> &claims);
  /// Rows of two runs are the same: bit by bit if `exact`, else within the device's tolerance.
  void sameRows(RunRows a, RunRows b, int64_t count, bool exact);
  /// `target` refuses the spec in a message that holds all of `mentions`.
  void refusedSpec(const std::string &spec, const std::string &target,
                   const std::vector<std::string> &mentions);
  /// attn-run refuses the launch, if the batch does not allow cut ranges, with `message`.
  void refusedLaunch(const std::string &spec, const Launch &launch, const std::string &message);
  /// A part of the running test that no file can say.
  void notApplicable(const std::string &reason);

private:
  int specNumber(const std::string &text, const attn::core::KernelSpec &spec, int64_t dim);
  void write(const std::string &name, const std::string &bytes);

  std::string folder;
  std::map<std::string, int> specs, launches, runs;
  std::vector<attn::core::JsonValue> launchValues, runValues, refusedSpecs, refusedLaunches, same,
      notes;
  std::vector<std::vector<Claim>> runClaims;
};

} // namespace field

#endif // ATTN_TEST_EXECUTION_FIELDRECORD_H
