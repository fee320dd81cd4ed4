// The shell scripts in a file: a script is one itself; CI files in YAML or JSON, a Makefile and a Jenkinsfile have several.

import { isPair, isScalar, LineCounter, parseAllDocuments, visit, type Node, type Scalar, type YAMLSeq } from 'yaml';
import { KfError } from '../errors.ts';

/** Part of a file that a shell runs. */
export interface Script {
  text: string;
  /** The line of its first character in the file. */
  line: number;
}

/** Keys of CI files whose values are words for people, or names. */
const prose = new Set([
  'name',
  'displayname',
  'description',
  'title',
  'label',
  'message',
  'summary',
  'key',
  'id',
  'image',
  'if',
  'when',
  'needs',
  'uses',
]);

/** A folded text as the lines of the file, with each fold as a continued line: the shell reads the same, and the lines stay. */
function unfolded(lines: readonly string[]): string {
  return lines
    .map((line, at) => {
      const next = lines[at + 1];
      return next === undefined ? line : line.trim() === '' || next.trim() === '' ? `${line}\n` : `${line} \\\n`;
    })
    .join('');
}

/** `range` is there in every parsed scalar. */
function scriptOfScalar(source: string, scalar: Scalar, lineOf: (at: number) => number): Script {
  const [begin, end] = scalar.range ?? [0, 0];
  const line = lineOf(begin);
  const text = String(scalar.value);
  if (scalar.type === 'BLOCK_LITERAL') return { text, line: line + 1 };
  if (scalar.type === 'BLOCK_FOLDED') return { text: unfolded(source.slice(begin, end).split('\n').slice(1)), line: line + 1 };
  if (scalar.type === 'PLAIN') return { text: unfolded(source.slice(begin, end).split('\n')), line };
  return { text, line };
}

/** `[cf, push, app]`: a program with its arguments, without a shell. */
function programOf({ items }: YAMLSeq): string | undefined {
  const words = items.map((item) => (isScalar(item) ? String(item.value) : undefined));
  if (words[0] !== 'cf' && words[0] !== 'kf') return undefined;
  return words.map((word = '') => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
}

/** All texts of a YAML file but those that are for people. @throws KfError `usage` with the place of a fault */
function scriptsOfYaml(file: string, source: string): Script[] {
  const lines = new LineCounter();
  const lineOf = (at: number): number => lines.linePos(at).line;
  const found: Script[] = [];
  for (const document of parseAllDocuments(source, { lineCounter: lines, logLevel: 'silent', version: '1.2' })) {
    if (!('contents' in document)) continue;
    const [fault] = document.errors;
    if (fault !== undefined) {
      const [first = ''] = fault.message.split('\n');
      throw new KfError('usage', `${file}:${lineOf(fault.pos[0])}: this is not valid YAML: ${first}`);
    }
    visit(document, {
      Pair: (_, { key, value }) =>
        isScalar(key) && isScalar(value) && prose.has(String(key.value).toLowerCase()) ? visit.SKIP : undefined,
      Seq: (_, list) => {
        const text = programOf(list);
        if (text === undefined) return undefined;
        found.push({ text, line: lineOf(list.range?.[0] ?? 0) });
        return visit.SKIP;
      },
      Scalar: (key, scalar, path) => {
        const isKey = key === 'key' && isPair(path.at(-1) as Node);
        if (!isKey && typeof scalar.value === 'string') found.push(scriptOfScalar(source, scalar, lineOf));
      },
    });
  }
  return found;
}

/** The recipes of a Makefile: lines that begin with a tab; `$$` is the shell's `$`. */
function scriptsOfMakefile(source: string): Script[] {
  const lines = source.split('\n').map((line) =>
    line.startsWith('\t')
      ? line
          .slice(1)
          .replace(/^[@+-]+/, '')
          .replaceAll('$$', '$')
      : '',
  );
  return [{ text: lines.join('\n'), line: 1 }];
}

/** The texts of `sh` steps of a Jenkinsfile. */
function scriptsOfJenkinsfile(source: string): Script[] {
  const step = /\bsh\b[\s(]*(?:label:\s*'[^']*',\s*)?(?:returnStdout:\s*true,\s*|returnStatus:\s*true,\s*)?(?:script:\s*)?('''|"""|'|")/g;
  const found: Script[] = [];
  for (let match = step.exec(source); match !== null; match = step.exec(source)) {
    const quote = match[1] ?? '';
    const begin = step.lastIndex;
    const end = source.indexOf(quote, begin);
    if (end === -1) break;
    found.push({ text: source.slice(begin, end), line: source.slice(0, begin).split('\n').length });
    step.lastIndex = end + quote.length;
  }
  return found;
}

const otherPrograms = /^#!.*\b(?:python|node|ruby|perl|pwsh|php)/;

/** @throws KfError `usage` for a file that kf cannot read as scripts */
export function scriptsOf(file: string, source: string): Script[] {
  const name = file.replace(/^.*[\\/]/, '').toLowerCase();
  if (/\.(?:ya?ml|json)$/.test(name)) return scriptsOfYaml(file, source);
  if (/^(?:gnu)?makefile$|\.mk$/.test(name)) return scriptsOfMakefile(source);
  if (/^jenkinsfile|\.groovy$/.test(name)) return scriptsOfJenkinsfile(source);
  if (otherPrograms.test(source) || /\.(?:py|rb|pl|js|mjs|ts|ps1|bat|cmd|go|java)$/.test(name))
    throw new KfError('usage', `'${file}' is not a shell script. kf migrate reads shell scripts, YAML, JSON, Makefiles and Jenkinsfiles.`);
  return [{ text: source, line: 1 }];
}
