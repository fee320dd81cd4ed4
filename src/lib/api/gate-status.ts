// The registry gate's answers to the keeper below `/kf/`: about itself, about its contents, and about what it removed.

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
  /** Unix seconds of the gate's clock before it read the list. */
  now: number;
  repositories: string[];
  /** Left out on the last page. */
  next?: string;
}

/** Body of `POST /kf/repositories/<space>/<name>/collection`. */
export interface CollectionRequest {
  /** The manifests that are in use: digests (`sha256:…`), and tags, which keep what they name now. */
  keep: string[];
  /**
   * What was stored, found by a push or kept by a collection after this time stays too. Unix seconds of the gate's clock, and at least
   * {@link leastUnusedSeconds} before the objects were read that name what is in use: an object may be made later, and it names what its push has
   * used shortly before.
   */
  unusedSince: number;
  /** Only tell what would go. */
  dryRun?: boolean;
}

/** No push needs longer from its last request to the registry until the object exists that names its image. */
export const leastUnusedSeconds = 300;

export interface BlobSize {
  /** 64 hexadecimal digits. */
  digest: string;
  bytes: number;
}

/** What left a repository, or would leave it. Other repositories may share the blobs. */
export interface Collected {
  manifests: number;
  layers: number;
  /** Only with `dryRun`. */
  blobs?: BlobSize[];
  /** A push uses the repository, so nothing was removed. */
  isUsed?: boolean;
}

/** Answer to `GET /kf/repositories/<space>/<name>`. */
export interface RepositoryContent {
  blobs: BlobSize[];
}

/** Body of `POST /kf/references`, with at most {@link mostCounted} digests; the answer has how many references each of them has. */
export interface ReferenceRequest {
  digests: string[];
}

export const mostCounted = 10_000;

export interface ReferenceCounts {
  counts: Record<string, number>;
}

/** Answer to `POST /kf/sweep`: the blobs that no repository referred to. */
export interface Swept {
  blobs: number;
  bytes: number;
}
