import { describe, expect, it } from 'vitest';
import { plainInk } from '../../../src/lib/output/ink.ts';
import { safeJson, safeName, safeText } from '../../../src/lib/output/safe-text.ts';
import { Terminal } from '../../../src/lib/output/terminal.ts';
import { pairs, table } from '../../../src/lib/views/block.ts';

const esc = '\x1b';

/** Output to a terminal may contain no other control characters than tab, line feed and whole colours. */
function isHarmless(text: string): boolean {
  return !/[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/.test(text.replace(/\x1b\[[0-9;:]*m/g, ''));
}

describe('text from others on a terminal', () => {
  it.each([
    ['plain text', 'plain text'],
    ['tab\tand\nline', 'tab\tand\nline'],
    ['日本 héllo 🚀 👩‍💻 שלום', '日本 héllo 🚀 👩‍💻 שלום'],
    // Colours.
    [`${esc}[31mred${esc}[0m.`, `${esc}[31mred${esc}[0m.`],
    [`${esc}[1;38;5;8mgrey${esc}[m`, `${esc}[1;38;5;8mgrey${esc}[m`],
    [`${esc}[38;2;5;6;8mrgb${esc}[39m`, `${esc}[38;2;5;6;8mrgb${esc}[39m`],
    [`${esc}[4:3mcurly${esc}[24m`, `${esc}[4:3mcurly${esc}[24m`],
    [`${esc}[1mbold${esc}[22m ${esc}[44mblue${esc}[49m`, `${esc}[1mbold${esc}[22m ${esc}[44mblue${esc}[49m`],
    ...['38:5:8', '48:2:5:6:8', '58:2::5:6:8', '038;5;8', '38;5;8;48;2;8;8;8;1', '97;107'].map((code) => [
      `${esc}[${code}mx${esc}[0m`,
      `${esc}[${code}mx${esc}[0m`,
    ]),
    // A colour ends with its line.
    [`${esc}[31mred\nnext`, `${esc}[31mred${esc}[0m\nnext`],
    [`${esc}[97;100mloud`, `${esc}[97;100mloud${esc}[0m`],
    // Colours that hide text, and sequences that only look like a colour.
    [`${esc}[8mhidden${esc}[0m`, `hidden${esc}[0m`],
    [`${esc}[31;8mhidden`, 'hidden'],
    [`${esc}[5mblink`, 'blink'],
    // Concealed text in every form, also behind a colour that a terminal does not know or that lacks numbers.
    ...['08', '8:1', '4:8', '1:8', '0;8', ';8', '264', '4294967304'].map((code) => [`${esc}[${code}mhidden`, 'hidden']),
    ...['38;9;8', '38:9:8', '38:9;8', '48;1;8', '58:6:8', '038;9;8', '38;;8', '38', '38;5', '38;2;8', '38;2;1;8', '38:2:8'].map((code) => [
      `${esc}[${code}mhidden`,
      'hidden',
    ]),
    ...['38;5;1:8', '38;5:8', '38:5;8', '38;5;1;8', '38;2;1;2;3;8', '38:2::1:2:3;8'].map((code) => [`${esc}[${code}mhidden`, 'hidden']),
    [`${esc}[>4;2mmodify keys`, 'modify keys'],
    [`${esc}[?4mx`, 'x'],
    [`${esc}[${'1;'.repeat(1000)}mx`, 'x'],
    // Cursor, screen, modes, reports, reset.
    [`a${esc}[2J${esc}[Hb${esc}[1A${esc}[2Kc`, 'abc'],
    [`${esc}[?1049h${esc}[?25l${esc}[?2004hx`, 'x'],
    [`${esc}[6n${esc}[c${esc}[18tx`, 'x'],
    [`${esc}c${esc}7${esc}8${esc}(0${esc}#8${esc}=x`, 'x'],
    // Title, clipboard, link, colours of the palette; DCS, APC, PM, SOS.
    [`${esc}]0;title\x07x`, 'x'],
    [`${esc}]52;c;cm0gLXJmIC8=${esc}\\x`, 'x'],
    [`${esc}]8;;http://evil${esc}\\link${esc}]8;;${esc}\\`, 'link'],
    [`${esc}P+q544e${esc}\\x${esc}_G a=T${esc}\\y${esc}^pm${esc}\\z${esc}Xsos\x07.`, 'xyz.'],
    // A control string does not extend over lines, nor over another escape.
    [`${esc}]0;title\nkept\x07`, '^[]0;title\nkept^G'],
    [`${esc}]0;${esc}[31mred`, `^[]0;${esc}[31mred${esc}[0m`],
    // Incomplete sequences.
    [esc, '^['],
    [`${esc}[`, '^[['],
    [`${esc}[31`, '^[[31'],
    [`${esc}]52;c;cm0=`, '^[]52;c;cm0='],
    [`${esc}${esc}[2K[31m`, '^[[31m'],
    [`${esc}[3\x071m`, '^[[3^G1m'],
    // C1 in one character.
    ['\x9b31mred\x9d0;title\x9c\x90q\x85', String.raw`\x9b31mred\x9d0;title\x9c\x90q\x85`],
    // Single characters: bell, backspace, carriage return, shift out, NUL, delete.
    ['a\x07b\x08c\rd\x0ee\x00f\x7fg\x0bh\x0ci', 'a^Gb^Hc^Md^Ne^@f^?g^Kh^Li'],
    ['progress 1%\rprogress 100%\r\n', 'progress 1%^Mprogress 100%^M\n'],
    // Directions and separators.
    ['user\u202egpj.exe \u2066x\u2069 \u200f \u061c \u2028', String.raw`user\u202egpj.exe \u2066x\u2069 \u200f \u061c \u2028`],
  ])('%j is shown as %j', (text, shown) => {
    expect(safeText(text)).toBe(shown);
    expect(isHarmless(shown)).toBe(true);
    expect(safeText(shown)).toBe(shown);
  });

  it('is harmless in any mixture, and if it is split into two chunks anywhere', () => {
    const parts = [
      esc,
      '[',
      ']',
      '0;',
      '8',
      '31',
      'm',
      '2J',
      'P',
      '\\',
      '\x07',
      '\n',
      'x',
      '\x9b',
      '\x9c',
      '?',
      '(',
      'c',
      '\u202e',
      '\r',
      '52;c;',
      '_',
      ' ',
    ];
    let seed = 7;
    const next = (): number => (seed = (seed * 1103515245 + 12345) % 2147483648);
    for (let round = 0; round < 5000; round += 1) {
      const text = Array.from({ length: 1 + (next() % 14) }, () => parts[next() % parts.length]).join('');
      expect(isHarmless(safeText(text)), JSON.stringify(text)).toBe(true);
      const cut = next() % (text.length + 1);
      expect(isHarmless(safeText(text.slice(0, cut)) + safeText(text.slice(cut))), JSON.stringify(text)).toBe(true);
    }
  });

  it('takes a time that grows only with its length', () => {
    // Each of these is half a million beginnings of a sequence that never ends: with quadratic time no test run would end.
    for (const part of [`${esc}[`, `${esc}[1`, `${esc}]`, `${esc}P${esc}`, `${esc}(`, '\x9b'])
      expect(safeText(part.repeat(500_000))).not.toContain(esc);
  });
});

describe('a printed name', () => {
  it('is one line without invisible characters', () => {
    expect(safeName(`shop${esc}]0;x\x07\n\tFAILED ${esc}[31m\u202e`)).toBe(String.raw`shop^[]0;x^G\n\tFAILED ^[[31m\u202e`);
  });
});

describe('JSON output', () => {
  it('escapes control characters, and its meaning stays', () => {
    const value = { text: `a${esc}[2J\x9b\u202e\x7f\r\n\u2028日本` };
    const document = safeJson(JSON.stringify(value, null, 2));
    expect(isHarmless(document)).toBe(true);
    expect(document).toContain('日本');
    expect(JSON.parse(document)).toEqual(value);
  });
});

describe('output', () => {
  const attack = `x${esc}]0;owned\x07\r${esc}[2J\x9b\u202e`;

  function record(isTTY: boolean, json = false) {
    const seen = { out: '', err: '' };
    const terminal = new Terminal(
      {
        env: {},
        stdout: { write: (text: string) => (seen.out += text), isTTY },
        stderr: () => ({ write: (text: string) => (seen.err += text), isTTY }),
        canAsk: () => false,
        json,
      },
      plainInk,
    );
    return { terminal, seen };
  }

  function writeAll(terminal: Terminal): void {
    terminal.out(attack);
    terminal.out(`App ${terminal.name(attack)}`);
    terminal.err(attack);
    terminal.ask(attack);
    terminal.warn(attack);
    terminal.print([
      table(['name', 'state'], [[attack, { text: attack, style: 'bad' }]]),
      pairs(['message:', attack]),
      { type: 'line', text: attack },
    ]);
  }

  it('is harmless on both streams of a terminal', () => {
    const { terminal, seen } = record(true);
    writeAll(terminal);
    expect(isHarmless(seen.out)).toBe(true);
    expect(isHarmless(seen.err)).toBe(true);
    expect(seen.out).toContain(String.raw`x^[]0;owned^G^M^[[2J\x9b\u202e`);
  });

  it('is unchanged elsewhere', () => {
    const { terminal, seen } = record(false);
    writeAll(terminal);
    expect(seen.out.split(attack)).toHaveLength(8);
    expect(seen.err).toBe(`${attack}\n${attack}\n`);
  });

  it.each([true, false])('with --json is escaped (terminal: %s)', (isTTY) => {
    const { terminal, seen } = record(isTTY, true);
    writeAll(terminal);
    terminal.document({ name: attack, warnings: terminal.warnings }, 2);
    expect(isHarmless(seen.out)).toBe(true);
    expect(JSON.parse(seen.out)).toEqual({ name: attack, warnings: [attack] });
  });

  it('aligns columns by the displayed text', () => {
    const { terminal, seen } = record(true);
    terminal.print([
      table(
        ['name', 'x'],
        [
          ['a\x07', '1'],
          ['longer', '2'],
        ],
      ),
    ]);
    expect(seen.out).toBe('name     x\na^G      1\nlonger   2\n');
  });
});
