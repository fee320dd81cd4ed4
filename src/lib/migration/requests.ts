// The requests of `cf curl` in scripts, compared with those that kf answers.

import { insteadOf } from '../v3/instead.ts';
import { v3Requests } from './requests.generated.ts';
import type { Word } from './shell.ts';

/** What becomes of a request; undefined: kf answers it. */
export interface RequestVerdict {
  status: 'unclear' | 'refused';
  text: string;
}

/** Stands for a part that is known only when the script runs. */
const expansion = '\u0000';

/** The text with every expansion of the shell as one character; those in others first. */
function withExpansions(text: string): string {
  const inner = /\$\([^()]*\)|`[^`]*`|\$\{[^{}]*\}|\$\w+/g;
  const replaced = text.replaceAll(inner, expansion);
  return replaced === text ? text : withExpansions(replaced);
}

/** How well a path fits: an expansion may be any GUID, and perhaps a fixed word of the path. */
function fit(pattern: string, path: string): 'fits' | 'may' | 'no' {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== given.length) return 'no';
  const judged = wanted.map((word, at) => {
    const there = given[at] ?? '';
    if (word.startsWith(':') ? there !== '' : word === there) return 'fits';
    return there.includes(expansion) ? 'may' : 'no';
  });
  return judged.includes('no') ? 'no' : judged.includes('may') ? 'may' : 'fits';
}

/** Path without query, as kf looks it up. */
function pathOf(text: string): string {
  const [before = ''] = text.split('?');
  return `/${before
    .split('/')
    .filter((word) => word !== '')
    .join('/')}`;
}

const unclear = (what: string): RequestVerdict => ({ status: 'unclear', text: `${what} is known only when the script runs` });

/** @param given the method, or undefined when the call names none; @param hasData a request with data is a POST */
export function judgeRequest(path: Word, given: string | undefined, hasData: boolean): RequestVerdict | undefined {
  const address = withExpansions(path.text);
  if (/^https?:/i.test(address)) return { status: 'refused', text: 'the path without the server: kf curl /v3/...' };
  if (address.startsWith(expansion)) return unclear('the path of the request');
  const method = withExpansions((given ?? (hasData ? 'POST' : 'GET')).toUpperCase());
  if (method.includes(expansion)) return unclear('the method of the request');
  const asked = pathOf(address);
  const fits = v3Requests
    .map((request) => request.split(' '))
    .filter(([name]) => name === method)
    .map(([, pattern = '']) => fit(pattern, asked));
  if (fits.includes('fits')) return undefined;
  if (fits.includes('may')) return unclear('the path of the request');
  const instead = insteadOf(method, asked);
  // Kubernetes answers these itself.
  if (instead === undefined && /^\/apis?(\/|$)/.test(asked)) return undefined;
  return { status: 'refused', text: instead ?? 'docs/curl.md lists the requests that kf answers' };
}
