"""Many claims at once: models x meshes x versions of the code, in parallel, and only what changed."""
