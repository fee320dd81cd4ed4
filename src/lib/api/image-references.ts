// Which images of the in-cluster registry the objects of a space refer to. Everything else in its repositories may go (decision 76).

import { findCondition } from './conditions.ts';
import type { StatefulSet } from './core.ts';
import { conditionTypes } from './group.ts';
import type { ObjectMeta } from './object.ts';
import type { ImageKind } from './repositories.ts';
import type { AppWorkload, BuildWorkload, CFBuild, CFPackage, TaskWorkload } from './types.generated.ts';

/** Repository (`<space>/<name>`) → the digests and tags that are in use. */
export type ImageReferences = Map<string, Set<string>>;

export interface ReferringObjects {
  packages: readonly CFPackage[];
  builds: readonly CFBuild[];
  buildWorkloads: readonly BuildWorkload[];
  workloads: readonly AppWorkload[];
  sets: readonly StatefulSet[];
  tasks: readonly TaskWorkload[];
}

const hasEnded = (object: BuildWorkload | TaskWorkload): boolean =>
  [conditionTypes.succeeded, 'Failed'].some((type) => ['True', 'False'].includes(findCondition(object, type)?.status ?? ''));

/** The image that a package or a build gets, under its tag. */
const ownImage = ({ namespace, name }: ObjectMeta, { appRef }: { appRef: { name: string } }, kind: ImageKind): string | undefined =>
  namespace === undefined ? undefined : `${namespace}/${appRef.name}-${kind}:${name}`;

/** The images that the objects name. Builds and tasks that have ended need none. */
function imagesOf({ packages, builds, buildWorkloads, workloads, sets, tasks }: ReferringObjects): (string | undefined)[] {
  return [
    ...packages.map(({ metadata, spec }) => spec.source?.registry.image ?? ownImage(metadata, spec, 'packages')),
    // A build that has ended may not have its result yet, however long ago: the controller may have been away.
    ...builds
      .filter(({ status }) => status?.state !== 'FAILED')
      .map(({ metadata, spec, status }) => status?.droplet?.registry.image ?? ownImage(metadata, spec, 'droplets')),
    ...buildWorkloads.filter((build) => !hasEnded(build)).map(({ spec }) => spec.source?.registry.image),
    ...workloads.map(({ spec }) => spec.image),
    ...sets.flatMap(({ spec }) => spec?.template.spec?.containers.map(({ image }) => image)),
    ...tasks.filter((task) => !hasEnded(task)).map(({ spec }) => spec.image),
  ];
}

/** `HOST/<space>/<name>`, with a tag, a digest or both. */
const reference =
  /(?:^|\/)([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9._-]{0,254})(?::([a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/;

/**
 * The references of a space's objects to repositories of the same space: what they name of another space does not count, so nobody can keep the images of
 * others. The registry's host does not matter, because it has several names; a reference to another registry only keeps more.
 */
export function referencesOf(space: string, objects: ReferringObjects): ImageReferences {
  const references: ImageReferences = new Map();
  for (const image of imagesOf(objects)) {
    const [, inSpace, name = '', tag = 'latest', digest] = (image === undefined ? null : reference.exec(image)) ?? [];
    if (inSpace !== space) continue;
    const repository = `${space}/${name}`;
    references.set(repository, (references.get(repository) ?? new Set()).add(digest ?? tag));
  }
  return references;
}
