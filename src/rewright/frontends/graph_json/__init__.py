"""Graphs that others captured, as JSON of the format ``graph-json/1``: ATen calls, one file a rank, no pickle.

Read ``document``, then ``reading``.
"""

from rewright.frontends.frontend import Files, Frontend, Function

FRONTEND = Frontend(
    "graph_json",
    files=Files(
        extensions=(".json", ".json.gz"),
        read=Function("rewright.frontends.graph_json.reading:read_file"),
        read_ranks=Function("rewright.frontends.graph_json.reading:read_files"),
        knows=Function("rewright.frontends.graph_json.document:is_own"),
    ),
)
