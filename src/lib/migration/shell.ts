// Finds the commands of a shell script, with their lines: enough of the syntax of POSIX shells and bash to tell a command from text. A parser with
// all of it (unbash) has 103 KiB, which is more than everything that `kf migrate` needs together.

/** One word of a command. */
export interface Word {
  /** As the shell hands it over; what it expands stands as it is written. */
  text: string;
  /** A part of it is known only when the script runs. */
  isExpanded: boolean;
  isQuoted: boolean;
}

export interface ShellCommand {
  line: number;
  words: Word[];
  /** The text of its heredocs. */
  input: { text: string; line: number }[];
}

interface Heredoc {
  command: ShellCommand;
  end: string;
  stripsTabs: boolean;
  isQuoted: boolean;
}

const keywords = new Set(['if', 'then', 'elif', 'else', 'fi', 'do', 'done', 'while', 'until', '!', '{', '}', 'time', 'coproc']);
const endsWord = new Set([' ', '\t', '\r', '\n', ';', '&', '|', '(', ')', '<', '>']);

/** Substitutions within substitutions that are read; deeper ones are text. */
const mostDepth = 50;

class Reader {
  readonly #text: string;
  readonly #depth: number;
  #at = 0;
  #line: number;
  #counted = 0;
  #heredocs: Heredoc[] = [];
  readonly found: { at: number; command: ShellCommand }[] = [];

  constructor(text: string, line: number, depth: number) {
    this.#text = text;
    this.#line = line;
    this.#depth = depth;
  }

  /** Commands up to `end`, or to the end of the text. */
  commands(end: '' | ')'): void {
    let cases = 0;
    let command: ShellCommand | undefined;
    while (this.#at < this.#text.length) {
      if (this.#skipBlank()) continue;
      if (this.#isSeparator()) {
        command = undefined;
        if (this.#separator() === ')' && end === ')' && cases === 0) return;
      } else if (this.#isRedirect()) this.#redirect((command ??= this.#begin(this.#at)));
      else {
        const at = this.#at;
        const word = this.#word();
        if (command === undefined && this.#isSkipped(word)) continue;
        if (command === undefined) cases = Math.max(0, cases + (isPlain(word, 'case') ? 1 : isPlain(word, 'esac') ? -1 : 0));
        command ??= this.#begin(at);
        command.words.push(word);
      }
    }
  }

  /** Skips a blank, a comment or a continued line; false when something else comes. */
  #skipBlank(): boolean {
    const char = this.#char();
    if (char === ' ' || char === '\t' || char === '\r') this.#at += 1;
    else if (char === '\\' && this.#char(1) === '\n') this.#at += 2;
    else if (char === '#') this.#skipLine();
    else return false;
    return true;
  }

  /** True for what ends a command. */
  #isSeparator(): boolean {
    const char = this.#char();
    return char !== '' && (';|()\n'.includes(char) || (char === '&' && this.#char(1) !== '>'));
  }

  #separator(): string {
    const char = this.#char();
    if (char === '(') this.#parenthesis();
    else this.#at += 1;
    if (char === '\n') this.#readHeredocs();
    return char;
  }

  #char(ahead = 0): string {
    return this.#text[this.#at + ahead] ?? '';
  }

  #begin(at: number): ShellCommand {
    const command: ShellCommand = { line: this.#lineAt(at), words: [], input: [] };
    this.found.push({ at, command });
    return command;
  }

  #lineAt(at: number): number {
    // Positions ascend, but for those of nested commands, which are counted by their own reader.
    if (at < this.#counted) return this.#line - countLines(this.#text, at, this.#counted);
    this.#line += countLines(this.#text, this.#counted, at);
    this.#counted = at;
    return this.#line;
  }

  #skipLine(): void {
    while (this.#at < this.#text.length && this.#char() !== '\n') this.#at += 1;
  }

  /** A keyword or an assignment at the beginning of a command. */
  #isSkipped(word: Word): boolean {
    if (!word.isQuoted && keywords.has(word.text)) return true;
    if (!/^\w+(?:\[[^\]]*\])?\+?=/.test(word.text)) return false;
    if (word.text.endsWith('=') && this.#char() === '(') this.#array();
    return true;
  }

  /** The elements of `NAME=(a b c)`; only what they substitute runs. */
  #array(): void {
    this.#at += 1;
    while (this.#at < this.#text.length && this.#char() !== ')') {
      if (this.#char() === '#') this.#skipLine();
      else if (endsWord.has(this.#char())) this.#at += 1;
      else this.#word();
    }
    this.#at += 1;
  }

  /** `((…))` is arithmetic; `(` begins a subshell, or the empty list of a function. */
  #parenthesis(): void {
    const end = this.#char(1) === '(' ? this.#endOfArithmetic(this.#at) : undefined;
    if (end === undefined) this.#at += 1;
    else this.#arithmetic(end);
  }

  /** Where `((…))` ends; undefined for a subshell that begins with another one. */
  #endOfArithmetic(begin: number): number | undefined {
    let open = 0;
    for (let at = begin; at < this.#text.length; at += 1) {
      const char = this.#text[at];
      open += char === '(' ? 1 : char === ')' ? -1 : 0;
      if (char === ')' && open === 1) return this.#text[at + 1] === ')' ? at + 2 : undefined;
    }
    return undefined;
  }

  /** Only what an arithmetic expression substitutes runs. */
  #arithmetic(end: number): void {
    const inside = this.#text.slice(this.#at, end).replace(/^\$?\(\(/, '');
    this.#nested((reader) => reader.#quoted(''), inside, this.#lineAt(this.#at));
    this.#at = end;
  }

  #isRedirect(): boolean {
    const char = this.#char();
    if (char === '&') return true;
    return (char === '<' || char === '>') && this.#char(1) !== '(';
  }

