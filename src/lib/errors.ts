// The error type that users see, and the one for our own mistakes.

/** Classes of failure: `error.code` in `--json`; numbered by `KF_EXIT_CODES=class` (docs/exit-codes.md). */
export type FailureClass =
  | 'usage'
  | 'not-found'
  | 'forbidden'
  | 'conflict'
  | 'upload'
  | 'build'
  | 'start'
  | 'timeout'
  | 'quota'
  | 'unreachable'
  | 'interrupted'
  | 'accepted'
  | 'failed'
  | 'bug';

export interface KfErrorOptions {
  /** Commands or facts that help, one per line; a command has a line of its own so that it can be pasted. */
  hints?: string[];
  /** Exit code in cf's numbering; default 1. */
  exitCode?: number;
  /** Facts for programs, next to the message in `--json`. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

/** A failure that a user can act on. `message` is a full sentence without a type name or a stack. */
export class KfError extends Error {
  readonly code: FailureClass;
  readonly hints: string[];
  readonly exitCode: number;
  readonly details: Record<string, unknown>;

  constructor(code: FailureClass, message: string, options: KfErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'KfError';
    this.code = code;
    this.hints = options.hints ?? [];
    this.exitCode = options.exitCode ?? 1;
    this.details = options.details ?? {};
  }
}

/** A state that should be impossible: our mistake, printed with its stack. */
export class BugError extends KfError {
  constructor(message: string, options: KfErrorOptions = {}) {
    super('bug', message, options);
    this.name = 'BugError';
  }
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
