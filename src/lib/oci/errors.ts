// Error answers of registries, and which of them are worth another try.

import { defined } from '../defined.ts';
import { KfError, messageOf } from '../errors.ts';
import { type HttpResponse, readUpTo } from './http.ts';

/** One entry of an error body; https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#error-codes. */
export interface RegistryErrorEntry {
  code: string;
  message: string;
  detail?: unknown;
}

/** Worth another try: go-containerregistry's list, from its experience (499 and 522 come from proxies). */
const TEMPORARY_STATUSES = new Set([408, 429, 499, 500, 502, 503, 504, 522]);
const TEMPORARY_ERRNOS = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_HTTP2_STREAM_ERROR',
]);
/** A longer error body would not help anybody. */
const MAX_ERROR_BODY_BYTES = 64 * 1024;
const MAX_TEXT_CHARACTERS = 300;
/** Limit for the entries of an error body; registries send one. */
const MAX_ENTRIES = 5;

/** A value that is not a string counts as empty: an object would be printed as its type. */
const shortText = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_TEXT_CHARACTERS) : '');

/**
 * Which credential was sent, as in {@link describeCredential}, and whether a token server took it; or a sentence on why none was, and whether the registry
 * asked for none that kf can send.
 */
export type CredentialUse = { sent: string; hasToken?: true } | { none: string; isUnasked?: true };

export interface RegistryAnswer {
  status: number;
  entries: RegistryErrorEntry[];
  /** True when the body was a registry's error document and not a proxy's page. */
  fromRegistry: boolean;
  /** Seconds from `Retry-After`, where given as a number. */
  retryAfterSeconds?: number;
  /** Left out when it is not known. */
  credential?: CredentialUse;
}

/** A registry answered with an error status. */
export class RegistryError extends KfError {
  readonly answer: RegistryAnswer;

  constructor(doing: string, answer: RegistryAnswer, text: string) {
    const full = isFull(answer, text);
    super('upload', full ? `Error from registry: ${doing}: ${fullText(answer)}.` : `Error from registry: ${doing}: ${text}.`, {
      hints: hintsFor(answer),
      details: { status: answer.status, codes: answer.entries.map((entry) => entry.code) },
    });
    this.name = 'RegistryError';
    this.answer = answer;
    this.#temporary = !full && TEMPORARY_STATUSES.has(answer.status);
  }

  readonly #temporary: boolean;

  /** Whether the same request may succeed a little later. */
  temporary(): boolean {
    return this.#temporary;
  }

  has(code: string): boolean {
    return this.answer.entries.some((entry) => entry.code === code);
  }
}

/** What is known of the request that got an error. */
interface FailedRequest {
  isHead?: boolean;
  credential?: CredentialUse;
}

/** Reads the answer (at most 64 KiB of it). `doing` is a gerund and its object: `uploading the layer to 'a/b'`. */
export async function registryError(
  response: HttpResponse,
  doing: string,
  { isHead = false, credential }: FailedRequest = {},
): Promise<RegistryError> {
  const body = isHead ? '' : (await readUpTo(response.body, MAX_ERROR_BODY_BYTES).catch(() => Buffer.alloc(0))).toString();
  if (isHead) response.body.resume();
  const { entries, fromRegistry } = parseBody(body);
  const answer: RegistryAnswer = { status: response.status, entries, fromRegistry, ...defined({ credential }) };
  const after = Number(response.headers['retry-after']);
  if (Number.isFinite(after)) answer.retryAfterSeconds = after;
  return new RegistryError(doing, answer, redact(textOf(answer, body)));
}

/** True for a failure of any kind (answer, connection, proxy) that may go away by itself. Never for an abort. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof RegistryError) return error.temporary();
  return isConnectionFailure(error);
}

/** No answer came: refused, reset, cut, timed out. */
export function isConnectionFailure(error: unknown): boolean {
  if (error instanceof RegistryError || !(error instanceof Error) || error.name === 'AbortError') return false;
  if (error instanceof KfError && error.code === 'unreachable') return true;
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== undefined && TEMPORARY_ERRNOS.has(code)) return true;
  return error.cause !== undefined && isConnectionFailure(error.cause);
}

