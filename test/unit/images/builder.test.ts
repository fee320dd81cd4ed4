import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { builderLabels, readBuildpacks } from '../../../tools/cluster/images/builder.ts';

test('every buildpack has its own id and both phases as programs', () => {
  const buildpacks = readBuildpacks();
  expect(buildpacks.map(({ id }) => id)).toEqual(['kf/binary', 'kf/go', 'kf/nodejs', 'kf/procfile', 'kf/python', 'kf/staticfile']);
  for (const { folder } of buildpacks) {
    for (const phase of ['detect', 'build']) accessSync(join(folder, 'bin', phase), constants.X_OK);
  }
});

test('the labels list exactly the buildpacks that the order uses', () => {
  const labels = builderLabels('reg/run:1', 'sha256:0');
  const order = JSON.parse(labels['io.buildpacks.buildpack.order'] ?? '') as {
    group: { id: string; version: string; optional?: boolean }[];
  }[];
  const layers = JSON.parse(labels['io.buildpacks.buildpack.layers'] ?? '') as Record<string, Record<string, unknown>>;
  const metadata = JSON.parse(labels['io.buildpacks.builder.metadata'] ?? '') as { buildpacks: { id: string; version: string }[] };
  const used = new Set(order.flatMap(({ group }) => group.map(({ id, version }) => `${id}@${version}`)));
  expect(new Set(metadata.buildpacks.map(({ id, version }) => `${id}@${version}`))).toEqual(used);
  expect(new Set(Object.entries(layers).flatMap(([id, versions]) => Object.keys(versions).map((version) => `${id}@${version}`)))).toEqual(
    used,
  );
});

test('the Procfile comes last in every group, and no group requires it', () => {
  const order = JSON.parse(builderLabels('reg/run:1', 'sha256:0')['io.buildpacks.buildpack.order'] ?? '') as {
    group: { id: string; optional?: boolean }[];
  }[];
  for (const { group } of order) expect(group.at(-1)).toMatchObject({ id: 'kf/procfile', optional: true });
});