  #redirect(command: ShellCommand): void {
    const [operator = ''] = /^(?:<<<|<<-?|&>>?|[<>]&|<>|>>|>\||[<>])/.exec(this.#text.slice(this.#at, this.#at + 3)) ?? [];
    this.#at += Math.max(1, operator.length);
    while (this.#char() === ' ' || this.#char() === '\t') this.#at += 1;
    const { text: end, isQuoted } = this.#word();
    if (operator === '<<' || operator === '<<-') this.#heredocs.push({ command, end, stripsTabs: operator === '<<-', isQuoted });
  }

  /** Reads the bodies of the heredocs that the line before has begun. */
  #readHeredocs(): void {
    for (const { command, end, stripsTabs, isQuoted } of this.#heredocs.splice(0)) {
      const line = this.#lineAt(this.#at);
      const body: string[] = [];
      while (this.#at < this.#text.length) {
        const next = this.#text.indexOf('\n', this.#at);
        const row = this.#text.slice(this.#at, next === -1 ? undefined : next);
        this.#at = next === -1 ? this.#text.length : next + 1;
        if ((stripsTabs ? row.replace(/^\t+/, '') : row) === end) break;
        body.push(row);
      }
      const text = body.join('\n');
      command.input.push({ text, line });
      // What the body substitutes runs; the rest of it is text, as in double quotes.
      if (!isQuoted) this.#nested((reader) => reader.#quoted(''), text, line);
    }
  }

