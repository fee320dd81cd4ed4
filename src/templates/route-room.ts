// What fits in one HTTPRoute: the Gateway API allows 16 rules, and 16 backends in a rule (docs/decisions/0086).

export interface RouteBackend {
  service: string;
  /** Namespace of the Service; left out: the route's. */
  namespace?: string;
  port: number;
  /** GUID of the destination. */
  destination: string;
  generation: string;
  weight: number;
  /** An instance of the generation is ready. */
  isReady: boolean;
}

/** The most backends in a rule. A route leads to no more destinations. */
export const mostBackends = 16;
/** The Gateway API allows 16 rules. One is for plain requests, and one reports the revision. */
const mostProbes = 14;

/** The backends of each destination, in order. */
export function byDestination<T extends RouteBackend>(backends: readonly T[]): T[][] {
  const groups = new Map<string, T[]>();
  for (const backend of backends) {
    const key = `${backend.namespace ?? ''}/${backend.destination}`;
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [backend]);
    else known.push(backend);
  }
  return [...groups.values()];
}

/** The `most` heaviest backends of a destination; they get the whole weight of all. */
function heaviest(own: readonly RouteBackend[], most: number): RouteBackend[] {
  if (own.length <= most) return [...own];
  const sorted = own.toSorted((a, b) => b.weight - a.weight || (a.generation < b.generation ? -1 : 1));
  const rest = sorted.slice(most).reduce((sum, { weight }) => sum + weight, 0);
  const kept = new Map(sorted.slice(0, most).map((backend, index) => [backend, index === 0 ? backend.weight + rest : backend.weight]));
  return own.flatMap((backend) => {
    const weight = kept.get(backend);
    return weight === undefined ? [] : [{ ...backend, weight }];
  });
}

/**
 * The backends of plain requests. If there are too many, some destinations keep only the version that gets most of their requests: it has instances, so no
 * request is lost, and an update changes from one version to the other in a single step.
 */
export function mainOf(backends: readonly RouteBackend[]): RouteBackend[] {
  const weighted = backends.filter(({ weight }) => weight > 0);
  // If all weights were 0, there would be no backend. Then every backend gets a share, and the gateway answers for those without pods.
  const all = weighted.length > 0 ? weighted : backends.map((backend) => ({ ...backend, weight: 1 }));
  const groups = byDestination(all).slice(0, mostBackends);
  let room = mostBackends - groups.length;
  return groups.flatMap((own) => {
    const kept = heaviest(own, 1 + room);
    room -= kept.length - 1;
    return kept;
  });
}

/** The generations that requests with a header select. Those that may have to be proven come first: ready, and without requests. */
export function probedOf(backends: readonly RouteBackend[]): RouteBackend[] {
  const rank = ({ isReady, weight }: RouteBackend): number => (weight > 0 ? 1 : isReady ? 0 : 2);
  const chosen = new Set(backends.toSorted((a, b) => rank(a) - rank(b)).slice(0, mostProbes));
  return backends.filter((backend) => chosen.has(backend));
}
