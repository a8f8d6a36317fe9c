"""Programs in this project's own files: a graph as text or JSON, the graphs of all ranks as JSON. Read ``files``."""

from rewright.frontends.frontend import Files, Frontend, Function

FRONTEND = Frontend(
    "rwt",
    files=Files(
        extensions=(".rwt", ".json", ".json.gz"),
        read=Function("rewright.frontends.rwt.files:read"),
        write=Function("rewright.frontends.rwt.files:write"),
    ),
)
