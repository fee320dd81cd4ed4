// One page of a list.

import type { Link, LinkTo, V3Resource } from './resource.ts';
import type { Paging, V3Query } from './query.ts';

/** Usually a resource; features have no GUID. */
export interface Sortable {
  [field: string]: unknown;
}

export interface V3Page {
  pagination: {
    total_results: number;
    total_pages: number;
    first: Link;
    last: Link;
    next: Link | null;
    previous: Link | null;
  };
  resources: Sortable[];
  /** Resources that belong to those of the page. */
  included?: Record<string, V3Resource[]>;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** By the wanted field, then by GUID, so that pages do not overlap. */
function inOrder<R extends Sortable>(resources: readonly R[], { orderBy, descending }: Paging): R[] {
  const sorted = resources.toSorted(
    (a, b) => compare(textOf(a[orderBy]), textOf(b[orderBy])) || compare(textOf(a['guid']), textOf(b['guid'])),
  );
  return descending ? sorted.reverse() : sorted;
}

/** The page of the resources that the query asks for. @param isOrdered the resources have an order of their own, unless the query asks for another */
export function pageOf(resources: readonly Sortable[], query: V3Query, link: LinkTo, isOrdered = false): V3Page {
  const paging = query.paging();
  const { page, perPage } = paging;
  const pages = Math.max(1, Math.ceil(resources.length / perPage));
  const to = (number: number): Link => link(query.page(number, perPage));
  return {
    pagination: {
      total_results: resources.length,
      total_pages: pages,
      first: to(1),
      last: to(pages),
      next: page < pages ? to(page + 1) : null,
      previous: page > 1 ? to(Math.min(page - 1, pages)) : null,
    },
    resources: (isOrdered && !query.has('order_by') ? resources : inOrder(resources, paging)).slice((page - 1) * perPage, page * perPage),
  };
}
