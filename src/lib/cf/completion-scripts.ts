// The scripts that shells load for completion. Each asks the program itself: its hidden command gets the words up to the cursor.

/** The hidden command of the scripts. It prints one candidate per line, with a summary after a tab. */
export const completeCommand = '__complete';

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

const scripts: Readonly<Record<Shell, (bin: string) => string>> = {
  // Words are taken from the line as a whole: `=` and `:` separate words for bash, and not for the program. Names are quoted, since others chose them
  // and bash puts them into the line as they are.
  bash: (bin) => `_${bin}_complete() {
  local line="\${COMP_LINE:0:COMP_POINT}" words word candidate
  IFS=$' \\t\\n' read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=('')
  word="\${words[\${#words[@]}-1]}"
  local before="\${word%"\${word##*[=:]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    printf -v candidate %q "\${candidate#"$before"}"
    COMPREPLY+=("$candidate")
  done < <(${bin} ${completeCommand} "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _${bin}_complete ${bin}
`,
  zsh: (bin) => `#compdef ${bin}
_${bin}() {
  local -a found texts
  found=("\${(@f)$(${bin} ${completeCommand} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("\${(@)found:#}")
  if (( ! $#found )); then
    _files
    return
  fi
  texts=("\${(@)\${(@)found//:/\\\\:}/$'\\t'/:}")
  _describe '${bin}' texts
}
if [[ "\${funcstack[1]}" == _${bin} ]]; then _${bin} "$@"; else compdef _${bin} ${bin}; fi
`,
  fish: (bin) => `function __${bin}_complete
  set -l words (commandline -opc) (commandline -ct)
  ${bin} ${completeCommand} $words[2..-1] 2>/dev/null
end
complete -c ${bin} -a '(__${bin}_complete)'
`,
};

/** The script for a shell. @param bin the name of the program as it was started */
export const completionScript = (shell: Shell, bin: string): string => scripts[shell](bin);
