// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why compute-sanitizer's racecheck reports hazards on kernels that use tile.hide_unseen: a kernel
// without a race of which it says the same. Not part of any build.
//
//   nvcc -gencode=arch=compute_90a,code=sm_90a racecheck_false_hit.cu
//   compute-sanitizer --tool racecheck ./a.out 0     the two groups always meet: 0 hazards
//   compute-sanitizer --tool racecheck ./a.out 1     a group meets alone at times: 2 hazards
//
// (CUDA 13.0, H200.) Two groups of 128 threads leave words, meet at a named barrier, read each
// other's words and meet again, so every read of a foreign word lies between two barriers of exactly
// these 256 threads. With argument 1 some rounds belong to one group alone: it meets at a barrier of
// its own 128 threads and reads its own words only. Then the groups take different numbers of named
// barriers between two that they share, which racecheck takes for missing order.
#include <cstdio>
#include <cstdlib>

__device__ void meet(int group, bool together) {
  if (together)
    asm volatile("bar.sync 3, 256;" ::: "memory");
  else
    asm volatile("bar.sync %0, 128;" ::"r"(group) : "memory");
}

__global__ void kernel(int rounds, const int *groupsOfRound, int *out) {
  __shared__ int words[2][2][16];
  int thread = threadIdx.x, group = 1 + thread / 128, warp = thread / 32 % 4, lane = thread % 32;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    int groups = groupsOfRound[round];
    if (!(groups & group))
      continue;
    if (lane < 4)
      words[round & 1][group - 1][4 * warp + lane] = round + thread;
    meet(group, groups == 3);
    for (int other = 0; other < 2; ++other)
      if (groups & (1 << other))
        for (int i = 0; i < 4; ++i)
          sum += words[round & 1][other][4 * i + lane % 4];
    meet(group, groups == 3);
  }
  out[thread] = sum;
}

int main(int argc, char **argv) {
  int *out, *groups;
  cudaMalloc(&out, 1024);
  cudaMallocManaged(&groups, 64 * sizeof(int));
  bool alone = argc > 1 && std::atoi(argv[1]) != 0;
  for (int i = 0; i < 64; ++i)
    groups[i] = alone ? 1 + i * 7 / 3 % 3 : 3;
  kernel<<<2, 256>>>(64, groups, out);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