/** The message for users of a failure without an answer. Answers, aborts and our own errors are returned unchanged. */
export function withoutAnswer(error: unknown, doing: string): unknown {
  if (error instanceof KfError || (error instanceof Error && error.name === 'AbortError')) return error;
  return new KfError('upload', `The registry cannot be reached: ${doing}: ${redact(messageOf(error))}.`, { cause: error });
}

/** A query parameter with a secret value, with the character before it and the equals sign. */
const secretKey = /token|password|secret|signature|credential|key|^.(?:_state|sig)=$/i;

/** Removes credentials from a text: user information and secret query values of URLs, bearer and basic tokens. */
export function redact(text: string): string {
  return text
    .replace(/(:\/\/)[^/\s@]+@/g, '$1')
    .replace(/([?&][\w-]+=)[^&\s"']+/g, (whole, key: string) => (secretKey.test(key) ? `${key}***` : whole))
    .replace(/\b(Bearer|Basic)\s+[\w+/=.~-]{8,}/gi, '$1 ***');
}

function parseBody(body: string): { entries: RegistryErrorEntry[]; fromRegistry: boolean } {
  try {
    const parsed: unknown = JSON.parse(body);
    const errors = (parsed as { errors?: unknown } | null)?.errors;
    if (!Array.isArray(errors)) return { entries: [], fromRegistry: false };
    const entries = errors
      .slice(0, MAX_ENTRIES)
      .filter((entry): entry is Record<string, unknown> => typeof entry === 'object' && entry !== null)
      .map((entry) => ({ code: shortText(entry['code']) || 'UNKNOWN', message: shortText(entry['message']), detail: entry['detail'] }));
    return { entries, fromRegistry: true };
  } catch {
    return { entries: [], fromRegistry: false };
  }
}

function textOf(answer: RegistryAnswer, body: string): string {
  if (answer.entries.length > 0) return `${answer.entries.map(entryText).join('; ')} (status ${answer.status})`;
  const text = body
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_TEXT_CHARACTERS);
  return text === '' ? `status ${answer.status}` : `status ${answer.status}, ${text.replace(/\.$/, '')}`;
}

function entryText(entry: RegistryErrorEntry): string {
  const short = shortText(entry.detail);
  const detail = short === '' ? '' : ` (${short})`;
  return `${entry.code}${entry.message === '' ? '' : `: ${entry.message}`}${detail}`;
}

/** Distribution reports a full volume as 500 UNKNOWN with the system's text as detail; S3 gateways and others use 507. */
function isFull(answer: RegistryAnswer, text: string): boolean {
  return answer.status === 507 || /no space left on device|disk quota exceeded/i.test(text + JSON.stringify(answer.entries));
}

/** The text of kf's own gate. */
const isFullGate = ({ message }: RegistryErrorEntry): boolean => message.startsWith('the registry has no disk space left');

/** The gate's own text, with figures. Other registries give the system's text, which does not help users. */
function fullText({ entries }: RegistryAnswer): string {
  return entries.find(isFullGate)?.message ?? 'the registry has no disk space left';
}

/** One sentence on the credential of a request that was refused, with its user and where it is from; undefined for other answers. */
export function credentialNote({ status, credential }: RegistryAnswer): string | undefined {
  if (status !== 401 && status !== 403) return undefined;
  if (credential === undefined) return undefined;
  if ('none' in credential) return credential.none;
  if (status === 403) return `The credential that was sent may not do this in this repository: ${credential.sent}.`;
  // A token server has accepted the credential, and issues a token also for a repository in which it may do nothing.
  if (credential.hasToken === true)
    return `The credential that was sent may not do this in this repository, or the repository does not exist: ${credential.sent}.`;
  return `The registry does not know the credential that was sent: ${credential.sent}.`;
}

function hintsFor(answer: RegistryAnswer): string[] {
  const note = credentialNote(answer);
  if (answer.status === 401) return note === undefined ? [] : [note];
  if (answer.entries.some(({ message }) => message.includes('its share of the registry')))
    return ['kf delete APP for apps that are not needed: this also deletes their images.'];
  if (answer.entries.some(({ message }) => message.includes('repositories, the most that are possible')))
    return ['kf delete APP for apps that are not needed: this also deletes their images.'];
  if (answer.entries.some(isFullGate)) return ['An operator can remove the images that nothing uses: kf prune'];
  return note === undefined ? [] : [note];
}