  /** Reads another text, whose commands come where this reader is. */
  #nested(read: (reader: Reader) => void, text: string, line: number): void {
    if (this.#depth >= mostDepth) return;
    const reader = new Reader(text, line, this.#depth + 1);
    read(reader);
    for (const { command } of reader.found) this.found.push({ at: this.#at, command });
  }

  #word(): Word {
    const word: Word = { text: '', isExpanded: false, isQuoted: false };
    const begin = this.#at;
    while (this.#at < this.#text.length) {
      const char = this.#char();
      if ((char === '<' || char === '>') && this.#char(1) === '(') this.#substitution(word, 2);
      else if (endsWord.has(char)) break;
      else if (char === "'") this.#singleQuoted(word);
      else if (char === '"') {
        this.#at += 1;
        word.isQuoted = true;
        this.#quoted('"', word);
      } else if (char === '\\') this.#escaped(word);
      else if (char === '$') this.#dollar(word);
      else if (char === '`') this.#backticks(word);
      else {
        word.text += char;
        this.#at += 1;
      }
    }
    if (this.#at === begin) this.#at += 1;
    // The number of a descriptor: `2>/dev/null`.
    if (/^\d+$/.test(word.text) && !word.isQuoted && this.#isRedirect()) return { ...word, text: '' };
    return word;
  }

  #escaped(word: Word): void {
    if (this.#char(1) !== '\n') word.text += this.#char(1);
    this.#at += 2;
  }

  #singleQuoted(word: Word): void {
    const end = this.#text.indexOf("'", this.#at + 1);
    word.text += this.#text.slice(this.#at + 1, end === -1 ? undefined : end);
    word.isQuoted = true;
    this.#at = end === -1 ? this.#text.length : end + 1;
  }

  /** Text in double quotes, or of a heredoc without an end of its own. */
  #quoted(end: '"' | '', word: Word = { text: '', isExpanded: false, isQuoted: true }): void {
    while (this.#at < this.#text.length) {
      const char = this.#char();
      if (char === end) {
        this.#at += 1;
        return;
      }
      if (char === '\\' && '$`"\\\n'.includes(this.#char(1))) this.#escaped(word);
      else if (char === '$') this.#dollar(word, true);
      else if (char === '`') this.#backticks(word);
      else {
        word.text += char;
        this.#at += 1;
      }
    }
  }

  #dollar(word: Word, isQuoted = false): void {
    const next = this.#char(1);
    if (!isQuoted && (next === "'" || next === '"')) {
      this.#at += 1;
      return;
    }
    const begin = this.#at;
    const end = next === '(' && this.#char(2) === '(' ? this.#endOfArithmetic(begin + 1) : undefined;
    if (end !== undefined) {
      this.#arithmetic(end);
      word.text += this.#text.slice(begin, end);
      word.isExpanded = true;
    } else if (next === '(') this.#substitution(word, 2);
    else if (next === '{') this.#parameter(word, isQuoted);
    else {
      const [name = ''] = /^\$(?:\w+|[@*#?$!-])?/.exec(this.#text.slice(begin, begin + 100)) ?? [];
      this.#at += Math.max(1, name.length);
      word.text += this.#text.slice(begin, this.#at);
      word.isExpanded ||= name.length > 1;
    }
  }

  /** `$(…)`, `<(…)`: a script in the script. */
  #substitution(word: Word, opening: number): void {
    const begin = this.#at;
    const line = this.#lineAt(begin);
    const reader = new Reader(this.#text.slice(begin + opening), line, this.#depth + 1);
    if (this.#depth < mostDepth) reader.commands(')');
    this.#at = Math.min(this.#text.length, begin + opening + Math.max(1, reader.#at));
    for (const { at, command } of reader.found) this.found.push({ at: begin + opening + at, command });
    word.text += this.#text.slice(begin, this.#at);
    word.isExpanded = true;
  }

  /** `${…}`, also the `${{ … }}` of CI files. */
  #parameter(word: Word, isQuoted: boolean): void {
    const begin = this.#at;
    this.#at += 2;
    const inside: Word = { text: '', isExpanded: false, isQuoted: false };
    for (let open = 1; open > 0 && this.#at < this.#text.length;) {
      const char = this.#char();
      if (char === '$') this.#dollar(inside, isQuoted);
      else if (char === '`') this.#backticks(inside);
      else if (char === "'" && !isQuoted) this.#singleQuoted(inside);
      else if (char === '"') {
        this.#at += 1;
        this.#quoted('"', inside);
      } else if (char === '\\') this.#at += 2;
      else {
        open += char === '{' ? 1 : char === '}' ? -1 : 0;
        this.#at += 1;
      }
    }
    word.text += this.#text.slice(begin, this.#at);
    word.isExpanded = true;
  }

  #backticks(word: Word): void {
    const begin = this.#at;
    this.#at += 1;
    while (this.#at < this.#text.length && this.#char() !== '`') this.#at += this.#char() === '\\' ? 2 : 1;
    const script = this.#text.slice(begin + 1, this.#at).replaceAll('\\`', '`');
    this.#nested((reader) => reader.commands(''), script, this.#lineAt(begin));
    this.#at += 1;
    word.text += this.#text.slice(begin, this.#at);
    word.isExpanded = true;
  }
}

function countLines(text: string, from: number, to: number): number {
  let lines = 0;
  for (let at = text.indexOf('\n', from); at !== -1 && at < to; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

const isPlain = (word: Word, text: string): boolean => !word.isQuoted && word.text === text;

/** The commands of a script in the order of their places. @param firstLine the line of its first character */
export function shellCommands(script: string, firstLine = 1): ShellCommand[] {
  const reader = new Reader(script, firstLine, 0);
  reader.commands('');
  return reader.found
    .toSorted((one, other) => one.at - other.at)
    .map(({ command }) => ({ ...command, words: command.words.filter(({ text, isQuoted }) => text !== '' || isQuoted) }))
    .filter(({ words }) => words.length > 0);
}
