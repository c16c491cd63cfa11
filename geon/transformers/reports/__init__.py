"""Reports on computations: stages, plans, traces, profiles, and errors of calls."""
