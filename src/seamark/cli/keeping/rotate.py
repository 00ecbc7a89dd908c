"""``seamark rotate``: a new key for the tokens of ServiceAccounts, or a new token for the admin, while it runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.data_dir import add_data_dir_option, data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser

if TYPE_CHECKING:
    from seamark.api.certificates import Authority

EXAMPLES = """\
seamark rotate signing-key
seamark rotate signing-key --revoke
seamark rotate admin-token
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "rotate",
        "Replace a credential, while Seamark runs or not: it notices within ten seconds.\n\n"
        "signing-key   sign the tokens of ServiceAccounts with a new key; those that are out stay good\n"
        "admin-token   give the admin a new token; the kubeconfig gets it too, and the old one ends",
        examples=EXAMPLES,
    )
    made.add_argument("what", choices=["signing-key", "admin-token"], help="what to replace")
    made.add_argument(
        "--revoke", action="store_true", help="signing-key: forget all earlier keys, so that every token ends"
    )
    add_data_dir_option(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    from seamark.api.certificates import Authority

    directory = data_dir_of(options.data_dir)
    authority = Authority(directory / "pki")
    signing = options.what == "signing-key"
    path = authority.signing_key_path if signing else authority.admin_token_path
    if not path.exists():
        raise Failure(f"there is no {path}; `seamark up` makes it, and --data-dir says where")
    try:
        if signing:
            authority.new_signing_key(revoke=options.revoke)
            print(f"{path}: a new key signs from now on{'; all earlier tokens end' if options.revoke else ''}")
        else:
            _new_admin_token(authority, directory / "kubeconfig")
            print(f"{path}: a new token, also in {directory / 'kubeconfig'}; the old one ends")
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error
    return 0


def _new_admin_token(authority: Authority, kubeconfig: Path) -> None:
    from seamark.api.certificates import write_private

    old = authority.admin_token
    authority.new_admin_token()
    if kubeconfig.exists():
        text = kubeconfig.read_text().replace(old, authority.admin_token)
        write_private(kubeconfig, text.encode())
