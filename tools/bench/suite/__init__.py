"""The benchmark's parts; tools/bench/run and tools/bench/compare put them together."""
from . import crowding, delivering, holding, journal, outgoing, reading, writing

SCENARIOS = {**reading.SCENARIOS, **writing.SCENARIOS, **delivering.SCENARIOS,
             **outgoing.SCENARIOS, **holding.SCENARIOS, **journal.SCENARIOS, **crowding.SCENARIOS}
