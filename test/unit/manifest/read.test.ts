import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readPushPlan } from '../../../src/lib/manifest/read.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kf-manifest-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});
const write = (name: string, text: string) => writeFile(join(folder, name), text);

test('manifest.yml of the working folder is the default, and has priority over manifest.yaml', async () => {
  await write('manifest.yaml', 'applications: [{name: second}]');
  await write('manifest.yml', 'applications: [{name: first}]');
  const plan = await readPushPlan(folder, {});
  expect(plan.apps[0]?.name).toBe('first');
  expect(plan.manifest).toEqual({ path: join(folder, 'manifest.yml'), asGiven: join(folder, 'manifest.yml') });
});

test('--no-manifest reads none', async () => {
  await write('manifest.yml', 'applications: [{name: first}]');
  expect((await readPushPlan(folder, { name: 'x', noManifest: true })).manifest).toBeUndefined();
});

test('-f takes a file or a folder', async () => {
  await mkdir(join(folder, 'deploy'));
  await write('deploy/manifest.yaml', 'applications: [{name: deep}]');
  await write('other.yml', 'applications: [{name: other}]');
  expect((await readPushPlan(folder, { manifest: 'deploy' })).apps[0]?.name).toBe('deep');
  expect((await readPushPlan(folder, { manifest: 'other.yml' })).manifest?.asGiven).toBe('other.yml');
});

test('a manifest that does not exist is named as it was typed', async () => {
  await mkdir(join(folder, 'empty'));
  await expect(readPushPlan(folder, { manifest: 'nope.yml' })).rejects.toThrow(
    "Incorrect Usage: The specified path 'nope.yml' does not exist.",
  );
  await expect(readPushPlan(folder, { manifest: 'empty' })).rejects.toThrow(
    "Incorrect Usage: The specified directory 'empty' does not contain a file named 'manifest.yml'.",
  );
});

test('errors in the default manifest name it by its short name', async () => {
  await write('manifest.yml', 'applications: [{instances: x}]');
  await expect(readPushPlan(folder, {})).rejects.toThrow(/^manifest\.yml:1:28: instances must be a whole number/);
});

test('variables come from files and flags', async () => {
  await write('manifest.yml', 'applications: [{name: ((a))-((b))}]');
  await write('vars.yml', 'a: one\nb: two');
  expect((await readPushPlan(folder, { varsFiles: ['vars.yml'], vars: ['b=three'] })).apps[0]?.name).toBe('one-three');
  await expect(readPushPlan(folder, { varsFiles: ['nope.yml'] })).rejects.toThrow(
    "Incorrect Usage: The specified path 'nope.yml' does not exist.",
  );
});

test('a missing file has the class of what does not exist, whatever names it', async () => {
  await write('manifest.yml', 'applications: [{name: a}]');
  const absent = { code: 'not-found' };
  await expect(readPushPlan(folder, { manifest: 'nope.yml' })).rejects.toMatchObject(absent);
  await expect(readPushPlan(folder, { varsFiles: ['nope.yml'] })).rejects.toMatchObject(absent);
  await expect(readPushPlan(folder, { path: 'gone' })).rejects.toMatchObject(absent);
  await write('manifest.yml', 'applications: [{name: a, path: gone}]');
  await expect(readPushPlan(folder, {})).rejects.toMatchObject(absent);
});

test('the message about a missing path names its origin', async () => {
  await expect(readPushPlan(folder, { name: 'a', path: 'gone' })).rejects.toThrow(
    "Incorrect Usage: The specified path 'gone' does not exist.",
  );
  await write('manifest.yml', 'applications: [{name: a, path: gone}]');
  await expect(readPushPlan(folder, {})).rejects.toThrow(
    `File not found locally, make sure the file exists at given path ${join(folder, 'gone')}`,
  );
});

test('an image whose name is none is refused, with its place in the manifest and the command for another one', async () => {
  const why =
    "The image reference 'Upper Case' is not valid: 'Upper Case' is not a repository name (lower case letters, digits, '.', '_', '-', '/').";
  await expect(readPushPlan(folder, { name: 'shop', dockerImage: 'Upper Case', memoryMB: 64 })).rejects.toMatchObject({
    code: 'usage',
    message: `Incorrect Usage: ${why}`,
    hints: ['kf push shop -m 64M -o IMAGE'],
  });
  await write('manifest.yml', 'applications:\n- name: front\n- name: back\n  docker:\n    image: Upper Case\n');
  const wrong = { code: 'usage', message: `Incorrect Usage: manifest.yml:5:12: ${why}`, hints: ['kf push back -o IMAGE'] };
  await expect(readPushPlan(folder, {})).rejects.toMatchObject(wrong);
  await expect(readPushPlan(folder, { name: 'back' })).rejects.toMatchObject(wrong);
  await expect(readPushPlan(folder, { name: 'back', dockerImage: 'node:24' })).resolves.toMatchObject({
    apps: [{ docker: { image: 'node:24' } }],
  });
});
