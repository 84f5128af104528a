"""Part V, sparse attention patterns: one room per heading of the survey."""
