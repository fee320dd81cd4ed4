// How a reconcile ends: done, done until later, or one of three kinds of error.

/** What a reconcile gives back; nothing means "until something changes". */
export interface Result {
  /** Look at this key again after so many milliseconds, even when nothing changes. */
  requeueAfterMs?: number;
}

/** Only a change of the object can help: no retry. */
export class TerminalError extends Error {
  /** Reason of the Ready condition, CamelCase. */
  readonly reason: string;

  constructor(reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TerminalError';
    this.reason = reason;
  }
}

/** Something else has to happen first: look again after `afterMs`, or when a watched object changes (`afterMs` left out). */
export class WaitingError extends Error {
  readonly reason: string;
  readonly afterMs: number | undefined;

  constructor(reason: string, message: string, afterMs?: number) {
    super(message);
    this.name = 'WaitingError';
    this.reason = reason;
    this.afterMs = afterMs;
  }
}

/** A write was refused because this process may no longer be the leader. Nothing was sent. */
export class NotLeaderError extends Error {
  constructor() {
    super('This process is not the leader, so the write was not sent.');
    this.name = 'NotLeaderError';
  }
}
