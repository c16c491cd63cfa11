"""Reports about computations: stages, plans, traces, profiles, and errors of calls."""
