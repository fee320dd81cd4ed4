// Dockerfiles, which kf does not build (decision 68).

/** Why, and what to do instead. */
export const noDockerfiles = {
  because: 'builds run without root and without the right to mount file systems, and every builder of Dockerfiles needs one of them',
  hint: 'docker build -t IMAGE . && docker push IMAGE && kf push APP --docker-image IMAGE',
} as const;

/** Names that make a folder one for docker only. */
const dockerNames = new Set(['Dockerfile', '.dockerignore']);

/** Whether a build could only follow the Dockerfile. @param names of all entries at the root, or of the first ones */
export function isOnlyDockerfile(names: readonly string[]): boolean {
  return names.includes('Dockerfile') && names.every((name) => dockerNames.has(name));
}
