import { describe, expect, test } from 'vitest';
import { repeatPush } from '../../../src/lib/manifest/again.ts';

describe('a hint to push again', () => {
  test('repeats this push with its manifest, folder and settings', () => {
    const flags = { name: 'shop', manifest: 'm8.yml', varsFiles: ['a.yml', 'b.yml'], path: 'my app', memoryMB: 64, noRoute: true };
    expect(repeatPush('kf push shop', flags)).toBe(
      "kf push shop -f m8.yml --vars-file a.yml --vars-file b.yml -p 'my app' -m 64M --no-route",
    );
  });

  test('keeps its own flags, which are not repeated', () => {
    expect(repeatPush('kf push shop -m 128M -i 1', { path: 'app', memoryMB: 1024 })).toBe('kf push shop -p app -m 128M -i 1');
    expect(repeatPush('Leave the stack out, or: cf push shop -s kf', { path: 'app', stack: 'none' })).toBe(
      'Leave the stack out, or: cf push shop -p app -s kf',
    );
    expect(repeatPush('No process; `kf push shop -c COMMAND` starts one.', { path: 'app' })).toBe(
      'No process; `kf push shop -p app -c COMMAND` starts one.',
    );
  });

  test('that advises an image names no source', () => {
    const flags = { path: 'app', buildpacks: ['nodejs'], memoryMB: 64 };
    expect(repeatPush('kf push shop --docker-image IMAGE', flags)).toBe('kf push shop -m 64M --docker-image IMAGE');
  });

  test('contains no value of a variable', () => {
    expect(repeatPush('kf push shop', { vars: ['password=secret', 'n=1'] })).toBe('kf push shop --var password=VALUE --var n=VALUE');
  });

  test('quotes arguments for a shell', () => {
    expect(repeatPush('kf push shop', { command: "echo 'it' && $X" })).toBe(String.raw`kf push shop -c 'echo '\''it'\'' && $X'`);
  });

  test('acts in the same place', () => {
    const flags = { path: 'app', context: 'prod', org: 'my org', space: 'dev' };
    expect(repeatPush('kf push shop -s kf', flags)).toBe("kf push shop -p app --context prod --org 'my org' --space dev -s kf");
  });

  test('is unchanged if the push had no flags, and so are hints to other commands', () => {
    expect(repeatPush('kf push shop', { name: 'shop', noStart: false })).toBe('kf push shop');
    expect(repeatPush('kf logs shop --recent', { path: 'app' })).toBe('kf logs shop --recent');
    expect(repeatPush('Unpack it and push the folder.', { path: 'app' })).toBe('Unpack it and push the folder.');
    expect(repeatPush("'kf push' makes a new one", { path: 'app' })).toBe("'kf push' makes a new one");
  });
});
