import node_world
import pytest


@pytest.fixture
async def world():
    """A cluster without nodes; ``await world.start()`` brings them."""
    async with node_world.world() as made:
        yield made
