// What a failed check says once the lines of the container are known.

import { expect, test } from 'vitest';
import { withLines } from '../../../src/controller/instances/failed-check.ts';
import type { Problem } from '../../../src/controller/instances/instances.ts';

const problem: Problem = {
  reason: 'HealthCheckFailed',
  cause: 'not-listening',
  message: 'It did not answer. The last check said: dial tcp 10.0.0.1:8080: connect: connection refused',
  final: true,
};
const log = { head: [], omitted: 0, tail: ['listening on port 9999'] };

test("a port that the app's own log names follows the kubelet's words as a sentence of its own", () => {
  expect(withLines(problem, log, { startSeconds: 60, port: 8080 })).toMatchObject({
    cause: 'wrong-port',
    message:
      "It did not answer. The last check said: dial tcp 10.0.0.1:8080: connect: connection refused. The app's own log says that it listens on port 9999; it must listen on the port in $PORT, which is 8080.",
  });
  expect(withLines({ ...problem, message: 'It did not answer.' }, log, { startSeconds: 60, port: 8080 }).message).toMatch(
    /^It did not answer\. The app/,
  );
});

test('an app that says that it listens on its port, beside another one, has not the wrong port', () => {
  const both = { ...log, tail: ['listening on :9999', 'listening on 127.0.0.1:8080'] };
  expect(withLines(problem, both, { startSeconds: 60, port: 8080 })).toEqual(problem);
});

test.each(['Server waiting for database at db:5432', 'Server started at 10:15:00'])('"%s" names no port of the app', (line) => {
  expect(withLines(problem, { ...log, tail: [line] }, { startSeconds: 60, port: 8080 })).toEqual(problem);
});
