// Refusals in the form of the CF v3 API: a status, a code with its title, and a sentence.

import { KfError, type FailureClass } from '../errors.ts';

/** An answer of 400 or more. */
export class V3Error extends KfError {
  readonly status: number;
  readonly title: string;
  readonly number: number;

  constructor(kind: keyof typeof kindsOfErrors, detail: string) {
    const { code, status, title, number } = kindsOfErrors[kind];
    super(code, detail);
    this.name = 'V3Error';
    this.status = status;
    this.title = title;
    this.number = number;
  }

  /** The body of the answer. */
  get body(): { errors: { code: number; title: string; detail: string }[] } {
    return { errors: [{ code: this.number, title: this.title, detail: this.message }] };
  }
}

interface ErrorKind {
  code: FailureClass;
  status: number;
  title: string;
  number: number;
}

/** Codes and titles as the API documents them. */
const kindsOfErrors = {
  'unknown-request': { code: 'not-found', status: 404, title: 'CF-NotFound', number: 10000 },
  'not-found': { code: 'not-found', status: 404, title: 'CF-ResourceNotFound', number: 10010 },
  'bad-query': { code: 'usage', status: 400, title: 'CF-BadQueryParameter', number: 10005 },
  'bad-body': { code: 'usage', status: 400, title: 'CF-MessageParseError', number: 1001 },
  unprocessable: { code: 'usage', status: 422, title: 'CF-UnprocessableEntity', number: 10008 },
  forbidden: { code: 'forbidden', status: 403, title: 'CF-NotAuthorized', number: 10003 },
} as const satisfies Record<string, ErrorKind>;

/** What the API answers where a command of kf would fail with this error; undefined for a failure that is no answer, such as a lost connection. */
export function refusalOf(error: KfError): V3Error | undefined {
  if (error instanceof V3Error) return error;
  // The API server itself has failed, or did not answer.
  const { status } = error.details;
  if (typeof status === 'number' && (status === 0 || status >= 500)) return undefined;
  const detail = [error.message, ...error.hints.filter((hint) => hint.endsWith('.'))].join(' ');
  if (error.code === 'forbidden') return new V3Error('forbidden', detail);
  if (error.code === 'not-found') return new V3Error('not-found', detail);
  const isRefusal = (['usage', 'conflict', 'quota', 'build', 'start', 'failed'] as FailureClass[]).includes(error.code);
  return isRefusal ? new V3Error('unprocessable', detail) : undefined;
}
