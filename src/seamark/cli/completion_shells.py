"""Completion scripts for bash, zsh and fish.

They only carry words between the shell and ``seamark completion words``, whose first line says what follows: ``words``
(each with what it is about behind a tab), or that the shell is to complete ``files`` or ``directories`` by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

BASH = r"""# bash completion for seamark; load it with: source <(seamark completion bash)
# Written for the bash of macOS too, which is from 2007.

_seamark_paths() {
  compopt -o filenames 2>/dev/null || true
  COMPREPLY=($(compgen "$1" -- "$2")) || true
}

_seamark() {
  local words=() word index joined="" program=${COMP_WORDS[0]/#\~/$HOME} IFS=$' \t\n'
  # bash takes --flag=value and host:port apart; here they are one word again.
  for ((index = 1; index <= COMP_CWORD; index++)); do
    word=${COMP_WORDS[index]}
    if ((${#words[@]})) && { [[ $word == [=:]* ]] || [ -n "$joined" ]; }; then
      words[${#words[@]}-1]+=$word
      joined=""
      if [[ $word == [=:] ]]; then joined=yes; fi
    else
      words+=("$word")
    fi
  done
  local typed=${words[${#words[@]}-1]}
  local reply
  reply=$("$program" completion words "${words[@]}" 2>/dev/null) || reply=""
  COMPREPLY=()
  IFS=$'\n'
  case "${reply%%$'\n'*}" in
    files) _seamark_paths -f "${typed##*=}";;
    directories) _seamark_paths -d "${typed##*=}";;
    words)
      # Of a word that bash took apart it replaces the last part only.
      local part=${typed##*[=:]}
      local front=${typed%"$part"}
      for word in $reply; do
        word=${word%%$'\t'*}
        if [ "$word" != words ]; then COMPREPLY+=("${word#"$front"}"); fi
      done
      if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then compopt -o nospace 2>/dev/null || true; fi
      ;;
  esac
  return 0
}
complete -F _seamark seamark
"""

ZSH = r"""#compdef seamark
# zsh completion for seamark; load it with: source <(seamark completion zsh)

_seamark() {
  local line word program=${${(Q)words[1]}/#\~/$HOME}
  local -a typed reply plain open
  typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
  reply=("${(@f)$("$program" completion words "${typed[@]}" 2>/dev/null)}")
  case $reply[1] in
    files) compset -P '-*='; _files;;
    directories) compset -P '-*='; _files -/;;
    words)
      for line in "${(@)reply[2,-1]}"; do
        word=${${line%%$'\t'*}//:/\\:}
        [[ $line == *$'\t'?* ]] && word+=":${line#*$'\t'}"
        if [[ ${line%%$'\t'*} == *[/=] ]]; then open+=("$word"); else plain+=("$word"); fi
      done
      _describe 'seamark' plain -- open -S ''
      ;;
  esac
}
compdef _seamark seamark
"""

FISH = r"""# fish completion for seamark; load it with: seamark completion fish | source

function __seamark_words
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l reply ($program completion words $words[2..-1] "$typed" 2>/dev/null)
    set -l lead (string match -r -- '^-[^=]*=' "$typed")
    set -l path (string replace -r -- '^-[^=]*=' '' "$typed")
    switch "$reply[1]"
        case files
            for each in (__fish_complete_path "$path")
                echo "$lead$each"
            end
        case directories
            for each in (__fish_complete_directories "$path")
                echo "$lead$each"
            end
        case words
            printf '%s\n' $reply[2..-1]
    end
end

complete -c seamark -f -a '(__seamark_words)'
"""

SHELLS: Mapping[str, str] = {"bash": BASH, "zsh": ZSH, "fish": FISH}
