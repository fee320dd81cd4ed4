// Explains refusals of the API server: an invalid object, a quota, a policy, a webhook. Its own texts name GUIDs and Go types.

import { limitsName } from '../api/group.ts';
import { parseQuantity } from '../api/sizes.ts';

interface Cause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface Refusal {
  code: 'quota' | 'forbidden' | 'not-found' | 'failed';
  /** The end of "Error from Kubernetes: ". */
  text: string;
  hints: string[];
  /** The text names a quota itself: it says who refused. */
  isWhole?: boolean;
}

/** The policy that refuses instances with more memory than a quota of the org or space allows. */
const instanceMemoryPolicy = 'kf-instance-memory';

/** `exceeded quota: q, requested: a=1,b=2, used: a=5,b=3, limited: a=5,b=4` */
const quotaText = /exceeded quota: ([^,]+), requested: (.+), used: (.+), limited: ([^ ]+?)\.?(?= |$)/;

function amounts(text: string): Map<string, string> {
  return new Map(
    text.split(',').map((entry): [string, string] => {
      const at = entry.lastIndexOf('=');
      return [entry.slice(0, at).trim(), entry.slice(at + 1).trim()];
    }),
  );
}

/** What a ResourceQuota refused. */
export interface Exceeded {
  quota: string;
  lacking: { resource: string; used: string; most: string; asked: string }[];
}

/** Reads the API server's text about a quota; undefined for other texts. */
export function readExceeded(message: string): Exceeded | undefined {
  const [, quota = '', requested, used, limited] = quotaText.exec(message) ?? [];
  if (requested === undefined || used === undefined || limited === undefined) return undefined;
  const [before, most] = [amounts(used), amounts(limited)];
  const lacking = [...amounts(requested)].map(([resource, asked]) => ({
    ...{ resource, asked },
    ...{ used: before.get(resource) ?? '?', most: most.get(resource) ?? '?' },
  }));
  return { quota, lacking };
}

/** What a quota refuses that has less of it in all than was asked for, by the API server's text: no room that is made helps. */
export function exceedsWhole(message: string): 'memory' | 'disk' | undefined {
  const isMore = (asked: string, most: string): boolean => (parseQuantity(asked) ?? 0) > (parseQuantity(most) ?? Infinity);
  const found = readExceeded(message)?.lacking.find(({ asked, most }) => isMore(asked, most))?.resource ?? '';
  if (/(^|\.)memory$/.test(found)) return 'memory';
  return /(^|\.)ephemeral-storage$/.test(found) ? 'disk' : undefined;
}

function quotaRefusal(message: string): Refusal | undefined {
  const exceeded = readExceeded(message);
  if (exceeded === undefined) return undefined;
  const { quota } = exceeded;
  const lacking = exceeded.lacking.map(
    ({ resource, used, most, asked }) => `${resource}: ${used} of ${most} used, ${asked} more requested`,
  );
  return {
    code: 'quota',
    text: `this would exceed the quota '${quota}' of the space (${lacking.join('; ')}).`,
    hints: [
      ...(quota === limitsName ? ['The spaces of an org share its limits: deleting objects in any of them helps.'] : []),
      'Delete what is not needed, or ask an administrator of the cluster for more.',
      `kubectl describe resourcequota ${quota}`,
    ],
  };
}

/** `… is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: text` */
const policyText = /ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request: ([^]+)$/;
const webhookText = /admission webhook "([^"]+)" denied the request(?:: ([^]+))?$/;

function policyRefusal(message: string): Refusal | undefined {
  const [, policy, why] = policyText.exec(message) ?? [];
  if (policy === instanceMemoryPolicy) return { code: 'quota', text: why ?? '', hints: [], isWhole: true };
  if (policy !== undefined) {
    const isOwn = policy.startsWith('kf-');
    return {
      code: 'forbidden',
      text: isOwn ? (why ?? '') : `the policy '${policy}' of the cluster does not allow it: ${why ?? ''}`,
      hints: isOwn ? [] : ['An administrator of the cluster can say why.'],
    };
  }
  const [, webhook, reason = 'no reason given'] = webhookText.exec(message) ?? [];
  if (webhook === undefined) return undefined;
  return {
    code: 'forbidden',
    text: `the webhook '${webhook}' of the cluster does not allow it: ${reason}`,
    hints: ['An administrator of the cluster can say why.'],
  };
}

/** The pattern of names of orgs, spaces, apps and services, in words. */
const nameRule = "should match '^[[:alnum:][:punct:][:print:]]+$'";
const nameWords = 'must consist of ASCII letters, digits, punctuation and blanks';

/**
 * Turns `Invalid value: 5000: spec.desiredInstances in body should be less than or equal to 1000` into `… must be less than or equal to 1000, and
 * it is 5000`.
 */
function readCause({ field = '', message = '' }: Cause): string {
  const [, value, rest = message] = /^(?:Invalid|Unsupported|Duplicate) value: ("(?:[^"\\]|\\.)*"|[^\s:]+): ([^]*)$/.exec(message) ?? [];
  const name = field === '' || field === '<nil>' ? '' : field.replace(/^(spec|data|metadata)\./, '');
  const what = rest
    .replace(/^[\w.[\]]+ in body /, '')
    .replace(/^should be/, 'must be')
    .replace(nameRule, nameWords);
  const joined = what.startsWith('must') || what.startsWith('should') ? `${name} ${what}` : `${name}${name === '' ? '' : ': '}${what}`;
  const isShort = value !== undefined && value.length <= 60 && !value.startsWith('{') && value !== '"object"';
  return isShort ? `${joined} (it is ${value})` : joined;
}

function invalidRefusal(kind: string, causes: readonly Cause[]): Refusal | undefined {
  if (causes.length === 0) return undefined;
  const most = 5;
  const told = causes.slice(0, most).map(readCause);
  const more = causes.length > most ? [`and ${String(causes.length - most)} more`] : [];
  return { code: 'failed', text: `the ${kind === '' ? 'object' : kind} is not valid: ${[...told, ...more].join('; ')}`, hints: [] };
}

/** `… is forbidden: unable to create new content in namespace x because it is being terminated` */
const terminatingText = /in namespace (\S+) because it is being terminated/;

/** True for the refusal to create an object in a namespace that is being deleted (the admission plugin NamespaceLifecycle). */
export function isOfTerminating(status: number, causes: readonly Cause[] = []): boolean {
  return status === 403 && causes.some(({ reason }) => reason === 'NamespaceTerminating');
}

/** The refusal as a sentence; undefined for other texts, which are shown unchanged. */
export function readRefusal(status: number, message: string, details: { kind?: string; causes?: Cause[] } = {}): Refusal | undefined {
  if (isOfTerminating(status, details.causes)) {
    const [, ns] = terminatingText.exec(message) ?? [];
    return { code: 'not-found', text: `the namespace${ns === undefined ? '' : ` "${ns}"`} is being deleted`, hints: [] };
  }
  if (status === 403 || status === 422) {
    const known = quotaRefusal(message) ?? policyRefusal(message);
    if (known !== undefined) return known;
  }
  return status === 422 ? invalidRefusal(details.kind ?? '', details.causes ?? []) : undefined;
}
