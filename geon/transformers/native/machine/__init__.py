"""The machine that code runs on: cache sizes, measured rates and the thread pool."""
