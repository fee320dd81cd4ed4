// The shell scripts in a file: a script is one itself; CI files in YAML or JSON, a Makefile and a Jenkinsfile have several.

import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  visit,
  type Node,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { KfError } from '../errors.ts';
import { isNameOfCf } from './programs.ts';

/** Part of a file that a shell runs. */
export interface Script {
  text: string;
  /** The line of its first character in the file. */
  line: number;
}

/** A step of a CI that speaks with Cloud Foundry itself, without a call of cf. */
export interface Step {
  /** As it is named in the file. */
  name: string;
  line: number;
}

export interface Found {
  scripts: Script[];
  steps: Step[];
}

/** Steps for Cloud Foundry by the key that names them: actions of GitHub, tasks of Azure, resources of Concourse, deployments of Travis. */
const stepNames: Readonly<Record<string, RegExp>> = {
  uses: /^[^@]*(?:cf-cli|cloud-?foundry|cg-cli-tools|setup-cf|cf-push|cf-deploy)/i,
  task: /^cloudfoundry/i,
  type: /^(?:cf|cf-cli(?:-resource)?)$/,
  provider: /^cloudfoundry$/,
};

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

const wordsOf = ({ items }: YAMLSeq): string[] => items.map((item) => (isScalar(item) ? String(item.value) : ''));

/** A program with its arguments, without a shell; undefined for another program than cf. */
function programOf([program = '', ...args]: readonly string[]): string | undefined {
  if (!isNameOfCf(program)) return undefined;
  return [program, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
}

/** `path: cf` with `args: [push, app]`, as a task of Concourse runs a program. */
function programOfTask(map: YAMLMap, lineOf: (at: number) => number): Script[] {
  const [path, args] = [map.get('path', true), map.get('args')];
  if (!isScalar(path) || typeof path.value !== 'string' || !isSeq(args)) return [];
  const text = programOf([path.value, ...wordsOf(args)]);
  return text === undefined ? [] : [{ text, line: lineOf(path.range?.[0] ?? 0) }];
}

/** `with: { command: push my-app }` of an action for cf: the words after `cf`. */
function commandsOfAction(map: YAMLMap, lineOf: (at: number) => number): Script[] {
  const inputs = map.get('with');
  if (!isMap(inputs) || stepNames['uses']?.test(String(map.get('uses'))) !== true) return [];
  return inputs.items.flatMap(({ key, value }) => {
    if (
      !isScalar(key) ||
      !isScalar(value) ||
      !/command/i.test(String(key.value)) ||
      isNameOfCf(/^\s*(\S*)/.exec(String(value.value))?.[1] ?? '')
    )
      return [];
    return [{ text: `cf ${String(value.value)}`, line: lineOf(value.range?.[0] ?? 0) }];
  });
}

/** All texts of a YAML file but those that are for people. @throws KfError `usage` with the place of a fault */
function scriptsOfYaml(file: string, source: string): Found {
  const lines = new LineCounter();
  const lineOf = (at: number): number => lines.linePos(at).line;
  const scripts: Script[] = [];
  const steps: Step[] = [];
  for (const document of parseAllDocuments(source, { lineCounter: lines, logLevel: 'silent', version: '1.2' })) {
    if (!('contents' in document)) continue;
    const [fault] = document.errors;
    if (fault !== undefined) {
      const [first = ''] = fault.message.split('\n');
      throw new KfError('usage', `${file}:${lineOf(fault.pos[0])}: this is not valid YAML: ${first}`);
    }
    visit(document, {
      Pair: (_, { key, value }) => {
        if (!isScalar(key) || !isScalar(value)) return undefined;
        const name = String(value.value);
        if (stepNames[String(key.value)]?.test(name) === true) steps.push({ name, line: lineOf(key.range?.[0] ?? 0) });
        return prose.has(String(key.value).toLowerCase()) ? visit.SKIP : undefined;
      },
      Map: (_, map) => void scripts.push(...commandsOfAction(map, lineOf), ...programOfTask(map, lineOf)),
      Seq: (_, list) => {
        const text = programOf(wordsOf(list));
        if (text === undefined) return undefined;
        scripts.push({ text, line: lineOf(list.range?.[0] ?? 0) });
        return visit.SKIP;
      },
      Scalar: (key, scalar, path) => {
        const isKey = key === 'key' && isPair(path.at(-1) as Node);
        if (!isKey && typeof scalar.value === 'string') scripts.push(scriptOfScalar(source, scalar, lineOf));
      },
    });
  }
  return { scripts, steps };
}

/** The lines of a Makefile's recipes, which begin with a tab: each is a script of its own, with the lines that continue it. `$$` is the shell's `$`. */
function scriptsOfMakefile(source: string): Script[] {
  const scripts: Script[] = [];
  let isContinued = false;
  for (const [at, line] of source.split('\n').entries()) {
    const text = line.replace(/^\t/, '').replaceAll('$$', '$');
    const last = scripts.at(-1);
    if (isContinued && last !== undefined) last.text += `\n${text}`;
    else if (line.startsWith('\t')) scripts.push({ text: text.replace(/^[@+-]+/, ''), line: at + 1 });
    isContinued = line.endsWith('\\') && (isContinued || line.startsWith('\t'));
  }
  return scripts;
}

/** The texts of `sh` steps of a Jenkinsfile. */
function scriptsOfJenkinsfile(source: string): Found {
  const step = /\bsh\b[\s(]*(?:label:\s*'[^']*',\s*)?(?:returnStdout:\s*true,\s*|returnStatus:\s*true,\s*)?(?:script:\s*)?('''|"""|'|")/g;
  const lineOf = (at: number): number => source.slice(0, at).split('\n').length;
  const scripts: Script[] = [];
  for (let match = step.exec(source); match !== null; match = step.exec(source)) {
    const quote = match[1] ?? '';
    const begin = step.lastIndex;
    const end = source.indexOf(quote, begin);
    if (end === -1) break;
    scripts.push({ text: source.slice(begin, end), line: lineOf(begin) });
    step.lastIndex = end + quote.length;
  }
  const steps = [...source.matchAll(/\b(?:pushToCloudFoundry|cloudFoundryDeploy)\b/g)].map(({ 0: name, index }) => ({
    name,
    line: lineOf(index),
  }));
  return { scripts, steps };
}

const otherPrograms = /^#!.*\b(?:python|node|ruby|perl|pwsh|php)/;

/** @throws KfError `usage` for a file that kf cannot read as scripts */
export function scriptsOf(file: string, source: string): Found {
  const name = file.replace(/^.*[\\/]/, '').toLowerCase();
  if (/\.(?:ya?ml|json)$/.test(name)) return scriptsOfYaml(file, source);
  if (/^(?:gnu)?makefile$|\.mk$/.test(name)) return { scripts: scriptsOfMakefile(source), steps: [] };
  if (/^jenkinsfile|\.groovy$/.test(name)) return scriptsOfJenkinsfile(source);
  if (otherPrograms.test(source) || /\.(?:py|rb|pl|js|mjs|ts|ps1|bat|cmd|go|java)$/.test(name))
    throw new KfError('usage', `'${file}' is not a shell script. kf migrate reads shell scripts, YAML, JSON, Makefiles and Jenkinsfiles.`);
  return { scripts: [{ text: source, line: 1 }], steps: [] };
}
