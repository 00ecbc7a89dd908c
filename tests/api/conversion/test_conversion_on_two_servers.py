"""Two servers over one etcd: both convert by the webhook that the definition names at the time."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from called_servers import Trusted
from converting import V1, V2, Converter, changed, served_anew, serving, widget
from served import served


async def test_both_convert_and_both_see_another_webhook(etcd: Any, tmp_path: Path) -> None:
    url = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    first, second = Trusted(tmp_path / "one"), Trusted(tmp_path / "two")
    async with (
        Converter(first) as old,
        Converter(second) as new,
        served(url=url) as one,
        served(url=url) as two,
    ):
        async with served_anew(two, 2):
            await serving(one, old.definition())
        await one.post(V1, widget("a", size=3))
        await two.post(V2, widget("b", "v2", count=4))
        for api in (one, two):
            assert (await api.get(f"{V2}/a"))["spec"]["count"] == 3
            assert (await api.get(f"{V1}/b"))["spec"]["size"] == 4
        assert old.questions()

        # Its address and the authority of its certificate change together.
        async with served_anew(two, 2):
            await changed(one, lambda found: found["spec"].update(conversion=new.strategy))
        await two.merge(f"{V1}/a", {"spec": {"size": 5}})
        for api in (one, two):
            assert (await api.get(f"{V2}/a"))["spec"]["count"] == 5
        assert new.questions()
        assert old.questions() == []

        # An authority that has not signed the webhook's certificate ends conversion on both, and on them only that.
        wrong: dict[str, Any] = new.strategy
        wrong["webhook"]["clientConfig"]["caBundle"] = first.bundle
        async with served_anew(one, 2):
            await changed(two, lambda found: found["spec"].update(conversion=wrong))
        for api in (one, two):
            refused = await api.ask("GET", f"{V2}/a")
            assert (refused.status, "unknown authority" in refused.json["message"]) == (500, True)
            assert (await api.get(f"{V1}/a"))["spec"]["size"] == 5
