import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const dir = mkdtempSync(path.join(tmpdir(), 'kf-stdin-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Prints the lines that it reads as JSON, then ends. Its argument is their number. */
const reader = path.join(dir, 'reader.ts');
writeFileSync(
  reader,
  `import { stdinLines } from ${JSON.stringify(fileURLToPath(new URL('../../../src/lib/output/stdin-lines.ts', import.meta.url)))};
const controller = new AbortController();
process.on('SIGINT', () => controller.abort(new Error('interrupted')));
// As a command does before it asks: this opens stdin, too.
void process.stdin.isTTY;
const lines = stdinLines();
if (lines === undefined) console.log('no stdin');
for (let left = Number(process.argv[2]); lines && left > 0; left -= 1) {
  console.log(left === 9 ? 'ready' : JSON.stringify(await lines.next(controller.signal).catch((error) => error.message)) ?? 'none');
}
`,
);

/** What a shell prints in which `$READ N` reads N lines. */
function shell(script: string, stdin?: string): string {
  const env = { ...process.env, READ: `${process.execPath} ${reader}`, FOLDER: dir };
  const input = stdin === undefined ? {} : { input: stdin };
  return execFileSync('bash', ['-c', script], { env, encoding: 'utf8', ...input });
}

describe('lines of stdin', () => {
  it.each([
    ['a pipe', `printf 'y\\nthe\\nrest' | { $READ 1; cat; }`],
    ['a file', `printf 'y\\nthe\\nrest' > $FOLDER/answers; { $READ 1; cat; } < $FOLDER/answers`],
  ])('of %s are read one by one, and the rest stays for the next program', (_, script) => {
    expect(shell(script)).toBe('"y"\nthe\nrest');
  });

  it('come from a socket, as Node gives its children', () => {
    expect(shell('exec $READ 3', 'one\r\n\n')).toBe('"one"\n""\nnone\n');
  });

  it('leave the script of a shell that reads it from the same pipe', () => {
    expect(shell(`printf 'echo 1\\n$READ 1\\nyes\\necho 2\\n' | bash -s`)).toBe('1\n"yes"\n2\n');
  });

  it('end without a line end', () => {
    expect(shell(`printf 'last' | $READ 3`)).toBe('"last"\nnone\nnone\n');
  });

  it('may come without end', () => {
    expect(shell('yes | $READ 2')).toBe('"y"\n"y"\n');
    expect(shell('head -c 70000 /dev/zero | $READ 1')).toBe('none\n');
  });

  it.each(['</dev/null', '<&-', '< /'])('are not there with %s', (from) => {
    expect(shell(`$READ 1 ${from}`)).toBe('no stdin\n');
  });

  it('are no longer awaited after an interruption, and the process can end before the writer', async () => {
    const child = spawn(process.execPath, [reader, '9'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      if (text.includes('ready')) child.kill('SIGINT');
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect([code, out]).toEqual([0, `ready\n${'"interrupted"\n'.repeat(8)}`]);
  });
});
