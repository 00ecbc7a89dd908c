"""Waiting lines: in order, and one that left does not hold up the others."""

import asyncio
import random

from seamark.api.turns import Turns


async def test_in_the_order_of_arrival():
    turns, order = Turns(), []

    async def work(number):
        async with turns.take("x"):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(number) for number in range(50)))
    assert order == list(range(50))
    assert turns._lines == {}


async def test_keys_do_not_wait_for_each_other():
    turns, order = Turns(), []

    async def work(*key):
        async with turns.take(*key):
            order.append(key)

    async with turns.take("x"):
        tasks = [asyncio.create_task(work(*key)) for key in (("x",), ("y",), ("x", "y"))]
        await asyncio.sleep(0)
        assert order == [("y",), ("x", "y")]
    await asyncio.gather(*tasks)
    assert order == [("y",), ("x", "y"), ("x",)]


async def test_an_error_inside_ends_the_turn():
    turns = Turns()
    for _ in range(2):
        try:
            async with turns.take("x"):
                raise ValueError
        except ValueError:
            pass
    assert turns._lines == {}


async def test_never_two_at_once_and_nobody_forgotten_whoever_is_cancelled():
    chance = random.Random(7)
    for _ in range(30):
        turns, inside, done = Turns(), [], []

        async def work(number, turns=turns, inside=inside, done=done):
            async with turns.take("x"):
                inside.append(number)
                assert len(inside) == 1
                try:
                    await asyncio.sleep(0)
                finally:
                    inside.remove(number)
                done.append(number)

        tasks = [asyncio.create_task(work(number)) for number in range(20)]
        cancelled = chance.sample(range(20), 8)
        for number in cancelled:
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            tasks[number].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} <= {type(None), asyncio.CancelledError}
        finished = {number for number, result in enumerate(results) if result is None}
        assert finished == set(done)
        assert finished >= set(range(20)) - set(cancelled)
        assert turns._lines == {}


async def test_a_turn_given_to_one_just_cancelled_is_passed_on():
    turns, reached = Turns(), []
    gate = asyncio.Event()

    async def holder():
        async with turns.take("x"):
            await gate.wait()

    async def waiter(name):
        async with turns.take("x"):
            reached.append(name)

    first = asyncio.create_task(holder())
    await asyncio.sleep(0)
    second, third = asyncio.create_task(waiter("second")), asyncio.create_task(waiter("third"))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.sleep(0)  # the holder leaves: the second's future is set, but it has not run yet
    second.cancel()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert reached == ["third"]
    assert turns._lines == {}


async def test_whoever_leaves_for_a_while_lets_others_in_and_comes_back_last():
    turns, order = Turns(), []

    async def work():
        async with turns.take("x"):
            order.append("other")

    async with turns.take("x") as turn:
        turn.leave()
        await asyncio.gather(work(), work())
        await turn.enter()
        waiting = asyncio.create_task(work())
        await asyncio.sleep(0)
        order.append("self")
    await waiting
    assert order == ["other", "other", "self", "other"]
    assert turns._lines == {}


async def test_whoever_is_cancelled_before_coming_back_holds_nobody_up():
    turns = Turns()

    async def away():
        async with turns.take("x") as turn:
            turn.leave()
            await turn.enter()

    async with turns.take("x"):
        task = asyncio.create_task(away())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with turns.take("x"):
        pass
    assert turns._lines == {}
