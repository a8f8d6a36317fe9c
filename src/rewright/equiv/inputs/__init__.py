"""What relates the inputs of two implementations: weight maps, guessed or given, dtypes, values. Read ``weights``."""
