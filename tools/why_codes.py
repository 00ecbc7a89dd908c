"""Write docs/why.md: what `seamark why` is asked, and every cause it can name.

python tools/why_codes.py
"""

from __future__ import annotations

from pathlib import Path

from seamark.why.codes import Code, Family

PAGE = Path(__file__).parents[1] / "docs" / "why.md"

HEAD = """\
# Why

`seamark why` says why a Service has no endpoints, or not those it should have: the cause and the fix first, then the
evidence. It reads (get and list only) any cluster your kubeconfig reaches, and decides with the very function the
controllers decide with.

```console
seamark why svc/web                # one Service; also `kubectl why svc/web`
seamark why -A                     # every Service that needs attention, ranked
seamark why pod/web-5d4f8          # which Services take this Pod, which do not, and why
seamark why dns web.shop           # the search path, step by step
seamark why -f manifests/          # before anything is deployed; `-f -` takes Helm's or kustomize's output
seamark why svc/web --since 1h     # when each address came and went
seamark why svc/web -o json        # for programs: the codes below are stable
seamark audit                      # orphaned, stale or foreign Endpoints and slices; --fix removes them
```

It exits with 0 when all is well, 1 when something is wrong and 2 when it could not look.

## The causes

A code never changes its meaning. Families stand in the order in which their causes are named first.
"""


def main() -> None:
    lines = [HEAD]
    for family in Family:
        codes = [code for code in Code if code.family is family]
        if codes:
            lines += [f"### {family.value[0].upper()}{family.value[1:]}", "", "| code | what it says |", "|---|---|"]
            lines += [f"| `{code.value}` | {code.about.replace('|', chr(92) + '|')} |" for code in codes]
            lines.append("")
    PAGE.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
