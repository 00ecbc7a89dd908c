"""``seamark rotate``: a new key for tokens of ServiceAccounts, a new token for the admin, a new CA, while it runs."""

from __future__ import annotations

import argparse
from base64 import b64encode
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
seamark rotate ca
seamark rotate ca --drop-old
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "rotate",
        "Replace a credential, while Seamark runs or not: it notices within ten seconds.\n\n"
        "signing-key   sign the tokens of ServiceAccounts with a new key; those that are out stay good\n"
        "admin-token   give the admin a new token and certificate; the kubeconfig gets them too, and the old ones end\n"
        "ca            sign certificates with a new authority; the earlier one stays trusted until --drop-old",
        examples=EXAMPLES,
    )
    made.add_argument("what", choices=["signing-key", "admin-token", "ca"], help="what to replace")
    made.add_argument(
        "--revoke", action="store_true", help="signing-key: forget all earlier keys, so that every token ends"
    )
    made.add_argument(
        "--drop-old",
        action="store_true",
        help="ca: make none, but trust only the newest; the server gets a certificate from it, those of clients end",
    )
    add_data_dir_option(made)
    return made


def main(arguments: list[str]) -> int:
    made = parser()
    options = made.parse_args(arguments)
    for flag, what in (("revoke", "signing-key"), ("drop_old", "ca")):
        if getattr(options, flag) and options.what != what:
            made.error(f"--{flag.replace('_', '-')} is for {what}")
    from seamark.api.certificates import Authority

    directory = data_dir_of(options.data_dir)
    authority = Authority(directory / "pki")
    path = {
        "signing-key": authority.signing_key_path,
        "admin-token": authority.admin_token_path,
        "ca": authority.ca_path,
    }[options.what]
    if not path.exists():
        raise Failure(f"there is no {path}; `seamark up` makes it, and --data-dir says where")
    try:
        match options.what:
            case "signing-key":
                authority.new_signing_key(revoke=options.revoke)
                said = f"a new key signs from now on{'; all earlier tokens end' if options.revoke else ''}"
            case "admin-token":
                _new_admin_token(authority, directory / "kubeconfig")
                said = (
                    f"a new token and certificate, also in {directory / 'kubeconfig'}; the old ones end, "
                    "also in a context that was merged: `seamark up --merge-kubeconfig` merges it again"
                )
            case _:
                said = _rotate_ca(authority, directory / "kubeconfig", drop=options.drop_old)
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror}") from error
    print(f"{path}: {said}")
    return 0


def _rotate_ca(authority: Authority, kubeconfig: Path, *, drop: bool) -> str:
    if not drop:
        authority.new_ca()
        return (
            f"a new authority signs from now on, and the earlier ones stay trusted. Give clients the new {kubeconfig}"
            " (written within ten seconds, or at the next start); then: seamark rotate ca --drop-old"
        )
    dropped = authority.drop_earlier_cas()
    if not dropped:
        return "there is no earlier authority to drop; the server got a new certificate"
    return f"only the newest authority is trusted; {dropped} earlier dropped, with all certificates they signed"


def _new_admin_token(authority: Authority, kubeconfig: Path) -> None:
    from seamark.private_files import write_private

    def credentials() -> list[str]:
        return [authority.admin_token, *(b64encode(each).decode() for each in authority.admin_certificate())]

    old = credentials()
    authority.new_admin_token()
    if kubeconfig.exists():
        text = kubeconfig.read_text()
        for before, now in zip(old, credentials(), strict=True):
            text = text.replace(before, now)
        write_private(kubeconfig, text.encode())
