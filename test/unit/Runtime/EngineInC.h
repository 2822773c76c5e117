/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Tests in C of attn-c/Engine.h, on the batch of CApiTest.h. */
#ifndef ATTN_TEST_UNIT_RUNTIME_ENGINEINC_H
#define ATTN_TEST_UNIT_RUNTIME_ENGINEINC_H

#include "attn-c/Engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The mask of the batch. */
typedef int (*attn_test_keeps)(const void *batch, int request, int64_t q, int64_t k);

int attn_test_range_tensor(const attn_plan *plan);
int attn_test_page_runs(const attn_plan *plan);
int attn_test_has_no_pages(const attn_plan *plan);
int attn_test_work_list(const attn_plan *plan, attn_test_keeps keeps, const void *batch);
int attn_test_split_plans(const attn_plan *plan);
int attn_test_split_policies(void);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_TEST_UNIT_RUNTIME_ENGINEINC_H */
