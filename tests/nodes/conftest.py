import pytest
import simulated


@pytest.fixture
async def world():
    """A cluster without nodes; ``await world.start()`` brings them."""
    async with simulated.world() as made:
        yield made
