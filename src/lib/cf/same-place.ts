// Commands in hints act where the command acted that prints them: they repeat its --context, --org and --space.

import { quoted } from './shell-word.ts';

/** What a user gave in place of the target. */
export interface GivenPlace {
  context?: string | undefined;
  org?: string | undefined;
  space?: string | undefined;
}

/** Commands that ask no cluster, or that choose the place themselves. */
const ofNoPlace = `
  api auth completion config help install-plugin login logout migrate plugins target uninstall-plugin version
`;
const ofClusters = `
  buildpacks ca-certificate create-org create-org-quota create-private-domain create-shared-domain curl delete-org delete-org-quota
  delete-private-domain delete-shared-domain disable-feature-flag enable-feature-flag feature-flag feature-flags org org-quota org-quotas org-users
  orgs prune rebuild rename-org rotate set-org-quota set-org-role set-space-role setup share-private-domain space-users stack stacks uninstall
  unset-org-role unset-space-role unshare-private-domain update-org-quota
`;
/** `copy-source` has another space for `--space`. */
const ofOrgs = `
  allow-space-ssh check-route copy-source create-space create-space-quota delete-space delete-space-quota disallow-space-ssh domains rename-space
  set-space-quota space space-quota space-quotas space-ssh-allowed spaces unset-space-quota update-space-quota
`;

/** How many parts of a {@link GivenPlace} a command looks at; one that is not listed looks at all. */
const lookedAt = new Map(
  [ofNoPlace, ofClusters, ofOrgs].flatMap((names, count) =>
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, count] as const),
  ),
);

/** A command, perhaps with variables before it. */
const onlyCommand = /^(?:[A-Z_]+=\S+ )*(?:kubectl )?[ck]f \w[^`',;]*[^`',;.]$/;

/**
 * Adds the place that was given to a hint that is a command, or ends with one after a colon, as far as that command looks at it.
 * @param hint such as `kf why shop` or `Set it in the manifest, then: kf push shop`; other texts stay
 */
export function inSamePlace(hint: string, place: GivenPlace): string {
  const colon = hint.lastIndexOf(': ');
  if (colon > 0) return `${hint.slice(0, colon + 2)}${inSamePlace(hint.slice(colon + 2), place)}`;
  if (!onlyCommand.test(hint)) return hint;
  const words = hint.split(' ');
  const name = words[words.findIndex((word) => word === 'kf' || word === 'cf') + 1] ?? '';
  const named = new Set(words);
  const given = (['context', 'org', 'space'] as const).slice(0, lookedAt.get(name) ?? 3).flatMap((part) => {
    const value = place[part];
    return value === undefined || named.has(`--${part}`) ? [] : [`--${part}`, quoted(value)];
  });
  return [hint, ...given].join(' ');
}
