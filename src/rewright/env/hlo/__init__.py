"""HLO modules that are edited: protos read and written without a protobuf library, names instead of numbers."""
