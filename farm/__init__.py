"""Many checkpoints for many targets: the matrix, its jobs, how they are run by Snakemake, and the catalogue of them."""
