"""WGSL, the language of WebGPU: text of the loops that C++ has too. Nothing here runs it."""
