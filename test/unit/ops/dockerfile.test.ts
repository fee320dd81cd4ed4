import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KfError } from '../../../src/lib/errors.ts';
import { withDockerfile } from '../../../src/lib/ops/builds/dockerfile.ts';

const docker = 'docker build -t IMAGE . && docker push IMAGE && kf push APP --docker-image IMAGE';
const failed = (reason: string): KfError =>
  new KfError('build', 'Error staging application: No buildpack recognised the source.', { hints: ['kf logs'], details: { reason } });
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kf-dockerfile-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('when no buildpack matches a folder with a Dockerfile, the error says that kf does not build it, and what to do', () => {
  writeFileSync(path.join(folder, 'Dockerfile'), 'FROM scratch\n');
  const error = failed('NoBuildpackMatched');
  expect(withDockerfile(error, folder)).toMatchObject({
    code: 'build',
    message: expect.stringMatching(/recognised the source\. kf does not build its Dockerfile: builds run without root/) as string,
    hints: [docker, 'kf logs'],
    details: error.details,
  });
});

test('other failures, and folders without a Dockerfile, keep their error', () => {
  const noMatch = failed('NoBuildpackMatched');
  expect(withDockerfile(noMatch, folder)).toBe(noMatch);
  writeFileSync(path.join(folder, 'Dockerfile'), 'FROM scratch\n');
  const other = failed('BuildFailed');
  expect(withDockerfile(other, folder)).toBe(other);
});
