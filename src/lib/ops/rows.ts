// Lists as rows that the API server prints: a tenth of the bytes and of the parsing time of whole objects.

import { kinds } from '../api/group.ts';
import type { ResourceType } from '../api/object.ts';
import { defined } from '../defined.ts';
import { KfError } from '../errors.ts';
import type { SpaceSession } from '../session/session.ts';

export type Row = Readonly<Record<string, string>>;

/** The part of a session that these lists need. */
export type RowReader = Pick<SpaceSession, 'cluster' | 'space' | 'signal' | 'bin'>;

/** Rows by column name. @param labelSelector left out: all. @throws KfError when the installation does not have a column */
export async function rowsOf(
  { cluster, space, signal, bin }: RowReader,
  type: ResourceType,
  columns: readonly string[],
  labelSelector?: string,
): Promise<Row[]> {
  const table = await cluster.table(type, { ns: space.guid, signal, rowObjects: 'None', ...defined({ labelSelector }) });
  const places = columns.map((name) => [name, table.columns.findIndex((column) => column.name === name)] as const);
  const lacking = places.find(([, index]) => index < 0)?.[0];
  if (lacking !== undefined) {
    throw new KfError('conflict', `The kind ${type.kind} of this cluster has no column '${lacking}': its kinds are older than this kf.`, {
      hints: [`${bin} setup`],
    });
  }
  return table.rows.map(({ cells }) => Object.fromEntries(places.map(([name, index]) => [name, String(cells[index] ?? '')])));
}

/** Display names of the space's apps by GUID. */
export async function appNames(session: RowReader): Promise<Map<string, string>> {
  const rows = await rowsOf(session, kinds.app, ['Name', 'Display Name']);
  return new Map(rows.map((row) => [row['Name'] ?? '', row['Display Name'] ?? '']));
}
