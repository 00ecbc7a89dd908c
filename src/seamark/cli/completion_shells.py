"""Completion scripts for bash, zsh and fish.  Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from seamark.cli.completion_model import Option, Value, Verb

ASK = "seamark completion words"

_BASH_HEAD = """\
# bash completion for seamark; load it with: source <(seamark completion bash)

# Written for the bash of macOS too, which is from 2007.
_seamark_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
_seamark_paths() { local IFS=$'\\n'; compopt -o filenames 2>/dev/null || true; COMPREPLY=($(compgen "$1" -- "$cur")); }
_seamark_files() { _seamark_paths -f; }
_seamark_directories() { _seamark_paths -d; }
_seamark_ask() { _seamark_words "$(seamark completion words "$@" 2>/dev/null)"; }

# The words after the verb that are neither options nor their values, up to the cursor.
_seamark_places() {
  local valued=" $1 " index=2 word
  places=()
  while [ "$index" -lt "$COMP_CWORD" ]; do
    word=${COMP_WORDS[index]}
    case "$word" in
      -*) case "$valued" in *" $word "*) index=$((index + 1));; esac;;
      *) places+=("$word");;
    esac
    index=$((index + 1))
  done
}

_seamark() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} places
  # --flag=value comes as three words.
  if [ "$cur" = "=" ]; then cur=""; elif [ "$prev" = "=" ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  COMPREPLY=()
"""


def bash(verbs: Sequence[Verb]) -> str:
    names = " ".join(verb.name for verb in verbs)
    lines = [_BASH_HEAD.rstrip("\n")]
    lines.append(f'  if [ "$COMP_CWORD" -eq 1 ]; then _seamark_words "{names} help --help --version"; return; fi')
    lines.append('  case "${COMP_WORDS[1]}" in')
    lines.append(f'    help) _seamark_words "{names}";;')
    for verb in verbs:
        lines += [f"    {verb.name})", *(f"      {line}" for line in _bash_verb(verb)), "      ;;"]
    lines += ["  esac", "}", "complete -F _seamark seamark"]
    return "\n".join(lines) + "\n"


def _bash_verb(verb: Verb) -> list[str]:
    lines = []
    if verb.valued:
        lines.append('case "$prev" in')
        for option in verb.valued:
            assert option.value is not None
            lines.append(f"  {'|'.join(option.flags)}) {_bash_value(option.value)}return;;")
        lines.append("esac")
    flags = " ".join(flag for option in verb.options for flag in option.flags)
    lines.append(f'if [[ "$cur" == -* ]]; then _seamark_words "{flags}"; return; fi')
    if verb.places:
        lines.append(f'_seamark_places "{" ".join(flag for option in verb.valued for flag in option.flags)}"')
        lines.append('case "${#places[@]}" in')
        for number, value in enumerate(verb.places):
            pattern = "*" if number == len(verb.places) - 1 else str(number)
            lines.append(f"  {pattern}) {_bash_value(value) or ':; '}".rstrip("; ") + ";;")
        lines.append("esac")
    return lines


def _bash_value(value: Value) -> str:
    match value.source:
        case "words":
            return f'_seamark_words "{" ".join(value.words)}"; '
        case "files" | "directories":
            return f"_seamark_{value.source}; "
        case "names":
            return '_seamark_ask names "${places[0]}"; '
        case "kinds" | "namespaces" | "contexts":
            return f"_seamark_ask {value.source}; "
        case _:
            return ""


# --- zsh -------------------------------------------------------------------------------------------

_ZSH_HEAD = """\
#compdef seamark
# zsh completion for seamark; load it with: source <(seamark completion zsh)

_seamark_ask() {
  local -a found
  found=(${(f)"$(seamark completion words "$@" 2>/dev/null)"})
  compadd -a found
}

_seamark() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C '1: :->verb' '*:: :->arguments'
  case $state in
    verb)
      local -a verbs
      verbs=(
"""


def zsh(verbs: Sequence[Verb]) -> str:
    lines = [_ZSH_HEAD.rstrip("\n")]
    lines += [f"        {_zsh_quoted(f'{verb.name}:{verb.about}')}" for verb in verbs]
    lines += ["      )", "      _describe 'command' verbs", "      ;;", "    arguments)", "      case $words[1] in"]
    for verb in verbs:
        lines.append(f"        {verb.name})")
        specs = [spec for option in verb.options for spec in _zsh_option(option)]
        for number, value in enumerate(verb.places):
            where = "*" if number == len(verb.places) - 1 else str(number + 1)
            specs.append(f"{where}: :{_zsh_value(value)}")
        lines.append("          _arguments " + " \\\n            ".join(map(_zsh_quoted, specs)))
        lines.append("          ;;")
    lines += ["      esac", "      ;;", "  esac", "}", "compdef _seamark seamark"]
    return "\n".join(lines) + "\n"


def _zsh_option(option: Option) -> list[str]:
    about = option.about.replace("[", r"\[").replace("]", r"\]").replace(":", r"\:")
    if option.value is None:
        return [f"{flag}[{about}]" for flag in option.flags]
    optional = ":" if option.optional else ""
    value = _zsh_value(option.value)
    return [f"{flag}{'=-' if option.optional else ''}[{about}]{optional}: :{value}" for flag in option.flags]


def _zsh_value(value: Value) -> str:
    match value.source:
        case "words":
            return f"({' '.join(value.words)})"
        case "files":
            return "_files"
        case "directories":
            return "_files -/"
        case "names":
            return "{_seamark_ask names $line[1]}"
        case "kinds" | "namespaces" | "contexts":
            return f"{{_seamark_ask {value.source}}}"
        case _:
            return " "


def _zsh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- fish ------------------------------------------------------------------------------------------

_FISH_HEAD = """\
# fish completion for seamark; load it with: seamark completion fish | source

function __seamark_first_place
    set -l words (commandline -opc)
    for word in $words[3..-1]
        string match -q -- '-*' $word; or begin; echo $word; return; end
    end
end

complete -c seamark -f
"""


def fish(verbs: Sequence[Verb]) -> str:
    lines = [_FISH_HEAD.rstrip("\n")]
    names = " ".join(verb.name for verb in verbs)
    for verb in verbs:
        only = shlex.quote(f"not __fish_seen_subcommand_from {names}")
        lines.append(f"complete -c seamark -n {only} -a {verb.name} -d {_fish_quoted(verb.about)}")
    for verb in verbs:
        seen = shlex.quote(f"__fish_seen_subcommand_from {verb.name}")
        for option in verb.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            value = _fish_value(option.value, optional=option.optional) if option.value is not None else ""
            about = _fish_quoted(option.about)
            lines.append(" ".join(f"complete -c seamark -n {seen} {flags} {value} -d {about}".split("  ")))
        places = [_fish_value(place, optional=True) for place in dict.fromkeys(verb.places) if place.source]
        lines += [f"complete -c seamark -n {seen} {place}" for place in places]
    return "\n".join(lines) + "\n"


def _fish_value(value: Value, *, optional: bool) -> str:
    needed = "" if optional else "-x "
    match value.source:
        case "words":
            return f"{needed}-a {shlex.quote(' '.join(value.words))}"
        case "files":
            return "-F" if optional else "-r -F"
        case "directories":
            return f"{needed}-a '(__fish_complete_directories)'"
        case "names":
            return f"{needed}-a '({ASK} names (__seamark_first_place) 2>/dev/null)'"
        case "kinds" | "namespaces" | "contexts":
            return f"{needed}-a '({ASK} {value.source} 2>/dev/null)'"
        case _:
            return needed.strip()


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS: Mapping[str, Callable[[Sequence[Verb]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
