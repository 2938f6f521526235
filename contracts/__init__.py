"""What every room shares: error types, verdicts, contracts, manifests. Standard library only."""
