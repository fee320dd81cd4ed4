// Sets optional fields of an object without a condition for each.

/** Keys whose value may be undefined become optional; the others stay as they are. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * The entries whose value is not undefined, in their order: `{ name, ...defined({ path, port }) }` has no key `path` when there is no path. An
 * object that is compared, hashed or sent must not have keys with `undefined`.
 */
export function defined<T extends object>(entries: T): Defined<T> {
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as Defined<T>;
}
