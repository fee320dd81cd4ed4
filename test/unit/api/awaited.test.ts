import { expect, test } from 'vitest';
import { awaitedIn } from '../../../src/lib/api/awaited.ts';

test.each([
  ['Waiting for instance 0 to listen on port 8080.', 'instance 0 to listen on port 8080'],
  ["Waiting for the registry's answer about image 'a:1.0'.", "the registry's answer about image 'a:1.0'"],
  ['The gateway does not reach the new version yet (503).', 'the gateway does not reach the new version yet (503)'],
  ['0 of 1 instances are ready.', '0 of 1 instances are ready'],
  ['Then', 'Then'],
])('the message of the controller continues after "Waiting: ": %s', (message, expected) => {
  expect(awaitedIn(message)).toBe(expected);
});
