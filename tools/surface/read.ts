// Reads everything that the comparison needs, and compares.

import { faultOfReference } from '../shown-by.ts';
import { compare, type Comparison } from './compare.ts';
import { readDecisions, readFacts } from './data.ts';
import { readOwnCommands } from './own.ts';
import { ownTable } from './table.ts';

/** The comparison of the repository at `root`. */
export async function compareAt(root: string): Promise<Comparison> {
  const [cf, own, decisions] = await Promise.all([readFacts(root), readOwnCommands(root), readDecisions(root)]);
  return compare({ cf, own, table: ownTable, decisions, faultOfTest: (...reference) => faultOfReference(root, ...reference) });
}
