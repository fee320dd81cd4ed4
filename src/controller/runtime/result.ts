// The outcomes of a reconcile: done, done until later, or one of three kinds of error.

/** The result of a reconcile; undefined means "until something changes". */
export interface Result {
  /** Reconcile this key again after this many milliseconds, even when nothing changes. */
  requeueAfterMs?: number;
}

/** Only a change of the object can help, so there is no retry. */
export class TerminalError extends Error {
  /** Reason of the Ready condition, CamelCase. */
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TerminalError';
    this.reason = reason;
  }
}

/**
 * Something else has to happen first: try again after `afterMs`, or when a watched object changes (`afterMs` left out). With `mostMs` the time doubles with
 * each try up to it: for what lasts until a member of a space changes it.
 */
export class WaitingError extends Error {
  readonly reason: string;
  readonly afterMs: number | undefined;
  readonly mostMs: number | undefined;

  constructor(reason: string, message: string, afterMs?: number, mostMs?: number) {
    super(message);
    this.name = 'WaitingError';
    this.reason = reason;
    this.afterMs = afterMs;
    this.mostMs = mostMs;
  }
}

/** A write was refused because this process may no longer be the leader: it was not sent, or the cluster refused it. */
export class NotLeaderError extends Error {
  constructor(options?: ErrorOptions) {
    super('This process is not the leader, so nothing was written.', options);
    this.name = 'NotLeaderError';
  }
}
