// One watch connection as an async iterable. Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes

import type { Readable } from 'node:stream';
import { stored } from '../api/object.ts';
import type { KubeObject, ResourceType } from '../api/object.ts';
import type { WatchEvent } from './cluster.ts';
import { errorFromStatus } from './errors.ts';
import type { Identity, StatusBody } from './errors.ts';
import { linesFrom } from './lines.ts';

interface WireEvent {
  type: string;
  object: KubeObject & StatusBody;
}

function eventFrom<T extends KubeObject>(
  kind: ResourceType<T>,
  { type, object }: WireEvent,
  identity: Identity,
): WatchEvent<T> | undefined {
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type, object: stored(kind, object as unknown as T) };
    case 'BOOKMARK':
      return { type, resourceVersion: object.metadata.resourceVersion ?? '' };
    case 'ERROR':
      throw errorFromStatus(object, identity);
    default:
      return undefined;
  }
}

/** Ends when the server, the network or the signal ends it; throws the server's error (KubeError, `expired` on 410). */
export async function* watchEvents<T extends KubeObject>(
  kind: ResourceType<T>,
  open: () => Promise<Readable>,
  identity: Identity,
  signal?: AbortSignal,
): AsyncGenerator<WatchEvent<T>> {
  const stream = await open();
  try {
    for await (const line of cutIsEnd(linesFrom(stream, { keepRest: false }))) {
      if (signal?.aborted === true) return;
      if (line.trim() === '') continue;
      const event = eventFrom(kind, JSON.parse(line) as WireEvent, identity);
      if (event !== undefined) yield event;
    }
  } finally {
    stream.destroy();
  }
}

/** A broken connection ends this watch like a normal end: the next watch continues after the last event. */
async function* cutIsEnd(lines: AsyncGenerator<string>): AsyncGenerator<string> {
  for (;;) {
    const next = await lines.next().catch(() => undefined);
    if (next === undefined || next.done === true) return;
    yield next.value;
  }
}
