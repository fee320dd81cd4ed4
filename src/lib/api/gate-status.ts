// What the registry's gate says of itself at `/kf/status`.

export interface GateStatus {
  /** Unix seconds by the gate's clock: the one that ends credentials. */
  now: number;
  /** Ids (`registryKeyId`) of the keys that count. */
  keys: string[];
  /** Of the volume that holds the images, in bytes. */
  room: { total: number; free: number; nearlyFull: boolean };
}
