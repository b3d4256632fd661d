# bash completion for reprise. Options come from `reprise COMMAND --help`, so they are those of the installed program.

_reprise() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} option value
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "check fmt compile plan sweep explain verify device pack --help --version" -- "$word")
    return
  fi
  # "--name=value" arrives as three words
  option=$before value=$word
  if [ "$word" = "=" ]; then option=$before value=; fi
  if [ "$before" = "=" ]; then option=${COMP_WORDS[COMP_CWORD - 2]}; fi
  local values=
  case $option in
    --strategy) values="ilp none blocks sqrt selective greedy" ;;
    --target) values="cpu cuda" ;;
    --cost) values="model profile" ;;
    --dot-detail) values="full block module" ;;
    --dump) values="frontend simplify grad fuse kernels checkpoint" ;;
    --emit) values="exe c cu ptx kernels ir graph report" ;;
    --device) values=$("${COMP_WORDS[0]}" device 2>/dev/null) ;;
  esac
  if [ -n "$values" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$values" -- "$value")
    return
  fi
  case $word in
    -*)
      local options
      options=$("${COMP_WORDS[0]}" "$command" --help 2>/dev/null | grep -o -e '--[a-z0-9-]*' | sort -u)
      mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$value") ;;
  esac
}
complete -o filenames -F _reprise reprise
