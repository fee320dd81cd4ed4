// Explicit buildpacks: makes the text of an order.toml from the user's names and the builder's buildpacks. CLI and controller use the same rules.

/** One buildpack of the builder. */
export interface Offered {
  id: string;
  version: string;
}

export type OrderResult = { ok: true; order: string } | { ok: false; message: string };

/** `nodejs_buildpack` and `paketo-buildpacks/nodejs` both mean `nodejs`. */
function shortName(id: string): string {
  const last = id.slice(id.lastIndexOf('/') + 1).toLowerCase();
  return last.replace(/[-_]?buildpack$/, '') || last;
}

function find(wanted: string, offered: readonly Offered[]): Offered | undefined {
  const [id = '', version] = wanted.split('@');
  const fits = (candidate: Offered) => version === undefined || candidate.version === version;
  const exact = offered.find((candidate) => candidate.id === id && fits(candidate));
  if (exact !== undefined) return exact;
  const similar = offered.filter((candidate) => shortName(candidate.id) === shortName(id) && fits(candidate));
  return new Set(similar.map((candidate) => candidate.id)).size === 1 ? similar[0] : undefined;
}

/** The buildpack that reads processes from a Procfile: `kf/procfile`, `paketo-buildpacks/procfile`, `heroku/procfile`. */
function procfileBuildpack(group: readonly Offered[], offered: readonly Offered[]): Offered | undefined {
  const own = offered.filter(({ id }) => shortName(id) === 'procfile');
  return new Set(own.map(({ id }) => id)).size === 1 && !group.some(({ id }) => shortName(id) === 'procfile') ? own[0] : undefined;
}

/**
 * An order with one group: the wanted buildpacks in their order, then the builder's own buildpack for a Procfile, if there is one. In cf a
 * Procfile counts with every buildpack, and its processes override others. Each wanted one is an id of the builder, with or without `@version`, or
 * its last part in cf's style (`nodejs_buildpack`).
 */
export function explicitOrder(wanted: readonly string[], offered: readonly Offered[]): OrderResult {
  const group: Offered[] = [];
  for (const name of wanted) {
    if (/^[a-z]+:\/\//i.test(name))
      return { ok: false, message: `The buildpack '${name}' is a URL; builds take buildpacks from the builder only.` };
    const found = find(name, offered);
    if (found === undefined) {
      const names = [...new Set(offered.map((candidate) => candidate.id))].join(', ');
      return { ok: false, message: `The builder has no buildpack '${name}'. It has: ${names === '' ? 'none' : names}.` };
    }
    group.push(found);
  }
  const entry = ({ id, version }: Offered): string => `[[order.group]]\nid = ${JSON.stringify(id)}\nversion = ${JSON.stringify(version)}\n`;
  const procfile = procfileBuildpack(group, offered);
  const last = procfile === undefined ? '' : `${entry(procfile)}optional = true\n`;
  return { ok: true, order: `[[order]]\n${group.map(entry).join('')}${last}` };
}
