"""The rewrite driver and its rules, for single ops and for regions."""
