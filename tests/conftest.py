"""What holds for the whole session: every plan is verified, and generated tests are repeatable."""

import os

from hypothesis import HealthCheck, Phase, settings

# Before geon compiles anything; `geon.transformers.environment` reads it.
os.environ["GEON_DEBUG"] = ",".join(
    {"verify", *filter(None, os.environ.get("GEON_DEBUG", "").split(","))}
)

COMMON = {
    "deadline": None,
    "phases": [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    "suppress_health_check": [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
    "print_blob": True,
}
settings.register_profile("short", derandomize=True, max_examples=150, database=None, **COMMON)
settings.register_profile("long", max_examples=5000, **COMMON)
settings.load_profile("short")
