// What the registry's gate says of itself at `/kf/status`, and of what it stores at `/kf/repositories`.

export interface GateStatus {
  /** Unix seconds by the gate's clock: the one that ends credentials. */
  now: number;
  /** Ids (`registryKeyId`) of the keys that count. */
  keys: string[];
  /** Of the volume that holds the images, in bytes. */
  room: { total: number; free: number; nearlyFull: boolean };
}

/** A part of the repositories (`<space>/<name>`), in order. The next part is asked for with `?after=`. */
export interface RepositoryPage {
  repositories: string[];
  /** Left out on the last page. */
  next?: string;
}
