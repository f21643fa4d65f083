"""Writes Parquet files with Bloom filters into the folder given, and says on standard output, as JSON, what is in them.

Run by `real_pyarrow.rs`, which computes the same values from the number of a row.
"""

import json
import pathlib
import struct
import sys

import pyarrow
import pyarrow.parquet

try:
    import duckdb
except ImportError:
    duckdb = None

ROWS = 20_000
GROUP = 5_000
# DuckDB makes row groups of a multiple of 2048 rows.
DUCKDB_GROUP = 4_096
folder = pathlib.Path(sys.argv[1])

columns = {
    "s": pyarrow.array([f"row-{i}" for i in range(ROWS)]),
    "b": pyarrow.array([struct.pack(">Q", i) + b"\xff" for i in range(ROWS)], pyarrow.binary()),
    "i32": pyarrow.array([i * 7 - 50_000 for i in range(ROWS)], pyarrow.int32()),
    "i64": pyarrow.array([i * 1_000_003 for i in range(ROWS)], pyarrow.int64()),
    "u64": pyarrow.array([2**63 + i for i in range(ROWS)], pyarrow.uint64()),
    "f32": pyarrow.array([i / 4 for i in range(ROWS)], pyarrow.float32()),
    "f64": pyarrow.array([i / 7 for i in range(ROWS)], pyarrow.float64()),
    "fixed": pyarrow.array([struct.pack(">QQ", 0, i) for i in range(ROWS)], pyarrow.binary(16)),
    "date": pyarrow.array(list(range(ROWS)), pyarrow.int32()).cast(pyarrow.date32()),
    "outer": pyarrow.array([{"inner": f"in-{i}"} for i in range(ROWS)]),
    # Far too small a filter for its items: many wrong answers, all of which must be the same.
    "crowded": pyarrow.array([i * 3 for i in range(ROWS)], pyarrow.int64()),
    "plain": pyarrow.array(list(range(ROWS)), pyarrow.int64()),
}
filters = {name: {"ndv": GROUP, "fpp": 0.01} for name in columns if name not in ("outer", "crowded", "plain")}
filters["outer.inner"] = {"ndv": GROUP, "fpp": 0.01}
filters["crowded"] = {"ndv": 2_000, "fpp": 0.1}
# Created for a million values, and folded.
folded = {"folded-%s" % fpp: fpp for fpp in (0.3, 0.05, 0.01, 0.001)}
for name, fpp in folded.items():
    columns[name] = columns["plain"]
    filters[name] = {"ndv": 1_000_000, "fpp": fpp}
written = folder / "pyarrow.parquet"
pyarrow.parquet.write_table(
    pyarrow.table(columns), written, row_group_size=GROUP, bloom_filter_options=filters
)

# One column for every pair of parameters: how large are its filters? Each gets far more values than it was announced, for a filter
# that turns out too large is folded before it is written.
sizes = [(ndv, fpp) for ndv in (1, 26, 100, 212, 1_000, 2_000) for fpp in (0.3, 0.05, 0.01, 0.0001)]
# Where rounding bits up to a power of two, as Arrow does, is not the same as rounding bytes.
sizes += [(64, 0.3), (505, 0.3), (2_017, 0.3), (471, 0.25), (110, 0.2), (1_594, 0.15), (178, 0.1)]
pyarrow.parquet.write_table(
    pyarrow.table({f"c{i}": columns["plain"] for i in range(len(sizes))}),
    folder / "sizes.parquet",
    row_group_size=ROWS,
    bloom_filter_options={f"c{i}": {"ndv": ndv, "fpp": fpp} for i, (ndv, fpp) in enumerate(sizes)},
)

said = {"pyarrow": pyarrow.__version__, "sizes": sizes, "folded": folded, "duckdb": None}
if duckdb:
    path = str(folder / "duckdb.parquet")
    duckdb.sql(
        "copy (select 'row-' || i as s, (i * 1000003)::bigint as i64, (i / 7.0::double)::double as f64 "
        f"from range({4 * DUCKDB_GROUP}) t(i)) to '{path}' "
        f"(format parquet, row_group_size {DUCKDB_GROUP}, write_bloom_filter true, "
        "bloom_filter_false_positive_ratio 0.01, dictionary_size_limit 1000000, string_dictionary_page_size_limit 100000000)"
    )
    # DuckDB's own answers from pyarrow's filters: which row groups hold no such value?
    probes = []
    for column, values in {
        "s": [f"row-{i}" for i in range(0, 20_000, 997)] + [f"nobody-{i}" for i in range(50)],
        "i32": [i * 7 - 50_000 + off for i in range(0, 20_000, 1_999) for off in (0, 1)],
        "f64": [i / 7 for i in range(0, 20_000, 1_999)],
        "crowded": list(range(0, 1_500, 5)),
    }.items():
        for value in values:
            found = duckdb.execute(
                f"select row_group_id, bloom_filter_excludes from parquet_bloom_probe('{written}', '{column}', ?)",
                [value],
            ).fetchall()
            excluded = [excludes for _, excludes in sorted(found)]
            probes.append([column, repr(value) if isinstance(value, float) else str(value), excluded])
    said["duckdb"] = {"version": duckdb.__version__, "probes": probes}

print(json.dumps(said))
