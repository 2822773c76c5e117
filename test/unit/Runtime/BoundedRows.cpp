// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows whose length is known on the device only: what the host refuses, by trying every length.
#include "attn/Runtime/BatchBinding.h"

#include "TestKernel.h"

#include <gtest/gtest.h>

using namespace attn;
using namespace attn::core;
using namespace testing_rt;

namespace {

/// causal or mm_prefix(mm).
KernelSpec rangesSpec() {
  KernelSpec spec = plainSpec();
  TableDecl mm;
  mm.name = "mm";
  mm.kind = TableKind::Ranges;
  spec.program.tables = {mm};
  MaskProgram &p = spec.program;
  p.mask = add(p, Op::Or, {add(p, Op::Causal), add(p, Op::MmPrefix, {}, 0)});
  return spec;
}

rt::BatchInput inputOf(const rt::RequestInput &request, int64_t start, int64_t end) {
  rt::BatchInput input;
  input.requests = {request};
  input.mmRanges = rt::RangesInput{{{start, end}}, {0, 1}};
  return input;
}

std::string messageOf(const KernelSpec &spec, const rt::BatchInput &input) {
  Result<rt::BoundBatch> bound = rt::bindBatch(spec, input);
  return bound ? "" : bound.message();
}

} // namespace

// A range is refused if and only if some query of the row, for some length that it may have, lies
// in it.
TEST(BoundedRows, EveryLengthAndRange) {
  const KernelSpec spec = rangesSpec();
  int accepted = 0, refused = 0;
  for (int64_t queries = 1; queries <= 3; ++queries)
    for (int64_t least = queries; least <= 8; ++least)
      for (int64_t length = least; length <= 8; ++length)
        for (int64_t largest = length; largest <= 8; ++largest)
          for (int64_t start = 0; start <= 9; ++start)
            for (int64_t end = 0; end <= 10; ++end) {
              rt::RequestInput request;
              request.queryLen = queries;
              request.seqLen = length;
              request.seqLenBound = largest;
              request.isPrefilling = false;
              if (least > queries)
                request.seqLenLeast = least;
              bool reaches = false;
              for (int64_t exact = least; exact <= largest; ++exact)
                for (int64_t q = exact - queries; q < exact; ++q)
                  reaches |= start < end && start <= q && q <= end;
              Result<rt::BoundBatch> bound = rt::bindBatch(spec, inputOf(request, start, end));
              ASSERT_EQ(bound.ok(), !reaches)
                  << queries << " queries, length " << least << " to " << largest << ", range ["
                  << start << ", " << end << "]";
              reaches ? ++refused : ++accepted;
              if (!bound)
                continue;
              ASSERT_EQ(bound->seqLenBound, std::vector<int64_t>{largest});
              // What the host builds does not depend on the length on the device.
              ASSERT_EQ(bound->batch.tables[0].ranges.size(),
                        start < end && start < least - queries ? 1u : 0u);
            }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(BoundedRows, Refusals) {
  const KernelSpec spec = rangesSpec();
  rt::RequestInput row;
  row.queryLen = 2;
  row.seqLen = 20;
  row.seqLenBound = 22;
  const std::string place = "request 0: ";
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_bound: given for a prefill row, expected a decode row "
                    "(is_prefilling: false)");
  row.isPrefilling = false;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)), "");
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 5)),
            place + "range 0 [3, 5] reaches into positions 0 to 21 that the row may take, whose "
                    "seq_len is known on the device only (seq_len_least says how far down they "
                    "go)");
  row.seqLenLeast = 8;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 5)), "");
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 6)),
            place + "range 0 [3, 6] reaches into positions 6 to 21 that the row may take, whose "
                    "seq_len is known on the device only (seq_len_least says how far down they "
                    "go)");
  // Past the bound: not scheduled yet.
  EXPECT_EQ(messageOf(spec, inputOf(row, 22, 30)), "");
  row.seqLenLeast = 1;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_least is 1, expected query_len 2 to seq_len 20");
  row.seqLenLeast = 21;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_least is 21, expected query_len 2 to seq_len 20");
  row.seqLenLeast.reset();
  row.contextLen = 18;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)), "");
  row.contextLen = 17;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "context_len is 17, expected seq_len - query_len 18 of a row with "
                    "seq_len_bound");
  row.contextLen.reset();
  row.seqLenBound.reset();
  row.seqLenLeast = 8;
  EXPECT_EQ(messageOf(spec, inputOf(row, 3, 3)),
            place + "seq_len_least: given without seq_len_bound");
}

// Which document a row belongs to would follow from its position.
TEST(BoundedRows, DocumentsNeedExactLengths) {
  KernelSpec spec = plainSpec();
  TableDecl documents;
  documents.name = "doc";
  documents.kind = TableKind::Documents;
  spec.program.tables = {documents};
  rt::BatchInput input;
  input.requests.resize(1);
  input.requests[0].queryLen = 1;
  input.requests[0].seqLen = 3;
  input.requests[0].seqLenBound = 4;
  rt::TableInput table;
  table.name = "doc";
  table.documents = rt::DocumentsInput{{0, 0, 1}, {0, 3}};
  input.tables = {table};
  EXPECT_EQ(messageOf(spec, input),
            "request 0: table 'doc' needs an exact seq_len, got seq_len_bound");
}
