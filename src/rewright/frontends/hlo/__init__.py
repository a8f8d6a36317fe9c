"""HLO modules, as text or as HloModuleProto, as programs of the IR; nothing but the standard library is needed."""

from rewright.frontends.hlo.reading import read_device, read_proto, read_text

__all__ = ["read_device", "read_proto", "read_text"]
