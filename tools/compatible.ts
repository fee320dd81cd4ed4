// `npm run check -- compatible`: fields of kf's kinds are only added (docs/compatibility.md). Compares manifests/crds with every earlier release.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { compareKinds, unexcused } from './releases/fields.ts';
import { narrowings } from './releases/narrowings.ts';
import { earlierReleases, filesOfRelease } from './releases/releases.ts';

const folder = 'manifests/crds';
const root = path.join(import.meta.dirname, '..');

const present = readdirSync(path.join(root, folder)).map((name) => readFileSync(path.join(root, folder, name), 'utf8'));
const releases = earlierReleases();
const used = new Set<(typeof narrowings)[number]>();

for (const [index, release] of releases.entries()) {
  const reasons = narrowings.filter(({ until }) => releases.findIndex(({ name }) => name === until) >= index);
  const differences = compareKinds(Object.values(await filesOfRelease(release, folder, root)), present);
  for (const reason of reasons) if (differences.some(({ at, what }) => reason.where.test(`${at} ${what}`))) used.add(reason);
  for (const { at, kind, what, before, now } of unexcused(differences, reasons)) {
    console.log(`${at}: ${what} was ${before} in ${release.name}, and is ${now} now (${kind}).`);
    process.exitCode = 1;
  }
}
for (const reason of narrowings.filter((one) => !used.has(one))) {
  console.log(`tools/releases/narrowings.ts: nothing differs at ${String(reason.where)} any more.`);
  process.exitCode = 1;
}
if (process.exitCode === 1)
  console.log(
    'Stored objects, and the kf and the controller of another release, know the field as it was. Keep it, and add another one beside it; where less is valid for a good reason, name it in tools/releases/narrowings.ts.',
  );
