"""Evaluates expressions of admission: conditions of webhooks, and policies.

An expression may take a second before it has cost too much, and a write may have to do with many.  So all of one step
together have a short time on the event loop, and go on in a thread.

Rights can only be asked about on the event loop, where they change.  In the thread, an expression that asks what is not
known yet is given up, and evaluated again with the answer: it can ask no more than twice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from seamark.api.authorization import AUTHENTICATED, Attributes, Authorizer, User
from seamark.haste import Costly, Patience, allowance, at_once
from seamark.kinds.admission import Who

if TYPE_CHECKING:
    from seamark.cel.compiling import Meter
    from seamark.cel.library.authorizer import Answer, Question
    from seamark.cel.library.authorizer import Authorizer as Asked

T = TypeVar("T")


class Unanswered(Exception):
    """An expression asks about rights, but not on the event loop."""

    def __init__(self, answer: Callable[[], Answer]) -> None:
        super().__init__()
        self.answer = answer


class Evaluation:
    """The expressions of one step of admission."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._left = allowance()

    async def of(self, judge: Callable[[], T], budget: Meter | None = None) -> T:
        """What ``judge`` finds; it may be called several times, each with what is left of the ``budget`` now."""
        left = 0 if budget is None else budget.left

        def judged() -> T:
            if budget is not None:
                budget.left = left
            return judge()

        try:
            return at_once(judged, self._left)
        except Costly:
            pass
        while True:
            try:
                return await self._patience.hear(judged)
            except Unanswered as question:
                question.answer()


def authorizer_of(authorizer: Authorizer, who: Who) -> Asked:
    """The variable ``authorizer`` of expressions, which answers what this user, or a ServiceAccount, may do."""
    from seamark.cel.library.authorizer import Authorizer as Asked

    answers: dict[Question, Answer] = {}
    here = threading.get_ident()

    def answer(question: Question) -> Answer:
        answers[question] = found = _decision(authorizer, who, question)
        return found

    def decide(question: Question) -> Answer:
        if (known := answers.get(question)) is not None:
            return known
        if threading.get_ident() != here:
            raise Unanswered(lambda: answer(question))
        return answer(question)

    return Asked(decide)


def _decision(authorizer: Authorizer, who: Who, question: Question) -> Answer:
    from seamark.cel.library.authorizer import Answer

    user = User(who.name, tuple(who.groups), who.uid, who.extra)
    if question.service_account is not None:
        namespace, name = question.service_account
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        user = User(f"system:serviceaccount:{namespace}:{name}", groups)
    asked = Attributes(
        question.verb,
        question.group,
        "*",
        question.resource,
        question.subresource,
        question.namespace,
        question.name,
        question.path,
    )
    found = authorizer.authorize(user, asked)
    return Answer(found.allowed or authorizer.trusts(user), found.reason)
