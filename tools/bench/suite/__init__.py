"""The benchmark's parts; tools/bench/run and tools/bench/compare put them together."""
from . import crowding, delivering, holding, journal, reading, writing

SCENARIOS = {**reading.SCENARIOS, **writing.SCENARIOS, **delivering.SCENARIOS,
             **holding.SCENARIOS, **journal.SCENARIOS, **crowding.SCENARIOS}
