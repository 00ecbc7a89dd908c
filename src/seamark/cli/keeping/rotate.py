"""``seamark rotate``: sign the tokens of ServiceAccounts with a new key, while Seamark runs or not."""

from __future__ import annotations

import argparse

from seamark.cli.data_dir import add_data_dir_option, data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser

EXAMPLES = """\
seamark rotate signing-key
seamark rotate signing-key --revoke
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "rotate",
        "Sign the tokens of ServiceAccounts with a new key, while Seamark runs or not: it notices within ten seconds.\n"
        "Tokens that are out stay good until they expire; keys of earlier rotations stay known for them.",
        examples=EXAMPLES,
    )
    made.add_argument("what", choices=["signing-key"], help="what to replace")
    made.add_argument("--revoke", action="store_true", help="forget all earlier keys: every token that is out ends")
    add_data_dir_option(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    from seamark.api.certificates import Authority

    authority = Authority(data_dir_of(options.data_dir) / "pki")
    if not authority.signing_key_path.exists():
        raise Failure(f"there is no {authority.signing_key_path}; `seamark up` makes it, and --data-dir says where")
    try:
        authority.new_signing_key(revoke=options.revoke)
    except OSError as error:
        raise Failure(f"cannot write {authority.signing_key_path}: {error.strerror}") from error
    ended = "; all earlier tokens end" if options.revoke else ""
    print(f"{authority.signing_key_path}: a new key signs from now on{ended}")
    return 0
