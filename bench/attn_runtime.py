# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of the C API (include/attn-c/Runtime.h) that benchmarks use, through ctypes."""
import ctypes
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint8, c_uint64, c_void_p

ABI_VERSION = 1
SCALAR_F32 = 3


class Sized(ctypes.Structure):
    """A struct that starts with its size."""

    def __init__(self, **members):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **members)


class PlanOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("kernel", c_int64), ("device", c_char_p), ("max_reqs", c_int64),
                ("max_tokens", c_int64), ("num_threads", c_int32), ("reserved", c_int32),
                ("device_ordinal", c_int32), ("reserved2", c_int32), ("cuda_driver", c_char_p)]


class Param(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("is_float", c_int32), ("reserved", c_int32),
                ("i", c_int64), ("f", c_double)]


class Ranges(Sized):
    _fields_ = [("struct_size", c_size_t), ("table", c_char_p), ("bounds", POINTER(c_int32)),
                ("offsets", POINTER(c_int64))]


class DenseTable(Sized):
    _fields_ = [("struct_size", c_size_t), ("table", c_char_p), ("data", c_void_p), ("element", c_int32),
                ("rank", c_int32), ("extents", c_int64 * 4), ("strides", c_int64 * 4)]


class BatchStruct(Sized):
    _fields_ = [("struct_size", c_size_t), ("num_reqs", c_int64), ("query_start_loc", POINTER(c_int32)),
                ("seq_lens", POINTER(c_int32)), ("context_lens", POINTER(c_int32)),
                ("seq_len_is_bound", POINTER(c_uint8)), ("is_prefilling", POINTER(c_uint8)),
                ("key_begin", POINTER(c_int32)), ("key_end", POINTER(c_int32)), ("params", POINTER(Param)),
                ("num_params", c_int64), ("ranges", POINTER(Ranges)), ("num_ranges", c_int64),
                ("documents", c_void_p), ("num_documents", c_int64), ("tables", POINTER(DenseTable)),
                ("num_tables", c_int64), ("page_size", c_int64), ("block_table", POINTER(c_int32)),
                ("block_table_stride", c_int64), ("block_table_width", c_int64), ("num_pages", c_int64),
                ("flags", c_uint64), ("kv_start", POINTER(c_int64))]


class RunArgs(Sized):
    _fields_ = [("struct_size", c_size_t), ("q", c_void_p), ("q_token_stride", c_int64), ("q_head_stride", c_int64),
                ("k", c_void_p), ("k_page_stride", c_int64), ("k_slot_stride", c_int64), ("k_head_stride", c_int64),
                ("v", c_void_p), ("v_page_stride", c_int64), ("v_slot_stride", c_int64), ("v_head_stride", c_int64),
                ("kv_start", POINTER(c_int64)), ("o", c_void_p), ("o_token_stride", c_int64),
                ("o_head_stride", c_int64), ("lse", c_void_p), ("lse_head_stride", c_int64), ("part", c_void_p),
                ("device_block_table", c_void_p), ("device_block_table_stride", c_int64), ("counters", c_void_p)]


class TileCounts(Sized):
    _fields_ = [("struct_size", c_size_t), ("loaded", c_uint64), ("visited", c_uint64), ("full", c_uint64)]


def array(kind, values):
    return (kind * len(values))(*values)


class Runtime:
    def __init__(self, path):
        lib = ctypes.CDLL(str(path))
        lib.attn_last_error.restype = c_char_p
        found = lib.attn_abi_version()
        if found != ABI_VERSION:
            raise RuntimeError(f"{path}: ABI version {found}, expected {ABI_VERSION}")
        for name, arguments in {
            "attn_artifact_load_file": [c_char_p, POINTER(c_void_p)],
            "attn_plan_create": [c_void_p, POINTER(PlanOptions), POINTER(c_void_p)],
            "attn_plan_prepare": [c_void_p, POINTER(BatchStruct), c_void_p, c_void_p],
            "attn_plan_run": [c_void_p, POINTER(RunArgs), c_void_p],
            "attn_plan_tile_counts": [c_void_p, POINTER(TileCounts)],
        }.items():
            getattr(lib, name).argtypes = arguments
        for name in ("attn_plan_destroy", "attn_artifact_destroy"):
            getattr(lib, name).argtypes = [c_void_p]
            getattr(lib, name).restype = None
        self.lib = lib

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.attn_last_error().decode())


class Plan:
    """The only kernel of an artifact on a GPU."""

    def __init__(self, runtime, path, max_reqs, max_tokens, ordinal=0, driver=None):
        self.runtime, self.artifact, self.handle = runtime, c_void_p(), c_void_p()
        runtime.check(runtime.lib.attn_artifact_load_file(str(path).encode(), ctypes.byref(self.artifact)))
        options = PlanOptions(device=b"cuda", max_reqs=max_reqs, max_tokens=max_tokens, device_ordinal=ordinal,
                              cuda_driver=driver.encode() if driver else None)
        runtime.check(runtime.lib.attn_plan_create(self.artifact, ctypes.byref(options), ctypes.byref(self.handle)))

    def __del__(self):
        self.runtime.lib.attn_plan_destroy(self.handle)
        self.runtime.lib.attn_artifact_destroy(self.artifact)

    def prepare(self, lengths, params, ranges, tables, stream, page=0, table=None):
        """Requests of `lengths` tokens that are also all their keys, packed one after the other.

        params: {name: int or float}; ranges: per request inclusive pairs, or None; tables: {name: [float]};
        page: slots of a page, with `table`, pages of each request as a tensor of i32 on the host.
        """
        starts = [0]
        for length in lengths:
            starts.append(starts[-1] + length)
        made = [Param(name=name.encode(), is_float=isinstance(value, float),
                      **{"f" if isinstance(value, float) else "i": value}) for name, value in params.items()]
        # What a struct points at must live until the call returns; tables until the next prepare.
        dense = {name: array(c_float, values) for name, values in tables.items()}
        made_tables = [DenseTable(table=name.encode(), data=ctypes.addressof(values), element=SCALAR_F32, rank=1,
                                  extents=(len(values), 0, 0, 0)) for name, values in dense.items()]
        batch = BatchStruct(num_reqs=len(lengths), query_start_loc=array(c_int32, starts),
                            seq_lens=array(c_int32, lengths), params=array(Param, made), num_params=len(made),
                            tables=array(DenseTable, made_tables), num_tables=len(made_tables))
        if page:
            pages = table.contiguous()
            self.pages = pages  # read by reference until the next prepare
            batch.page_size, batch.block_table = page, ctypes.cast(pages.data_ptr(), POINTER(c_int32))
            batch.block_table_stride = batch.block_table_width = pages.shape[1]
            batch.num_pages = pages.numel()
        if ranges is not None:
            offsets = [0]
            for pairs in ranges:
                offsets.append(offsets[-1] + len(pairs))
            bounds = [bound for pairs in ranges for pair in pairs for bound in pair]
            of_kernel = Ranges(bounds=array(c_int32, bounds), offsets=array(c_int64, offsets))
            batch.ranges, batch.num_ranges = ctypes.pointer(of_kernel), 1
        self.runtime.check(self.runtime.lib.attn_plan_prepare(self.handle, ctypes.byref(batch), None, stream))
        self.tables = dense

    def tile_counts(self):
        counts = TileCounts()
        self.runtime.check(self.runtime.lib.attn_plan_tile_counts(self.handle, ctypes.byref(counts)))
        return counts.loaded, counts.visited, counts.full

    def run(self, args, stream):
        self.runtime.check(self.runtime.lib.attn_plan_run(self.handle, ctypes.byref(args), stream))
