// Hints to push again can be pasted: they contain the flags of this push.

import { quoted } from '../cf/shell-word.ts';
import type { PushFlags } from './plan.ts';

const megabytes = (size: number | undefined): string | undefined => (size === undefined ? undefined : `${size}M`);

/** A variable's value may be a secret, and hints appear in the logs of jobs. */
const withoutValue = (variable: string): string => `${variable.split('=')[0] ?? ''}=VALUE`;

/** A flag of push: its spellings, the first one for hints, and its values. */
interface Repeated {
  spellings: readonly string[];
  given: (flags: PushFlags) => string | number | boolean | readonly string[] | undefined;
  /** A flag that excludes this one: a text that advises it does not get this one. */
  not?: string;
}

const repeated: readonly Repeated[] = [
  { spellings: ['-f', '--manifest'], given: ({ manifest }) => manifest },
  { spellings: ['--no-manifest'], given: ({ noManifest }) => noManifest },
  { spellings: ['--vars-file'], given: ({ varsFiles }) => varsFiles },
  { spellings: ['--var'], given: ({ vars }) => vars?.map(withoutValue) },
  { spellings: ['-p', '--path'], given: ({ path }) => path, not: '--docker-image' },
  { spellings: ['--docker-image', '-o'], given: ({ dockerImage }) => dockerImage },
  { spellings: ['--docker-username'], given: ({ dockerUsername }) => dockerUsername },
  { spellings: ['-b', '--buildpack'], given: ({ buildpacks }) => buildpacks, not: '--docker-image' },
  { spellings: ['-s', '--stack'], given: ({ stack }) => stack },
  { spellings: ['-c', '--start-command'], given: ({ command }) => command },
  { spellings: ['-i', '--instances'], given: ({ instances }) => instances },
  { spellings: ['-m', '--memory'], given: ({ memoryMB }) => megabytes(memoryMB) },
  { spellings: ['-k', '--disk'], given: ({ diskQuotaMB }) => megabytes(diskQuotaMB) },
  { spellings: ['-t', '--app-start-timeout'], given: ({ timeoutSeconds }) => timeoutSeconds },
  { spellings: ['-u', '--health-check-type'], given: ({ healthCheckType }) => healthCheckType },
  { spellings: ['--endpoint'], given: ({ endpoint }) => endpoint },
  { spellings: ['--no-route'], given: ({ noRoute }) => noRoute },
  { spellings: ['--random-route'], given: ({ randomRoute }) => randomRoute },
  { spellings: ['--no-start'], given: ({ noStart }) => noStart },
  { spellings: ['--no-wait'], given: ({ noWait }) => noWait },
  { spellings: ['--strategy'], given: ({ strategy }) => strategy },
  { spellings: ['--max-in-flight'], given: ({ maxInFlight }) => maxInFlight, not: '--strategy' },
  { spellings: ['--instance-steps'], given: ({ instanceSteps }) => instanceSteps, not: '--strategy' },
  { spellings: ['--context'], given: ({ context }) => context },
  { spellings: ['--org'], given: ({ org }) => org },
  { spellings: ['--space'], given: ({ space }) => space },
];

function wordsOf({ spellings: [flag = ''], given }: Repeated, flags: PushFlags): string[] {
  const value = given(flags);
  if (value === undefined || value === false) return [];
  if (value === true) return [flag];
  return [value].flat().flatMap((one) => [flag, quoted(String(one))]);
}

/**
 * Adds the flags of this push to each `kf push NAME` (or `cf push NAME`) in a text. Flags that the text itself names stay, because they are its advice.
 * @param text a hint, such as `kf push shop -s STACK`
 */
export function repeatPush(text: string, flags: PushFlags): string {
  const named = new Set(text.split(/[\s`']+/));
  const words = repeated
    .filter(({ spellings, not = '' }) => ![...spellings, not].some((spelling) => named.has(spelling)))
    .flatMap((flag) => wordsOf(flag, flags));
  return words.length === 0 ? text : text.replace(/(?<=\b[ck]f )push [-\w]+(?![^\s`',.;])/g, (command) => `${command} ${words.join(' ')}`);
}
