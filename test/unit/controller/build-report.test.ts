import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { commandLine, factsFromLabel, factsFromMetadata, parseExportReport } from '../../../src/controller/builds/report.ts';
import { readBuilderReport } from '../../../src/controller/builds/builder-report.ts';

const metadata = `
[[buildpacks]]
  api = "0.10"
  homepage = "https://example.org/#x"
  id = "kf/nodejs"
  version = "1.0.0"

[[processes]]
  buildpack-id = "kf/nodejs"
  command = ["node", "--title", "a \\"b\\" \\u00e9"]
  args = [
    "server.js", # the entry
    "it's",
  ]
  default = true
  direct = true
  type = "web"
  working-dir = "/workspace"

[[processes]]
  command = ["bash", "-c", "node worker.js $MODE"]
  direct = true
  type = "worker"

[buildpack-default-process-type]
  count = 3
`;

describe('commandLine', () => {
  test.each([
    [{ command: ['node', 'server.js'], args: [], direct: true }, 'node server.js'],
    [{ command: ['node'], args: ['a b', "it's", '$X'], direct: true }, "node 'a b' 'it'\\''s' '$X'"],
    [{ command: ['npm start && echo "$X"'], args: [], direct: false }, 'npm start && echo "$X"'],
    [{ command: ['run'], args: ['a b', '$X', '"'], direct: false }, 'run "a b" "$X" "\\""'],
    [{ command: ['bash', '-c', 'a | b'], args: [], direct: true }, 'a | b'],
    [{ command: ['/bin/sh'], args: ['-c', 'a; b'], direct: true }, 'a; b'],
    [{ command: ['bash', '-c', 'echo $0', 'x y'], args: [], direct: true }, "bash -c 'echo $0' 'x y'"],
  ])('%j is %s', (process, line) => expect(commandLine(process)).toBe(line));
});

describe('the data of a droplet', () => {
  test('come from metadata.toml', () => {
    expect(factsFromMetadata(metadata)).toEqual({
      processTypes: [
        { type: 'web', command: `node --title 'a "b" é' server.js 'it'\\''s'` },
        { type: 'worker', command: 'node worker.js $MODE' },
      ],
      buildpacks: [{ name: 'kf/nodejs', version: '1.0.0' }],
    });
  });

  test('come from the image label too, whether commands are lists or text', () => {
    const label = {
      processes: [
        { type: 'web', command: ['node', 's.js'], direct: true },
        { type: 'x', command: 'run it', args: ['a b'] },
      ],
      buildpacks: [{ id: 'a', version: '2' }],
    };
    expect(factsFromLabel(JSON.stringify(label))).toEqual({
      processTypes: [
        { type: 'web', command: 'node s.js' },
        { type: 'x', command: 'run it "a b"' },
      ],
      buildpacks: [{ name: 'a', version: '2' }],
    });
  });

  test('are read from the termination message, which may contain only the digest', () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const packed = gzipSync('[[processes]]\ntype = "web"\ncommand = ["x"]\ndirect = true\n').toString('base64');
    expect(parseExportReport(`digest=${digest}\nmetadata=${packed}\n`)).toEqual({
      digest,
      facts: { processTypes: [{ type: 'web', command: 'x' }], buildpacks: [] },
    });
    expect(parseExportReport(`digest=${digest}\nmetadata=\n`)).toEqual({ digest });
    expect(parseExportReport(`digest=${digest}\nmetadata=bm90IGd6aXA=\n`)).toEqual({ digest });
    expect(parseExportReport('Error: something\ndigest=sha256:short')).toBeUndefined();
  });
});

describe('the report about a builder', () => {
  test('contains user, architecture, stack and each buildpack of the order once', () => {
    const order = gzipSync(
      '[[order]]\n[[order.group]]\nid = "a/x"\nversion = "1"\n[[order.group]]\nid = "b"\nversion = "2"\n[[order]]\n[[order.group]]\nid = "b"\nversion = "2"\n',
    );
    const message = `uid=1001\ngid=1002\nmachine=aarch64\nstack=s\ndescription=D = E\norder=${order.toString('base64')}\n`;
    expect(readBuilderReport(message)).toEqual({
      uid: 1001,
      gid: 1002,
      architecture: 'arm64',
      stack: 's',
      description: 'D = E',
      buildpacks: [
        { id: 'a/x', version: '1' },
        { id: 'b', version: '2' },
      ],
    });
  });

  test('never assumes root for an image without a user', () => {
    expect(readBuilderReport('uid=0\ngid=\nmachine=x86_64\nstack=\norder=\n')).toMatchObject({
      uid: 1000,
      gid: 1000,
      architecture: 'amd64',
      stack: 'unknown',
      buildpacks: [],
    });
  });
});
