// The requests that `kf curl` answers, for `kf migrate check`, which loads nothing of their answers.

import { v3Routes } from '../src/lib/ops/v3/answer.ts';

/** Path and text of the module. */
export function requestsFile(): { file: string; text: string } {
  const rows = v3Routes.map(({ method, path }) => `  '${method} ${path}',`);
  const text = [
    '// Written by tools/generate.ts from src/lib/ops/v3.',
    '',
    'export const v3Requests: readonly string[] = [',
    ...rows,
    '];',
    '',
  ];
  return { file: 'src/lib/migration/requests.generated.ts', text: text.join('\n') };
}
