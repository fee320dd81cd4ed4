// Limits the interim answers (1xx) that a server may send before its answer.

import type { ClientRequest } from 'node:http';

/** Servers send one or two: `100 Continue`, `103 Early Hints`. */
const mostInterimAnswers = 16;

/**
 * Ends the request with an error when the server sends too many interim answers. They can be endless, every one takes time of this process, and
 * each byte of them restarts the time limit of a silent connection.
 */
export function limitInterimAnswers(request: ClientRequest): void {
  let count = 0;
  request.on('information', () => {
    count += 1;
    if (count > mostInterimAnswers) request.destroy(new Error('the server sent interim answers (1xx) instead of an answer'));
  });
}
