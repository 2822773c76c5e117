# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times callables that enqueue GPU work, in two clock regimes.

burst: the GPU idles, one run is not counted, then runs are timed; its clock stays near the top.
sustained: runs of the same callable without a break, not counted, then runs are timed; near the power
limit the clock of every good kernel falls.
A run is one replay of a CUDA graph of as many calls as take a few milliseconds. Rounds rotate the order of
the callables, so that none always follows the same other one.
"""
import statistics
import time

import torch

ROUNDS, RUNS = 3, 12
IDLE_SECONDS, HEAT_SECONDS = 0.2, 0.12
GRAPH_MS = 2.5
REGIMES = ("burst", "sustained")


def capture(call):
    """(replay, calls a replay) of a graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record(stream)
        for _ in range(3):
            call()
        end.record(stream)
    torch.cuda.synchronize()
    calls = max(1, min(40, int(3 * GRAPH_MS / max(start.elapsed_time(end), 1e-3))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return graph.replay, calls


def prepare(regime, replay):
    torch.cuda.synchronize()
    if regime == "burst":
        time.sleep(IDLE_SECONDS)
        replay()
        return
    end = time.perf_counter() + HEAT_SECONDS
    while time.perf_counter() < end:
        for _ in range(4):
            replay()
        done = torch.cuda.Event()
        done.record()
        done.synchronize()


def measure(calls, rounds=ROUNDS):
    """{name: callable} -> {name: {regime: milliseconds of a call, sorted}}."""
    graphs = {name: capture(call) for name, call in calls.items()}
    names = list(graphs)
    times = {name: {regime: [] for regime in REGIMES} for name in names}
    for number in range(rounds):
        shift = number * max(1, len(names) // rounds) % len(names)
        for regime in REGIMES:
            for name in names[shift:] + names[:shift]:
                replay, count = graphs[name]
                prepare(regime, replay)
                events = [(torch.cuda.Event(True), torch.cuda.Event(True)) for _ in range(RUNS)]
                for start, end in events:
                    start.record()
                    replay()
                    end.record()
                torch.cuda.synchronize()
                times[name][regime] += [start.elapsed_time(end) / count for start, end in events]
    return {name: {regime: sorted(values) for regime, values in of.items()} for name, of in times.items()}


def summary(values):
    tenth = len(values) // 10
    return {"ms": round(statistics.median(values), 4), "p10": round(values[tenth], 4),
            "p90": round(values[-1 - tenth], 4), "runs": len(values)}
