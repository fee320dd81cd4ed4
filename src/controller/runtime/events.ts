// Writes Kubernetes Events about our objects: one per transition, none while nothing changes.

import { eventType, type KubeEvent } from '../../lib/api/core.ts';
import { apiVersionOf, type KubeObject, type ResourceType, type Stored } from '../../lib/api/object.ts';
import type { Cluster } from '../../lib/kube/cluster.ts';
import { BoundedMap } from './bounded-map.ts';
import type { Logger } from './log.ts';

export interface EventNote {
  type: 'Normal' | 'Warning';
  /** CamelCase; equal to the reason of the condition that it reports. */
  reason: string;
  message: string;
}

const rememberedObjects = 2_000;
const longestMessage = 1_000;

/** The beginning of an object's name that fits into the name of an Event. No part of a name may end in a hyphen or be empty. */
const beginningOf = (name: string): string => name.slice(0, 200).replace(/(?<![-.])[-.]+$/, '');

export class EventRecorder {
  readonly #cluster: Cluster;
  readonly #log: Logger;
  readonly #instance: string;
  /** Last note per object and topic: the same note twice in a row is not a transition. */
  readonly #last = new BoundedMap<string, string>(rememberedObjects);
  #count = 0;

  constructor(cluster: Cluster, instance: string, log: Logger) {
    this.#cluster = cluster;
    this.#instance = instance;
    this.#log = log;
  }

  /** Sends the note unless it repeats the last one about this object; a failure is only logged. */
  record<T extends KubeObject>(type: ResourceType<T>, object: Stored<T>, note: EventNote, topic = 'state'): void {
    const about = `${object.metadata.uid} ${topic}`;
    const text = `${note.reason} ${note.message}`;
    if (this.#last.get(about) === text) return;
    this.#last.set(about, text);
    this.#cluster.create(eventType, this.#build(type, object, note)).catch((error: unknown) => {
      this.#log.debug('event not sent', { reason: note.reason, error: (error as Error).message });
    });
  }

  #build(type: ResourceType, object: Stored, note: EventNote): KubeEvent {
    const { name, namespace = '', uid } = object.metadata;
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    this.#count += 1;
    const suffix = `${Date.now().toString(16)}${(this.#count % 4096).toString(16).padStart(3, '0')}`;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${beginningOf(name)}.${suffix}`, namespace },
      involvedObject: { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name, uid },
      type: note.type,
      reason: note.reason,
      message: note.message.slice(0, longestMessage),
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component: 'kf-controller' },
      reportingComponent: 'kf.cloudfoundry.org/controller',
      reportingInstance: this.#instance,
    };
  }
}
