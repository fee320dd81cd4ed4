// Prints a failure: in text in cf's order of streams, in JSON as the envelope.

import { BugError, KfError, messageOf } from '../errors.ts';
import { exitCodeOf } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** Any thrown value as a KfError. */
export function toKfError(thrown: unknown): KfError {
  if (thrown instanceof KfError) return thrown;
  if (thrown instanceof Error && thrown.name === 'AbortError') {
    return thrown.cause instanceof KfError ? thrown.cause : new KfError('interrupted', 'Interrupted.', { cause: thrown });
  }
  return new BugError(`kf made a mistake: ${messageOf(thrown)}`, { cause: thrown });
}

function stackOf(error: KfError): string | undefined {
  const origin = error.cause instanceof Error ? error.cause : error;
  return origin.stack;
}

const textsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** The log of the failed container, with a note where lines are left out; empty for a build whose whole log was shown while it ran. */
function logOf({ code, details }: KfError): string[] {
  if (code === 'build' && details['logIncomplete'] !== true) return [];
  const [head, tail] = [textsOf(details['logHead']), textsOf(details['logTail'])];
  const omitted = Number(details['logOmitted'] ?? 0);
  return [...head, ...(omitted > 0 ? [`... ${omitted} ${omitted === 1 ? 'line' : 'lines'} left out ...`] : []), ...tail];
}

function errorDocument(error: KfError): Record<string, unknown> {
  const { hints, details, code, message } = error;
  return {
    code,
    message,
    ...(hints.length > 0 ? { hints } : {}),
    ...(Object.keys(details).length > 0 ? { details } : {}),
    ...(error instanceof BugError ? { stack: stackOf(error) } : {}),
  };
}

/** The forms of `--json` output: one indented document, or one document per line (`logs`). */
export type JsonForm = 'document' | 'lines';

const hintLines = ({ hints }: KfError): string[] => (hints.length === 0 ? [] : ['', 'TIP:', ...hints.map((hint) => `   ${hint}`)]);

/** A failure that does not end the command: its message, the last lines of the failed container, hints. */
export function failureLines(error: KfError, terminal: Terminal): string[] {
  nameCommands(error, terminal);
  return [error.message, ...logOf(error).map((line) => `   ${line}`), ...hintLines(error)];
}

function printText(terminal: Terminal, error: KfError, { withoutFailed = false }: FailureOptions): void {
  terminal.err(error.message);
  for (const line of logOf(error)) terminal.err(`   ${line}`);
  if (error instanceof BugError) terminal.err(stackOf(error) ?? '');
  if (!withoutFailed) terminal.out(terminal.ink.bad('FAILED'));
  const hints = hintLines(error);
  if (hints.length > 0) terminal.err(hints.join('\n'));
}

interface Told {
  message: string;
  hints?: string[];
}

/** The failure itself, and those of its apps, where a push of several has failed. */
function failuresIn(error: KfError): Told[] {
  const { apps } = error.details;
  const ofApps = Array.isArray(apps) ? (apps as { error?: Told }[]) : [];
  return [error, ...ofApps.flatMap(({ error: ofApp }) => ofApp ?? [])];
}

/** Changes all hints of a failure in place. */
export function changeHints(error: KfError, change: (hint: string) => string): void {
  for (const { hints } of failuresIn(error)) hints?.splice(0, hints.length, ...hints.map((hint) => change(hint)));
}

/** Shows the error's commands under the name of the program: a user who typed `cf` sees `cf push`. Text of apps is unchanged. */
function nameCommands(error: KfError, { asStarted }: Terminal): void {
  for (const told of failuresIn(error)) told.message = asStarted(told.message);
  changeHints(error, asStarted);
}

export interface FailureOptions {
  json?: JsonForm;
  /** A wrong command line ends without cf's `FAILED`. */
  withoutFailed?: boolean;
}

/** Prints a failure and returns the exit code. Usage errors are printed by the frame, which has the help. */
export function printFailure(terminal: Terminal, error: KfError, options: FailureOptions = {}): number {
  const status = exitCodeOf(error, terminal.env);
  nameCommands(error, terminal);
  if (!terminal.json) printText(terminal, error, options);
  else terminal.document({ status, error: errorDocument(error), warnings: terminal.warnings }, options.json === 'lines' ? undefined : 2);
  return status;
}

export interface ResultOptions {
  json?: JsonForm;
  status?: number;
}

/** `{status, result, warnings}` on stdout, with the exit code as status; in line form each warning is one more `{warning}`. */
export function printResult(terminal: Terminal, result: unknown, { json = 'document', status = 0 }: ResultOptions = {}): void {
  if (!terminal.json) return;
  if (json === 'document') terminal.document({ status, result: result ?? {}, warnings: terminal.warnings }, 2);
  else for (const warning of terminal.warnings) terminal.document({ warning });
}
