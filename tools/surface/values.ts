// Kinds of values: texts that cf's parser takes and refuses for each type, to compare with what kf's parser does with them.

import type { Accepts } from './own.ts';

interface Samples {
  taken: string[];
  refused: string[];
}

/** What cf's commands look at themselves, after the parser, has nothing refused here: kf's commands do the same, in their own tests. */
const samples: Readonly<Record<string, Samples>> = {
  string: { taken: ['word', 'two words', 'a=b'], refused: [] },
  int: { taken: ['1', '80'], refused: ['x', '1.5'] },
  uint: { taken: ['0', '7'], refused: ['x', '1.5'] },
  'int>=0': { taken: ['0', '7'], refused: ['-1', 'x', '1.5'] },
  'int>=1': { taken: ['1', '7'], refused: ['0', '-1', 'x', '1.5'] },
  'int>=-1': { taken: ['-1', '0', '7'], refused: ['-2', 'x', '1.5'] },
  megabytes: { taken: ['256M', '256MB', '1g', '1GB'], refused: ['256', '1.5G', 'x', '-1'] },
  'megabytes|-1': { taken: ['-1', '256M', '1g', '1GB'], refused: ['256', '1.5G', 'x', '-2'] },
  'bytes|-1': { taken: ['-1', '0', '16B', '16K', '16KB', '1M', '1G'], refused: ['16', '1.5K', 'x'] },
  route_path: { taken: ['/path', 'path'], refused: [] },
  'key=value': { taken: ['a=b', 'a=b=c'], refused: [] },
  'port[-port]': { taken: ['80', '80-90'], refused: ['x'] },
  port_forward: { taken: ['8080:localhost:80', '127.0.0.1:8080:db.example.com:5432'], refused: ['word', '8080', '8080:localhost'] },
};

function samplesOf(type: string, values: readonly string[]): Samples {
  if (type === 'enum') return { taken: [...values], refused: ['no-such-value'] };
  return samples[type] ?? { taken: ['word'], refused: [] };
}

/** Texts that kf takes and cf does not, or the other way. @param decided values with a decision of their own */
export async function valueDifferences(
  { type = 'string', values = [] }: { type?: string; values?: readonly string[] },
  accepts: Accepts,
  decided: readonly string[],
): Promise<string[]> {
  const { taken, refused } = samplesOf(type, values);
  const rejected = await Promise.all(
    taken.filter((text) => !decided.includes(text)).map(async (text) => ((await accepts(text)) ? [] : [`does not take '${text}'`])),
  );
  const tolerated = await Promise.all(refused.map(async (text) => ((await accepts(text)) ? [`takes '${text}', which cf refuses`] : [])));
  return [...rejected, ...tolerated].flat();
}
