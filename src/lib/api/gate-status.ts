// The registry gate's answers at `/kf/status`, about itself, and at `/kf/repositories`, about its contents.

export interface GateStatus {
  /** Unix seconds of the gate's clock, which decides when credentials expire. */
  now: number;
  /** Ids (`registryKeyId`) of the valid keys. */
  keys: string[];
  /** Bytes of the volume with the images. */
  room: { total: number; free: number; nearlyFull: boolean };
}

/** A part of the repositories (`<space>/<name>`), in order. The next part is requested with `?after=`. */
export interface RepositoryPage {
  repositories: string[];
  /** Left out on the last page. */
  next?: string;
}
