// Reads a list page by page. Pages have a limit in bytes, whatever the size of their objects, and the reader holds one page at a time.

import type { ResourceType } from '../api/object.ts';
import { PageTooLargeError } from './body.ts';
import type { Table, TableOptions } from './cluster.ts';
import { isExpired } from './errors.ts';
import { resourcePath } from './paths.ts';

const mostObjects = 500;
/** More than the largest object that etcd accepts, so that a page with one object always fits. */
export const mostPageBytes = 8 * 1024 * 1024;
const mostRestarts = 3;

interface Page {
  metadata: { continue?: string; resourceVersion?: string };
}

/** One page of a list, as the server sends it. */
export interface ListPage<T> extends Page {
  items?: T[] | null;
}

/** One page of a list that the server has made a table. */
export interface TablePage extends Page {
  columnDefinitions: Table['columns'];
  rows?: Table['rows'] | null;
}

export interface PageReader<P extends Page> {
  type: ResourceType;
  options: TableOptions;
  /** Gets one page. @throws PageTooLargeError */
  read: (path: string) => Promise<P>;
  /** `first` is true again when the list had to start again. */
  take: (page: P, first: boolean) => void;
}

/** Returns the last page. If a continue token expired, the list starts again. */
export async function readPages<P extends Page>({ type, options, read, take }: PageReader<P>): Promise<P> {
  const { ns, labelSelector, fieldSelector, rowObjects: includeObject } = options;
  let limit = mostObjects;
  let token: string | undefined;
  for (let restarts = 0; ;) {
    const path = resourcePath(type, { ns, query: { limit, continue: token, labelSelector, fieldSelector, includeObject } });
    try {
      const page = await read(path);
      take(page, token === undefined);
      token = page.metadata.continue;
      if (token === undefined || token === '') return page;
      limit = Math.min(mostObjects, limit * 2);
    } catch (error) {
      if (error instanceof PageTooLargeError && limit > 1) {
        limit = Math.max(1, Math.floor(limit / 8));
      } else {
        if (!isExpired(error) || token === undefined || restarts >= mostRestarts) throw error;
        restarts += 1;
        token = undefined;
      }
    }
  }
}
