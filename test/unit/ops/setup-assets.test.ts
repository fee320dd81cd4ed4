import { expect, test } from 'vitest';
import { parseManifest } from '../../../src/lib/ops/install/assets.ts';

test('a manifest has an object per document, without empty documents', () => {
  expect(parseManifest('a.yaml', 'kind: A\n---\n# nothing\n---\nkind: B\n')).toEqual([{ kind: 'A' }, { kind: 'B' }]);
});

test.each(['kind: A\n  name: b\n', 'kind: A\nkind: B\n', 'kind: "A\n'])('a manifest with an error is not applied in part: %j', (text) =>
  expect(() => parseManifest('a.yaml', text)).toThrow(/^manifests\/a\.yaml: /),
);
