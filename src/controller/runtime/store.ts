// The cache of one kind: objects by namespace and name, with indexes, never older than a version that was already seen.

import { compareResourceVersions, type KubeObject, type Stored } from '../../lib/api/object.ts';
import { BoundedMap } from './bounded-map.ts';

/** `namespace/name`, or `/name` for a cluster-scoped object: the keys of the queues. */
export function keyOf({ metadata }: Stored): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

export function splitKey(key: string): { ns: string; name: string } {
  const slash = key.indexOf('/');
  return { ns: key.slice(0, slash), name: key.slice(slash + 1) };
}

export type IndexFunction<T extends KubeObject> = (object: Stored<T>) => readonly string[];

const rememberedDeletions = 500;

/** The keys of the objects that have a value. Most values have one object, and a Set of one is larger than most objects. */
type Keys = Map<string, string | Set<string>>;

function addKey(keys: Keys, value: string, key: string): void {
  const present = keys.get(value);
  if (present === undefined || present === key) keys.set(value, key);
  else if (typeof present === 'string') keys.set(value, new Set([present, key]));
  else present.add(key);
}

function removeKey(keys: Keys, value: string, key: string): void {
  const present = keys.get(value);
  if (present === key) keys.delete(value);
  else if (typeof present === 'object' && present.delete(key) && present.size === 0) keys.delete(value);
}

export class Store<T extends KubeObject> {
  /**
   * Since when (milliseconds by the API server's clock) changes have arrived without a gap; 0 when no gap is known, from this process or the leader before.
   * Right after a gap the API server's own data may be old: kubelets and gateways were cut off too, and report later what happened in the meantime.
   */
  steadySince = 0;
  readonly #objects = new Map<string, Stored<T>>();
  readonly #indexes = new Map<string, { of: IndexFunction<T>; keys: Keys }>();
  /** Version at which an object was last known to be gone, by uid. An object that only left the selector may come back with a later version. */
  readonly #deleted = new BoundedMap<string, string>(rememberedDeletions);

  get size(): number {
    return this.#objects.size;
  }

  /** Adds an index and indexes the existing objects. */
  addIndex(name: string, of: IndexFunction<T>): void {
    if (this.#indexes.has(name)) return;
    this.#indexes.set(name, { of, keys: new Map() });
    for (const [key, object] of this.#objects) this.#index(key, object, [name]);
  }

  get(ns: string | undefined, name: string): Stored<T> | undefined {
    return this.#objects.get(`${ns ?? ''}/${name}`);
  }

  /** All objects, or those of one namespace. */
  list(ns?: string): Stored<T>[] {
    const all = [...this.#objects.values()];
    return ns === undefined ? all : all.filter((object) => object.metadata.namespace === ns);
  }

  by(index: string, value: string): Stored<T>[] {
    const keys = this.#indexed(index).get(value);
    if (keys === undefined) return [];
    return (typeof keys === 'string' ? [keys] : [...keys]).flatMap((key) => this.#objects.get(key) ?? []);
  }

  /** The number of objects that {@link by} returns; it costs the same, however many they are. */
  count(index: string, value: string): number {
    const keys = this.#indexed(index).get(value);
    return typeof keys === 'string' ? 1 : (keys?.size ?? 0);
  }

  #indexed(name: string): Keys {
    const found = this.#indexes.get(name);
    if (found === undefined) throw new Error(`The store has no index "${name}".`);
    return found.keys;
  }

  /** The error of an index that cannot read the object; undefined if it can be stored. */
  faultOf(object: Stored<T>): unknown {
    try {
      for (const { of } of this.#indexes.values()) of(object);
      return undefined;
    } catch (error) {
      return error;
    }
  }

  /** Stores an object unless a later version of it was seen; returns whether it was stored. Not for one with a {@link faultOf}. */
  put(object: Stored<T>): boolean {
    const key = keyOf(object);
    const { uid, resourceVersion } = object.metadata;
    const current = this.#objects.get(key);
    const isOlder = current?.metadata.uid === uid && compareResourceVersions(resourceVersion, current.metadata.resourceVersion) < 0;
    if (isOlder || this.#isGone(uid, resourceVersion)) return false;
    if (current !== undefined) this.#unindex(key, current);
    this.#objects.set(key, object);
    this.#index(key, object, this.#indexes.keys());
    return true;
  }

  #isGone(uid: string, version: string): boolean {
    const goneAt = this.#deleted.get(uid);
    return goneAt !== undefined && compareResourceVersions(version, goneAt) <= 0;
  }

  /** @param version at which it is known to be gone; by default its own (that of a watch event) */
  remove(object: Stored<T>, version = object.metadata.resourceVersion): void {
    const key = keyOf(object);
    const current = this.#objects.get(key);
    const { uid } = object.metadata;
    this.#deleted.set(uid, version);
    if (current?.metadata.uid !== uid) return;
    this.#unindex(key, current);
    this.#objects.delete(key);
  }

  /** Makes the store equal to a list of `version` and returns the objects that vanished. Objects with a later version than the list stay. */
  replaceAll(objects: readonly Stored<T>[], version: string): Stored<T>[] {
    const fresh = new Set(objects.map((object) => keyOf(object)));
    const vanished = [...this.#objects]
      .filter(([key, object]) => !fresh.has(key) && compareResourceVersions(object.metadata.resourceVersion, version) <= 0)
      .map(([, object]) => object);
    for (const object of vanished) this.remove(object, version);
    for (const object of objects) this.put(object);
    return vanished;
  }

  /** Deletes everything, including the record of deletions. */
  clear(): void {
    this.#objects.clear();
    this.#deleted.clear();
    for (const index of this.#indexes.values()) index.keys.clear();
  }

  #index(key: string, object: Stored<T>, names: Iterable<string>): void {
    for (const name of names) {
      const index = this.#indexes.get(name);
      if (index === undefined) continue;
      for (const value of index.of(object)) addKey(index.keys, value, key);
    }
  }

  #unindex(key: string, object: Stored<T>): void {
    for (const index of this.#indexes.values()) {
      for (const value of index.of(object)) removeKey(index.keys, value, key);
    }
  }
}
